// Calls: who called what, and how it went, as it happens; and the same as numbers.
import { html, useState } from "../parts/html.js";
import { ask, withQuery } from "../parts/api.js";
import { CallTable, LatestCalls, Outcome, useCalls } from "../parts/calls.js";
import { download } from "../parts/download.js";
import { Entry, chooser } from "../parts/entry.js";
import { parse, unturned, write } from "../parts/exact_json.js";
import { useResource } from "../parts/live.js";
import { linkTo, to } from "../parts/route.js";
import { Button, Choice, Dialog, Facts, Figure, Loaded, Screen, Section, Spark, Table, Tabs, Time, count, millis, notify, plural } from "../parts/ui.js";

const FILTERS = "who server tool outcome kind since".split(" ");
const OUTCOMES = "ok input_required tool_error rpc_error timeout cancelled unavailable invalid not_found failed refused".split(" ");
const KINDS = [["", "calls"], ["read", "reads"], ["access", "access"], ["server.*", "servers"], ["token.*", "tokens"], ["signin.*", "sign-ins"], ["*", "everything"]];
const SPANS = [["1h", "the last hour"], ["24h", "the last day"], ["7d", "the last week"], ["30d", "the last 30 days"]];
const TYPES = "string number integer boolean object array null".split(" ");
const MOST_EXPORTED = 20000;

/** @param {import("../app.js").ScreenProps} props */
export default function Calls({ query, self }) {
  const { tab = "", since = "24h" } = query;
  return html`<${Screen} title="Calls">
    <${Tabs} label="Calls" at=${tab} tabs=${[["", "Calls", "#/calls"], ["numbers", "Numbers", to(["calls"], { tab: "numbers" })]]} />
    ${tab ? html`<${Numbers} since=${since} />` : html`<${List} query=${query} self=${self} />`}
  <//>`;
}

/** @param {any} props */
function List({ query, self }) {
  const filter = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const [isHeld, setHeld] = useState(false);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const { kept, rows, missed, goOn } = useCalls(filter, { isHeld, limit: 200 });
  const choose = chooser(["calls"], filter);
  const choice = (/** @type {string} */ label, /** @type {string} */ name, /** @type {string[][]} */ options) => html`<${Choice} label=${label} value=${filter[name]} options=${options} onChange=${choose(name)} />`;
  const save = async () => {
    const lines = [];
    let cursor;
    do {
      const answer = await ask(withQuery("calls", { kind: "call", ...filter, limit: 1000, cursor }), { parse });
      lines.push(...answer.records.map((record) => write(record)));
      cursor = answer.nextCursor;
    } while (cursor && lines.length < MOST_EXPORTED);
    download("pegboard-calls.jsonl", `${lines.join("\n")}\n`, "application/jsonl");
    notify(`Saved ${plural(lines.length, "record")}${cursor ? ", the newest" : ""}.`);
  };
  return html`<div class="filters">
      <${Entry} label="Tool" search value=${filter.tool} placeholder="any, or git__*" onText=${choose("tool")} />
      <${Entry} label="Server" search value=${filter.server} placeholder="any" onText=${choose("server")} />
      ${self.admin && html`<${Entry} label="Who" search value=${filter.who} placeholder="anybody" onText=${choose("who")} />`}
      ${choice("Outcome", "outcome", [["", "any"], ...OUTCOMES.map((each) => [each, each.replaceAll("_", " ")])])}${choice("Kind", "kind", KINDS)}${choice("Since", "since", [["", "ever"], ...SPANS])}
      <${Button} onClick=${() => { if (isHeld) goOn(); setHeld(!isHeld); }} aria-pressed=${isHeld}>${isHeld ? (missed ? `Go on (${count(missed)} new)` : "Go on") : "Pause"}<//>
      <${Button} onClick=${save}>Export as JSON lines<//>
    </div>
    <${Loaded} of=${kept}>${() => html`<${CallTable} caption="Calls, the newest first" rows=${rows} onOpen=${setOpen} empty="No calls that fit." />`}<//>
    ${open && html`<${Details} call=${open} onClose=${() => setOpen(null)} />`}`;
}

/** Whether a record has values, or only the types of arguments. @param {any} given */
const hasValues = (given) => given && Object.values(given).some((value) => !TYPES.includes(value));

/** @param {any} given */
const json = (given) => html`<pre dir="ltr" tabindex="0">${unturned(write(given, "  "))}</pre>`;

