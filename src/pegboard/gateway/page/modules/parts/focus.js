// Where the focus goes when what has it goes away: else whoever uses the keyboard or listens begins anew.

const FIELDS = ":is(input, textarea, select, button, a):not(:disabled)";

/** Focus the first field in something. @param {Element | null | undefined} box */
export function focusWithin(box) {
  const field = box?.querySelector(FIELDS);
  if (field instanceof HTMLElement) field.focus();
  return Boolean(field);
}

/** Go on from the heading of the screen. */
export const focusHeading = () => document.querySelector("h1")?.focus({ preventScroll: true });

/** Focus what is now put before the row of a button: whoever adds something goes on in it. @param {any} event @param {string} row */
export function focusBefore({ currentTarget }, row) {
  // What the button does is drawn by then.
  setTimeout(() => focusWithin(currentTarget.closest(row).previousElementSibling));
}

/**
 * Keep the focus on the page: when what has it is taken away it goes to the heading, and when that can no longer be
 * used, to the first field of what it belongs to.
 * @param {Element} root
 */
export function keepFocus(root) {
  /** @type {any} */
  let last = null;
  const look = () => {
    const now = document.activeElement;
    if (!last || (last.isConnected && !last.disabled) || (now !== document.body && now !== last)) return;
    const box = last.isConnected && last.closest("form, .filters");
    last = null;
    if (!focusWithin(box || null)) focusHeading();
  };
  root.addEventListener("focusin", ({ target }) => { last = target; });
  // Whoever presses somewhere else has left it.
  root.addEventListener("pointerdown", ({ target }) => { if (!last?.contains(target)) last = null; });
  new MutationObserver(() => setTimeout(look)).observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] });
}
