// The parts that every screen is made of.
import { html, useEffect, useId, useRef, useState } from "./html.js";
import { ApiError } from "./api.js";
import { focusWithin } from "./focus.js";
import { cut, drawn } from "./exact_json.js";
import { useConnection } from "./live.js";

const LONGEST_NOTICE = 2000;
// What is drawn of a text, even for somebody who wants all of it.
const LONGEST_PROSE = 300000;

/** Hear of events, until what this gives is called. @param {string} kind @param {(event: Event) => void} act */
export function hear(kind, act) {
  addEventListener(kind, act);
  return () => removeEventListener(kind, act);
}

/** A screen: its heading is where the focus goes when it is opened. @param {any} props */
export function Screen({ title, note, actions, children }) {
  useEffect(() => { document.title = `${title} · Pegboard`; }, [title]);
  return html`<header class="head">
      <h1 tabindex="-1">${title}</h1>
      ${note && html`<p class="note">${note}</p>`}
      ${actions && html`<div class="acts">${actions}</div>`}
    </header>${children}`;
}

/** A part of a screen under a heading of its own. @param {any} props */
export function Section({ title, actions, children, class: name = "" }) {
  const id = useId();
  return html`<section class=${name} aria-labelledby=${id}>
    <div class="head"><h2 id=${id}>${title}</h2>${actions && html`<div class="acts">${actions}</div>`}</div>
    ${children}
  </section>`;
}

/**
 * A button. While what it does is under way it says so; what goes wrong is said in the status line.
 * @param {any} props `kind`: "main", "danger" or "plain"
 */
export function Button({ onClick, kind = "", children, disabled = false, label, type = "button", ...rest }) {
  const [isBusy, setBusy] = useState(false);
  const run = async (/** @type {Event} */ event) => {
    if (isBusy || !onClick) return;
    setBusy(true);
    await attempt(() => onClick(event));
    setBusy(false);
  };
  return html`<button type=${type} class=${kind} disabled=${disabled} aria-busy=${isBusy} aria-label=${label} title=${label}
    onClick=${onClick && run} ...${rest}>${children}</button>`;
}

/** Put a text on the clipboard. @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain HTTP on another machine there is no clipboard for pages.
    const area = document.createElement("textarea");
    area.value = text;
    // Behind an open dialog nothing can be selected.
    (document.querySelector("dialog") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Puts a text on the clipboard. @param {{text: string | (() => string | Promise<string>)} & Record<string, any>} props the others are those of a button */
export function Copy({ text, ...rest }) {
  const copy = async () => {
    await copyText(typeof text === "function" ? await text() : text);
    notify("Copied.");
  };
  return html`<${Button} kind="plain" onClick=${copy} ...${rest} />`;
}

const LACKS = "needs credentials";
/** @type {Record<string, string>} how it is with a state */
const TONES = {};
for (const [tone, states] of [
  ["good", "registered connected idle available active live"],
  ["warn", "needs_auth needs_credentials"],
  ["bad", "unreachable lost invalid unavailable"],
  ["busy", "connecting"],
]) for (const state of states.split(" ")) TONES[state] = tone;
// The words of those that have other ones.
const WORDS = /** @type {Record<string, string>} */ ({ registered: "ready", connected: "ready", idle: "ready", connecting: "starting", lost: "unreachable", needs_auth: "needs sign-in", needs_credentials: LACKS, live: "signed in" });

/** The word for people of an exact state. @param {string} state @param {boolean} [signsIn] */
export const stateWord = (state, signsIn = true) => (state === "needs_auth" && !signsIn ? LACKS : WORDS[state] ?? state);

/** Words for whoever listens alone. @param {{children: any}} props */
export const Unseen = ({ children }) => html`<span class="unseen">${children}</span>`;

/** A state: a shape, and always its word. @param {{state: string, signsIn?: boolean}} props */
export function State({ state, signsIn = true }) {
  return html`<span class=${`state ${TONES[state] ?? "off"}`}>${stateWord(state, signsIn)}</span>`;
}

