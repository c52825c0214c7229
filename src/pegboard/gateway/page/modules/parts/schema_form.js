// A form from a JSON schema, and the same as JSON at any time. The value is the state of both: what a field cannot show
// stays in it, and what somebody types that is no value yet stands in it as a draft.
import { html, useId, useRef, useState } from "./html.js";
import { typed } from "./bind.js";
import { Draft, cut, isExact, isNumber, isObject, read, textOf, withMembers, write } from "./exact_json.js";
import { focusBefore, focusWithin } from "./focus.js";
import { blank, exampleOf, fieldOf, fits, initial, inputType, itemOf, limitsOf, localOf, membersOf, momentOf, otherOf, takesMore } from "./schema.js";
import { Button, Prose } from "./ui.js";

const LONGEST_TITLE = 120;
// With the end of its kind each is a key of a schema: minimum, minLength, minItems.
const BOUNDS = /** @type {[string, (size: number, limit: number) => boolean, string][]} */ ([
  ["min", (size, limit) => size < limit, "at least"],
  ["exclusiveMin", (size, limit) => size <= limit, "more than"],
  ["max", (size, limit) => size > limit, "at most"],
  ["exclusiveMax", (size, limit) => size >= limit, "less than"],
]);

/** What a form begins with. @param {any} schema */
export const begin = (schema) => initial(fieldOf(schema)) ?? withMembers({});

/**
 * A form and its buttons. Enter in a field of one line sends it, Ctrl+Enter anywhere.
 * @param {{schema: any, value: any, onChange: (value: any) => void, onSend: () => any, children: (send: (event: any) => any) => any}} props
 *   `children` makes the buttons, of which the one that sends has the type `submit`
 */
export function SchemaForm({ schema, value, onChange, onSend, children }) {
  const [isJson, setJson] = useState(false);
  const field = fieldOf(schema);
  const canBeForm = fits(field, value);
  const isText = isJson || !canBeForm;
  const send = (/** @type {any} */ event) => {
    // The form may be gone when the browser would send it.
    event.preventDefault();
    const { form } = event.target;
    // Browsers know no list that is too long: whoever sends it is led there.
    return form.reportValidity() && !focusWithin(form.querySelector("fieldset:has(> .about > .bad)")) && onSend();
  };
  const press = (/** @type {any} */ event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.currentTarget.querySelector("[type=submit]").click();
  };
  return html`<form onKeyDown=${press}><div class="acts" role="group" aria-label="Write the values as"><${Button} aria-pressed=${!isText} disabled=${!canBeForm} onClick=${() => setJson(false)}>Form<//>
      <${Button} aria-pressed=${isText} onClick=${() => setJson(true)}>JSON<//></div>
    ${!isExact() && html`<p class="attention">This browser rounds numbers of more than 15 digits.</p>`}
    ${isText ? html`<${JsonField} label="All as JSON" value=${value} rows=${10} empty=${withMembers({})} onChange=${onChange} />`
    : html`<${Members} field=${field} value=${value} onChange=${onChange} />`}
    ${children(send)}</form>`;
}

/** A field with what its server says of it, which is no part of its name. @param {any} props `children` makes the input; what is `wrong` is said when it is sent */
function Labelled({ label, about = "", error = "", wrong = "", required, children }) {
  const id = useId();
  const said = about || error ? `${id}-about` : undefined;
  return html`<div class="field"><label class="label" for=${id}>${label}</label>${children({ id, required, ref: (box) => box?.setCustomValidity(wrong), "aria-describedby": said, "aria-invalid": Boolean(error) })}
    ${said && html`<${About} id=${said} about=${about} error=${error} />`}</div>`;
}

/** @param {any} props */
const About = ({ id, about, error }) => html`<div id=${id} class="about">${error && html`<p class="bad">${error}</p>`}${about && html`<${Prose} text=${about} most=${400} />`}</div>`;
/** @param {any} value */
const problemOf = (value) => (value instanceof Draft ? value.problem : "");

/** A text that is JSON: it stays as it is typed, and is a draft until it can be read. @param {any} props */
function JsonField({ label, about, required, value, onChange, rows = 2, placeholder, empty }) {
  const [last, setLast] = useState(/** @type {{value: any, text: string}} */ ({ value: undefined, text: "" }));
  const shown = last.value === value ? last.text : value === undefined ? "" : write(value, "  ");
  const type = typed((text) => {
    const next = { value: read(text) ?? empty, text };
    setLast(next);
    onChange(next.value);
  });
  return html`<${Labelled} label=${label} about=${about} required=${required} error=${problemOf(value)}>${(given) => html`<textarea class="code line" dir="ltr" ...${given} rows=${rows} spellcheck=${false} placeholder=${placeholder} value=${shown} onInput=${type} />`}<//>`;
}