/** @param {{call: any, onClose: () => void}} props */
function Details({ call, onClose }) {
  // The stream tells less than the audit keeps.
  const found = useResource(call.id ? null : withQuery("calls", { tool: call.tool, since: "1h", limit: 500 }), [], parse);
  const record = call.id ? call : (found.data?.records.find((each) => each.trace === call.trace) ?? call);
  const { at, principal, client, server, tool, kind, outcome, detail, ms, arguments: kept, resultBytes } = record;
  const given = hasValues(kept) ? write(kept) : undefined;
  return html`<${Dialog} title=${tool ?? kind} onClose=${onClose} wide>
    <${Facts} facts=${[
      ["When", html`<${Time} at=${at} /> <span class="faint">${at}</span>`],
      ["Who", principal?.name],
      ["Client", client],
      ["Server", server],
      ["Outcome", outcome && html`<${Outcome} outcome=${outcome} />`],
      ["Remark", detail],
      ["Took", ms && millis(ms)],
      ["Arguments", kept && json(kept)],
      ["Result", resultBytes && `${resultBytes} bytes`],
    ].filter(([, said]) => said)} />
    <details><summary>More</summary>${json(record)}</details>
    ${kind === "call" && !given && html`<p class="faint">With <code>${'"pegboard": {"audit": {"arguments": "values"}}'}</code> in the config, a call can be repeated from here.</p>`}
    <div class="acts end">${tool && html`<a class="button" href=${to(["tools", tool], { arguments: given })}>${given ? "Repeat with changes" : "Open the tool"}</a>`}
      <${Button} kind="main" onClick=${onClose}>Close<//></div>
  <//>`;
}

/** @param {{since: string}} props */
function Numbers({ since }) {
  const stats = useResource(withQuery("stats", { since }), ["call", "tools"]);
  return html`<div class="filters"><${Choice} label="Since" value=${since} options=${SPANS} onChange=${chooser(["calls"], { tab: "numbers" })("since")} /></div>
    <${Loaded} of=${stats}>${(data) => (data.recorded ? html`<${Plots} data=${data} /><${Rows} data=${data} />` : html`<p class="empty">Calls are not recorded: the audit is off in the config.</p>`)}<//>`;
}

/** How many errors there were, seen if any. @param {{errors?: number}} row */
const errors = ({ errors: number = 0 }) => (number ? html`<span class="bad">${count(number)}</span>` : "0");

/** The calls of one server or tool: how they went over time, and the latest. @param {{of: "server" | "tool", name: string}} props */
export function CallsOf({ of, name }) {
  const filter = /** @type {Record<string, string>} */ ({ [of]: name });
  const stats = useResource(withQuery("stats", filter), (fact) => fact.kind === "call" && fact.data[of] === name);
  return html`<${Loaded} of=${stats}>${(data) => data.total.calls > 0 && html`<${Plots} data=${data} />`}<//>
    <${LatestCalls} filter=${filter} of=${name} most=${50} all="All of its calls" />`;
}

/** @param {{data: any}} props */
function Plots({ data }) {
  const { total, points } = data;
  const pick = (/** @type {string} */ name) => points.map((point) => point[name] ?? null);
  return html`<div class="cards small">
    <${Figure} title="Calls" value=${count(total.calls)}><${Spark} values=${pick("calls")} marks=${pick("errors")} label=${`${plural(total.calls, "call")} over time, ${plural(total.errors, "error")}`} /><//>
    <${Figure} title="Errors" value=${errors(total)}><${Spark} values=${[]} marks=${pick("errors")} label=${`${plural(total.errors, "error")} over time`} /><//>
    ${[["Half", "p50"], ["99 %", "p99"]].map(([share, key]) => html`<${Figure} title=${`${share} are faster than`} value=${millis(total[key])}><${Spark} values=${pick(key)} label=${`${key} over time`} /><//>`)}
  </div>${data.cut && html`<p class="faint">Only the newest calls count: there are too many.</p>`}`;
}

/** @param {{data: any}} props */
function Rows({ data }) {
  const numbers = [
    ["Calls", (row) => count(row.calls ?? 0), "number"],
    ["Errors", errors, "number"],
    ...["p50", "p99"].map((key) => [key, (row) => millis(row[key]), "number"]),
  ];
  const name = (/** @type {string} */ place) => (["Name", (row) => linkTo([place, row.name]), "title"]);
  const cost = [
    ...[["Tools", "tools"], ["Tokens", "tokens"]].map(([title, key]) => [title, (row) => (row.tools ? count(row[key]) : "–"), "number"]),
  ];
  const keyOf = (row) => row.name;
  return html`<${Section} title="By server"><${Table} caption="Calls by server" columns=${[name("servers"), ...numbers, ...cost]} rows=${[...data.servers].sort((a, b) => (b.calls ?? 0) - (a.calls ?? 0))} keyOf=${keyOf} shown=${50} /><//>
    <${Section} title="By tool"><${Table} caption="Calls by tool" columns=${[name("tools"), ...numbers]} rows=${data.tools} keyOf=${keyOf} shown=${50} empty="No calls yet." /><//>`;
}