/** A mark with a word. @param {{tone?: string, children: any}} props */
export const Mark = ({ tone = "", children }) => html`<span class=${`mark ${tone}`}>${children}</span>`;

/**
 * @typedef {[string, (row: any) => any, string?]} Column its heading, what is in it, and its classes: "title" is what a row is called by
 */

/**
 * A table; on a narrow screen each row is a card. Only the first rows are shown until somebody wants more.
 * @param {{caption: string, columns: Column[], rows: any[], keyOf?: (row: any) => string, shown?: number, empty?: any}} props
 */
export function Table({ caption, columns, rows, keyOf = (row) => row.id ?? row.key ?? row.number ?? row.name, shown = 200, empty = "Nothing here." }) {
  const [some, more] = useSome(rows, shown);
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`<div class="table-box"><table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${columns.map(([title, , kind]) => html`<th scope="col" class=${kind === "number" ? kind : ""}>${title || html`<${Unseen}>Actions<//>`}</th>`)}</tr></thead>
      <tbody>${some.map((row) => html`<tr key=${keyOf(row)}>
        ${columns.map(([title, of, kind = ""]) => {
    const isTitle = kind.startsWith("title");
    return html`<${isTitle ? "th" : "td"} scope=${isTitle ? "row" : undefined} data-title=${title} class=${kind}>${of(row)}<//>`;
  })}
      </tr>`)}</tbody>
    </table></div>${more}`;
}

/**
 * The first of some rows, and the way to as many more.
 * @param {any[]} rows @param {number} size @returns {[any[], any]}
 */
export function useSome(rows, size) {
  const [most, setMost] = useState(size);
  return [rows.slice(0, most), html`<${ShowMore} rest=${rows.length - most} onMore=${() => setMost(most + size)} />`];
}

/** The way to the rows behind those that are shown. @param {{rest: number, onMore: () => any}} props `rest` is how many they are */
export const ShowMore = ({ rest, onMore }) => rest > 0 && html`<p class="more"><${Button} onClick=${onMore}>Show more<//> ${count(rest)} more</p>`;

/** What could not be read, and a way to try again. @param {{error: ApiError, reload?: () => void}} props */
export function Problem({ error, reload }) {
  return html`<div class="problem" role="alert"><p>${cut(error.message, LONGEST_NOTICE)}</p>
    ${reload && ![403, 404].includes(error.status) && html`<${Button} onClick=${reload}>Try again<//>`}</div>`;
}

/**
 * What a resource gives, when it is there.
 * @param {{of: import("./live.js").Resource<any>, children: (data: any) => any}} props
 */
export function Loaded({ of, children }) {
  const connection = useConnection();
  if (of.data !== undefined) return children(of.data);
  // While the gateway is away the status line says so, and it is read when the gateway is back.
  if (of.error && (of.error.status || connection === "open")) return html`<${Problem} error=${of.error} reload=${of.reload} />`;
  return html`<p class="loading">Reading …</p>`;
}

/** Facts and what each is called; some may not be there. @param {{facts: any[]}} props pairs */
export const Facts = ({ facts }) => html`<dl class="facts">${facts.map((fact) => fact && html`<dt>${fact[0]}</dt><dd>${fact[1]}</dd>`)}</dl>`;

/** A label with its field. @param {any} props */
export function Field({ label, hint, error, children, class: name = "" }) {
  return html`<label class=${`field ${name}`}><span class="label">${label}</span>${children}
    ${hint && html`<small>${hint}</small>`}${error && html`<small class="bad" role="alert">${error}</small>`}</label>`;
}

/** A field to search with. @param {any} props those of its input, and a label */
export const Find = ({ label = "Find", class: name = "wide", ...input }) => html`<${Field} label=${label} class=${name}><input type="search" ...${input} /><//>`;

/** A field for one of several values. @param {{label: string, options: [string, any][], value?: string, onChange: (event: any) => void}} props `options`: each value with its words */
export const Choice = ({ label, options, value = "", onChange }) => html`<${Field} label=${label}><select value=${value} onChange=${onChange}>
  ${options.map(([each, words]) => html`<option value=${each}>${words}</option>`)}</select><//>`;

