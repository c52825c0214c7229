// Clients: which are on this machine, Pegboard in their config files, who has a session now, and what boards hold.
import { html, useState } from "../parts/html.js";
import { part, patch, post } from "../parts/api.js";
import { Diff } from "../parts/diff.js";
import { Chosen, chooseFolder, useChosen } from "../parts/folder.js";
import { useKept, useResource } from "../parts/live.js";
import { go, linkTo, to } from "../parts/route.js";
import { Button, Choice, Copy, Field, Loaded, Screen, Section, Table, Tabs, Time, notify, plural, Unseen } from "../parts/ui.js";

// How a link begins that opens a client: of nothing else that REST may give a link is made.
const LINK = /^(https|cursor|goose|lmstudio|vscod(e|ium|e-insiders)):/;
const BACK = html`<p><a href="#/clients">All clients</a></p>`;

/** @param {import("../app.js").ScreenProps} props */
export default function Clients({ parts, query, self }) {
  const clients = useResource("clients", ["config", "sessions"]);
  const sessions = useResource("sessions", ["sessions", "call"]);
  const [, id] = parts;
  const [isChosen, chooseIt] = useChosen(query.project);
  const row = clients.data?.clients.find((each) => each.id === id);
  if (query.board && !id) return html`<${Board} name=${query.board} />`;
  return html`<${Screen} title=${row?.name ?? id ?? "Clients"}>
    ${id && BACK}
    ${clients.error?.status === 403 ? html`<p class="empty">Clients are not connected from here: ${clients.error.message}.</p>`
    : html`<${Loaded} of=${clients}>${(data) => (!id ? html`<${List} rows=${data.clients} />` : !row ? html`<p class="empty">Pegboard does not know this client.</p>`
      : row.installable ? html`<${Chosen} folder=${query.project} isChosen=${isChosen} onChoose=${chooseIt}><${One} key=${id} row=${row} query=${query} onChange=${clients.reload} /><//>` : html`<p>Pegboard is never put into it. <a href=${to(["add"], { way: "import" })}>Take over its servers</a></p>`)}<//>`}
    <${Loaded} of=${sessions}>${(data) => html`<${Sessions} rows=${data.sessions.filter(({ board }) => !id || board === (row?.board ?? id))} self=${self} />`}<//><//>`;
}

/** How a client is. */
function showState({ problem, connected, running, installable, writes, transport, board }) {
  const [tone, words] = problem ? ["bad", "cannot be read"] : connected ? (running === false ? ["warn", "no gateway at its address"] : ["good", "connected"]) : ["off", installable ? (writes ? "not connected" : "connect by hand") : "import only"];
  return html`<div><span class=${`state ${tone}`}>${words}</span>${connected && html` <small>by ${transport === "http" ? "address" : "command"}${board && html`, board ${linkBoard(board)}`}</small>`}${problem && html`<small>${problem}</small>`}</div>`;
}

/** @param {string} board */
const linkBoard = (board) => html`<a href=${to(["clients"], { board })}>${board}</a>`;

/** @param {{rows: any[]}} props */
function List({ rows }) {
  const missing = rows.filter((row) => !row.found);
  const table = (/** @type {string} */ caption, /** @type {any[]} */ list) => html`<${Table} caption=${caption} rows=${list} columns=${[
    ["Client", ({ id, name }) => linkTo(["clients", id], name), "title"],
    ["Pegboard", showState],
    ["Other servers", (row) => row.servers, "number"],
    ["File", (row) => row.file, "mono faint"],
    ["", ({ id, name, connected, writes }) => writes && !connected && html`<a class="button" href=${to(["clients", id])}>Connect<${Unseen}> ${name}<//></a>`],
  ]} />`;
  return html`<${Section} title="On this machine">${table("Clients", rows.filter((row) => row.found))}${missing[0] && html`<details><summary>${plural(missing.length, "client")} not found here</summary>${table("Not found", missing)}</details>`}<//>`;
}

/** @param {{rows: any[], self: any}} props */
function Sessions({ rows, self }) {
  // A board of somebody else is another one, whatever its name.
  const isOwn = ({ id, name }) => (self.kind === "local" ? id === "local" : name === self.name);
  return html`<${Section} title="Open sessions"><${Table} caption="Open sessions" rows=${rows} empty="None. Newer clients (protocol 2026-07-28) need none." columns=${[
    ["Client", (row) => html`<span class="clip">${row.client || "unnamed"} ${row.version}</span>`, "title"],
    ["Protocol", (row) => row.protocolVersion, "nowrap"],
    ["Board", ({ board, principal }) => (board && isOwn(principal) ? linkBoard(board) : (board ?? "its own"))],
    ["Who", (row) => row.principal.name],
    ["Loaded tools", (row) => row.loaded, "number"],
    ["Since", (row) => html`<${Time} at=${row.since} />`, "nowrap"],
  ]} /><//>`;
}

/** @param {{name: string}} props */
function Board({ name }) {
  const path = `boards/${part(name)}`;
  const board = useResource(path, ["call", "tools"]);
  const change = async (/** @type {any} */ body) => board.set(await patch(path, body));
  const unload = async (/** @type {string} */ tool) => {
    await change({ unload: [tool] });
    notify(`Unloaded ${tool}.`, "Undo", () => change({ load: [tool] }));
  };
  return html`<${Screen} title=${`Board ${name}`} note="Tools that its clients share.">${BACK}
    <${Loaded} of=${board}>${({ tools }) => html`<${Table} caption="Loaded tools" rows=${tools} keyOf=${(tool) => tool} columns=${[
    ["Tool", (tool) => linkTo(["tools", tool]), "title"],
    ["", (tool) => html`<${Button} onClick=${() => unload(tool)}>Unload<${Unseen}> ${tool}<//><//>`],
  ]} />`}<//><//>`;
}