/** What is in an object: its members, what else is there, and a way to put more into it. @param {any} props */
function Members({ field, value, onChange }) {
  const [name, setName] = useState("");
  const members = membersOf(field);
  const known = new Set(members.map(([each]) => each));
  const others = Object.keys(value).filter((each) => !known.has(each));
  const change = (/** @type {string} */ each) => (next) => onChange(withMembers(value, { [each]: next }));
  const other = otherOf(field);
  const isTaken = known.has(name) || others.includes(name);
  const enter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (name && !isTaken) add();
  };
  const add = () => { change(name)(blank(other)); setName(""); };
  return html`${members.map(([each, member]) => html`<${Part} key=${`=${each}`} name=${each} field=${member} value=${value[each]} onChange=${change(each)} />`)}
    ${others.map((each) => html`<${Part} key=${`+${each}`} name=${each} field=${{ ...other, isRequired: false }} value=${value[each]} onChange=${(next) => change(each)(next ?? blank(other))} onRemove=${() => change(each)(undefined)} />`)}
    ${takesMore(field) && html`<div class="part"><${Labelled} label="Another member" error=${isTaken ? "There is one of this name." : ""}>${(given) => html`
        <input ...${given} value=${name} placeholder="its name" onKeyDown=${enter} onInput=${typed(setName)} />`}<//>
      <${Button} disabled=${!name || isTaken} onClick=${(event) => { add(); focusBefore(event, ".part"); }}>Add<//></div>`}
    ${!members.length && !others.length && !takesMore(field) && html`<p class="faint">It takes no arguments.</p>`}`;
}

/** One field with its words. @param {any} props */
function Part({ name, field, value, onChange, onRemove, tools }) {
  const { kind, schema, isRequired, choices } = field;
  const id = useId();
  const wrong = breach(schema, value);
  const long = textOf(schema.title) || name;
  const title = cut(long, LONGEST_TITLE);
  const label = html`<bdi>${title}</bdi>${long !== name && html` <code>${cut(name, LONGEST_TITLE)}</code>`}${isRequired ? html` <span class="faint">required</span>` : ""}`;
  const text = kind === "text" || kind === "number" ? textOf(value ?? "") : "";
  const type = kind === "text" ? inputType(schema, text) : "";
  const isMoment = type === "datetime-local";
  const sent = value === "" ? "An empty text is sent." : value === null ? "null is sent." : isMoment && text ? `Sent as ${text}.` : "";
  const about = [textOf(schema.description), limitsOf(field, type), sent].filter(Boolean).join("\n");
  const controls = html`${tools}${onRemove && html`<${Button} kind="plain" label=${`Remove ${title}`} onClick=${onRemove}>Remove<//>`}`;
  const none = isRequired && schema.nullable ? null : undefined;
  const placeholder = exampleOf(schema);
  // An empty text and null are values, too.
  const required = isRequired && value !== "" && value !== null;
  /** @type {any} */
  let input;
  const labelled = (/** @type {any} */ children) => html`<${Labelled} label=${label} about=${about} required=${required} error=${problemOf(value)} wrong=${wrong}>${children}<//>`;
  if (kind === "json" || !fits(field, value)) input = html`<${JsonField} label=${html`${label} <span class="faint">JSON</span>`} about=${about} required=${required} value=${value} placeholder=${placeholder} onChange=${onChange} />`;
  else if (kind === "list" || kind === "object") {
    const Inside = kind === "list" ? Items : Members;
    const isThere = isObject(value) || Array.isArray(value);
    const action = isThere ? "Leave out" : "Add";
    const toggle = () => onChange(isThere ? none : kind === "list" ? [blank(itemOf(field))] : initial({ ...field, isRequired: true }) ?? withMembers({}));
    const said = about || wrong ? id : undefined;
    return html`<fieldset aria-describedby=${said}><legend>${label}</legend>${said && html`<${About} id=${said} about=${about} error=${wrong} />`}
      ${isThere && html`<${Inside} field=${field} value=${value} title=${title} onChange=${onChange} />`}
      <div class="acts">${(!isThere || (!isRequired && !onRemove) || none === null) && html`<${Button} label=${`${action} ${title}`} onClick=${toggle}>${action}<//>`}${controls}</div></fieldset>`;
  } else if (kind === "choice") {
    const at = value === undefined ? "" : value === null ? "null" : choices.findIndex(([each]) => each === value);
    const choose = typed((chosen) => onChange(chosen === "null" ? null : choices[chosen]?.[0] ?? none));
    input = labelled((given) => html`<select ...${given} value=${at} onChange=${choose}>
      <option value="">–</option>${choices.map(([, each], /** @type {number} */ index) => html`<option value=${index}>${cut(String(each), LONGEST_TITLE)}</option>`)}${schema.nullable && html`<option value="null">null</option>`}</select>`);
  } else if (kind === "number") {
    const change = typed((words) => {
      const number = read(words) ?? none;
      onChange(number === none || isNumber(number) ? number : new Draft(words, "This is not a number."));
    });
    input = labelled((given) => html`<input ...${given} inputmode=${schema.type === "integer" ? "numeric" : "decimal"} autocomplete="off" value=${text} placeholder=${placeholder} onInput=${change} />`);
  } else {
    const change = typed((words) => onChange((isMoment ? momentOf(words) : words) || (none === null || !isRequired || type ? none : "")));
    input = labelled((given) => (type
      ? html`<input ...${given} type=${type} step=${isMoment ? "1" : undefined} autocomplete=${type === "password" ? "new-password" : "off"} value=${isMoment ? localOf(text) : text} placeholder=${placeholder} onInput=${change} />`
      : html`<textarea ...${given} class="line" rows="1" value=${text} placeholder=${placeholder} onInput=${change} />`));
  }
  return onRemove || tools ? html`<div class="part">${input}<div class="acts">${controls}</div></div>` : input;
}

