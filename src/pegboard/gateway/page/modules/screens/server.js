// One server: its tools, what else it offers, its entry, its log, its calls.
import { html, useEffect, useRef, useState } from "../parts/html.js";
import { ask, patch, serverPath, withQuery } from "../parts/api.js";
import { typed } from "../parts/bind.js";
import { isObject } from "../parts/exact_json.js";
import { useFacts, useResource } from "../parts/live.js";
import { to, useLeaving } from "../parts/route.js";
import { ServerActions, discover, restoreServer, switchServer } from "../parts/server_actions.js";
import { permit } from "../parts/tool_actions.js";
import { speaks, useReason } from "./servers.js";
import { CallsOf } from "./calls.js";
import { Changed } from "./changes.js";
import { Button, Field, Find, Form, Loaded, Mark, Prose, Screen, Section, State, Table, Tabs, Time, count, millis, notify, plural, says, toggled, Unseen } from "../parts/ui.js";

const MOST_LINES = 500;

/** @param {import("../app.js").ScreenProps} props */
export default function Server({ parts, query, self }) {
  const name = parts[1];
  const server = useResource(serverPath(name), (fact) => ["tools", "config", "logins", "changes"].includes(fact.kind) || (fact.kind === "server" && fact.data.name === name));
  const tabs = [["tools", "Tools"], ["offers", "Prompts and resources"], ...(self.admin ? [["config", "Config"], ["log", "Log"]] : []), ["calls", "Calls"]];
  const tab = tabs.some(([each]) => each === query.tab) ? query.tab : "tools";
  const actions = server.data && html`<${ServerActions} server=${server.data} self=${self} wide />`;
  if (server.error?.status === 404) return html`<${Screen} title=${name}><p>There is no server of this name now.</p><p class="acts"><a class="button" href="#/servers">All servers</a>${self.admin && html`<${Button} onClick=${() => restoreServer(name)}>Bring it back<//>`}</p><//>`;
  return html`<${Screen} title=${name} actions=${actions}><${Loaded} of=${server}>${(data) => html`
    <p class="faint"><${State} state=${data.state} signsIn=${Boolean(data.needsLogin)} /> · ${speaks(data)}${data.latencyMs != null && ` · ${millis(data.latencyMs)}`}${data.lastSeen && html` · last seen <${Time} at=${data.lastSeen} />`}</p>
    <${Trouble} data=${data} self=${self} />
    <${Remarks} data=${data} />
    ${self.admin && data.changed && html`<${Changed} server=${data} />`}
    <${Tabs} label=${name} at=${tab} tabs=${tabs.map(([each, words]) => [each, words, to(["servers", name], { tab: each === "tools" ? "" : each })])} />
    ${tab === "tools" ? html`<${Tools} data=${data} self=${self} />`
    : tab === "offers" ? html`<${Offers} data=${data} />`
      : tab === "config" ? html`<${Config} data=${data} onSaved=${server.set} />`
        : tab === "log" ? html`<${Log} name=${name} />` : html`<${CallsOf} of="server" name=${name} />`}`}<//><//>`;
}

/** What is wrong with a server, and what can be done about it. @param {{data: any, self: any}} props */
function Trouble({ data, self }) {
  const why = useReason(data);
  if (!why || !data.enabled) return null;
  const { name, state } = data;
  const next = state === "unreachable" && (data.transport === "stdio" ? "Check its command and its environment." : "Check its address, and whether it is up.");
  return html`<div class="attention"><div><p>${why}</p>${next}</div>
    <div class="acts"><${Button} onClick=${() => discover(name, "refresh")}>Try now<//>
      ${self.admin && [["log", "See its log"], ["config", "Edit its config"]].map(([tab, words]) => html`<a class="button" href=${to(["servers", name], { tab })}>${words}</a>`)}</div></div>`;
}

/** @param {{data: any}} props */
function Remarks({ data }) {
  const said = [
    ...(data.conflicts ?? []).map((/** @type {string} */ tool) => `${tool}: not registered, because Pegboard has a tool of that name`),
    ...Object.entries(data.rejected ?? {}).map(([tool, reason]) => `${tool}: ${reason}`),
    ...(data.cut ?? []),
  ];
  if (!said.length) return null;
  return html`<details class="attention"><summary>${plural(said.length, "remark")} on what it offers</summary><ul>${said.map((text) => html`<li>${text}</li>`)}</ul></details>`;
}

