// Access: tokens, the rules of the config, and who one is here. A token itself is shown once, and kept nowhere.
import { html, useState } from "../parts/html.js";
import { part, patch, post, remove } from "../parts/api.js";
import { chooser } from "../parts/entry.js";
import { useResource } from "../parts/live.js";
import { go, linkTo, to } from "../parts/route.js";
import { RuleForm, firstOf } from "../parts/rule_form.js";
import { Button, Copy, Dialog, Facts, Find, Loaded, Screen, Section, State, Table, Tabs, Time, confirm, notify, plural, says } from "../parts/ui.js";

/** The address of a tab. @param {string} tab */
const at = (tab) => to(["access"], { tab });

/** @param {import("../app.js").ScreenProps} props */
export default function Access({ parts, query, self }) {
  // The only place where a token is, while its dialog is open.
  const [made, setMade] = useState(/** @type {any} */ (null));
  const close = () => setMade(null);
  const [, name] = parts;
  const { tab = "" } = query;
  const { toolsets } = self.gives;
  const add = async (/** @type {any} */ body) => {
    setMade(await post("tokens", body));
    go(at(""), true);
  };
  if (!self.admin) return html`<${Screen} title="Access"><p>Only admins see who may come in.</p><${Self} /><//>`;
  return html`${name ? html`<${One} key=${name} name=${name} toolsets=${toolsets} onMade=${setMade} />` : html`<${Screen} title="Access" actions=${html`<a class="button main" href=${at("add")}>Add a token</a>`}>
      <${Tabs} label="Access" at=${tab} tabs=${[["", "Tokens", at("")], ["rules", "Rules", at("rules")], ["self", "Who you are", at("self")]]} />
      ${tab === "self" ? html`<${Self} />` : tab === "rules" ? html`<${Rules} />` : tab === "add" ? html`<${Section} title="A new token"><${RuleForm} toolsets=${toolsets} onSave=${add} /><//>` : html`<${Tokens} query=${query} />`}<//>`}
    ${made && html`<${Dialog} title=${`The token of ${made.name}`}><div class="form">
      <p class="attention">It is shown this once: Pegboard keeps only its digest.</p><pre tabindex="0">${made.token}</pre>
      <p>It gives ${plural(made.gives.tools, "tool")} now. Send it as the header <code>Authorization: Bearer</code>, never in an address.</p></div>
      <div class="acts end"><${Copy} text=${made.token}>Copy<//><${Button} kind="main" onClick=${close}>I have kept it<//></div><//>`}`;
}

/** What a rule gives, in words, and what is odd about it. */
const showRule = ({ mayUse, configRule, remarks = [], problem }) => html`<div>${mayUse}${configRule && html`<small>and <a href=${at("rules")}>rule ${configRule.number}</a>: ${configRule.mayUse}</small>`}${[...remarks, problem].map((text) => text && html`<small class="warn">${text}</small>`)}</div>`;

/** @type {import("../parts/ui.js").Column[]} */
const COLUMNS = [
  ["Name", ({ name }) => linkTo(["access", name]), "title"],
  ["May use", showRule],
  ["State", ({ state }) => html`<${State} state=${state} />`],
  ...[["Expires", "expiresAt"], ["Last used", "lastUsedAt"], ["Made", "createdAt"]].map(([title, key]) => /** @type {import("../parts/ui.js").Column} */ ([title, (row) => html`<${Time} at=${row[key]} none="never" />`])),
];

/** @param {{query: Record<string, string>}} props */
function Tokens({ query: { q = "" } }) {
  return html`<${Loaded} of=${useResource("tokens", ["tokens", "config"])}>${(data) => {
    const rows = data.tokens.filter((row) => says(`${row.name} ${row.mayUse}`, q));
    if (!data.tokens.length) return html`<p class="empty">No tokens. One lets in others, or other machines, with the rights that you give.</p>`;
    return html`<${Find} value=${q} onInput=${chooser(["access"], {})("q")} />
      <p class="faint" role="status">${plural(rows.length, "token")}</p><${Table} caption="Tokens" columns=${COLUMNS} rows=${rows} shown=${100} />`;
  }}<//>`;
}

