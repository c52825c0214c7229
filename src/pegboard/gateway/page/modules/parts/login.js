// Signing in to a server: the address is opened by the user's own click, and what comes back is waited for.
import { html, useEffect, useState } from "./html.js";
import { ask, part, post, remove, serverPath } from "./api.js";
import { typed } from "./bind.js";
import { Button, Copy, Dialog, Field, Outside, Problem, Time, confirm, notify } from "./ui.js";

/** @param {{server: string, onClose: () => void}} props */
export function Login({ server, onClose }) {
  const path = serverPath(server, "/login");
  const [wish, setWish] = useState({ device: false });
  const [flow, setFlow] = useState(/** @type {any} */ ({}));
  const [pasted, setPasted] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const follow = async () => {
      setFlow({});
      let now = await post(path, wish);
      setFlow(now);
      while (!signal.aborted && now.state === "waiting") {
        now = { ...now, ...await ask(`${path}/${part(now.flow)}?wait=25`, { signal }) };
        setFlow(now);
      }
      if (now.state === "done") {
        notify(`Signed in to ${server}.`);
        onClose();
      }
    };
    follow().catch((error) => { if (!signal.aborted) setFlow({ reason: error.message }); });
    return () => stop.abort();
  }, [wish]);
  const cancel = () => {
    // Somebody else may wait for the same sign-in: REST decides.
    if (flow.state === "waiting") remove(`${path}/${part(flow.flow)}`).catch(() => {});
    onClose();
  };
  const address = flow.connect ?? flow.url ?? flow.verificationUriComplete ?? flow.verificationUri;
  return html`<${Dialog} title=${`Sign in to ${server}`} onClose=${cancel}><div class="form">
      ${flow.reason ? html`<${Problem} error=${{ message: flow.reason }} reload=${() => setWish({ ...wish })} />` : !flow.state && html`<p class="loading">Asking the server …</p>`}
      ${flow.note && html`<p>${flow.note}</p>`}
      ${flow.userCode && html`<p>Type this code at <${Outside} href=${flow.verificationUri} />:</p><p class="figure mono">${flow.userCode}</p>`}
      ${flow.state === "waiting" && html`<p><a class="button main" href=${address} target="_blank" rel="noopener noreferrer">Open the sign-in page</a> <${Copy} text=${address}>Copy its address<//></p>
        <p class="faint">It goes on by itself when you are done, <${Time} at=${flow.expiresAt} /> at the latest.</p>
        ${!flow.userCode && html`<details><summary>The browser is on another machine</summary><div class="form">
          <${Field} label="The address that the browser was sent to"><input class="code" value=${pasted} onInput=${typed(setPasted)} /><//>
          <div class="acts"><${Button} onClick=${() => post(path, { callback: pasted })}>Finish<//><${Button} onClick=${() => setWish({ device: true })}>Use a device code instead<//></div></div></details>`}`}</div>
    <div class="acts end"><${Button} onClick=${cancel}>Cancel<//></div><//>`;
}

/** End a sign-in, if its user is sure. @param {string} server @param {string} [whose] in words @param {string} [query] */
export async function signOut(server, whose = "", query = "") {
  if (!await confirm(`Sign out of ${server}?`, `${whose} Its tokens are revoked there and deleted here.`, "Sign out")) return;
  const { signedOut, revoked } = await remove(serverPath(server, `/login${query}`));
  notify(signedOut ? `Signed out. The server has ${revoked ? "" : "not "}confirmed it.` : `Nobody was signed in to ${server}.`);
}
