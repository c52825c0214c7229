// Patterns of a config's `tools.allow` and `tools.deny`, as the gateway reads them: those of Python's fnmatch.

// A set, or one sign.
const SIGNS = /\[(?:![^]|[^!])[^\]]*\]|[^]/gu;

/** The pattern that means a name alone: servers choose names, and a name may look like a pattern. @param {string} name */
export const exactly = (name) => name.replace(/[*?[]/g, "[$&]");

/** Whether a sign of a pattern takes a letter. @param {string} sign @param {string} letter */
function takes(sign, letter) {
  if (!/^\[./s.test(sign)) return sign === "?" || sign === letter;
  try {
    return new RegExp(`^[${sign.slice(1, -1).replace(/[\\[\]^]/g, "\\$&").replace(/^!/, "^")}]$`, "u").test(letter);
  } catch {
    // A range whose end comes first is empty.
    return false;
  }
}

/** Whether a pattern means a name. @param {string} pattern @param {string} name */
export function means(pattern, name) {
  const letters = [...name];
  const all = [...letters.keys(), letters.length];
  // How far the signs until now may reach: all of them at once, so that no pattern takes long.
  let places = [0];
  for (const sign of pattern.match(SIGNS) ?? []) {
    places = sign === "*" ? all.filter((at) => at >= places[0]) : places.filter((at) => at < letters.length && takes(sign, letters[at])).map((at) => at + 1);
  }
  return places.includes(letters.length);
}
