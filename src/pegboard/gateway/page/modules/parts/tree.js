// JSON as a tree. A node is made when somebody opens it, so that a megabyte costs nothing.
import { html, useState } from "./html.js";
import { drawn, isObject, unturned } from "./exact_json.js";
import { Button, Prose, count } from "./ui.js";

const AT_ONCE = 100;

/** @param {{value: any, name?: string, isOpen?: boolean | number}} props `name` is what leads to it, `isOpen` how many levels are open */
export const Tree = ({ value, name = "", isOpen = true }) => html`<div class="tree"><${Node} name=${name} value=${value} isOpen=${isOpen} /></div>`;

/** @param {{value: any, name: string, isOpen?: boolean | number}} props */
function Node({ value, name, isOpen = false }) {
  const [isShown, setShown] = useState(isOpen);
  const [most, setMost] = useState(AT_ONCE);
  const key = name && html`<span class="key">${drawn(name)}</span>: `;
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) {
    return html`<div>${key}${typeof value === "string" && value.length > 80 ? html`<${Prose} text=${unturned(value)} most=${500} />` : html`<span class="text">${typeof value === "string" ? unturned(JSON.stringify(value)) : drawn(value, 500)}</span>`}</div>`;
  }
  const names = Object.keys(value);
  if (!names.length) return html`<div>${key}${isList ? "[]" : "{}"}</div>`;
  const size = count(names.length);
  return html`<details open=${isShown} onToggle=${(event) => setShown(event.target.open)}>
    <summary>${key}<span class="faint">${isList ? `[ ${size} ]` : `{ ${size} }`}</span></summary>
    ${isShown && html`<ul>${names.slice(0, most).map((each) => html`<li key=${each}><${Node} name=${each} value=${value[each]} isOpen=${Number(isOpen) - 1 > 0} /></li>`)}
      ${names.length > most && html`<li><${Button} kind="plain" onClick=${() => setMost(most + 10 * AT_ONCE)}>${`Show more of ${size}`}<//></li>`}</ul>`}
  </details>`;
}
