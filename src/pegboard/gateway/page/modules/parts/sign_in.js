// The way in where the gateway wants a token: given once, and then kept in a cookie that no script can read.
import { html, useEffect, useRef, useState } from "./html.js";
import { ask } from "./api.js";
import { Field, Form, Screen } from "./ui.js";

/** @param {{onDone: () => void}} props */
export function SignIn({ onDone }) {
  const [problem, setProblem] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const signIn = () => {
    setProblem("");
    return ask("session", { method: "POST", headers: { authorization: `Bearer ${field.current?.value.trim()}` } }).then(onDone, (error) => {
      setProblem(error.status === 401 ? "This gateway does not know this token." : error.message);
      field.current?.focus();
    });
  };
  // Browsers keep a password under a name, and complain of a form that has none.
  return html`<main id="main" class="door">
    <img src="/static/icon.svg" alt="" width="48" height="48" />
    <${Screen} title="Sign in to Pegboard" />
    <p>Give your token. It goes to this gateway alone, into a cookie that no script can read.</p>
    <${Form} onSend=${signIn}>
      <input hidden autocomplete="username" value="Pegboard" />
      <${Field} label="Token" error=${problem}><input ref=${field} type="password" autocomplete="current-password" required /><//>
      <button class="main">Sign in</button>
    <//>
    <p class="faint">On the gateway's machine a token is made with <code>pegboard token add NAME</code>; for yourself, add <code>--admin</code>.</p>
  </main>`;
}
