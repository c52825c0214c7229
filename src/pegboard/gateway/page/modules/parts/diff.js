// What changes in a file, line by line: with a sign, a colour, and a word for whoever sees neither.
import { html, useState } from "./html.js";
import { Button, count, plural, Unseen } from "./ui.js";

// Lines that are drawn, and those for somebody who wants all of them.
const SHOWN = 200;
const MOST = 5000;

const KINDS = /** @type {Record<string, [string, string]>} */ ({ "+": ["ins", "added: "], "-": ["del", "removed: "] });

/** @param {{text: string, label: string, note?: string}} props a unified diff, which begins with two lines of names */
export function Diff({ text, label, note }) {
  const [isWhole, setWhole] = useState(false);
  const lines = text.split("\n").slice(2);
  const { length } = lines;
  const number = (/** @type {string} */ sign) => plural(lines.filter((line) => line[0] === sign).length, "line");
  return html`<p class="faint">${number("+")} added, ${number("-")} removed. ${note}</p><pre class="diff" tabindex="0" role="region" aria-label=${label}>${lines.slice(0, isWhole ? MOST : SHOWN).map((line) => {
    const [tag, word] = KINDS[line[0]] ?? ["span"];
    return html`<${tag}><${Unseen}>${word}<//>${line.replace(/^@@ -(?:0,0 .)?(\d+).*/, "Line $1:")}${"\n"}<//>`;
  })}</pre>${length > SHOWN && !isWhole && html`<p><${Button} onClick=${() => setWhole(true)}>Show ${length > MOST ? `${count(MOST)} of` : "all"} ${count(length)} lines<//></p>`}`;
}
