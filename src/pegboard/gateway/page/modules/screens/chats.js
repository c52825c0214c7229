// Chats: what was asked and answered in the editors of the gateway's machine. They are only read.
import { html, useEffect, useState } from "../parts/html.js";
import { part, send } from "../parts/api.js";
import { Entry, chooser } from "../parts/entry.js";
import { parse, write } from "../parts/exact_json.js";
import { More, PagedTable, usePages } from "../parts/pages.js";
import { to } from "../parts/route.js";
import { Copy, Loaded, Mark, Prose, Screen, Time, count, marked, plural } from "../parts/ui.js";

const TOGETHER = 20;
const HOME = ["chats"];
const link = (/** @type {any} */ { sessionId, title }, query = {}) => html`<a class="clip" href=${to([...HOME, sessionId], query)}>${title ?? sessionId}</a>`;
const time = (/** @type {number | null} */ at) => html`<${Time} at=${at && new Date(at).toISOString()} />`;

/** @param {import("../app.js").ScreenProps} props */
export default function Chats({ parts, query }) {
  const id = parts[1];
  const choose = chooser(parts, query);
  const Part = id ? Chat : List;
  return html`<${Part} key=${id} id=${id} query=${query}>
    <div class="filters"><${Entry} label=${id ? "Find in this chat" : "Find in chats"} class="wide" search value=${query.q} placeholder=${'words, or a "phrase"'} onText=${choose("q")} />
      ${!id && html`<${Entry} label="Folder" class="wide" search value=${query.folder} placeholder="any" onText=${choose("folder")} />`}</div>
    ${query.q && html`<${Found} id=${id} q=${query.q} folder=${query.folder} />`}<//>`;
}

/** @param {any} props */
function List({ query: { q, folder }, children }) {
  const sessions = usePages("chats", { workspace: folder, limit: 50 }, "sessions");
  const columns = [
    ["Chat", (row) => html`${link(row)}<small class="bad clip">${row.problem}</small>`, "title"],
    ["Editor", (row) => row.source],
    ["Folder", (row) => row.workspace && html`<a href=${to(HOME, { folder: row.workspace })}>${row.workspace}</a>`],
    ["Last activity", (row) => html`<${Time} at=${row.lastActivity} />`, "nowrap"],
    ["Requests", (row) => count(row.requestsCount), "number"],
  ];
  const empty = folder ? "No chat of this folder." : html`No chats yet. Pegboard reads those of VS Code, Cursor, Windsurf, VSCodium and Claude Code, and exports in folders that the config names: <code>"chats": {"exports": ["~/chats"]}</code>`;
  return html`<${Screen} title="Chats">${children}
    ${!q && html`<${PagedTable} of=${sessions} noun="chat" caption="Chats, the latest first" columns=${columns} keyOf=${(row) => `${row.sessionId} ${row.source} ${row.firstSeen}`} empty=${empty} />`}<//>`;
}

/** Requests that a search finds. @param {{q: string, folder?: string, id?: string}} props */
function Found({ q, folder, id }) {
  const found = usePages("chat/search", { q, workspace: folder, sessionId: id, limit: TOGETHER }, "results");
  const columns = [
    ["Chat", (row) => html`${link(row, { request: row.index })}<small>request ${row.index}</small>`, "title"],
    ["Found", (row) => html`<span>${marked(row.excerpt)}</span>`],
    ["When", (row) => time(row.timestamp), "nowrap"],
  ];
  return html`<${PagedTable} of=${found} noun="request" caption="Requests found, the best first" columns=${columns} keyOf=${(row) => `${row.sessionId}/${row.index}`} empty="Nothing found." />`;
}

/** @param {any} props */
function Chat({ id, query: { q, request }, children }) {
  const start = Math.max(0, Math.ceil(request / TOGETHER) - 1) * TOGETHER || 0;
  const path = `chats/${part(id)}`;
  const file = `/api/${path}/export`;
  const turns = usePages(path, { limit: TOGETHER, offset: start }, "requests", [], parse);
  const { data } = turns;
  const isThere = Boolean(data);
  useEffect(() => document.getElementById(`request-${request}`)?.scrollIntoView(), [isThere, start, request]);
  const readFile = async () => {
    const answer = await send(`${path}/export`);
    if (!answer.ok) throw new Error("The chat could not be read.");
    return answer.text();
  };
  const actions = data && html`<${Copy} text=${readFile}>Copy<//><a class="button" download href=${file}>Save as Markdown</a><a class="button" download href=${`${file}?format=json`}>Save as JSON</a>`;
  return html`<${Screen} title=${data?.title ?? id} actions=${actions}><${Loaded} of=${turns}>${({ source, workspace, lastActivity, requestsCount, problem }) => html`
    <p class="faint"><a href=${to(HOME)}>All chats</a> · <bdi>${source}</bdi>${workspace && html` · <bdi>${workspace}</bdi>`} · <${Time} at=${lastActivity} /> · ${plural(requestsCount, "request")}</p>
    ${problem && html`<div class="attention">${problem}</div>`}${children}
    ${!q && html`${start > 0 && html`<p class="more"><a class="button" href=${to([...HOME, id], { request: start })}>Show earlier</a> ${count(start)} before these</p>`}
      ${turns.rows.map((turn) => html`<${Turn} key=${turn.index} ...${turn} />`)}<${More} of=${turns} from=${start} />`}`}<//><//>`;
}

/** A request and its answer. @param {any} props */
function Turn({ index, request, response, status, timestamp, modelId, problem, toolCalls, editedFiles }) {
  const [isOpen, setOpen] = useState(false);
  const id = `request-${index}`;
  const done = [toolCalls.length && `${plural(toolCalls.length, "tool")} used`, editedFiles.length && `${plural(editedFiles.length, "file")} edited`].filter(Boolean).join(", ");
  const copy = (/** @type {string} */ name, /** @type {string} */ text) => html`<div class="acts">${text && html`<${Copy} text=${text} label=${`Copy ${name} ${index}`}>Copy<//>`}</div>`;
  return html`<article class="turn form" aria-labelledby=${id}>
    <div class="card"><div class="head"><h2 id=${id}>Request ${index}</h2>${time(timestamp)}${copy("request", request)}</div><${Prose} text=${request} /></div>
    <div class="head"><h3>Answer</h3><bdi class="note">${modelId}</bdi>${status !== "completed" && html`<${Mark} tone="warn">${status.replace("_", " ")}<//>`}${copy("answer", response)}</div>
    ${done && html`<details onToggle=${(event) => setOpen(event.target.open)}><summary>${done}</summary>${isOpen && html`<ul>${toolCalls.map((call) => html`<li><b>${call.name}</b>${call.failed && " failed"} <span>${call.message}</span><div class="mono">${[call.input, call.output].map((said) => said && html`<${Prose} text=${typeof said === "string" ? said : write(said, "  ")} />`)}</div></li>`)}${editedFiles.map((/** @type {string} */ file) => html`<li>edited <bdi>${file}</bdi></li>`)}</ul>`}</details>`}
    <${Prose} text=${response} />${problem && html`<p class="bad">${problem}</p>`}</article>`;
}