/** Whether it is a whole number, by its digits: 1.5e1 is one. @param {any} number */
function isWhole(number) {
  const [, whole, rest, power] = /** @type {string[]} */ (/^-?(\d+)\.?(\d*)e?(.*)/i.exec(textOf(number)));
  return (whole + rest).replace(/0+$/, "").length <= whole.length + Number(power);
}

/** Which limit of its schema a value breaks, in words. @param {any} schema @param {any} value */
function breach(schema, value) {
  if (schema.type === "integer" && isNumber(value) && !isWhole(value)) return "It has to be a whole number.";
  const [end, what] = isNumber(value) ? ["imum", "It has"] : Array.isArray(value) ? ["Items", "Its items have"] : typeof value === "string" ? ["Length", "Its characters have"] : [];
  // Of a text each character counts once, whatever JavaScript has it as.
  const broken = BOUNDS.find(([key, breaks]) => isNumber(schema[key + end]) && breaks(isNumber(value) ? Number(value) : [...value].length, Number(schema[key + end])));
  return broken ? `${what} to be ${broken[2]} ${schema[broken[0] + end]}.` : "";
}

/** The items of a list, which can be added, moved and removed. @param {any} props */
function Items({ field, value, title, onChange }) {
  const more = useRef(/** @type {HTMLElement | null} */ (null));
  const item = itemOf(field);
  const replace = (/** @type {number} */ at, /** @type {number} */ size, /** @type {any[]} */ ...items) => {
    const changed = value.toSpliced(at, size, ...items);
    onChange(changed.length || field.isRequired ? changed : undefined);
  };
  const mover = (/** @type {number} */ at, /** @type {string} */ way, /** @type {number} */ upper) => html`<${Button} kind="plain" disabled=${upper < 0 || upper > value.length - 2} label=${`Move item ${at + 1} of ${title} ${way}`}
    onClick=${() => replace(upper, 2, value[upper + 1], value[upper])}>${way === "up" ? "↑" : "↓"}<//>`;
  return html`<div class="form" ref=${more} tabindex="-1">${value.map((each, /** @type {number} */ at) => html`<${Part} key=${at} name=${`Item ${at + 1}`} field=${{ ...item, isRequired: false }} value=${each} tools=${[mover(at, "up", at - 1), mover(at, "down", at)]}
      onChange=${(next) => replace(at, 1, next ?? blank(item))} onRemove=${() => { more.current?.focus(); replace(at, 1); }} />`)}
    <div class="acts"><${Button} label=${`Add an item to ${title}`} onClick=${(event) => { replace(value.length, 0, blank(item)); focusBefore(event, ".acts"); }}>Add an item<//></div></div>`;
}
