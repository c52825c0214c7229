// Add servers: paste, fill in, search the registry, or take over what clients have.
import { html, useEffect, useRef, useState } from "../parts/html.js";
import { ask, part, post, withQuery } from "../parts/api.js";
import { bindTo, typed } from "../parts/bind.js";
import { useResource } from "../parts/live.js";
import { go, isLinked, to, useLeaving } from "../parts/route.js";
import { firstOf } from "../parts/rule_form.js";
import { Button, Field, Find, Form, Loaded, Mark, Outside, Problem, Screen, Section, Table, Tabs, confirm, notify, plural, Unseen } from "../parts/ui.js";

const TYPING = 350;
const OUTCOMES = /** @type {Record<string, [string, string]>} */ ({ new: ["new", "good"], renamed: ["another name", "good"], same: ["there already", ""], skipped: ["Pegboard itself: skipped", ""] });

/** @param {import("../app.js").ScreenProps} props */
export default function Add({ query, self }) {
  const ways = [["paste", "Paste"], ["form", "Fill in"], ["registry", "Registry"], ...(self.kind === "local" ? [["import", "From your clients"]] : [])];
  const way = ways.some(([each]) => each === query.way) ? query.way : "paste";
  if (!self.admin) return html`<${Screen} title="Add a server"><p>Only admins add servers.</p><//>`;
  return html`<${Screen} title="Add a server">
    <${Tabs} label="Ways to add a server" at=${way} tabs=${ways.map(([each, words]) => [each, words, to(["add"], { way: each })])} />
    ${way === "form" ? html`<${FillIn} />` : way === "registry" ? html`<${Registry} query=${query} />` : way === "import" ? html`<${Import} />` : html`<${Paste} />`}
  <//>`;
}

/** Whether it would be added. @param {{outcome: string}} row */
export const isNew = ({ outcome }) => outcome === "new" || outcome === "renamed";

/** Add servers, and show them as they come up. @param {string} path @param {any} body @param {() => void} [letGo] lets go of what was written */
async function add(path, body, letGo) {
  const { added } = await post(path, body);
  const names = added.map((/** @type {any} */ row) => row.name);
  letGo?.();
  notify(names.length ? `Added ${firstOf(names, 3)}.` : "Nothing was new.");
  go(names.length === 1 ? to(["servers", names[0]]) : "#/servers");
}

/** What becomes of each server. @param {{plan: any, pick?: (row: any) => any}} props `pick` makes the name of one that can be chosen */
function Plan({ plan, pick }) {
  return html`${plan.servers.length > 0 && html`<${Table} caption="What becomes of each" rows=${plan.servers} keyOf=${(row) => row.place + row.name} columns=${[
    ["Name", (row) => (pick && isNew(row) ? pick(row) : row.name), "title"],
    ...(pick ? [["From", (row) => row.from, "nowrap"]] : []),
    ["Command or address", (row) => html`<div><code class="clip" dir="ltr">${row.runs}</code>${row.missing && html`<small class="warn">The gateway's PATH has no such program.</small>`}${row.placeholders && html`<small class="warn">Put your own value in: ${row.placeholders.join(", ")}</small>`}
      ${[...row.does, ...row.notes, ...row.leftOut.map((each) => `left out: ${each.key} (${each.reason})`), ...(row.secrets.length ? [`taken over as plain text: ${row.secrets.join(", ")}`] : [])].map((text) => html`<small>${text}</small>`)}</div>`],
    ["What becomes of it", (row) => html`<div><${Mark} tone=${OUTCOMES[row.outcome]?.[1]}>${OUTCOMES[row.outcome]?.[0] ?? row.outcome}<//>${row.other && html`<small>${row.other}</small>`}</div>`],
  ]} />`}${plan.unreadable.map(({ name, reason, place }) => html`<p class="attention">${place}: ${name && `${name}: `}${reason}</p>`)}`;
}

/** What would become of a text: checked once nobody types any more, and nothing until then. @param {string} text @returns {{plan?: any, error?: any}} */
function useCheck(text) {
  const [found, setFound] = useState(/** @type {any} */ ({}));
  useEffect(() => {
    if (!text.trim()) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      ask("servers/check", { method: "POST", body: { text }, signal: stop.signal }).then(
        (plan) => setFound({ text, plan }),
        (error) => { if (!stop.signal.aborted) setFound({ text, error }); },
      );
    }, TYPING);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text]);
  return found.text === text ? found : {};
}

