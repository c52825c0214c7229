// One tool: what its server says of it, a form to try it, and its latest calls.
import { html, useEffect, useRef, useState } from "../parts/html.js";
import { part, serverPath } from "../parts/api.js";
import { Ask } from "../parts/ask.js";
import { callTool } from "../parts/call.js";
import { Draft, cut, drafts, drawn, isObject, parse, read, withMembers, write } from "../parts/exact_json.js";
import { useResource } from "../parts/live.js";
import { Login } from "../parts/login.js";
import { Result } from "../parts/result.js";
import { isLinked, linkTo, to } from "../parts/route.js";
import { SchemaForm, begin } from "../parts/schema_form.js";
import { asCommand, asCurl, asPython } from "../parts/snippets.js";
import { switchServer } from "../parts/server_actions.js";
import { ToolActions, permit } from "../parts/tool_actions.js";
import { Tree } from "../parts/tree.js";
import { Button, Copy, Facts, Loaded, Mark, Problem, Prose, Screen, Section, State, confirm, count } from "../parts/ui.js";
import { CallsOf } from "./calls.js";
import { Changed } from "./changes.js";

// What an address may hold.
const LONGEST_KEPT = 3000;
const SECRET = /"writeOnly": true|"format": "password"/;
const SECRET_NAME = /passw|passphrase|secret|token(?!s)|api[-_]?key|private[-_]?key|credential|authorization/i;

/** Whether arguments may be secret, by their schema or by a name of theirs. @param {string} text @param {any} schema */
function isSecret(text, schema) {
  const said = write(schema) + text;
  return SECRET.test(said) || said.match(/"[^"]*": /g)?.some((name) => SECRET_NAME.test(name));
}

/** @param {import("../app.js").ScreenProps} props */
export default function Tool({ parts, query, self }) {
  const name = parts[1];
  const tool = useResource(`tools/${part(name)}`, ["tools", "config", "server", "logins"], parse);
  const actions = tool.data && html`<${ToolActions} tool=${tool.data} self=${self} />`;
  if (tool.error?.status) return html`<${Screen} title=${name}><${Missing} name=${name} of=${tool} self=${self} /><//>`;
  return html`<${Screen} title=${tool.data?.name ?? name} actions=${actions}><${Loaded} of=${tool}>${(data) => html`
    <${About} tool=${data} />
    <${Try} key=${query.arguments} tool=${data} given=${query.arguments} self=${self} />
    <${CallsOf} of="tool" name=${data.name} />`}<//><//>`;
}

/** Why a tool is not there, and for admins what to do about it. @param {{name: string, of: import("../parts/live.js").Resource<any>, self: any}} props */
function Missing({ name, of, self }) {
  const [server, own] = name.split(/__(.*)/s);
  const found = useResource(self.admin && own ? serverPath(server) : null, ["tools", "config", "server", "changes"]);
  const { status } = of.error ?? {};
  const { data } = found;
  if (found.isLoading) return null;
  const [words, action, act] = !data ? [] : !data.enabled ? ["Disabled:", "Enable", () => switchServer(server, true)]
    : data.offers.some((tool) => tool.name === own && !tool.allowed) ? ["Denied in the config of", "Allow", () => permit(server, [own], true, `${name} is allowed.`)] : [];
  return html`${words ? html`<div class="attention"><span>${words} ${linkTo(["servers", server])}</span><${Button} onClick=${act}>${action}<//></div>`
    : html`<${Problem} error=${status === 404 ? { status, message: `There is no tool ${name}.` } : of.error} reload=${of.reload} />`}
    ${data?.changed && status !== 404 && html`<${Changed} server=${data} />`}`;
}

/** What a server says of its tool, in words. @param {{of: any}} props */
function Hints({ of: { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } }) {
  const [effect, tone] = readOnlyHint ? ["reads only", "good"] : destructiveHint ? ["destructive", "bad"] : destructiveHint === false ? ["adds, and destroys nothing"] : ["may be destructive", "warn"];
  return html`<p class="acts"><${Mark} tone=${tone}>${effect}<//>${idempotentHint && !readOnlyHint && html`<${Mark}>safe to repeat<//>`}${openWorldHint && html`<${Mark}>reaches other systems<//>`}</p>`;
}

/** @param {{tool: any}} props */
function About({ tool }) {
  const { title = tool.annotations?.title, server, originalName } = tool;
  return html`<div class="card">
    ${title && html`<p><b class="clip">${drawn(title, 500)}</b></p>`}
    ${tool.description ? html`<${Prose} text=${tool.description} most=${900} />` : html`<p class="faint">Its server says nothing of it.</p>`}
    <${Hints} of=${tool.annotations ?? {}} />
    <${Facts} facts=${[
    ["Server", server ? html`${linkTo(["servers", server])}${originalName !== tool.name && html`, which calls it <code>${originalName}</code>`}` : "Pegboard itself"],
    ["Tokens", `${count(Number(tool.tokens))} in a prompt`],
    tool.keywords?.length > 0 && ["Found by", html`<span class="clip">${cut(tool.keywords.join(", "), 500)}</span>`]]} />
    <${Availability} tool=${tool} /></div>`;
}