/** @param {{data: any, self: any}} props */
function Tools({ data, self }) {
  const listed = useResource(self.admin ? null : withQuery("tools", { server: data.name, brief: true }), ["tools"]);
  const [words, setWords] = useState("");
  const [ticked, setTicked] = useState(/** @type {Set<string>} */ (new Set()));
  const all = data.offers ?? (listed.data?.tools ?? []).map((tool) => ({ ...tool, full: tool.name }));
  const rows = all.filter((tool) => says(`${tool.name} ${tool.description}`, words));
  const usable = all.filter((tool) => !tool.state);
  const tokens = usable.reduce((/** @type {number} */ sum, tool) => sum + tool.tokens, 0);
  const apply = async (/** @type {boolean} */ allow) => {
    await permit(data.name, [...ticked], allow);
    setTicked(new Set());
  };
  if (listed.isLoading) return null;
  if (!all.length) return html`<p class="empty">${data.enabled ? html`No tools of it are known. ${!data.lastError && html`<${Button} onClick=${() => discover(data.name, "refresh")}>Refresh<//>`}`
    : html`Disabled. Enable it to use its ${data.tools > 0 && count(data.tools)} tools. ${self.admin && html`<${Button} onClick=${() => switchServer(data.name, true)}>Enable it<//>`}`}</p>`;
  const columns = [
    ...(self.admin ? [["", (tool) => html`<input type="checkbox" aria-label=${`Choose ${tool.name}`} checked=${ticked.has(tool.name)} onChange=${() => setTicked((before) => toggled(before, tool.name))} />`]] : []),
    ["Tool", (tool) => (tool.state ? html`<bdi>${tool.name}</bdi> <${Mark} tone="warn">${tool.state}<//>` : html`<a href=${to(["tools", tool.full ?? `${data.name}__${tool.name}`])}>${tool.name}<//>`), "title"],
    ["Description", (tool) => html`<span class="clip">${tool.description}</span>`],
    ["Tokens", (tool) => count(tool.tokens), "number"],
  ];
  return html`<div class="filters"><${Find} value=${words} onInput=${typed(setWords)} />
    ${self.admin && html`<${Button} onClick=${() => setTicked(new Set(rows.map((tool) => tool.name)))}>Choose all ${count(rows.length)} that match<//>
      <${Button} disabled=${!ticked.size} onClick=${() => apply(false)}>Deny ${ticked.size || ""}<//><${Button} disabled=${!ticked.size} onClick=${() => apply(true)}>Allow ${ticked.size || ""}<//>`}</div>
    <p class="faint" role="status">${plural(usable.length, "tool")} of ${count(all.length)} in use, ${plural(tokens, "token")}</p>
    <${Table} caption=${`Tools of ${data.name}`} columns=${columns} rows=${rows} empty="No tool fits." />`;
}

/** @param {{data: any}} props */
function Offers({ data }) {
  const kinds = /** @type {[string, string, string][]} */ ([["prompts", "Prompts", "name"], ["resources", "Resources", "uri"], ["templates", "Resource templates", "uriTemplate"]]);
  return html`${data.instructions && html`<${Section} title="Its instructions"><div class="card"><${Prose} text=${data.instructions} /></div><//>`}
    ${kinds.map(([kind, title, key]) => html`<${Section} title=${`${title} (${count(data[kind]?.length ?? 0)})`}>
      <${Table} caption=${title} rows=${data[kind] ?? []} keyOf=${(row) => row[key]} shown=${100} empty="None." columns=${[
    ["Name", (row) => (row.title ?? row.name ?? row[key]), "title"],
    ...(key === "name" ? [] : [["URI", (row) => html`<code dir="ltr">${row[key]}</code>`]]),
    ["Description", (row) => html`<span class="clip">${row.description ?? ""}</span>`],
  ]} /><//>`)}`;
}

/** Rows of names and values; a value that is set is never shown. @param {{title: string, given: any, changes: any, onChange: (changes: any) => void}} props */
function Secrets({ title, given, changes, onChange }) {
  const [name, setName] = useState("");
  const names = [...new Set([...Object.keys(given ?? {}), ...Object.keys(changes)])];
  const set = (/** @type {string} */ key, value) => onChange({ ...changes, [key]: value });
  return html`<fieldset><legend>${title}</legend>
    ${names.map((key) => html`<div class="row" key=${key}><${Field} label=${key}><input class="code" type="password" autocomplete="off" value=${changes[key] ?? ""} disabled=${changes[key] === null}
        placeholder=${changes[key] === null ? "is taken out" : (given?.[key]?.from ?? (given?.[key] ? "set; type to replace it" : "a value, or \${VARIABLE}"))} onInput=${(event) => set(key, event.target.value)} /><//>
      <${Button} onClick=${() => { const { [key]: _, ...others } = changes; onChange(changes[key] === null ? others : given?.[key] ? { ...changes, [key]: null } : others); }}>${changes[key] === null ? "Keep" : "Remove"}<${Unseen}> ${key}<//><//></div>`)}
    <div class="row"><${Field} label="New name"><input class="code" value=${name} onInput=${typed(setName)} /><//>
      <${Button} disabled=${!name.trim()} onClick=${() => { set(name.trim(), ""); setName(""); }}>Add<${Unseen}> to ${title}<//><//></div></fieldset>`;
}

/**
 * What makes one object of another, as a merge patch says it: null for a key that went, also in objects within.
 * @param {Record<string, any>} from @param {Record<string, any>} into
 */
