// A folder that an address names is a proposal: nothing in it is read before somebody here has chosen it.
import { html, useState } from "./html.js";
import { Button } from "./ui.js";

/** What was chosen since the page was loaded. @type {Set<string>} */
const chosen = new Set();

/** @param {string} folder */
export const chooseFolder = (folder) => { chosen.add(folder); };

/** Whether a folder was chosen, and a way to choose it. @param {string} [folder] @returns {[boolean, () => void]} */
export function useChosen(folder) {
  const [, draw] = useState({});
  return [!folder || chosen.has(folder), () => { chooseFolder(folder ?? ""); draw({}); }];
}

/** What is shown of a folder. @param {{folder?: string, isChosen: boolean, onChoose: () => void, children: any}} props */
export const Chosen = ({ folder, isChosen, onChoose, children }) => (isChosen ? children
  : html`<p class="attention"><code>${folder}</code><${Button} onClick=${onChoose}>Open this folder<//></p>`);
