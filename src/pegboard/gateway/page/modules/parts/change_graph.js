// Which change needs which: drawn from left to right, each change a link. A table beside it says the same.
import { html } from "./html.js";
import { count, Unseen } from "./ui.js";

const WIDE = 190;
const TALL = 80;
const STEP_X = WIDE + 60;
const STEP_Y = TALL + 16;
const MOST = 150;

/** @param {{changes: any[], address: (change: string) => string}} props */
export function ChangeGraph({ changes, address }) {
  const needed = new Set(changes.flatMap((change) => change.needs));
  const linked = changes.filter((change) => change.needs.length || needed.has(change.id)).sort((a, b) => a.layer - b.layer);
  const drawn = linked.slice(0, MOST);
  if (!drawn.length) return html`<p class="empty">No change depends on another. A line in tasks.md says so with <code>${"<!-- depends: other-change/3 -->"}</code></p>`;
  const columns = Map.groupBy(drawn, (change) => change.layer);
  /** @type {Map<string, {x: number, y: number}>} */
  const places = new Map();
  for (const [layer, column] of columns) {
    // Beside what it needs, arrows are short and cross less.
    const heightOf = (/** @type {any} */ change) => Math.max(0, ...change.needs.map((/** @type {string} */ id) => places.get(id)?.y ?? 0));
    column.sort((a, b) => heightOf(a) - heightOf(b)).forEach((change, row) => places.set(change.id, { x: layer * STEP_X, y: row * STEP_Y }));
  }
  const arrow = (/** @type {any} */ change, /** @type {string} */ id) => {
    const from = places.get(id);
    const end = places.get(change.id);
    if (!from || !end) return null;
    // Those of a circle stand one above the other.
    const beside = from.x === end.x;
    const [x1, x2, y1, y2] = [from.x + WIDE, end.x + (beside ? WIDE : -3), from.y + TALL / 2, end.y + TALL / 2];
    return html`<path class=${beside ? "cycle" : !change.waits_for.includes(id) && "met"} marker-end="url(#tip)" d=${`M${x1} ${y1}C${x1 + 30} ${y1} ${x2 + (beside ? 30 : -30)} ${y2} ${x2} ${y2}`} />`;
  };
  return html`<p class="faint">An arrow leads from what is needed to what needs it; dashed, if that is done. ${linked.length > MOST && `${count(linked.length - MOST)} more are not drawn.`}</p>
    <div class="graph" tabindex="0" role="group" aria-label="Graph of changes"><svg width=${(drawn[drawn.length - 1].layer + 1) * STEP_X} height=${Math.max(...[...columns.values()].map(({ length }) => length)) * STEP_Y}>
      <defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
      ${drawn.flatMap((change) => change.needs.map((/** @type {string} */ id) => arrow(change, id)))}
      ${drawn.map((change) => html`<foreignObject ...${places.get(change.id)} width=${WIDE} height=${TALL}><a class="card" href=${address(change.id)}><b class="clip">${change.title}</b>
        <small class=${change.in_cycle ? "bad" : ""}>${change.tasks ? `${change.completed} of ${change.tasks} done` : change.status}${change.in_cycle && ", in a cycle"}</small>
        ${change.needs.length > 0 && html`<${Unseen}>needs ${change.needs.join(", ")}<//>`}</a></foreignObject>`)}</svg></div>`;
}