/** @param {{plan?: any, error?: any}} props */
const Checked = ({ plan, error }) => html`<div aria-live="polite">${error && html`<${Problem} error=${error} />`}${plan && html`<${Plan} plan=${plan} />`}</div>`;

function Paste() {
  const [text, setText] = useState("");
  const letGo = useLeaving(text.trim());
  const { plan, error } = useCheck(text);
  const fresh = plan?.servers.filter(isNew) ?? [];
  // Any words can be a command: one that there is not is added only by whoever means it.
  const isDoubtful = fresh.some((row) => row.missing);
  return html`<div class="form">
    <${Field} label="A snippet of any client or README" hint="JSON, TOML, YAML, a command line, or an address. Nothing is written before you say so.">
      <textarea class="code" rows="10" spellcheck="false" placeholder=${'{"mcpServers": {"time": {"command": "uvx", …}}}'} value=${text} onInput=${typed(setText)} /><//>
    <${Checked} plan=${plan} error=${error} />
    <div class="acts"><${Button} kind=${isDoubtful ? "" : "main"} disabled=${!fresh.length} onClick=${() => add("servers", { text }, letGo)}>Add ${fresh[0] ? plural(fresh.length, "server") : ""}${isDoubtful && " all the same"}<//></div>
  </div>`;
}

/** A name as servers have it. @param {string} name */
const fold = (name) => name.normalize("NFKD").replace(/[^\x00-\x7f]/g, "").toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "");

/**
 * A form for one server: its name, how it is reached, what would become of it, and its button.
 * @param {{name: string, onName: (name: string) => void, entry: any, lacking?: string, command?: string, letGo?: () => void, children: any}} props
 *   `entry` may not be ready yet; what is `lacking` is said, and it is added only by whoever means it; a `command` that
 *   a link may have proposed is asked about
 */
function NewServer({ name, onName, entry, lacking = "", command, letGo, children }) {
  const { plan, error } = useCheck(entry && name.trim() ? JSON.stringify({ mcpServers: { [name]: entry } }) : "");
  const [row] = plan?.servers ?? [];
  const folded = fold(name);
  const isDoubtful = lacking || row?.missing;
  const send = async () => {
    if (!command || !isLinked() || await confirm(`Add ${name}?`, `A link led here. It will run: ${command}`, "Add it")) await add("servers", { name, entry }, letGo);
  };
  return html`<${Form} class="card" onSend=${send}>
    <${Field} label="Name" error=${row?.taken && `There is a server ${folded} already.`} hint=${folded && folded !== name ? `Its name will be ${folded}.` : "Letters, digits and _; it stands before the names of its tools."}><input class="code" required value=${name} onInput=${typed(onName)} /><//>
    ${row?.taken && html`<p><${Button} onClick=${() => onName(fold(row.name))}>Call it ${fold(row.name)}<//></p>`}
    ${children}<${Checked} plan=${plan} error=${error} />
    ${lacking && html`<p class="warn">${lacking}</p>`}
    <div class="acts"><button class=${isDoubtful ? "" : "main"} disabled=${!row || row.taken}>Add${isDoubtful && " all the same"}</button></div>
  <//>`;
}

/** The words of a command line, as a shell has them; behind \ only what it could mean otherwise, for the paths of Windows. @param {string} line */
const wordsOf = (line) => (line.match(/(?:"(?:\\.|[^"])*"|'[^']*'|\\["'\s\\]|[^\s"'])+/g) ?? []).map((word) => word.replace(/"((?:\\.|[^"])*)"|'([^']*)'|\\(["'\s\\])/g, (_, double, single, sign) => sign ?? single ?? double.replace(/\\(["\\])/g, "$1")));

/** @param {string} text */
const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

const NOTHING = { name: "", command: "", args: "", url: "", env: "", headers: "" };
const PAIRS = { env: /^([A-Za-z_]\w*)=(.*)/, headers: /^([\w-]+):(.*)/ };

