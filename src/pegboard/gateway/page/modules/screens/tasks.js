// Tasks: changes of an OpenSpec folder and how far they are, what is next and why, and what waits for what.
import { html, useState } from "../parts/html.js";
import { part, patch, post, withQuery } from "../parts/api.js";
import { ChangeGraph } from "../parts/change_graph.js";
import { Entry, chooser } from "../parts/entry.js";
import { Chosen, chooseFolder, useChosen } from "../parts/folder.js";
import { useResource } from "../parts/live.js";
import { More, usePages } from "../parts/pages.js";
import { to } from "../parts/route.js";
import { Button, Choice, Copy, Loaded, Mark, Prose, Screen, Section, Table, Tabs, Time, count, notify, notifyProblem, plural } from "../parts/ui.js";

const TABS = [["", "Changes"], ["graph", "Graph"], ["tasks", "All tasks"]];
const TONES = /** @type {Record<string, string>} */ ({ completed: "good", in_progress: "on", blocked: "warn", missing: "bad", unreadable: "bad", critical: "bad", high: "warn" });
const KINDS = ["tasks"];
const say = (/** @type {string} */ word) => word.replace("_", " ");
const options = (/** @type {string} */ words) => words.split(" ").map((word) => /** @type {[string, string]} */ ([word, say(word)]));
const STATUSES = options("pending in_progress completed blocked skipped");
const PRIORITIES = options("critical high medium low backlog");
const mark = (/** @type {string} */ word) => html`<${Mark} tone=${TONES[word]}>${say(word)}<//> `;
const progress = ({ id, tasks, completed }) => tasks > 0 && html`<progress max=${tasks} value=${completed} aria-label=${`Done of ${id}`}></progress> ${count(completed)} of ${count(tasks)}`;

/**
 * Which folder it is, and what can be done there. `link` leads to a change or a task, `choose` changes the address.
 * @typedef {{folder?: string, isWriter: boolean, at: (id: string) => string, link: (id: string, words?: string) => any, read: (path: string, more?: any) => string, pathOf: (id: string) => string, choose: (name: string) => (text: any) => void, set: (task: any, name: string, value: string) => Promise<any>}} Place
 */

/**
 * Fields for what a task is, or for what tasks are wanted; then `any` is a choice, too.
 * @param {any} given @param {(name: string) => (given: any) => any} choose @param {(name: string) => (text: string) => any} set @param {[string, string][]} [any]
 */
const fields = ({ status, priority, assignee }, choose, set, any = []) => html`<${Choice} label="Status" options=${[...any, ...STATUSES]} value=${status} onChange=${choose("status")} />
  <${Choice} label="Priority" options=${[...any, ...PRIORITIES]} value=${priority} onChange=${choose("priority")} /><${Entry} label="Assignee" search=${any.length > 0} value=${assignee} onText=${set("assignee")} />`;

/** @param {import("../app.js").ScreenProps} props */
export default function Tasks({ parts, query }) {
  const [, change, number] = parts;
  const { folder } = query;
  const id = parts.slice(1).join("/");
  // What the gateway found in the files: when somebody asks, and where it disagrees with what was set here.
  const [told, setTold] = useState(/** @type {any} */ (null));
  const tools = useResource("tools?prefix=registry_update", ["tools"]);
  const isWriter = Boolean(tools.data?.tools.length);
  const at = (/** @type {string} */ name) => to(["tasks", ...name.split("/")], { folder });
  const link = (/** @type {string} */ name, words = name) => html`<a href=${at(name)}>${words}</a> `;
  const read = (/** @type {string} */ path, more = {}) => withQuery(`tasks${path}`, { path: folder, ...more });
  const pathOf = (/** @type {string} */ name) => read(`/${name.split("/").map(part).join("/")}`);
  const set = async (/** @type {any} */ task, /** @type {string} */ name, /** @type {string} */ value) => {
    const path = pathOf(task.id);
    const { task: now, synced, unblocked, message = "" } = await patch(path, { [name]: value });
    if (synced?.conflicts.length) setTold(synced);
    notify(`${task.id}: ${name} saved. ${unblocked.length ? `Can begin now: ${unblocked.join(", ")}. ` : ""}${message}`, "Undo", () => patch(path, { [name]: task[name] ?? "" }));
    return now;
  };
  const place = { folder, isWriter, at, link, read, pathOf, set, choose: chooser(parts, query) };
  const [isChosen, chooseIt] = useChosen(folder);
  const found = useResource(isChosen ? read("/changes") : null, KINDS);
  const isNowhere = Boolean(found.data?.message);
  // Where no project is known, one is asked for.
  const Part = number && !isNowhere ? One : Changes;
  const compare = async () => {
    const synced = await post(read("/sync"));
    setTold(synced.conflicts.length ? synced : null);
    notify(`Taken over from the files: ${["added", "updated", "removed"].map((word) => `${synced[word]} ${word}`).join(", ")}.`);
  };
  return html`<${Screen} title=${id || "Tasks"} actions=${isWriter && found.data && !isNowhere && html`<${Button} onClick=${compare}>Compare with the files<//>`}>
    ${change && html`<p><a href=${to(KINDS, { folder })}>All changes</a> ${number && html`· ${link(change)}`}<${Copy} text=${id}>Copy the id<//></p>`}
    ${told && html`<div class="attention" role="status"><div>In the files:
      <ul>${told.conflicts.map((each) => html`<li>${link(each.id)}<bdi>${each.content}</bdi>: ${say(each.registry)} here, ${each.file} in the file; ${each.outcome}</li>`)}</ul></div><${Button} onClick=${() => setTold(null)}>Dismiss<//></div>`}
    <${Chosen} folder=${folder} isChosen=${isChosen} onChoose=${chooseIt}><${Part} key=${id} id=${id} place=${place} query=${query} found=${found} /><//><//>`;
}

