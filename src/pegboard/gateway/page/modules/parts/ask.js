// What a server asks while a tool runs: a form, or to go somewhere. One question after the other.
import { html, useState } from "./html.js";
import { drafts, drawn, isObject, textOf, withMembers } from "./exact_json.js";
import { fieldOf, membersOf } from "./schema.js";
import { SchemaForm, begin } from "./schema_form.js";
import { Button, Dialog, Outside, Prose, hostOf } from "./ui.js";

/** @param {{server: string, requests: Record<string, any>, onDone: (answers: Record<string, any>) => void}} props */
export function Ask({ server, requests, onDone }) {
  const keys = Object.keys(requests);
  const [answers, setAnswers] = useState(withMembers({}));
  const key = keys.find((each) => !(each in answers)) ?? keys[0];
  const answer = (/** @type {any} */ said) => {
    const all = withMembers(answers, { [key]: said });
    if (keys.some((each) => !(each in all))) setAnswers(all);
    else onDone(all);
  };
  // Whatever a server calls a question.
  const params = withMembers(requests[key]?.params);
  return html`<${Dialog} title=${`${server} asks`} onClose=${() => answer({ action: "cancel" })} wide>
    <${Question} key=${key} params=${params} onAnswer=${answer} /><//>`;
}

/** @param {{params: any, onAnswer: (said: any) => void}} props */
function Question({ params, onAnswer }) {
  const url = textOf(params.url);
  const isVisit = params.mode === "url";
  const { requestedSchema: schema } = params;
  const [value, setValue] = useState(() => begin(schema));
  const isReady = isVisit || (isObject(value) && !drafts(value).length);
  const lacking = membersOf(fieldOf(schema)).filter(([name, { isRequired }]) => isRequired && value[name] === undefined).map(([name]) => name).join(", ");
  const accept = () => lacking || onAnswer({ action: "accept", content: isVisit ? undefined : value });
  const buttons = (/** @type {(event: any) => any} */ send) => html`<div class="acts end"><span class="faint" role="status">${lacking && `Required: ${drawn(lacking)}`}</span>${["Cancel", "Decline"].map((word) => html`<${Button} onClick=${() => onAnswer({ action: word.toLowerCase() })}>${word}<//>`)}
      <${Button} kind="main" type="submit" title="Ctrl+Enter" disabled=${!isReady} onClick=${send}>${isVisit ? "I have been there" : "Send"}<//></div>`;
  // The gateway says before the words whose they are. Without that, a server could say it itself, with the name of another.
  return html`<div class="form"><${Prose} text=${textOf(params.message)} />
      ${isVisit ? html`<p>It wants you to open a page at <b dir="ltr">${hostOf(url) || "an address that is none"}</b>:</p><p><${Outside} href=${url} /></p>${buttons(accept)}`
    : html`<${SchemaForm} schema=${schema} value=${value} onChange=${setValue} onSend=${accept}>${buttons}<//>`}</div>`;
}
