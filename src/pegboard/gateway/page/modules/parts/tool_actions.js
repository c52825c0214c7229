// What can be done with a tool beside calling it: deny it, and put it on boards.
import { html, useState } from "./html.js";
import { ask, part, patch } from "./api.js";
import { fits } from "./calls.js";
import { useResource } from "./live.js";
import { Button, Dialog, Field, Loaded, Menu, notify, plural, Unseen } from "./ui.js";

/** The deny list that lets these through: a pattern that names one of them gives way to the others that it meant. @param {string[]} deny @param {string[]} names @param {any[]} all */
function denyWithout(deny, names, all) {
  return [...new Set(deny.flatMap((pattern) => {
    if (!names.some((name) => fits(pattern, name))) return [pattern];
    return all.map((tool) => tool.name).filter((name) => fits(pattern, name) && !names.includes(name));
  }))];
}

/**
 * Allow tools, or deny them.
 * @param {any} server in full @param {string[]} names as it has them @param {boolean} allow @param {string} [words] what is said then
 */
export async function permit({ name: server, entry, offers }, names, allow, words = `${plural(names.length, "tool")} ${allow ? "allowed" : "denied"}.`) {
  const before = entry?.tools ?? {};
  // A pattern that lets none of them through is taken out; what else it names stays as single names.
  const deny = allow ? denyWithout(before.deny ?? [], names, offers) : [...new Set([...(before.deny ?? []), ...names])];
  const lacking = allow && before.allow?.length ? names.filter((name) => !before.allow.some((/** @type {string} */ pattern) => fits(pattern, name))) : [];
  // What is undefined is left as it is.
  const set = (/** @type {string[]} */ denied, /** @type {string[]} */ allowed) => patch(`servers/${part(server)}`, { tools: { deny: denied?.length ? denied : null, allow: lacking.length ? allowed : undefined } });
  await set(deny, [...before.allow ?? [], ...lacking]);
  notify(words, "Undo", () => set(before.deny, before.allow));
}

/** @param {{name: string, server: string}} tool */
async function deny({ name, server }) {
  const [{ originalName }, row] = await Promise.all([ask(`tools/${part(name)}`), ask(`servers/${part(server)}`)]);
  await permit(row, [originalName], false, `${name} is denied: no client sees it.`);
}

/** A menu of a tool. @param {{tool: any, self: any}} props */
export function ToolActions({ tool, self }) {
  const [isOpen, setOpen] = useState(false);
  if (!tool.server) return null;
  const items = /** @type {[string, () => any][]} */ ([["Boards", () => setOpen(true)], ...(self.admin ? [["Deny", () => deny(tool)]] : [])]);
  return html`<${Menu} label=${`More for ${tool.name}`} items=${items} />${isOpen && html`<${Boards} name=${tool.name} onClose=${() => setOpen(false)} />`}`;
}

/** @param {{name: string, onClose: () => void}} props */
function Boards({ name, onClose }) {
  const boards = useResource("boards", ["sessions"]);
  const [other, setOther] = useState("");
  // The status line is out of reach behind a dialog.
  const [problem, setProblem] = useState("");
  const change = async (/** @type {string} */ board, /** @type {boolean} */ load) => {
    try {
      const { unloaded } = await patch(`boards/${part(board)}`, { [load ? "load" : "unload"]: [name] });
      setProblem(load && unloaded.length ? `Unloaded to make room: ${unloaded.join(", ")}` : "");
      setOther("");
    } catch (error) { setProblem(/** @type {Error} */ (error).message); }
    boards.reload();
  };
  return html`<${Dialog} title="Boards" onClose=${onClose}><div class="form">
    <p class="faint">What is loaded on a board is in the list of every client that uses it.</p>
    <${Loaded} of=${boards}>${(data) => html`<ul class="plain form">${data.boards.map((board) => {
    const isOn = board.tools.includes(name);
    return html`<li class="head" key=${board.name}><bdi>${board.name}</bdi> <span class="note">${plural(board.tools.length, "tool")}</span>
      <div class="acts"><${Button} label=${`${isOn ? "Unload from" : "Load on"} ${board.name}`} onClick=${() => change(board.name, !isOn)}>${isOn ? "Unload" : "Load"}<//></div></li>`;
  })}</ul>`}<//>
    <div class="row"><${Field} label="Another board" error=${problem}><input value=${other} placeholder="claude-code" onInput=${(event) => setOther(event.target.value)} /><//><${Button} disabled=${!other.trim()} onClick=${() => change(other.trim(), true)}>Load<${Unseen}> on it<//><//></div></div>
    <div class="acts end"><${Button} kind="main" onClick=${onClose}>Close<//></div><//>`;
}
