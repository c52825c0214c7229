// What a call gave. All of it comes from a server: texts stay texts, and only known kinds of pictures and sounds are shown.
import { html, useMemo, useState } from "./html.js";
import { Draft, drawn, isObject, read, textOf, unturned, write } from "./exact_json.js";
import { Outcome } from "./calls.js";
import { Tree } from "./tree.js";
import { Button, Copy, Mark, Outside, Problem, Prose, Section, count, millis, useSome } from "./ui.js";

const KNOWN = /^(image\/(png|jpeg|gif|webp|avif)|audio\/(wav|x-wav|mpeg|mp3|mp4|ogg|webm|flac|aac))$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const MOST_ITEMS = 50;
// Reading a longer text keeps the browser busy for seconds.
const LONGEST_READ = 1000000;
const MAY_BE_JSON = /^\s*[[{]/;

/** The value of a text that is a JSON object or list. @param {string} text */
function jsonOf(text) {
  const value = MAY_BE_JSON.test(text) ? read(text) : undefined;
  return value instanceof Draft ? undefined : value;
}

/** A text: as a tree where it is JSON, folded where it is long; a very long one is a tree once somebody wants that. @param {{text: string}} props */
function Text({ text }) {
  const [isRaw, setRaw] = useState(false);
  const [wanted, setWanted] = useState("");
  const isWaiting = text.length > LONGEST_READ && wanted !== text;
  const value = useMemo(() => (isWaiting ? undefined : jsonOf(text)), [text, isWaiting]);
  const isTree = value !== undefined && !isRaw;
  const turn = () => { setWanted(text); setRaw(isTree); };
  return html`${isTree ? html`<${Tree} value=${value} />` : html`<${Prose} as="pre" text=${unturned(text)} most=${4000} />`}
    <div class="acts">${(isWaiting ? MAY_BE_JSON.test(text) : value !== undefined) && html`<${Button} kind="plain" onClick=${turn}>${isTree ? "As text" : "As a tree"}<//>`}<${Copy} text=${text}>Copy the text<//></div>`;
}

/** A picture or a sound, if it is one. @param {{data?: any, blob?: any, mimeType?: any}} props */
function Media({ blob, data = blob, mimeType }) {
  const type = textOf(mimeType).toLowerCase();
  const isKnown = useMemo(() => KNOWN.test(type) && BASE64.test(textOf(data)), [type, data]);
  const size = `${count(Math.floor((textOf(data).length * 3) / 4))} bytes`;
  if (!isKnown) return html`<p class="faint"><bdi>${drawn(mimeType) || "Something"}</bdi>, ${size}: not shown.</p>`;
  const source = `data:${type};base64,${data}`;
  return html`<figure>${type.startsWith("image") ? html`<img class="picture" src=${source} alt=${`Picture of the result, ${type}`} />` : html`<audio controls src=${source} aria-label=${`Sound of the result, ${type}`}></audio>`}<figcaption class="faint">${type}, ${size}</figcaption></figure>`;
}

/** @param {{item: any}} props */
function Item({ item }) {
  const { type, resource } = isObject(item) ? item : { type: "", resource: null };
  if (type === "text" && typeof item.text === "string") return html`<${Text} text=${item.text} />`;
  if (type === "image" || type === "audio") return html`<${Media} ...${item} />`;
  if (type === "resource_link") return html`<p><${Mark}>${/^https?:/i.test(textOf(item.uri)) ? "link" : "resource of its server"}<//> <${Outside} href=${textOf(item.uri)} text=${drawn(item.title ?? item.name ?? item.uri)} /> <code dir="ltr">${drawn(item.uri)}</code> <${Copy} text=${textOf(item.uri)}>Copy the address<//></p><${Tree} name="link" value=${item} isOpen=${false} />`;
  if (type === "resource" && isObject(resource)) {
    return html`<p><${Mark}>resource<//> <code dir="ltr">${drawn(resource.uri)}</code></p>${typeof resource.text === "string" ? html`<${Text} text=${resource.text} />` : html`<${Media} ...${resource} />`}`;
  }
  return html`<${Tree} value=${item} />`;
}

/** @param {{outcome: {data?: any, error?: Error & {code?: string}, ms: number, word: string}}} props */
export function Result({ outcome: { data, error, ms, word } }) {
  const { content, structuredContent, isError, resultType, ...rest } = isObject(data) ? data : { rest: data };
  const items = Array.isArray(content) ? content : [];
  const [some, more] = useSome(items, MOST_ITEMS);
  // Many servers say the same twice: as text for old clients, and as data.
  const isSaid = useMemo(() => {
    const said = items.length === 1 && items[0]?.type === "text" ? textOf(items[0].text) : "";
    return said !== "" && said.length <= LONGEST_READ && write(jsonOf(said)) === write(structuredContent);
  }, [data]);
  const isBare = structuredContent === undefined;
  return html`<${Section} title="Result" actions=${data !== undefined && html`<${Copy} text=${() => write(data, "  ")}>Copy as JSON<//>`}>
    <p><${Outcome} outcome=${word} /> <span class="faint">${millis(ms)}, measured in this browser</span></p>
    ${error && html`<${Problem} error=${{ message: drawn([error.code, error.message].filter(Boolean).join(": "), 2000) }} />`}
    ${data !== undefined && html`<div class="card">
      ${some.map((each, at) => html`<${Item} key=${at} item=${each} />`)}${more}
      ${!isBare && !isSaid && html`<h3>Structured</h3><${Tree} value=${structuredContent} />`}
      ${Object.keys(rest).length > 0 && html`<${Tree} name="more" value=${rest} isOpen=${!items.length && isBare} />`}
      ${!items.length && isBare && html`<p class="faint">It gave nothing to show.</p>`}</div>`}
  <//>`;
}