/** @param {{name: string, toolsets: string[], onMade: (made: any) => void}} props */
function One({ name, toolsets, onMade }) {
  const path = `tokens/${part(name)}`;
  const token = useResource(path, ["tokens", "config", "tools"]);
  const save = async (/** @type {any} */ body) => {
    const row = await patch(path, body);
    notify("Saved. It holds from the next request on.");
    if (row.name === name) token.set(row);
    else go(to(["access", row.name]), true);
  };
  const rotate = async () => {
    if (await confirm(`Rotate ${name}?`, "The secret of now is refused at once. Rule, boards and sessions stay.", "Rotate")) onMade(await post(`${path}/rotate`));
  };
  const takeAway = async () => {
    if (!await confirm(`Remove ${name}?`, "Whoever has it is refused; its sessions, calls and boards end. This cannot be undone.", "Remove")) return;
    await remove(path);
    notify(`Removed ${name}.`);
    go(at(""));
  };
  return html`<${Screen} title=${name} actions=${html`<${Button} onClick=${rotate}>Rotate<//><${Button} kind="danger" onClick=${takeAway}>Remove<//>`}><p><a href=${at("")}>All tokens</a></p><${Loaded} of=${token}>${(row) => html`
    <${Facts} facts=${[...COLUMNS.slice(1).map(([title, of]) => [title, of(row)]), ...gives(row.gives)]} />
    <${Section} title="Change it"><${RuleForm} key=${JSON.stringify([row.rule, row.expiresAt])} token=${row} toolsets=${toolsets} onSave=${save} /><//>`}<//><//>`;
}

/** What somebody is given of what there is now, as facts; nothing is known of a token that is invalid. @param {any} given */
const gives = (given) => (given ? [
  ["Gives now", [plural(given.tools, "tool"), given.of !== undefined && ` of ${given.of}`, given.onlyHere && `, ${given.onlyHere} of them only here`]],
  ["Servers", firstOf(given.servers)],
  given.notAsked && ["Not asked yet", firstOf(given.notAsked)],
  ["Toolsets", firstOf(given.toolsets)],
] : []);

function Rules() {
  const tokens = useResource("tokens", ["config", "tokens"]).data?.tokens ?? [];
  return html`<p class="prose">The first rule that names somebody holds; for a token, its own as well.</p><${Loaded} of=${useResource("rules", ["config", "tokens", "tools"])}>${(data) => html`<${Table} caption="Rules of the config" empty=${html`No rules. They are written into the config file: <code>auth.rules</code>`} rows=${data.rules} columns=${[
    ["Rule", (row) => html`${row.number}: <bdi>${row.who.join(", ")}</bdi>`, "title"],
    ["May use", showRule],
    ["Tokens", ({ number }) => firstOf(tokens.filter(({ configRule }) => configRule?.number === number).map(({ name }) => name), 5)],
  ]} />${data.servers.map((row) => html`<div class="attention"><bdi>${row.server}</bdi> ${row.remarks.join("; ")}</div>`)}`}<//>`;
}

function Self() {
  return html`<${Loaded} of=${useResource("whoami", ["config", "tokens", "tools", "call"])}>${(data) => html`<${Facts} facts=${[
    ["You are", [data.kind === "local" ? "this machine's user" : html`${data.kind} <bdi>${data.name}</bdi>`, data.admin && ", an admin"]],
    ["May use", data.mayUse],
    data.expiresAt && ["Expires", html`<${Time} at=${data.expiresAt} />`],
    ...gives(data.gives),
    ...data.limits.map((row) => ["Limit", html`<bdi>${row.server}</bdi> ${row.limit}${row.left !== undefined && `, ${row.left} left`}`]),
  ]} />`}<//>`;
}
