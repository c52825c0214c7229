// Memory: what agents and people wrote down, found again, and how it is linked.
import { html, useEffect, useState } from "../parts/html.js";
import { ask, patch, post, remove, withQuery } from "../parts/api.js";
import { bindTo } from "../parts/bind.js";
import { Graph } from "../parts/graph.js";
import { useKept, useResource } from "../parts/live.js";
import { memoryAddress, memoryPath } from "../parts/memories.js";
import { MemoryEditor } from "../parts/memory_editor.js";
import { More, usePages } from "../parts/pages.js";
import { go, to } from "../parts/route.js";
import { Button, Choice, Dialog, Field, Find, Loaded, Mark, Prose, Screen, Section, Table, Tabs, Time, confirm, count, marked, notify, plural, Unseen } from "../parts/ui.js";

const TYPING = 300;
const KINDS = "related decision constrained bug design assumption experiment".split(" ");
const WAYS = /** @type {[string, string][]} */ ([["", "what it is about"], ["OR", "any of the words"], ["AND", "all of the words"]]);
const LIVE = ["memory"];
const memories = (/** @type {number} */ number) => plural(number, "memory", "memories");

/** @param {import("../app.js").ScreenProps} props */
export default function MemoryScreen({ parts, query }) {
  // What a rule does not let through is not offered.
  const tools = useResource("tools?prefix=memory_", ["tools", "config"]);
  const may = (/** @type {string} */ name) => tools.data?.tools.some((tool) => tool.name === `memory_${name}`);
  const { namespace } = query;
  const props = { query, may, namespace, home: to(LIVE, { namespace }) };
  if (parts[1]) return html`<${One} name=${parts[1]} ...${props} />`;
  if (query.new) return html`<${Screen} title="Add a memory"><${MemoryEditor} begin=${query.key} namespace=${namespace} back=${props.home} /><//>`;
  return html`<${List} ...${props} />`;
}

/** What is found, once nobody types any more. @param {Record<string, string>} query */
function useFound(query) {
  const [typed, setTyped] = useState(query);
  useEffect(() => {
    const timer = setTimeout(setTyped, TYPING, query);
    return () => clearTimeout(timer);
  }, [JSON.stringify(query)]);
  const { q = "", by, namespace } = typed;
  // Each word is a keyword, and so is what is in quotes.
  const keywords = q.match(/"[^"]+"|[^\s",]+/g);
  const [path, search, name] = !q.trim() ? ["memories", { order: "recent", limit: 50 }, "memories"]
    : by ? ["memory/fulltext", { keywords, operator: by, limit: 20 }, "results"] : ["memory/search", { q, limit: 20 }, "results"];
  return usePages(path, { ...search, namespace }, name, LIVE);
}

/** @param {any} props */
function List({ query, may, namespace }) {
  const found = useFound(query);
  const bind = bindTo(query, (changed) => go(to(LIVE, changed), true));
  const columns = [
    ["Memory", (row) => html`<a href=${memoryAddress(row.key, { namespace })}>${row.key}<//>`, "title"],
    ["About", (row) => html`<span class="clip">${row.summary}</span>${row.excerpt && html`<small class="clip">${marked(row.excerpt)}</small>`}`],
    ...(found.rows[0]?.links ? [] : [["Links", (row) => `${count(row.out_degree)} out, ${count(row.in_degree)} in`, "nowrap"],
      ["Changed", (row) => html`<${Time} at=${row.updated_at} />`, "nowrap"]]),
  ];
  return html`<${Screen} title="Memory" actions=${may("add") && html`<a class="button main" href=${to(LIVE, { new: 1, namespace })}>Add a memory</a>`}>
    <div class="filters"><${Find} label="Search" placeholder=${query.by ? "words, or “several words” in quotes" : "a question or a few words"} ...${bind("q")} />
      <${Choice} label="Look for" options=${WAYS} value=${query.by} onChange=${bind("by").onInput} />
      <${Field} label="Namespace"><input maxlength="128" placeholder="the configured one" title="The project that the memories belong to; each has its own." ...${bind("namespace")} /><//></div>
    <${Loaded} of=${found}>${() => html`<p class="faint" role="status">${memories(found.total)}, the ${query.q ? "best" : "latest change"} first</p>
      <${Table} caption="Memories" columns=${columns} rows=${found.rows} shown=${Infinity} empty=${query.q ? "Nothing was found." : "No memories yet. Agents write them down with memory_add."} />
      <${More} of=${found} />`}<//>
  <//>`;
}

