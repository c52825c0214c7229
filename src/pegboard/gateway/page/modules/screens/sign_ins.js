// Sign-ins: who is signed in to which server, and which servers wait for somebody.
import { html, useState } from "../parts/html.js";
import { useResource } from "../parts/live.js";
import { Login, signOut } from "../parts/login.js";
import { linkTo } from "../parts/route.js";
import { Button, Loaded, Outside, Reason, Screen, Section, State, Table, Time, Unseen } from "../parts/ui.js";

const KINDS = ["logins", "server", "config"];

/** @param {import("../app.js").ScreenProps} props */
export default function SignIns({ self }) {
  const logins = useResource("logins", KINDS);
  const servers = useResource("servers", KINDS);
  const [server, setServer] = useState("");
  const waiting = (servers.data?.servers ?? []).filter((row) => row.needsLogin);
  const link = (/** @type {string} */ name) => linkTo(["servers", name]);
  const button = (/** @type {string} */ name, /** @type {string} */ words, /** @type {() => any} */ act) => html`<${Button} onClick=${act}>${words}<${Unseen}> (${name})<//><//>`;
  return html`<${Screen} title="Sign-ins">
    ${waiting[0] && html`<${Section} title="Waiting for a sign-in">${waiting.map(({ name, lastError, perUser }) => html`<div class="attention" key=${name}><b>${link(name)}</b><${Reason} text=${lastError} />${(self.admin || perUser) && button(name, "Sign in", () => setServer(name))}</div>`)}<//>`}
    <${Section} title="Signed in"><${Loaded} of=${logins}>${(data) => html`<${Table} caption="Sign-ins" rows=${data.logins} keyOf=${(row) => `${row.server} ${row.who}`} empty="Nobody is signed in. Servers that want it wait here." columns=${[
    ["Server", (row) => link(row.server), "title"],
    ["Who", (row) => (row.who ?? "everybody")],
    ["State", ({ state, reason }) => html`<${State} state=${state} />${reason && html`<small>${reason}</small>`}`],
    ["Scopes", (row) => html`<span class="clip">${row.scopes.join(" ")}</span>`],
    ["Issuer", (row) => html`<${Outside} href=${row.issuer} />`],
    ["Since", (row) => html`<${Time} at=${row.signedInAt} />`],
    ["Until", (row) => (row.renews ? "renews itself" : html`<${Time} at=${row.expiresAt} />`)],
    ["", (row) => (row.yours ? button(row.server, "Sign out", () => signOut(row.server, row.who ? "You will be signed out." : "The gateway will be signed out, and everybody who uses it."))
      : self.admin && button(row.server, "Sign all out", () => signOut(row.server, "Everybody will be signed out.", "?all=true")))],
  ]} />`}<//><//>
    ${server && html`<${Login} server=${server} onClose=${() => setServer("")} />`}<//>`;
}
