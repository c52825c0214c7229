// A form of a token: its name, what its rule allows, and until when. What is left alone is not sent.
import { html } from "./html.js";
import { useResource } from "./live.js";
import { Button, Field, Form } from "./ui.js";

// Where all are meant, behind the hint stand the names that there are.
const FIELDS = [
  ["name", "Name"],
  ["expires", "Expires", "Such as 30d, 2027-01-01 or never. A new one: never."],
  ["servers", "Servers", "With commas. Empty: all"],
];
const LIMITS = [
  ["allow", "Only these tools", "Such as github__get_*"],
  ["deny", "Not these tools", "Such as *__delete_*"],
  ["toolsets", "Pegboard's own tools", "With commas. Empty: all"],
  ["boards", "Shared boards", "Whose loaded tools it shares. Empty: none."],
  ["namespaces", "Namespaces of memory", "Empty: all."],
  ["rate", "Rate of calls", "Such as 60/m"],
  ["inFlight", "Calls at once", "Such as 4"],
];
const FLAGS = [["readOnly", "Only tools that change nothing"], ["admin", "Admin: may change servers and tokens, and so run programs as you"]];

/** @param {any} value */
const shown = (value) => (Array.isArray(value) ? value.join(", ") : String(value ?? ""));

/** What a field's text says; what is no number REST refuses in words. @param {string} key @param {string} text */
function read(key, text) {
  if (key === "name") return text;
  if (!text) return null;
  if (key === "inFlight") return Number(text) || text;
  return ["expires", "rate"].includes(key) ? text : text.split(",").map((each) => each.trim()).filter(Boolean);
}

/** The first of some names, and how many others there are. @param {string[]} names @param {number} [most] */
export const firstOf = (names, most = 50) => names.slice(0, most).join(", ") + (names.length > most ? ` and ${names.length - most} more` : "") || "none";

/** @param {{token?: any, toolsets: string[], onSave: (body: any) => Promise<any>}} props */
export function RuleForm({ token, toolsets, onSave }) {
  const old = { name: token?.name, ...token?.rule, ...token?.rule.tools };
  const servers = useResource("servers").data?.servers.map((row) => row.name);
  const all = (/** @type {string[] | undefined} */ names) => (names?.[0] ? ` of ${firstOf(names)}.` : ".");
  const known = /** @type {Record<string, string>} */ ({ servers: all(servers), toolsets: all(toolsets) });
  const save = (/** @type {any} */ event) => {
    const given = new FormData(event.currentTarget.form);
    /** @type {any} */
    const change = {};
    for (const [key] of [...FIELDS, ...LIMITS]) {
      const text = String(given.get(key)).trim();
      if (text !== shown(old[key])) change[key] = read(key, text);
    }
    for (const [key] of FLAGS) if (given.has(key) !== Boolean(old[key])) change[key] = given.has(key);
    const { name = old.name ?? "", expires, allow = old.allow, deny = old.deny, ...rule } = change;
    if ("allow" in change || "deny" in change) rule.tools = { allow, deny };
    return onSave({ name, expires, rule });
  };
  const fields = (/** @type {string[][]} */ list) => html`<div class="cards">${list.map(([key, label, hint]) => html`<${Field} label=${label} hint=${hint && hint + (known[key] ?? "")}><input class="code" autocomplete="off" name=${key} defaultValue=${shown(old[key])} /><//>`)}</div>`;
  return html`<${Form} class="card">${fields(FIELDS)}
    ${FLAGS.map(([key, label]) => html`<${Field} label=${label} class="check"><input type="checkbox" name=${key} defaultChecked=${old[key]} /><//>`)}
    <details open=${LIMITS.some(([key]) => shown(old[key]))}><summary>More limits</summary>${fields(LIMITS)}</details>
    <div class="acts"><${Button} kind="main" type="submit" onClick=${save}>${token ? "Save" : "Make the token"}<//></div><//>`;
}