/** @param {any} props */
function One({ name, query, may, namespace, home }) {
  const { edit, depth = "2" } = query;
  const whole = withQuery("memory/whole", { key: name, namespace });
  const memory = useResource(whole, LIVE);
  const graph = useResource(memory.data && !edit ? withQuery("memory/graph", { key: name, depth, limit: 500, namespace }) : null, LIVE);
  const [isLinking, setLinking] = useState(false);
  const data = useKept(memory);
  const around = useKept(graph);
  const at = (/** @type {string} */ address, /** @type {Record<string, any>} */ change = {}) => memoryAddress(address, { namespace, depth: query.depth, ...change });
  if (edit) return html`<${Screen} title=${name}><${MemoryEditor} key=${name} name=${name} namespace=${namespace} back=${at(name)} memory=${memory} canRename=${may("rename")} /><//>`;
  if (!data) return html`<${Screen} title=${name}>${memory.error?.status === 404 ? html`<p>There is no memory with this key.</p>${may("add") && html`<p><a class="button" href=${to(LIVE, { new: 1, key: name, namespace })}>Add a memory with this key</a></p>`}` : html`<${Loaded} of=${memory} />`}<//>`;
  const { key, summary, text, links, version, meta } = data;
  const path = memoryPath(key, namespace);
  const drop = async () => {
    if (!await confirm(`Delete ${key}?`, "Links that lead to it stay. Undo writes it again as version 1.", "Delete")) return;
    await remove(path);
    notify(`Deleted ${key}.`, "Undo", async () => {
      await post("memories", { key, summary, text, links, namespace });
      go(at(key));
    });
    go(home);
  };
  // What is shown may be older than what was just written here.
  const relink = async (/** @type {(links: any[]) => any[]} */ change, /** @type {string} */ words) => {
    const before = await ask(whole);
    const after = await patch(path, { links: change(before.links), version: before.version });
    notify(words, "Undo", () => patch(path, { links: before.links, version: after.version }));
  };
  const unlink = (/** @type {any} */ link) => relink((all) => all.filter((each) => each.key !== link.key || each.type !== link.type), `Unlinked ${link.key}.`);
  const list = (/** @type {string} */ title, /** @type {any[]} */ rows, /** @type {number} */ all, /** @type {any[]} */ columns = []) => html`<${Section} title=${`${title} (${count(all)})`}><${Table} caption=${title} rows=${rows} shown=${10} empty="None." keyOf=${(link) => JSON.stringify(link)} columns=${[
    ["Memory", (link) => html`<a href=${at(link.key)}>${link.key}<//>`, "title"],
    ["Kind", (link) => html`<${Mark}>${link.type}<//><small>${link.term}</small>`], ...columns]} /><//>`;
  return html`<${Screen} title=${name} actions=${html`${may("update") && html`<a class="button main" href=${at(name, { edit: 1 })}>Edit</a><${Button} onClick=${() => setLinking(true)}>Link<//>`}${may("delete") && html`<${Button} kind="danger" onClick=${drop}>Delete<//>`}`}>
    <p class="faint"><a href=${home}>All memories</a>${namespace && html` of <bdi>${namespace}</bdi>`} · version ${version}, changed <${Time} at=${meta.updated_at} /> · written <${Time} at=${meta.created_at} /> · read ${plural(meta.access_count, "time")} · <span title="Use and links raise it, time lowers it.">score ${meta.score} of 100</span></p>
    <div class="card">${summary && html`<p><b>${summary}</b></p>`}${text ? html`<${Prose} key=${key} text=${text} most=${4000} />` : html`<p class="empty">It has no text.</p>`}</div>
    <div class="columns">
      ${around && html`<${Around} ...${around} depth=${depth} at=${at} />`}
      <div class="form">${list("Links to", links.toSorted((/** @type {any} */ one, /** @type {any} */ other) => other.weight - one.weight), meta.out_degree, [["Weight", (link) => link.weight, "number"],
        ...(may("update") ? [["Change", (link) => html`<${Button} onClick=${() => unlink(link)}>Unlink<${Unseen}> ${link.key}<//><//>`, "nowrap"]] : [])])}
        ${around && list("Linked from", around.links.filter((link) => link.to === key).map((link) => ({ key: link.from, type: link.type })), meta.in_degree)}</div>
    </div>
    ${isLinking && html`<${LinkTo} name=${name} namespace=${namespace} relink=${relink} onClose=${() => setLinking(false)} />`}<//>`;
}

/** @param {any} props */
function Around({ nodes, links, cut, depth, at }) {
  const [{ key }, other] = nodes;
  if (!other) return html`<p class="empty">Nothing is linked yet.</p>`;
  const words = `${memories(nodes.length)} within ${plural(+depth, "link")}, ${plural(links.length, "link")} between them`;
  return html`<${Section} title="Around it" actions=${html`<${Tabs} label="How far" at=${depth} tabs=${["1", "2", "3"].map((each) => [each, plural(+each, "link"), at(key, { depth: each })])} />`}>
    <${Graph} nodes=${nodes} links=${links} hrefOf=${at} label=${`Picture of how memories are linked around ${key}: ${words}`} />
    <p class="faint">${words}; a ring is one that is not written yet.${cut && " There are more than are shown."}</p><//>`;
}

/** @param {any} props */
function LinkTo({ name, namespace, relink, onClose }) {
  const [link, setLink] = useState(/** @type {any} */ ({ key: "", type: KINDS[0] }));
  const found = useFound({ q: link.key, namespace }).rows;
  const save = async () => {
    // Of two that are the same the last one counts: what is there keeps its weight.
    await relink((/** @type {any[]} */ links) => [link, ...links], `Linked to ${link.key}.`);
    onClose();
  };
  const bind = bindTo(link, setLink);
  return html`<${Dialog} title="Link to another memory" onClose=${onClose}><div class="form">
    <${Field} label="Other memory" hint="Words to search for, or any key."><input type="search" maxlength="512" ...${bind("key")} /><//>
    <ul class="plain" aria-label="Found">${found.filter((/** @type {any} */ row) => row.key !== name).slice(0, 6).map(({ key }) => html`<li key=${key}><${Button} kind="plain" aria-pressed=${key === link.key} onClick=${() => setLink({ ...link, key })}><bdi>${key}</bdi><//></li>`)}</ul>
    <${Field} label="Kind"><input list="kinds" maxlength="64" ...${bind("type")} /><datalist id="kinds">${KINDS.map((kind) => html`<option value=${kind} />`)}</datalist><//>
    <div class="acts end"><${Button} onClick=${onClose}>Cancel<//><${Button} kind="main" disabled=${!link.key.trim() || !link.type.trim()} onClick=${save}>Link<//></div></div><//>`;
}
