// What can be done with a tool beside calling it: deny it, and put it on boards.
import { html, useState } from "./html.js";
import { ask, part, patch, serverPath } from "./api.js";
import { typed } from "./bind.js";
import { useResource } from "./live.js";
import { exactly, means } from "./tool_patterns.js";
import { Button, Dialog, Field, Loaded, Menu, notify, plural, Unseen } from "./ui.js";

/** Some patterns without those that go, and with those that come. @param {string[] | undefined} patterns @param {string[]} gone @param {string[]} come */
const exchange = (patterns = [], gone, come) => [...new Set([...patterns.filter((each) => !gone.includes(each)), ...come])];

/**
 * Allow tools, or deny them.
 * @param {string} server @param {string[]} names as it has them @param {boolean} allow @param {string} [words] what is said then
 */
export async function permit(server, names, allow, words = `${plural(names.length, "tool")} ${allow ? "allowed" : "denied"}.`) {
  const path = serverPath(server);
  // As they are now, since somebody else may have changed them: what is undone is what was done here, and no more.
  const change = async (/** @type {(tools: any, offers: any[]) => any} */ edit) => {
    const { entry, offers, digest } = await ask(path);
    const { deny, allow: only } = edit(entry?.tools ?? {}, offers);
    // An empty list would allow everything. What is undefined is left as it is.
    await patch(path, { digest, tools: { deny: deny.length ? deny : null, allow: only?.length ? only : undefined } });
  };
  const exact = names.map(exactly);
  /** @type {string[][]} */
  let [gone, come, lacking] = [[], exact, []];
  await change(({ deny = [], allow: only = [] }, offers) => {
    if (allow) {
      // A pattern that lets none of them through is taken out; what else it names stays as single names.
      gone = deny.filter((pattern) => names.some((name) => means(pattern, name)));
      come = offers.map((tool) => tool.name).filter((name) => !names.includes(name) && gone.some((pattern) => means(pattern, name))).map(exactly);
      if (only.length) lacking = exact.filter((_, at) => !only.some((pattern) => means(pattern, names[at])));
    }
    come = come.filter((pattern) => !deny.includes(pattern));
    return { deny: exchange(deny, gone, come), allow: lacking.length && exchange(only, [], lacking) };
  });
  const wide = gone.filter((pattern) => !exact.includes(pattern));
  notify(wide.length ? `${words} In deny, single names stand for ${wide.join(", ")} now: a new tool is not denied.` : words, "Undo", () => change(({ deny, allow: only }) => (
    { deny: exchange(deny, come, gone), allow: lacking.length && exchange(only, lacking, []) })));
}

/** @param {{name: string, server: string}} tool */
async function deny({ name, server }) {
  const { originalName } = await ask(`tools/${part(name)}`);
  await permit(server, [originalName], false, `${name} is denied: no client sees it.`);
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
    <p class="faint">Every client of a board is given what is loaded on it.</p>
    <${Loaded} of=${boards}>${(data) => html`<ul class="plain form">${data.boards.map((board) => {
    const isOn = board.tools.includes(name);
    return html`<li class="head" key=${board.name}><bdi>${board.name}</bdi> <span class="note">${plural(board.tools.length, "tool")}</span>
      <div class="acts"><${Button} label=${`${isOn ? "Unload from" : "Load on"} ${board.name}`} onClick=${() => change(board.name, !isOn)}>${isOn ? "Unload" : "Load"}<//></div></li>`;
  })}</ul>`}<//>
    <div class="row"><${Field} label="Another board" error=${problem}><input value=${other} placeholder="claude-code" onInput=${typed(setOther)} /><//><${Button} disabled=${!other.trim()} onClick=${() => change(other.trim(), true)}>Load<${Unseen}> on it<//><//></div></div>
    <div class="acts end"><${Button} kind="main" onClick=${onClose}>Close<//></div><//>`;
}
