// Another site can lead here between the two clicks of a double click, or lay its window over this one and take it
// away: the second click would meet a button that nobody has seen.

// Milliseconds: more than there are between two clicks, and enough to see that this is another page.
const PAUSE = 800;

/** Have pointers do nothing for a moment, whatever motion somebody wishes for. The keyboard goes on. */
const hold = () => { document.body.animate({ pointerEvents: ["none", "none"] }, PAUSE); };

/** Hold now, and whenever somebody comes back to the page. */
export function holdClicks() {
  hold();
  addEventListener("focus", hold);
  document.addEventListener("visibilitychange", hold);
}