function FillIn() {
  const [values, setValues] = useState(NOTHING);
  const [isCommand, setCommand] = useState(true);
  const letGo = useLeaving(values !== NOTHING && values);
  const bind = (/** @type {keyof typeof values} */ key) => ({ class: "code", ...bindTo(values, setValues)(key) });
  const { name, command, args, url } = values;
  const key = isCommand ? "env" : "headers";
  const lines = linesOf(values[key]);
  const wrong = lines.find((line) => !PAIRS[key].test(line));
  const pairs = { [key]: lines.length && !wrong ? Object.fromEntries(lines.map((line) => /** @type {string[]} */ (PAIRS[key].exec(line)).slice(1).map((each) => each.trim()))) : undefined };
  const [program, ...words] = args.trim() ? [command.trim(), ...linesOf(args)] : wordsOf(command);
  const entry = isCommand ? program && { command: program, args: words, ...pairs } : url && { url, ...pairs };
  const field = (/** @type {string} */ label, /** @type {string} */ hint = "") => html`<${Field} label=${label} hint=${hint} error=${wrong && `This line is not like that: ${wrong}`}><textarea ...${bind(key)} /><//>`;
  return html`<${NewServer} name=${name} onName=${(text) => setValues({ ...values, name: text })} entry=${!wrong && entry} letGo=${letGo}>
    <fieldset><legend>How it is reached</legend>
      ${[["A command on this machine", true], ["An address", false]].map(([words, value]) => html`<${Field} label=${words} class="check"><input type="radio" name="kind" checked=${isCommand === value} onChange=${() => setCommand(Boolean(value))} /><//>`)}
      ${isCommand ? html`<${Field} label="Command"><input required placeholder="uvx mcp-server-time" ...${bind("command")} /><//>
        <${Field} label="Arguments, one a line"><textarea ...${bind("args")} /><//>
        ${field("Environment, one NAME=value a line", "NAME=${NAME} takes it from the gateway's own environment.")}`
    : html`<${Field} label="Address"><input type="url" required placeholder="https://example.com/mcp" ...${bind("url")} /><//>${field("Headers, one Name: value a line")}`}
    </fieldset><//>`;
}

/** @param {{query: Record<string, string>}} props */
function Registry({ query }) {
  const found = useResource(query.q ? withQuery("registry", { q: query.q, limit: 20 }) : null);
  return html`<${Form} class="filters" onSend=${(event) => go(to(["add"], { way: "registry", q: event.target.elements.q.value }), true)}><${Find} label="What should the server do?" name="q" value=${query.q ?? ""} /><button>Search</button><//>
    ${query.server ? html`<${Published} name=${query.server} back=${to(["add"], { way: "registry", q: query.q })} />` : query.q && html`${found.error && html`<p>The registry cannot be reached from here. <a href=${to(["add"])}>Paste a snippet</a> instead.</p>`}<${Loaded} of=${found}>${(data) => html`
      ${data.notes?.map((/** @type {string} */ note) => html`<p class="faint">${note}</p>`)}
      ${data.servers.length ? html`<ul class="plain cards">${data.servers.map((row) => html`<li class="card" key=${row.name}><h3>${row.title || row.name}</h3><small>${row.name} · ${row.publisher} · ${row.version}${row.status === "deprecated" ? " · deprecated" : ""}</small>
        <p class="clip">${row.description}</p><p><a class="button" href=${to(["add"], { way: "registry", q: query.q, server: row.name })}>Look at it<${Unseen}>: ${row.name}<//></a></p></li>`)}</ul>` : html`<p class="empty">Nothing was found.</p>`}`}<//>`}`;
}

/** @param {{name: string, back: string}} props */
function Published({ name, back }) {
  const path = `registry/${part(name)}`;
  const found = useResource(path);
  return html`<p><a href=${back}>Back to what was found</a></p><${Loaded} of=${found}>${(data) => html`<${Section} title=${data.title || data.name}>
    <p class="prose">${data.description}</p>${data.record?.websiteUrl && html`<p><${Outside} href=${data.record.websiteUrl} /></p>`}
    ${data.choices.map((choice) => html`<${Way} key=${choice.use} choice=${choice} name=${data.serverName} path=${path} />`)}<//>`}<//>`;
}

/**
 * An entry in which values that are given take the places of the variables that stand for them.
 * @param {any} entry @param {any[]} inputs @param {Record<string, string>} values @returns {any}
 */
