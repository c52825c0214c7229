// What can be done with a server: from its row, and from its own screen.
import { html, useState } from "./html.js";
import { ask, post, remove, serverPath } from "./api.js";
import { Login, signOut } from "./login.js";
import { Button, Menu, confirm, copyText, notify, plural, Unseen } from "./ui.js";

/** @param {string} name @param {boolean} enabled */
export const switchServer = (name, enabled) => post(serverPath(name, enabled ? "/enable" : "/disable"));

/** Put back what was removed lately: where nothing is kept of it any more, REST says so. @param {string} name */
export const restoreServer = (name) => post(serverPath(name, "/restore"));

/** Take a server out of the config; for a while that can be undone. @param {string} name */
export async function removeServer(name) {
  if (!await confirm(`Remove ${name}?`, "Its entry leaves the config. Its address can bring it back for ten minutes.", "Remove")) return;
  await remove(serverPath(name));
  notify(`${name} was removed.`, "Undo", () => restoreServer(name));
}

/** @param {string} name @param {"refresh" | "restart"} what */
export async function discover(name, what) {
  const answer = await post(serverPath(name, `/${what}`));
  notify(`${name} has ${plural(answer.registered, "tool")}.`);
}

/** @param {string} name */
async function copyEntry(name) {
  const { copy } = await ask(serverPath(name));
  await copyText(JSON.stringify({ mcpServers: { [name]: copy } }, null, 2));
  notify("Copied. What is secret comes from variables there.");
}

/** Buttons and a menu of a server. @param {{server: any, self: any, wide?: boolean}} props */
export function ServerActions({ server, self, wide = false }) {
  const [isSigningIn, setSigningIn] = useState(false);
  const { name } = server;
  const toggle = /** @type {[string, () => any]} */ ([server.enabled ? "Disable" : "Enable", () => switchServer(name, !server.enabled)]);
  const items = /** @type {[string, () => any][]} */ ([
    ["Refresh its tools", () => discover(name, "refresh")],
    ...(self.admin ? [
      ["Restart", () => discover(name, "restart")],
      toggle,
      ["Copy as JSON", () => copyEntry(name)],
    ] : []),
    ...(server.transport !== "stdio" ? [["Sign in", () => setSigningIn(true)], ["Sign out", () => signOut(name)]] : []),
    ...(self.admin ? [["Remove", () => removeServer(name)]] : []),
  ]);
  return html`<div class="acts">
    ${server.needsLogin && html`<${Button} kind="main" onClick=${() => setSigningIn(true)}>Sign in<${Unseen}> to ${name}<//><//>`}
    ${wide && self.admin && html`<${Button} onClick=${toggle[1]}>${toggle[0]}<//>`}
    <${Menu} label=${`More for ${name}`} items=${items} />
    ${isSigningIn && html`<${Login} server=${name} onClose=${() => setSigningIn(false)} />`}
  </div>`;
}
