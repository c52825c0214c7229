// The REST reference: every operation of openapi.json, to be read and tried.
import { html, useEffect, useState } from "../parts/html.js";
import { part, send, withQuery } from "../parts/api.js";
import { Field, Form, Screen, Section, notifyProblem } from "../parts/ui.js";

const BODY = "application/json";

export default function Rest() {
  const [api, setApi] = useState(/** @type {any} */ (null));
  useEffect(() => { send("../openapi.json").then((response) => response.json()).then(setApi).catch(notifyProblem); }, []);
  const all = Object.entries(api?.paths ?? {}).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })));
  return html`<${Screen} title="REST"><p>In full in <a href="/openapi.json">openapi.json</a>.</p>
    ${api?.tags.map(({ name }) => html`<${Section} title=${name}>${all.filter(({ tags }) => tags.includes(name)).map((each) => html`<${Operation} ...${each} />`)}<//>`)}<//>`;
}

/** @param {any} props as openapi.json describes an operation */
function Operation({ path, method, summary, description, parameters = [], requestBody }) {
  const [answer, setAnswer] = useState("");
  const run = async (/** @type {any} */ event) => {
    const given = new FormData(event.target);
    /** @type {Record<string, string>} */
    const query = {};
    let address = path;
    for (const { name, in: place } of parameters) {
      const value = String(given.get(name));
      if (place === "path") address = address.replace(`{${name}}`, part(value));
      else query[name] = value;
    }
    const response = await send(withQuery(address, query), { method, text: given.get(BODY)?.toString() });
    const text = await response.text();
    setAnswer(`${response.status}\n${text.startsWith("{") ? JSON.stringify(JSON.parse(text), null, 2) : text}`);
  };
  return html`<details class="card"><summary><b>${method}</b> <code>${path}</code> — ${summary}</summary>
    <${Form} onSend=${run}><p>${description}</p>
      ${parameters.map(({ name, required, description: hint }) => html`<${Field} label=${name} hint=${hint}><input name=${name} required=${required} /><//>`)}
      ${requestBody && html`<${Field} label="Body"><textarea class="code" rows="6" name=${BODY}>${JSON.stringify(requestBody.content[BODY].example ?? {}, null, 2)}</textarea><//>`}
      <div class="acts"><button>Try it</button></div><//>
    ${answer && html`<pre tabindex="0">${answer}</pre>`}</details>`;
}