function changesOf(from, into) {
  /** @type {Record<string, any>} */
  const changes = {};
  for (const key of Object.keys({ ...from, ...into })) {
    const [before, after] = [from[key], into[key]];
    if (JSON.stringify(before) !== JSON.stringify(after)) changes[key] = isObject(before) && isObject(after) ? changesOf(before, after) : after ?? null;
  }
  return changes;
}

// What stands where REST does not show a secret.
const HIDDEN = "[redacted]";

/** @param {{data: any, onSaved: (data: any) => void}} props */
function Config({ data, onSaved }) {
  const { command = null, url = null, args = [], env, headers, ...rest } = data.entry ?? {};
  const before = { command: command ?? "", url: url ?? "", args: args.join("\n"), env: {}, headers: {}, text: JSON.stringify(rest, null, 2) };
  // What is being written here outlives changes of the entry from elsewhere.
  const [drafts, setDrafts] = useState(/** @type {any} */ ({}));
  const { digest, ...written } = drafts;
  const values = { ...before, ...written };
  const isUnsaved = JSON.stringify(values) !== JSON.stringify(before);
  useLeaving(isUnsaved);
  if (!data.entry) return html`<p class="empty">It has no entry in the config file that can be read.</p>`;
  /** @type {any} */
  let options;
  try { options = JSON.parse(values.text || "{}"); } catch { options = null; }
  const save = async () => {
    const lines = values.args === before.args ? args : values.args.split("\n").filter(Boolean);
    const change = changesOf({ command, url, args, ...rest }, { command: values.command || null, url: values.url || null, args: lines, ...options });
    if (change.args?.length === 0) change.args = null;
    for (const key of /** @type {const} */ (["env", "headers"])) if (Object.keys(values[key]).length) change[key] = values[key];
    if (JSON.stringify(change).includes(HIDDEN)) throw new Error(`${HIDDEN} stands for a secret that is not shown: put a variable there, or the value itself.`);
    const path = serverPath(data.name);
    try {
      // Of the entry that was there when the writing began: whoever is told of another one may save over it.
      await patch(path, { ...change, digest });
    } catch (refused) {
      if (/** @type {any} */ (refused).status === 409) setDrafts(written);
      throw refused;
    }
    onSaved(await ask(path));
    setDrafts({});
    notify("Saved.");
  };
  const set = (/** @type {string} */ key) => (/** @type {any} */ value) => setDrafts({ digest: data.digest, ...drafts, [key]: value });
  const bind = (/** @type {"command" | "args" | "url" | "text"} */ key) => ({ class: "code", value: values[key], onInput: typed(set(key)) });
  return html`<${Form} class="card">
    ${url !== null ? html`<${Field} label="Address"><input ...${bind("url")} /><//><${Secrets} title="Headers" given=${headers} changes=${values.headers} onChange=${set("headers")} />`
    : html`<${Field} label="Command"><input ...${bind("command")} /><//>
      <${Field} label="Arguments, one a line" hint="What is secret is hidden here: use a variable, \${NAME}, and set it below."><textarea ...${bind("args")} /><//>
      <${Secrets} title="Environment" given=${env} changes=${values.env} onChange=${set("env")} />`}
    <${Field} label="Everything else, as JSON" error=${options === null ? "This is not JSON." : ""}><textarea rows="6" aria-invalid=${options === null} ...${bind("text")} /><//>
    <div class="acts"><${Button} kind="main" disabled=${options === null || !isUnsaved} onClick=${save}>Save<//></div>
  <//>`;
}

/** @param {{name: string}} props */
function Log({ name }) {
  const path = serverPath(name, "/log");
  const [lines, setLines] = useState(/** @type {any[] | null} */ (null));
  const [words, setWords] = useState("");
  const last = useRef(0);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const isReading = useRef(false);
  const read = async () => {
    if (isReading.current) return;
    isReading.current = true;
    try {
      const answer = await ask(withQuery(path, { limit: MOST_LINES, after: last.current || undefined }));
      // A gateway that was started anew counts from one again.
      const isAnew = answer.last < last.current;
      last.current = answer.last;
      setLines((before) => [...(isAnew ? [] : before ?? []), ...answer.lines].slice(-MOST_LINES));
    } finally {
      isReading.current = false;
    }
  };
  useEffect(() => { read().catch(() => setLines([])); }, []);
  useFacts((fact) => {
    const isTheirs = fact.kind === "resync" || (fact.kind === "log" && fact.data.name === name);
    if (isTheirs) read().catch(() => {});
  });
  useEffect(() => { if (box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines]);
  const shown = (lines ?? []).filter((line) => says(line.text, words));
  return html`<${Find} value=${words} onInput=${typed(setWords)} />
    ${lines === null ? html`<p class="loading">Reading …</p>` : shown.length ? html`<pre class="log" ref=${box} tabindex="0" aria-label=${`Log of ${name}`}>${shown.map((line) => html`<div key=${line.number} class=${line.source === "pegboard" ? "faint" : ""}><${Time} at=${line.time} clock /> ${line.source === "pegboard" ? "— " : ""}${line.text}\n</div>`)}</pre>` : html`<p class="empty">Nothing was written yet.</p>`}`;
}
