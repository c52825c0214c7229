// JSON without loss: a number that JavaScript would write differently (2^53 + 1, 1.0, 1e400) keeps its digits.

/** A number by its digits. */
export class Numeral {
  /** @param {string} text */
  constructor(text) { this.text = text; }
  toString() { return this.text; }
  valueOf() { return Number(this.text); }
}

/** What somebody types that is no value yet. It stands where its value will be, and is written as it was typed. */
export class Draft {
  /** @param {string} text @param {string} problem */
  constructor(text, problem) { this.text = text; this.problem = problem; }
}

/**
 * The value of a JSON text. Its objects have no prototype, so every key is a key.
 * @param {string} text @returns {any}
 */
export const parse = (text) => JSON.parse(text, /** @type {any} */ (exact));

/** Whether this browser keeps all digits: older ones do not say how a number stands in a text. */
export const isExact = () => parse("1.0") instanceof Numeral;

/** A value of a JSON text, by how it stands there. @param {string} _name @param {any} value @param {{source?: string}} found */
function exact(_name, value, { source = "" } = {}) {
  if (typeof value === "number") return !source || String(value) === source ? value : new Numeral(source);
  return isObject(value) ? withMembers(value) : value;
}

/** An object, with other members: one that is undefined is taken out. @param {any} value @param {Record<string, any>} [members] */
export function withMembers(value, members = {}) {
  const changed = Object.assign(Object.create(null), value, members);
  for (const name of Object.keys(members)) if (members[name] === undefined) delete changed[name];
  return changed;
}

/** The value of a text, or the text as a draft; nothing, if it is empty. @param {string} text */
export function read(text) {
  if (!text.trim()) return undefined;
  try {
    return parse(text);
  } catch (problem) {
    return new Draft(text, /** @type {Error} */ (problem).message);
  }
}

/** @param {any} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Numeral) && !(value instanceof Draft);
/** @param {any} value @returns {value is number | Numeral} */
export const isNumber = (value) => typeof value === "number" || value instanceof Numeral;

/**
 * A value as JSON. What is undefined in an object is not there.
 * @param {any} value @param {string} [indent] for each level; without, all stands in one line
 */
export function write(value, indent = "", margin = "") {
  if (value instanceof Numeral || value instanceof Draft) return value.text;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const inner = margin + indent;
  const isList = Array.isArray(value);
  /** @type {string[]} */
  const parts = isList ? value.map((each) => write(each, indent, inner))
    : Object.keys(value).filter((key) => value[key] !== undefined).map((key) => `${JSON.stringify(key)}: ${write(value[key], indent, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (!parts.length) return open + close;
  return indent ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}` : open + parts.join(", ") + close;
}

/** Whatever a server says, as text: a text is itself, anything else JSON. @param {any} value */
export const textOf = (value) => (typeof value === "string" ? value : value === undefined ? "" : write(value));

/** A text in which signs that turn or hide what stands around them are escapes. Those that only join letters stay. @param {string} text */
export const unturned = (text) => text.replace(/[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The beginning of a text: browsers take minutes to draw a word of megabytes. @param {string} text @param {number} [most] */
export const cut = (text, most = 200) => (text.length > most ? `${text.slice(0, most)}…` : text);

/** Whatever a server says in a word or a line, as it is drawn. @param {any} value @param {number} [most] */
export const drawn = (value, most) => unturned(cut(textOf(value), most));

/**
 * The drafts in a value, each with its place.
 * @param {any} value @param {string} [place] @returns {{place: string, draft: Draft}[]}
 */
export function drafts(value, place = "") {
  if (value instanceof Draft) return [{ place, draft: value }];
  return !isObject(value) && !Array.isArray(value) ? [] : Object.keys(value).flatMap((key) => drafts(value[key], place ? `${place}.${key}` : key));
}
