// Servers: all of them, what is wrong with which, and what can be done about it.
import { html, useMemo } from "../parts/html.js";
import { chooser } from "../parts/entry.js";
import { useResource } from "../parts/live.js";
import { linkTo } from "../parts/route.js";
import { ServerActions } from "../parts/server_actions.js";
import { Choice, Find, Loaded, Reason, Screen, State, Table, Time, count, millis, plural, says, stateWord } from "../parts/ui.js";

/** @param {import("../app.js").ScreenProps} props */
export default function Servers({ query, self }) {
  const servers = useResource("servers", ["server", "config", "tools", "logins"]);
  const stats = useResource("stats", ["tools", "config"]);
  const tokens = new Map((stats.data?.servers ?? []).map((row) => [row.name, row.tokens]));
  const add = self.admin && html`<a class="button main" href="#/add">Add a server</a>`;
  return html`<${Screen} title="Servers" actions=${add}><${Loaded} of=${servers}>${(data) => html`
    ${data.configProblem && html`<p class="problem" role="alert">${refusal(data)}</p>`}
    <${List} rows=${data.servers} tokens=${tokens} query=${query} self=${self} />`}<//><//>`;
}

/** @param {{rows: any[], tokens: Map<string, number>, query: Record<string, string>, self: any}} props */
function List({ rows, tokens, query, self }) {
  const words = (row) => stateWord(row.state, Boolean(row.needsLogin));
  const states = Map.groupBy(rows, words);
  const chosen = rows.filter((row) => says(row.name, query.q) && (!query.state || words(row) === query.state));
  const choose = chooser(["servers"], query);
  const columns = [
    ["Name", (row) => linkTo(["servers", row.name]), "title"],
    ["State", (row) => html`<${ServerState} row=${row} />`],
    ["Tools", (row) => (row.seen ? count(row.tools) : "–"), "number"],
    ["Tokens", (row) => (row.seen && tokens.has(row.name) ? count(tokens.get(row.name) ?? 0) : "–"), "number"],
    ["Latency", (row) => millis(row.latencyMs), "number"],
    ["Last seen", (row) => html`<${Time} at=${row.lastSeen} none="never" />`, "nowrap"],
    ["Speaks", (row) => html`<span class="faint">${speaks(row)}</span>`, "nowrap"],
    ["", (row) => html`<${ServerActions} server=${row} self=${self} />`],
  ];
  return html`<div class="filters"><${Find} value=${query.q ?? ""} placeholder="a part of the name" onInput=${choose("q")} />
      <${Choice} label="State" value=${query.state} onChange=${choose("state")} options=${[["", `all (${rows.length})`], ...[...states].map(([state, list]) => [state, `${state} (${list.length})`])]} /></div>
    <p class="faint" role="status">${plural(chosen.length, "server")}, ${plural(chosen.reduce((sum, row) => sum + row.tools, 0), "tool")}</p>
    <${Table} caption="Servers" columns=${columns} rows=${chosen} shown=${100} empty=${rows.length ? "No server fits." : "There are no servers yet."} />`;
}

/** What is wrong with the config file, if anything. @param {any} data */
export const refusal = ({ configProblem }) => configProblem && `The config file was not taken over: ${configProblem}`;

/** How a server is spoken to. @param {any} row */
export const speaks = (row) => [row.transport, row.protocolVersion].filter(Boolean).join(" · ");

/** Why a server is as it is, and what comes next. @param {any} row */
export function useReason(row) {
  // When it was read, so that the time stays the same until it is read again.
  const next = useMemo(() => row.nextTryInSeconds > 0 && new Date(Date.now() + row.nextTryInSeconds * 1000).toLocaleTimeString(), [row]);
  return [row.lastError, next && `next try at ${next}`, row.staleSince && row.tools > 0 && "its tools are from an earlier time"].filter(Boolean).join(" · ");
}

/** How a server is, and why. @param {{row: any}} props */
function ServerState({ row }) {
  const why = useReason(row);
  return html`<${State} state=${row.state} signsIn=${Boolean(row.needsLogin)} /><${Reason} text=${why} />`;
}
