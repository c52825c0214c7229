// Texts that take effect when somebody leaves their field or presses Enter, or while they type. What is being typed
// outlives live changes.
import { html, useEffect, useRef, useState } from "./html.js";
import { go, to } from "./route.js";
import { Field, notifyProblem } from "./ui.js";

// Milliseconds without a key after which a search begins.
const PAUSE = 250;

/**
 * A line of text, or several in an `area`; one to search with takes effect while somebody types, or once it is "entered".
 * @param {{value?: string | null, onText: (text: string) => any, area?: boolean, search?: boolean | "entered", placeholder?: string} & Record<string, any>} props the others are those of a field
 */
export function Entry({ value, onText, area, search, placeholder, ...field }) {
  const [typed, setTyped] = useState(/** @type {string | undefined} */ (undefined));
  const timer = useRef(0);
  const told = useRef(value ?? "");
  const take = useRef(onText);
  take.current = onText;
  const wait = (/** @type {string | undefined} */ text) => {
    clearTimeout(timer.current);
    setTyped(text);
    if (search === true && text !== undefined) timer.current = setTimeout(() => tell(text), PAUSE);
  };
  const tell = (/** @type {string} */ text) => {
    clearTimeout(timer.current);
    told.current = text.trim();
    return take.current(told.current);
  };
  // Somebody went to another address: what was typed belongs to the one before.
  useEffect(() => {
    if (search && told.current !== (value ?? "")) wait(undefined);
    told.current = value ?? "";
  }, [value]);
  const save = async (/** @type {any} */ event) => {
    try {
      await tell(event.target.value);
      setTyped(undefined);
    } catch (problem) { notifyProblem(problem); }
  };
  const props = { value: typed ?? value ?? "", placeholder, onInput: (event) => wait(event.target.value), onChange: save };
  return html`<${Field} ...${field}>${area ? html`<textarea ...${props} />` : html`<input type="search" maxlength="2000" ...${props} />`}<//>`;
}

/**
 * What puts a text, or the value of an event's field, into the query of a screen's address under some name.
 * @param {string[]} parts @param {Record<string, string>} query
 */
export function chooser(parts, query) {
  const here = location.hash;
  return (/** @type {string} */ name) => (/** @type {any} */ given) => {
    // A field tells of its text as well when it goes, since the page is at another address already.
    if (location.hash === here) go(to(parts, { ...query, [name]: given.target?.value ?? given }), true);
  };
}
