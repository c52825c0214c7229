// Changes: what servers say otherwise than was approved, and what becomes of it.
import { html } from "../parts/html.js";
import { part, post } from "../parts/api.js";
import { Diff } from "../parts/diff.js";
import { useResource } from "../parts/live.js";
import { linkTo, to } from "../parts/route.js";
import { firstOf } from "../parts/rule_form.js";
import { Button, Facts, Loaded, Mark, Prose, Screen, Section, Table, Time, notify, plural, Unseen, confirm, useSome } from "../parts/ui.js";

const KINDS = ["changes", "config"];
const AT_ONCE = 20;
const POLICIES = {
  tell: "Changes are in use at once; rejected ones are not.",
  hold: "What was approved stays in use until a change is accepted. What is new or does not fit is withheld.",
  locked: "pegboard.lock.json alone says what is approved: pegboard lock writes it.",
  follow: "Whatever the server says is in use.",
};

/** @param {import("../app.js").ScreenProps} props */
export default function Changes({ parts }) {
  return parts[1] === undefined ? html`<${All} />` : html`<${One} name=${parts[1]} />`;
}

function All() {
  const changes = useResource("changes", KINDS);
  return html`<${Screen} title="Changes"><${Loaded} of=${changes}>${(data) => html`<${Table} caption="Servers that changed" keyOf=${(row) => row.server} rows=${data.servers}
    empty="No server says anything else than was approved." columns=${[
    ["Server", (row) => linkTo(["changes", row.server]), "title"],
    ["Waits", (row) => (row.waits ? html`<${Mark} tone="warn">${plural(row.waits, "change")}${row.items.some((item) => item.marks[0]) ? " (!)" : ""}<//>` : "nothing")],
    ["What", (row) => html`<span class="clip">${firstOf(row.items.map((item) => item.id))}</span>`],
    ["Policy", (row) => row.policy],
    ["Version", versions],
    ["Since", (row) => html`<${Time} at=${row.items[0].since} />`],
  ]} />`}<//><//>`;
}

/** That definitions of a server changed, and the way to them. @param {{server: any}} props */
export const Changed = ({ server: { name, changed: { waits } } }) => html`<div class="attention"><span><b>${name}</b>: ${plural(waits, "definition")} changed</span><a class="button" href=${to(["changes", name])}>Look<${Unseen}> at ${name}<//></a></div>`;

/** @param {any} row */
const versions = ({ approvedVersion, version }) => (approvedVersion && approvedVersion !== version ? `${approvedVersion} → ${version}` : version);

/** @param {{name: string}} props */
function One({ name }) {
  const changes = useResource(`changes/${part(name)}`, KINDS);
  const [some, more] = useSome(changes.data?.items ?? [], AT_ONCE);
  const { policy, waits, revision } = changes.data ?? {};
  /** @param {string} verb @param {string[]} [items] */
  const decide = (verb, items) => async () => {
    if (!items && !await confirm(`Really ${verb} all?`, plural(waits, "change"), "Yes")) return;
    const { decided } = await post(`changes/${part(name)}/${verb}`, { items, revision }).finally(changes.reload);
    notify(`${plural(decided.length, "change")} ${verb}ed.`);
  };
  /** @param {any} [item] */
  const buttons = (item) => policy !== "locked" && (item || waits > 0) && [
    item?.state !== "left out" && ["accept", "Accept"], (!item || !item.rejected && item.change !== "gone") && ["reject", "Reject"],
  ].map((each) => each && html`<${Button} onClick=${decide(each[0], item && [item.id])}>${each[1]}${item ? html`<${Unseen}> ${item.id}<//>` : " all"}<//>`);
  return html`<${Screen} title=${`Changes of ${name}`} note=${html`<a href=${to(["changes"])}>All changes</a> · ${linkTo(["servers", name])}`} actions=${changes.data?.items[0] && buttons()}><${Loaded} of=${changes}>${(data) => html`
    <p class="prose">${POLICIES[policy]}</p><${Facts} facts=${[["Version", versions(data)]]} />
    ${some.map((item) => html`<${Section} key=${item.id} title=${item.renamedFrom ? `${item.renamedFrom} → ${item.id}` : item.id} actions=${buttons(item)}>
      <p><${Mark}>${[...new Set([item.change, item.state])].join(", ")}<//> ${item.marks.map((mark) => html`<${Mark} tone="warn">${mark}<//> `)}<${Time} at=${item.since} /></p>
      ${item.notes.map((note) => html`<p class="attention"><${Prose} text=${note} /></p>`)}
      <${Diff} text=${item.diff} label=${`Change of ${item.id}`} /><//>`)}
    ${more}
    ${!data.items.length && html`<p class="empty">Nothing is to be decided.</p>`}`}<//><//>`;
}
