// What changes in a file, line by line: with a sign, a colour, and a word for whoever sees neither.
import { html } from "./html.js";
import { plural, Unseen } from "./ui.js";

const KINDS = /** @type {Record<string, [string, string]>} */ ({ "+": ["ins", "added: "], "-": ["del", "removed: "] });

/** @param {{text: string, label: string, note?: string}} props a unified diff, which begins with two lines of names */
export function Diff({ text, label, note }) {
  const lines = text.split("\n").slice(2);
  const number = (/** @type {string} */ sign) => plural(lines.filter((line) => line[0] === sign).length, "line");
  return html`<p class="faint">${number("+")} added, ${number("-")} removed. ${note}</p><pre class="diff" tabindex="0" role="region" aria-label=${label}>${lines.map((line) => {
    const [tag, word] = KINDS[line[0]] ?? ["span"];
    return html`<${tag}><${Unseen}>${word}<//>${line.replace(/^@@ -(?:0,0 .)?(\d+).*/, "Line $1:")}${"\n"}<//>`;
  })}</pre>`;
}