/** @param {{row: any, query: Record<string, string>, onChange: () => void}} props */
function One({ row, query, onChange }) {
  const { id, name, writes, connected } = row;
  const path = `clients/${part(id)}/`;
  // What is empty is not sent.
  /** @type {[any, (chosen: any) => void]} */
  const [chosen, setChosen] = useState({ board: row.board ?? undefined, transport: row.transport ?? undefined, ...query });
  const [done, setDone] = useState(/** @type {any} */ (null));
  const mayLeave = connected || query.scope;
  const isOut = mayLeave && query.tab === "out";
  const { scope, project, board, transport, replace } = chosen;
  const where = scope && { scope, project };
  const choices = isOut ? where : { ...where, board, transport, replace: Boolean(replace) };
  const preview = useResource(path + (isOut ? "uninstall" : "preview"), [], undefined, JSON.stringify(isOut ? { ...where, preview: true } : choices));
  const shown = useKept(preview);
  const choose = (/** @type {string} */ key, /** @type {any} */ value) => {
    if (key === "project") chooseFolder(value);
    setChosen({ ...chosen, [key]: value || undefined });
    go(to(["clients", id], { ...query, [key]: value }), true);
  };
  const set = (/** @type {string} */ key) => (event) => choose(key, event.target.value);
  // Whatever comes of it, the preview is of the file as it is then: also when it had changed meanwhile.
  const act = (/** @type {string} */ action, /** @type {any} */ body) => post(path + action, body).finally(() => {
    preview.reload();
    onChange();
  });
  const apply = async (/** @type {string} */ digest) => setDone({ ...await act(isOut ? "uninstall" : "install", { ...choices, digest }), where, isOut });
  // What is kept of the file, also when its install was long ago.
  const { backup = row.backup, restorable = row.restorable } = done ?? {};
  const undo = async () => {
    await act("uninstall", { ...done?.where, restore: true });
    setDone(null);
    notify("Undone. The file is as it was.");
  };
  const say = (/** @type {any[]} */ texts) => texts.filter(Boolean).map((text) => html`<p>${text}</p>`);
  return html`<div class="lead">${showState(row)}<small class="mono">${row.file}</small></div>
    ${writes && html`<${Tabs} label=${name} at=${isOut ? "out" : ""} tabs=${[["", "Connect", to(["clients", id])], ...(mayLeave ? [["out", "Disconnect", to(["clients", id], { tab: "out" })]] : [])]} />`}
    ${done && html`<div class="card" role="status">${say([
    `Pegboard is ${done.isOut ? "out of" : "in"} the config. Next: ${done.next}.`,
    done.check && (done.check.problem ?? `It answers with ${plural(done.check.tools, "tool")}${done.check.more ? `; ${done.check.more} more are found when needed` : ""}.`),
  ])}</div>`}
    ${say([backup && html`What the file held before: <code>${backup}</code>`, restorable && html`<${Button} onClick=${undo}>Undo<//>`])}
    ${writes && html`<div class="filters"><${Choice} label="Config of" value=${scope} onChange=${set("scope")} options=${[["", "you, everywhere"], ["project", "one project"]]} />
      ${scope && html`<${Field} label="Folder of the project" class="wide"><input class="code" value=${project} onInput=${set("project")} /><//>`}
      ${!isOut && html`<${Choice} label="Connected by" value=${transport} onChange=${set("transport")} options=${[["", "automatic"], ["http", "address"], ["stdio", "command"]]} />
      <${Field} label="Board"><input title="Clients of one board share the tools that they have loaded." placeholder=${id} value=${board} onInput=${set("board")} /><//>`}</div>
    ${!isOut && html`<${Field} label="Take out its servers that work in Pegboard: else it has their tools twice" class="check"><input type="checkbox" checked=${replace} onChange=${(event) => choose("replace", event.target.checked)} /><//>`}`}
    <${Loaded} of=${{ ...preview, data: shown }}>${(plan) => {
    const isPasted = plan.outcome === "paste";
    // Why nothing is written, where nothing is.
    const reason = {
      none: isOut ? "Pegboard is not in this config." : "It is there already. Nothing changes.",
      paste: "Pegboard does not write this client's config. Paste this there:",
      refused: `Its entry ${plan.name} is another server's: nothing is written. pegboard install ${id} --force overwrites it.`,
    }[plan.outcome];
    return html`<${Section} title="Preview">${say([
      plan.reason && `The entry is ${plan.reason}.`,
      reason,
      plan.exact && "The file will be what it was before, byte for byte.",
      plan.replaces?.length && `Taken out: ${plan.replaces.join(", ")}`,
      ...(plan.kept ?? []).map((each) => `Kept: ${each.name} (${each.reason})`),
      plan.restores?.length && `Put back: ${plan.restores.join(", ")}`,
      ...plan.remarks,
    ])}
      ${!reason && plan.diff && html`<${Diff} text=${plan.diff} label=${`Change of ${plan.file}`} note="Values are hidden as … where they may be secret." />`}
      ${isPasted && html`<pre tabindex="0">${plan.snippet}</pre>`}
      <div class="acts">${isPasted && html`<${Copy} text=${plan.snippet}>Copy<//>`}
        ${!reason && html`<${Button} kind=${isOut ? "danger" : "main"} disabled=${preview.isLoading} onClick=${() => apply(plan.digest)}>${isOut ? "Disconnect" : "Connect"}<//>`}
        ${LINK.test(plan.link) && html`<a class="button" href=${plan.link}>Open in ${name}</a>`}</div><//>`;
  }}<//>`;
}