/** Changes that a change needs. @param {any} change @param {Place["link"]} link */
const needsOf = ({ needs, waits_for: waiting }, link) => needs.length > 0 && html`<ul class="plain">${needs.map((/** @type {string} */ id) => html`<li>${link(id)}${!waiting.includes(id) && "(done)"}</li>`)}</ul>`;

/** Every change, or one. @param {{place: Place, query: Record<string, string>, id: string, found: import("../parts/live.js").Resource<any>}} props */
function Changes({ place, query, id, found }) {
  const { folder, link } = place;
  const { tab = "" } = query;
  const tasks = html`<${List} place=${place} query=${query} id=${id} />`;
  const next = html`<${Next} place=${place} id=${id} />`;
  if (id && !found.data?.message) {
    const row = found.data?.changes.find((each) => each.id === id);
    return html`${row && html`<p><b>${row.title}</b> ${progress(row)}</p>${row.needs.length > 0 && html`<div>Needs ${needsOf(row, link)}</div>`}`}${next}<${Section} title="Tasks">${tasks}<//>`;
  }
  const columns = [
    ["Change", (row) => html`${link(row.id, row.title)}${row.title !== row.id && html`<small>${row.id}</small>`}`, "title"],
    ["Status", (row) => html`${mark(row.status)}${row.in_cycle && html`<${Mark} tone="bad">in a cycle<//>`}<small>${row.problem}</small>`],
    ["Done", progress, "nowrap"],
    ["Needs", (row) => needsOf(row, link)],
  ];
  const isDone = (row) => Number(row.status === "completed");
  return html`<div class="filters"><${Entry} label="Folder" class="wide" search="entered" placeholder="the gateway's own" hint="Enter opens another project." value=${folder} onText=${(/** @type {string} */ text) => { chooseFolder(text); place.choose("folder")(text); }} /></div>
    <${Loaded} of=${found}>${({ changes, held_up: held, left_out: more, message }) => (message ? html`<div class="empty"><p>${message.startsWith("which folder?") ? "There is no project where Pegboard was started." : message}</p>Tasks are the boxes in <code>openspec/changes/NAME/tasks.md</code> of a project. Enter its folder above.</div>` : html`<${Tabs} label="Tasks" at=${tab} tabs=${TABS.map(([name, words]) => [name, words, to(KINDS, { folder, tab: name })])} />
      ${tab === "tasks" ? tasks : tab ? html`<${ChangeGraph} changes=${changes} address=${place.at} />` : html`${next}${held.length > 0 && html`<${Section} title="Held up">${lines(held, place)}<//>`}
        <${Section} title="Changes"><${Table} caption="Changes" columns=${columns} rows=${changes.toSorted((a, b) => isDone(a) - isDone(b))} shown=${50} empty=${html`No changes yet. Each has a list of tasks: <code>openspec/changes/NAME/tasks.md</code>`} />${more > 0 && `${count(more)} more are left out.`}<//>`}`)}<//>`;
}

/** What to do next, and why. @param {{place: Place, id?: string}} props */
function Next({ place, id }) {
  const next = useResource(place.read("/next", { change_id: id, count: 4 }), KINDS);
  return html`<${Section} title="Next"><${Loaded} of=${next}>${({ recommended, reason, alternatives }) => (recommended ? lines([{ ...recommended, reason }, ...alternatives], place) : html`<p>${reason}</p>`)}<//><//>`;
}

/** Tasks, by what somebody wants of them. @param {{place: Place, query: Record<string, string>, id?: string}} props */
function List({ place, query, id }) {
  const { status, priority, assignee, unblocked } = query;
  const { choose, folder } = place;
  const tasks = usePages("tasks", { path: folder, change_id: id, status, priority, assignee, unblocked, limit: 100 }, "tasks", KINDS);
  return html`<div class="filters">${fields(query, choose, choose, [["", "any"]])}<label class="field check"><input type="checkbox" checked=${unblocked} onChange=${() => choose("unblocked")(!unblocked)} />Nothing blocks it</label></div>
    <${Loaded} of=${tasks}>${(data) => html`<p class="faint" role="status">${plural(tasks.total, "task")}</p>
      ${data.problems?.map((each) => html`<div class="attention">${each.path}: ${each.reason}</div>`)}
      ${tasks.rows.length ? lines(tasks.rows, place) : html`<p class="empty">No task fits.</p>`}<${More} of=${tasks} />`}<//>`;
}

/** Tasks in a list: their boxes are those of the file, and change when these did. @param {any[]} tasks @param {Place} place */
const lines = (tasks, { isWriter, at, set }) => html`<ul class="card">${tasks.map((task) => {
  const { id, status, priority } = task;
  const isDone = status === "completed";
  const tick = (/** @type {Event} */ event) => { event.preventDefault(); set(task, "status", isDone ? "pending" : "completed").catch(notifyProblem); };
  return html`<li class="task" key=${id}><input type="checkbox" aria-label=${`${id} is completed`} checked=${isDone} disabled=${!isWriter} onClick=${tick} />
    <div><a class="clip" href=${at(id)}>${task.content}</a><small><bdi>${id}</bdi> <${Copy} text=${id} label=${`Copy ${id}`}>Copy<//>
      ${status !== "pending" && !isDone && mark(status)}${priority !== "medium" && mark(priority)}<bdi>${task.assignee}</bdi> <span>${task.reason ?? task.why_blocked}</span></small></div></li>`;
})}</ul>`;

/** One task: everything there is to know and to set. @param {{place: Place, id: string}} props */
function One({ place, id }) {
  const { isWriter, link } = place;
  const found = useResource(place.pathOf(id), KINDS);
  const set = (/** @type {string} */ name) => async (/** @type {string} */ text) => found.set({ ...found.data, task: await place.set(found.data.task, name, text) });
  // A choice that was refused is not shown any longer.
  const choose = (/** @type {string} */ name) => (event) => set(name)(event.target.value).catch((problem) => { notifyProblem(problem); found.reload(); });
  const depend = async (/** @type {string} */ operation, /** @type {string} */ need) => {
    await post("tools/registry_deps/call", { arguments: { path: place.folder, task_id: id, operation, depends_on: need } });
    notify("Saved.", "Undo", () => depend(operation === "add" ? "remove" : "add", need));
  };
  return html`<${Loaded} of=${found}>${({ task, depends_on: needs, dependants }) => html`<${Prose} text=${task.content} />
    <p class="faint">Line ${task.source_line} of its tasks.md${task.started_at && html`, begun <${Time} at=${task.started_at} />`}${task.completed_at && html`, completed <${Time} at=${task.completed_at} />`}</p>
    ${task.why_blocked && html`<div class="attention">Held up: ${task.why_blocked}</div>`}
    <fieldset disabled=${!isWriter}><legend>Saved when you leave a field</legend><div class="filters">${fields(task, choose, set)}</div><${Entry} label="Notes" area value=${task.notes} onText=${set("notes")} /></fieldset>
    <${Section} title="Depends on"><ul>${needs.map((need) => html`<li>${link(need.id)}${mark(need.status)}<span>${need.content}</span> ${need.from === "file" ? html`<small>as its line in tasks.md says</small>` : isWriter && html`<${Button} kind="plain" label=${`Remove ${need.id}`} onClick=${() => depend("remove", need.id)}>Remove<//>`}</li>`)}</ul>
      ${isWriter && html`<${Entry} label="Add a task, as change/number" onText=${(/** @type {string} */ need) => need && depend("add", need)} />`}<//>
    ${dependants.length > 0 && html`<${Section} title="Waiting for it"><p>${dependants.map((/** @type {string} */ name) => link(name))}</p><//>`}`}<//>`;
}
