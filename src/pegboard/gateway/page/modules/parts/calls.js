// Calls as they end: those that the audit has, and those that the stream tells of since.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { withQuery } from "./api.js";
import { useFacts, useKept, useResource } from "./live.js";
import { linkTo, to } from "./route.js";
import { parse } from "./exact_json.js";
import { Loaded, Mark, Section, Table, Time, millis, Unseen } from "./ui.js";

const MOST = 400;
const GATHER = 150;

/** Whether a name is meant by a filter, in which a * stands for anything. @param {string | undefined} pattern @param {string | undefined} name */
function fits(pattern, name = "") {
  if (!pattern) return true;
  // One after the other, each at its first place: a regular expression would try every place of each.
  const [first, ...words] = pattern.split("*");
  const last = words.pop();
  if (last === undefined || !name.startsWith(first)) return name === pattern;
  let at = first.length;
  for (const word of words) {
    const found = name.indexOf(word, at);
    if (found < 0) return false;
    at = found + word.length;
  }
  return at <= name.length - last.length && name.endsWith(last);
}

/** @param {Record<string, string>} filter @param {any} call */
function isMeant(filter, call) {
  const { who, outcome } = filter;
  const { principal, client = "" } = call;
  // A client's name is before its version.
  const isTheirs = !who || [principal?.name, principal?.id, client].includes(who) || client.startsWith(`${who}/`);
  const went = !outcome || call.outcome === outcome || call.outcome?.startsWith(`${outcome}:`);
  return isTheirs && went && fits(filter.server, call.server) && fits(filter.tool, call.tool);
}

/**
 * The newest calls that pass a filter, live unless they are held.
 * @param {Record<string, string>} wanted as `/api/calls` takes it; of every kind only where that says so @param {{limit: number, isHeld?: boolean}} options
 */
export function useCalls(wanted, { limit, isHeld = false }) {
  const filter = /** @type {Record<string, string>} */ ({ kind: "call", ...wanted });
  const path = withQuery("calls", { ...filter, limit });
  // Where there are too many calls for the stream to tell of each, the audit has them.
  const kept = useResource(path, ["calls"], parse);
  // While others are read, those of before stay.
  const data = useKept(kept);
  const [state, setState] = useState(/** @type {{path: string, told: any[]}} */ ({ path, told: [] }));
  const [missed, setMissed] = useState(0);
  const arrived = useRef(/** @type {any[]} */ ([]));
  const number = useRef(0);
  const timer = useRef(0);
  const isLive = filter.kind === "call" || filter.kind === "*";
  const goOn = () => {
    const fresh = arrived.current;
    arrived.current = [];
    number.current = 0;
    setState((before) => ({ path, told: [...fresh, ...(before.path === path ? before.told : [])].slice(0, MOST) }));
    setMissed(0);
  };
  // Some hundred calls a second are drawn a few times a second.
  const draw = useRef(() => {});
  draw.current = () => { if (isHeld) setMissed(number.current); else goOn(); };
  useFacts((fact) => {
    if (fact.kind !== "call" || !isLive || !isMeant(filter, fact.data)) return;
    arrived.current = [fact.data, ...arrived.current].slice(0, MOST);
    number.current += 1;
    timer.current ||= setTimeout(() => { timer.current = 0; draw.current(); }, GATHER);
  });
  useEffect(() => () => {
    clearTimeout(timer.current);
    timer.current = 0;
    arrived.current = [];
    number.current = 0;
    setMissed(0);
  }, [path]);
  const rows = useMemo(() => {
    const told = state.path === path ? state.told : [];
    const records = data?.records ?? [];
    const traces = new Set(records.map((record) => record.trace));
    const both = [...told.filter((call) => !traces.has(call.trace)), ...records];
    return both.sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0)).slice(0, Math.max(limit, MOST));
  }, [state, data, path]);
  return { kept: { ...kept, data }, rows, missed, goOn };
}

/** How a call went. @param {{outcome?: string}} props */
export function Outcome({ outcome = "" }) {
  if (!outcome) return null;
  const [word, reason] = outcome.split(/:(.*)/s);
  const words = (reason ? `${word}: ${reason}` : word).replaceAll("_", " ");
  return html`<${Mark} tone=${word === "ok" ? "good" : word === "cancelled" || word === "input_required" ? "" : "bad"}>${words}<//>`;
}

/** @param {{rows: any[], caption: string, onOpen?: (call: any) => void, empty?: any}} props */
export function CallTable({ rows, caption, onOpen, empty }) {
  const columns = [
    ["When", (call) => html`<${Time} at=${call.at} />`, "nowrap"],
    ["What", (call) => (call.tool ? linkTo(["tools", call.tool]) : call.kind), "title"],
    ["Who", ({ principal, client }) => html`${principal?.name}${client && html`<small>${client}</small>`}`],
    ["Took", (call) => millis(call.ms), "number"],
    ["Outcome", (call) => html`<${Outcome} outcome=${call.outcome} />`],
    ...(onOpen ? [["Call", (call) => html`<button type="button" class="plain" onClick=${() => onOpen(call)}>Details<${Unseen}> of ${call.tool ?? call.kind}<//></button>`, "nowrap"]] : []),
  ];
  return html`<${Table} caption=${caption} columns=${columns} rows=${rows} shown=${100} empty=${empty} keyOf=${(call) => call.trace || call.id} />`;
}

/** The newest calls that pass a filter, and the way to all of them. @param {{filter: Record<string, string>, of?: string, most: number, all: string, self?: any}} props */
export function LatestCalls({ filter, of, most, all, self }) {
  const { kept, rows } = useCalls(filter, { limit: most });
  return html`<${Section} title="Latest calls" actions=${html`<a href=${to(["calls"], filter)}>${all}</a>`}>
    <${Loaded} of=${kept}>${() => html`<${CallTable} caption=${of ? `Latest calls of ${of}` : "Latest calls"} rows=${rows.slice(0, most)} empty=${html`No calls yet. ${!of && html`${self.admin && html`<a href="#/clients">Connect a client</a>, or `}<a href="#/tools">try a tool</a>.`}`} />`}<//><//>`;
}