/** A form; what goes wrong when it is sent is said in the status line. @param {any} props */
export function Form({ onSend, children, ...rest }) {
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    attempt(() => onSend?.(event));
  };
  return html`<form ...${rest} onSubmit=${send}>${children}</form>`;
}

/** Text of a server or of a person: only ever text, in its own direction. @param {{text: string, most?: number, as?: "div" | "pre"}} props */
export function Prose({ text, most = 1200, as = "div" }) {
  const [isWhole, setWhole] = useState(false);
  const { length } = text;
  return html`<${as} class="prose" tabindex=${as === "pre" ? 0 : undefined}>${cut(text, isWhole ? LONGEST_PROSE : most)}<//>
    ${length > most && html`<${Button} kind="plain" onClick=${() => setWhole(!isWhole)}>${isWhole ? "Show less" : `Show ${length > LONGEST_PROSE ? `${count(LONGEST_PROSE)} of` : "all"} ${count(length)} characters`}<//>`}`;
}

/** Why something is as it is: whatever is long is there to be read. @param {{text?: string | null}} props */
export const Reason = ({ text }) => text && html`<div class="about reason"><${Prose} text=${text} most=${300} /></div>`;

// Longer addresses than any site has.
const LONGEST_ADDRESS = 8000;

/** The host of an address: of a long one its end, which says whose it is. One that hides it behind a user's name has none. @param {string} href */
export function hostOf(href) {
  const url = /^https?:/i.test(href) && href.length < LONGEST_ADDRESS && URL.parse(href);
  return url && !url.username && !url.password && url.host.replace(/^.+(?=.{60})/, "…");
}

/** A link to another site, if it is one. A text that may be taken for another address, or is cut, stands behind the true host. @param {{href: string, text?: string}} props */
export function Outside({ href, text = drawn(href) }) {
  const host = hostOf(href);
  if (!host) return text;
  const isUnclear = text !== href && (text === drawn(href) || /[.。．｡]\S|\/\/|…$/.test(text));
  return html`<a href=${href} target="_blank" rel="noopener noreferrer">${isUnclear && `${host}: `}${text}</a>`;
}

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([["day", 86400], ["hour", 3600], ["minute", 60]]);