/** Whether it can be used now, and if not, why and what to do. @param {{tool: any}} props */
function Availability({ tool: { server, availability: { status, reason, staleSince } } }) {
  const row = useResource(status === "needs_auth" ? serverPath(server) : null, ["server", "logins"]);
  const [isSigningIn, setSigningIn] = useState(false);
  return html`${status !== "available" ? html`<div class="attention"><${State} state=${status} signsIn=${Boolean(row.data?.needsLogin)} /><span>${reason}</span>
      ${row.data?.needsLogin && html`<${Button} kind="main" onClick=${() => setSigningIn(true)}>Sign in<//>`}</div>`
    : staleSince && html`<p class="faint">From an earlier time: its server has not answered since.</p>`}
    ${isSigningIn && html`<${Login} server=${server} onClose=${() => setSigningIn(false)} />`}`;
}

/** What is wrong with the arguments, each with its place. @param {any} value */
function problemsOf(value) {
  if (isObject(value) || value instanceof Draft) return drafts(value).map(({ place, draft }) => (place ? `${drawn(place)}: ${draft.problem}` : "This is no JSON yet."));
  return ["The arguments are an object: { … }"];
}

/** @param {{tool: any, given: string | undefined, self: any}} props */
function Try({ tool, given, self }) {
  const [value, setValue] = useState(() => read(given ?? "") ?? begin(tool.inputSchema));
  const [progress, setProgress] = useState(/** @type {any} */ (null));
  const [question, setQuestion] = useState(/** @type {any} */ (null));
  const [outcome, setOutcome] = useState(/** @type {any} */ (null));
  const running = useRef(/** @type {AbortController | null} */ (null));
  const isSure = useRef(false);
  const isProposed = useRef(given && isLinked());
  const result = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => result.current?.scrollIntoView({ block: "nearest" }), [outcome]);
  const problems = problemsOf(value);
  const { readOnlyHint, destructiveHint } = tool.annotations ?? {};
  const call = async () => {
    const doubts = [
      isProposed.current && `A link led here. The arguments: ${drawn(value, 500)}`,
      !readOnlyHint && destructiveHint !== false && `${destructiveHint ? "Its server says that it" : "It"} may change or delete what is there.`,
    ].filter(Boolean);
    if (!isSure.current && doubts[0] && !await confirm(`Call ${tool.name}?`, doubts.join("\n"), "Call it")) return;
    isSure.current = true;
    const text = write(value);
    // Whoever comes back finds them; browsers keep addresses, so no secrets.
    history.replaceState(true, "", to(["tools", tool.name], { arguments: text.length < LONGEST_KEPT && !isSecret(text, tool.inputSchema) && text }));
    const stop = running.current = new AbortController();
    const onAsk = (/** @type {any} */ requests) => new Promise((resolve) => setQuestion({ requests, resolve }));
    const began = performance.now();
    setProgress({});
    let ended;
    try {
      const data = await callTool(tool.name, value, { signal: stop.signal, onProgress: setProgress, onAsk });
      ended = { data, word: data?.isError ? "tool_error" : "ok" };
    } catch (problem) {
      const error = /** @type {any} */ (problem);
      ended = stop.signal.aborted ? { word: "cancelled" } : { data: error.data, error, word: "failed" };
    }
    setOutcome({ ...ended, ms: performance.now() - began });
    setProgress(null);
  };
  const { $schema, ...said } = tool.inputSchema;
  const schema = withMembers(said, { $schema });
  const snippets = /** @type {[string, () => string][]} */ ([
    ["pegboard call", () => asCommand(tool.name, value)],
    ["curl", () => asCurl(tool.name, value, self.kind !== "local")],
    ["Python", () => asPython(tool.name, value)],
  ]);
  return html`<div class="columns">
    <${Section} title="Try it"><div class="card">
      <${SchemaForm} schema=${tool.inputSchema} value=${value} onChange=${setValue} onSend=${call}>${(send) => html`<div class="acts"><${Button} kind="main" type="submit" title="Ctrl+Enter" disabled=${problems.length > 0} onClick=${send}>Call<//>
        ${progress && html`<${Button} onClick=${() => running.current?.abort()}>Cancel<//>`}
        <div class="bad" role="status">${problems.map((each) => html`<p>${each}</p>`)}</div></div>`}<//>
      ${progress && html`<${Progress} ...${progress} />`}
      <div class="acts"><span class="faint">Copy as</span>${snippets.map(([name, make]) => html`<${Copy} text=${make} disabled=${problems.length > 0} label=${`Copy as ${name}`}>${name}<//>`)}</div>
    </div><//>
    <div class="form beside">
      ${outcome && html`<div ref=${result}><${Result} outcome=${outcome} /></div>`}
      <${Section} title="Schema"><div class="card"><${Tree} name="input" value=${schema} isOpen=${2} />${tool.outputSchema && html`<${Tree} name="output" value=${tool.outputSchema} isOpen=${false} />`}</div><//>
    </div>
    ${question && html`<${Ask} server=${tool.server ?? "Pegboard"} requests=${question.requests} onDone=${(answers) => { setQuestion(null); question.resolve(answers); }} />`}
  </div>`;
}

/** How far a call is, as its server says. @param {{progress?: any, total?: any, message?: any}} props */
function Progress({ progress, total, message }) {
  const [done, all] = [progress, total].map((each) => drawn(each, 40));
  const known = Number(all) > 0 && Number(done) >= 0 && { max: Number(all), value: Number(done) };
  const numbers = done ? done + (all && ` of ${all}`) : "Calling …";
  return html`<p class="faint clip"><progress aria-label="Progress" ...${known}></progress> ${numbers}${message && ` · ${drawn(message, 500)}`}</p>`;
}
