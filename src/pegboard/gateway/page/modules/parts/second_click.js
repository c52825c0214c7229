// Double-clickjacking: another site can lead here between the two clicks of a double click, or lay its window over this
// one and take it away. The second click would meet a button that nobody has seen.

// Milliseconds: more than there are between two clicks, and enough to see that this is another page.
const PAUSE = 800;
// A click that brings the window to the front comes at once; the second of two takes longer.
const OWN = 40;

/** Have pointers do nothing for a moment, whatever motion somebody wishes for. The keyboard goes on. */
const hold = () => { document.body.animate({ pointerEvents: ["none", "none"] }, PAUSE); };

/** Hold now, and whenever the page is in front again, but for a click that itself brings it there. */
export function holdClicks() {
  hold();
  let soon = 0;
  addEventListener("focus", () => { soon = setTimeout(hold, OWN); });
  addEventListener("pointerdown", () => clearTimeout(soon));
  document.addEventListener("visibilitychange", hold);
}