/** When something was, or will be. @param {{at: string | null | undefined, none?: string, clock?: boolean}} props `clock`: the time of day */
export function Time({ at, none = "–", clock }) {
  const [, setNow] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return html`<span class="faint">${none}</span>`;
  return html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${clock ? new Date(at).toLocaleTimeString() : ago(at)}</time>`;
}

/** @param {string} at */
export function ago(at) {
  const seconds = (new Date(at).getTime() - Date.now()) / 1000;
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  if (!unit) return Math.abs(seconds) < 10 ? "now" : RELATIVE.format(Math.round(seconds), "second");
  return RELATIVE.format(Math.round(seconds / unit[1]), unit[0]);
}

const NUMBER = new Intl.NumberFormat("en");
/** @param {number} number */
export const count = (number) => NUMBER.format(number);
/** @param {number} number @param {string} one @param {string} [many] */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
/** @param {any} given a number, or what stands for an exact one */
export function millis(given) {
  const number = Number(given ?? NaN);
  if (Number.isNaN(number)) return "–";
  if (number < 0.1) return "under 0.1 ms";
  if (number < 10) return `${number.toFixed(1)} ms`;
  return number < 10000 ? `${count(Math.round(number))} ms` : `${(number / 1000).toFixed(1)} s`;
}

/** A large number on a card, which may lead somewhere. @param {{title: string, value: any, href?: string, note?: any, children?: any}} props */
export const Figure = ({ title, value, href, note, children }) => html`<${href ? "a" : "div"} class="card" href=${href}><h2>${title}</h2><p class="figure">${value}</p>${children}
  ${note !== undefined && html`<p class="faint">${note || "\u00a0"}</p>`}<//>`;

/** What was found: what matched stands between two marks, and anything else in it is text. @param {string} text */
export const marked = (text) => text.split(/<\/?mark>/).map((each, at) => (at % 2 ? html`<mark>${each}</mark>` : each));

/** Whether words are in a text, in whatever letters. @param {string} text @param {string | undefined} words */
export const says = (text, words = "") => text.toLowerCase().includes(words.toLowerCase());

/** A set with a name more, or less if it was there. @param {Set<string>} names @param {string} name */
export function toggled(names, name) {
  const changed = new Set(names);
  if (!changed.delete(name)) changed.add(name);
  return changed;
}

/**
 * A small plot of numbers over time, with its words for whoever does not see it.
 * @param {{values: (number | null)[], marks?: (number | null)[], label: string}} props `marks` are drawn over it, as errors
 */
export function Spark({ values, marks = [], label }) {
  const top = Math.max(1, ...(values.length ? values : marks).map((value) => value ?? 0));
  const width = 100 / Math.max(values.length, marks.length, 1);
  const bars = (/** @type {(number | null)[]} */ numbers, /** @type {string} */ name) => numbers.map((value, index) => {
    const height = Math.max(((value ?? 0) / top) * 30, 1);
    return value && html`<rect class=${name} x=${index * width} width=${Math.max(width - 0.4, 0.4)} y=${30 - height} height=${height} />`;
  });
  return html`<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label=${label}>${bars(values, "")}${bars(marks, "bad")}</svg>`;
}

/** Screens within a screen, each with an address. @param {{tabs: [string, any, string][], at: string, label: string}} props name, words, address */
export function Tabs({ tabs, at, label }) {
  return html`<nav class="tabs" aria-label=${label}>${tabs.map(([name, words, href]) => html`<a href=${href} aria-current=${name === at ? "page" : undefined}>${words}</a>`)}</nav>`;
}

/**
 * A button that opens a list of things to do. Arrow keys move in it, Escape closes it. The list has the focus as soon as
 * it is there (an effect would come later): whoever types fast means what is in it.
 * @param {{label: string, items: [string, () => any][]}} props
 */
export function Menu({ label, items }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const opener = useRef(/** @type {HTMLElement | null} */ (null));
  const buttons = () => /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll("[role=menuitem]") ?? [])]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const close = (/** @type {Event} */ event) => { if (!box.current?.contains(/** @type {Node} */ (event.target))) setOpen(false); };
    return hear("pointerdown", close);
  }, [isOpen]);
  const move = (/** @type {KeyboardEvent} */ event) => {
    const list = buttons();
    const at = list.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const step = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") setOpen(false);
    if (event.key === "Escape") opener.current?.focus();
    if (step === undefined) return;
    event.preventDefault();
    list[(step + list.length) % list.length]?.focus();
  };
  return html`<div class="menu-box" ref=${box} onKeyDown=${isOpen ? move : undefined}>
    <button type="button" ref=${opener} aria-haspopup="menu" aria-expanded=${isOpen} aria-label=${label} title=${label} onClick=${() => setOpen(!isOpen)}>⋯</button>
    ${isOpen && html`<div class="menu-list" role="menu" aria-label=${label} ref=${focusWithin}>${items.map(([words, act]) => html`<button type="button" role="menuitem" tabindex="-1"
      onClick=${() => { setOpen(false); opener.current?.focus(); attempt(act); }}>${words}</button>`)}</div>`}
  </div>`;
}

