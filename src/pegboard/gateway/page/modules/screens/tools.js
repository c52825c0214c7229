// Tools: found by what they should do, or listed with what they cost in a prompt.
import { html } from "../parts/html.js";
import { chooser } from "../parts/entry.js";
import { useResource } from "../parts/live.js";
import { More, usePages } from "../parts/pages.js";
import { linkTo } from "../parts/route.js";
import { ToolActions } from "../parts/tool_actions.js";
import { Choice, Find, Loaded, Reason, Screen, State, Table, count, plural, stateWord } from "../parts/ui.js";

// Windsurf takes no more, nor do some models.
const MANY = 100;
const STATUSES = ["available", "unavailable", "needs_auth", "disabled"];

/** @param {import("../app.js").ScreenProps} props */
export default function Tools({ query, self }) {
  const { q = "", server = "", status = "", order = "" } = query;
  const words = q.trim();
  // What was found stays while somebody types on.
  const found = usePages(words ? "tools/search" : "tools", words ? { q, limit: 50 } : { server, status, order: order || "server", brief: true, limit: MANY }, "tools", ["tools", "config", "server", "logins"]);
  const servers = useResource("servers", ["config"]);
  const names = new Set([...(servers.data?.servers ?? []).map((each) => each.name), ...(server ? [server] : [])]);
  const choose = chooser(["tools"], query);
  return html`<${Screen} title="Tools">
    <div class="filters"><${Find} value=${q} placeholder="what it should do, as a model would ask" onInput=${choose("q")} />
      <${Choice} label="Server" value=${server} options=${[["", "all"], ...[...names].map((each) => [each, each])]} onChange=${choose("server")} />
      <${Choice} label="Status" value=${status} options=${[["", "any"], ...STATUSES.map((each) => [each, stateWord(each)])]} onChange=${choose("status")} />
      <${Choice} label="Order" value=${order} options=${words ? [["", "best first"]] : [["", "by name"], ["tokens", "by tokens"]]} onChange=${choose("order")} /></div>
    <${Loaded} of=${found}>${(data) => html`<${List} data=${data} found=${found} query=${query} self=${self} />`}<//><//>`;
}

/** @param {any} props */
function List({ data, found, query: { q = "", server, status }, self }) {
  // Only a list says what all of it costs.
  const isSearch = data.tokens === undefined;
  const rows = found.rows.map((tool) => ({ ...tool, ...tool.availability }))
    .filter((tool) => !isSearch || ((!server || tool.server === server) && (!status || tool.status === status || (status === "unavailable" && tool.status !== "available"))));
  const total = isSearch ? rows.length : data.total;
  const tokens = data.tokens ?? rows.reduce((/** @type {number} */ sum, tool) => sum + tool.tokens, 0);
  const words = q.toLowerCase().split(/\W+/).filter((/** @type {string} */ word) => word.length > 2);
  const columns = [
    ["Name", (tool) => linkTo(["tools", tool.name]), "title named"],
    ["Server", (tool) => (tool.server ? linkTo(["servers", tool.server]) : "Pegboard"), "named"],
    ["Description", (tool) => html`<span class="clip">${mark(tool.description, words)}</span>`, "said"],
    ...(isSearch ? [["Score", (tool) => tool.score.toFixed(2), "number"]] : []),
    ["Tokens", (tool) => count(tool.tokens), "number"],
    ...(rows.some((tool) => tool.status !== "available") ? [["Status", (tool) => tool.status !== "available" && html`<${State} state=${tool.status} /><${Reason} text=${tool.reason} />`]] : []),
    ["", (tool) => html`<${ToolActions} tool=${tool} self=${self} />`],
  ];
  return html`<p class="faint" role="status">${plural(total, "tool")}, ${plural(tokens, "token")}${isSearch && data.total > data.tools.length ? `; the best of ${count(data.total)} that fit` : ""}</p>
    ${!isSearch && total > MANY && html`<${Many} />`}
    ${data.message && html`<p class="attention">${data.message}</p>`}
    <${Table} caption="Tools" columns=${columns} rows=${rows} shown=${Infinity} empty=${q || server || status ? "No tool fits." : "There are no tools yet."} />
    ${!isSearch && html`<${More} of=${found} />`}`;
}

/** Said where clients are given every tool. */
function Many() {
  const { tokens } = useResource("stats", ["config"]).data ?? {};
  return tokens?.first >= tokens?.all && html`<p class="attention">Every client is given all of them. Some take no more than ${MANY}, as Windsurf. Deny some, or set "expose" to "auto" in the config: then clients search.</p>`;
}

/** A text, with the words in it that were looked for. @param {string | undefined} text @param {string[]} words */
const mark = (text = "", words) => text.split(/(\w+)/).map((each) => (words.some((word) => each.toLowerCase().startsWith(word)) ? html`<mark>${each}</mark>` : each));