function fill(entry, inputs, values) {
  if (typeof entry === "string") return inputs.reduce((text, input) => (values[input.key] ? text.replaceAll(`\${${input.variable}}`, values[input.key]) : text), entry);
  if (Array.isArray(entry)) return entry.map((each) => fill(each, inputs, values));
  if (!entry || typeof entry !== "object") return entry;
  return Object.fromEntries(Object.entries(entry).map(([key, value]) => [key, fill(value, inputs, values)]));
}

/** One way to run a published server, with the values that it wants. @param {{choice: any, name: string, path: string}} props */
function Way({ choice, name: proposed, path }) {
  const { use, about, problem, inputs } = choice;
  const [name, setName] = useState(proposed);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ (Object.fromEntries(inputs.map((input) => [input.key, input.default ?? ""]))));
  const answers = Object.fromEntries(inputs.filter((input) => !input.secret).map(({ key }) => [key, values[key]]));
  const found = useResource(problem ? null : path, [], undefined, JSON.stringify({ use, answers }));
  // While other values are read, those of before stay.
  const last = useRef(choice);
  last.current = found.data ?? last.current;
  if (problem) return html`<p class="attention">${about}: ${problem}</p>`;
  const { entry, command, variables, warnings } = last.current;
  const secrets = inputs.filter((input) => input.secret && values[input.key]);
  const free = variables.filter((/** @type {string} */ variable) => !secrets.some((input) => input.variable === variable));
  const lacking = inputs.filter((input) => input.required && !values[input.key]).map((input) => input.key);
  return html`<${NewServer} name=${name} onName=${setName} entry=${found.data && fill(entry, secrets, values)} lacking=${lacking[0] && `It wants ${lacking.join(", ")}.`} command=${command}>
    <h3>${about}</h3><p>It will run:</p><pre dir="ltr">${command}</pre>
    ${found.error && html`<${Problem} error=${found.error} />`}
    ${warnings.map((/** @type {string} */ text) => html`<p class="warn">${text}</p>`)}
    ${inputs.map(({ key, required, description, secret, choices, placeholder, default: usual }) => {
    const label = `${key} (${required ? "required" : "if you want"})`;
    const bound = bindTo(values, setValues)(key);
    return html`<${Field} key=${key} label=${label} hint=${description}>${choices.length ? html`<select ...${bound}>${!usual && html`<option value="">–</option>`}${choices.map((/** @type {string} */ each) => html`<option>${each}</option>`)}</select>`
      : html`<input type=${secret ? "password" : "text"} autocomplete="off" placeholder=${placeholder} ...${bound} />`}<//>`;
  })}
    ${free.length > 0 && html`<p class="faint">What is empty is taken from the gateway's environment: ${free.join(", ")}</p>`}<//>`;
}

function Import() {
  const found = useResource("import");
  // What somebody has ticked or not, over what is at first: all but what the config has under its name.
  const [ticks, setTicks] = useState(/** @type {Record<string, boolean>} */ ({}));
  return html`<${Loaded} of=${found}>${(data) => {
    const fresh = data.servers.filter(isNew);
    const isIn = (/** @type {any} */ row) => ticks[row.name] ?? !row.taken;
    const servers = fresh.filter(isIn).map(({ file, outcome, name, other }) => ({ file, name: outcome === "renamed" ? other : name }));
    const all = (/** @type {boolean} */ value) => () => setTicks(Object.fromEntries(fresh.map((row) => [row.name, value])));
    const pick = (/** @type {any} */ row) => html`<${Field} label=${row.name} class="check"><input type="checkbox" checked=${isIn(row)} onChange=${(event) => setTicks({ ...ticks, [row.name]: event.target.checked })} /><//>`;
    return html`${data.servers.length || data.unreadable.length ? html`<p>Your clients have these. Their config files are not changed.</p>
      <div class="acts"><${Button} kind="main" disabled=${!servers.length} onClick=${() => add("import", { servers })}>Take over ${servers.length ? plural(servers.length, "server") : ""}<//><${Button} onClick=${all(true)}>All<//><${Button} onClick=${all(false)}>None<//></div>
      <${Plan} plan=${data} pick=${pick} />` : html`<p class="empty">The clients on this machine have no servers.</p>`}`;
  }}<//>`;
}