/** A dialog that is open while it is shown. @param {{title: string, onClose?: () => void, children: any, wide?: boolean}} props without `onClose` Escape does nothing */
export function Dialog({ title, onClose, children, wide = false }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      // While it is open nothing else takes the focus; and what had it may be gone.
      box.current?.close();
      const back = before?.isConnected && before !== document.body ? before : document.querySelector("h1");
      if (back instanceof HTMLElement) back.focus();
    };
  }, []);
  // Browsers close a dialog at the second Escape, whatever was said to the first one.
  const hold = (/** @type {KeyboardEvent} */ event) => { if (!onClose && event.key === "Escape") event.preventDefault(); };
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby=${id} onKeyDown=${hold} onCancel=${(/** @type {Event} */ event) => { event.preventDefault(); onClose?.(); }}>
    <h2 id=${id}>${title}</h2>${children}
  </dialog>`;
}

/** @type {((question: any) => void) | null} */
let showQuestion = null;

/**
 * Ask before something that cannot be taken back. Whoever goes elsewhere, or is asked something else, has said no.
 * @param {string} title @param {any} text @param {string} action @returns {Promise<boolean>}
 */
export const confirm = (title, text, action) => new Promise((resolve) => showQuestion?.((/** @type {any} */ before) => {
  before?.resolve(false);
  return { title, text, action, resolve, at: location.hash };
}));

/** @typedef {{text: string, action?: string, act?: () => any, isProblem?: boolean, number: number}} Notice */
/** @type {((notice: Notice | ((now: Notice | null) => Notice | null)) => void) | null} */
let showNotice = null;
let notices = 0;

/** Say something in the status line, with one thing to do about it. @param {string} text @param {string} [action] @param {() => any} [act] */
export function notify(text, action, act) {
  showNotice?.({ text, action, act, number: ++notices });
}

/** @param {unknown} problem */
export function notifyProblem(problem) {
  if (problem instanceof DOMException && problem.name === "AbortError") return;
  if (!(problem instanceof Error)) console.error(problem);
  showNotice?.({ text: problem instanceof Error ? problem.message : String(problem), isProblem: true, number: ++notices });
}

/** Do what somebody asked for: what goes wrong is said, and no longer what went wrong before. @param {() => any} act */
async function attempt(act) {
  const before = notices;
  try {
    await act();
    showNotice?.((now) => (now?.isProblem && now.number <= before ? null : now));
  } catch (problem) {
    notifyProblem(problem);
  }
}

const place = () => location.hash.split("?")[0];

/** The status line and the question: one of each for the whole page. */
export function Attendant() {
  const [notice, setNotice] = useState(/** @type {Notice | null} */ (null));
  const [question, setQuestion] = useState(/** @type {any} */ (null));
  showNotice = setNotice;
  showQuestion = setQuestion;
  useEffect(() => {
    if (!notice) return undefined;
    const end = () => setNotice(null);
    // Where an action itself leads, it is still said what it did; whoever goes on from there leaves that behind.
    const here = place();
    const leave = () => { if (place() !== here) end(); };
    const goOn = hear("hashchange", leave);
    // What can be undone stays longer.
    const timer = notice.isProblem ? 0 : setTimeout(end, notice.act ? 20000 : 5000);
    return () => {
      goOn();
      clearTimeout(timer);
    };
  }, [notice]);
  const close = (/** @type {boolean} */ answer) => { question.resolve(answer); setQuestion(null); };
  useEffect(() => {
    // Whoever asks because of another address puts back the one before.
    const leave = () => { if (question && location.hash !== question.at) close(false); };
    return hear("hashchange", leave);
  }, [question]);
  return html`<div class="notices" role=${notice?.isProblem ? "alert" : "status"} aria-live=${notice?.isProblem ? "assertive" : "polite"}>
      ${notice && html`<div class=${`notice ${notice.isProblem ? "bad" : ""}`}><span>${cut(notice.text, LONGEST_NOTICE)}</span>
        ${notice.act && html`<${Button} onClick=${async () => { const { act } = notice; setNotice(null); await act?.(); }}>${notice.action}<//>`}
        <${Button} kind="plain" label="Dismiss" onClick=${() => setNotice(null)}>×<//></div>`}
    </div>
    ${question && html`<${Dialog} key=${question.title} title=${question.title} onClose=${() => close(false)}>
      <div class="prose">${question.text}</div>
      <div class="acts end"><${Button} onClick=${() => close(false)}>Cancel<//>
        <${Button} kind="danger" onClick=${() => close(true)}>${question.action}<//></div>
    <//>`}`;
}
