// A memory's words, written by people: a new one, or one that somebody else may change meanwhile.
import { html, useEffect, useState } from "./html.js";
import { ask, patch, post, withQuery } from "./api.js";
import { bindTo } from "./bind.js";
import { memoryAddress, memoryPath } from "./memories.js";
import { go, useLeaving } from "./route.js";
import { Button, Field, Loaded, Prose, Section, notify } from "./ui.js";

/** @param {any} one @param {any} other */
const differ = (one, other) => one.summary !== other.summary || one.text !== other.text;
/** Whether it is the same memory, unchanged. @param {any} one @param {any} other */
const isSame = (one, other) => one.version === other?.version && one.meta?.created_at === other.meta?.created_at;

/** @param {{name?: string, begin?: string, namespace?: string, back: string, memory?: any, canRename?: boolean}} props
 *   `name` of the `memory` that is changed, which is a resource; or a key to `begin` a new one with
 */
export function MemoryEditor({ name, begin = "", namespace, back, memory = {}, canRename = true }) {
  // As it was read last, as it is in the fields, and what else there is: what somebody else wrote, and what was swapped for it.
  const [base, setBase] = useState(/** @type {any} */ (name ? undefined : { key: begin, summary: "", text: "" }));
  const [mine, setMine] = useState(base);
  const [others, setOthers] = useState(/** @type {any[]} */ ([]));
  const { data: seen, error } = memory;
  const whole = withQuery("memory/whole", { key: name, namespace });
  const isGone = error?.status === 404;
  const letGo = useLeaving(base && (mine.key !== base.key || differ(mine, base)));
  useEffect(() => {
    if (!seen || isSame(seen, base)) return;
    if (!base) setMine(seen);
    // Other links are no other words.
    // What was theirs before gives way, and what was written here stays.
    else if (differ(seen, base)) setOthers([...(differ(seen, mine) ? [seen] : []), ...others.filter((each) => differ(each, base))]);
    setBase(seen);
  }, [seen]);
  const save = async () => {
    const { summary, text } = mine;
    const words = { summary, text };
    let { key } = mine;
    if (!name || isGone) ({ key } = await post("memories", { key, ...words, links: base.links, namespace }));
    else {
      try {
        if (differ(mine, base)) {
          // Of one that was deleted and written anew the version may be the same.
          if (!isSame(await ask(whole), base)) return memory.reload();
          await patch(memoryPath(name, namespace), { ...words, version: base.version });
        }
      } catch (refused) {
        if (/** @type {any} */ (refused).status !== 409) throw refused;
        return memory.reload();
      }
      if (key !== name) ({ key } = await post(memoryPath(name, namespace, "/rename"), { new_key: key }));
    }
    letGo();
    memory.reload?.();
    notify("Saved.");
    go(memoryAddress(key, { namespace }), true);
  };
  const swap = (/** @type {number} */ at) => () => {
    setMine({ ...others[at], key: mine.key });
    setOthers(others.with(at, mine));
  };
  const bind = bindTo(mine ?? {}, setMine);
  const remark = isGone ? "Somebody deleted it meanwhile. Save adds it again." : others[0] && "Somebody changed it meanwhile. Save your text, or swap the two.";
  return html`<${Loaded} of=${{ ...memory, data: base }}>${() => html`${remark && html`<p class="attention" role="alert">${remark}</p>`}<div class="columns">
    <div class="form card">
      <${Field} label="Key" hint=${name ? "Links that lead to it follow when it changes." : "By convention namespace:domain:type:title."}><input disabled=${!canRename || isGone} maxlength="512" ...${bind("key")} /><//>
      <${Field} label="Summary"><input maxlength="4000" ...${bind("summary")} /><//>
      <${Field} label="Text" hint=${!name && "Once it is saved, Link joins it to other memories."}><textarea rows="14" maxlength="200000" ...${bind("text")} /><//>
      <div class="acts"><${Button} kind="main" disabled=${!mine.key.trim()} onClick=${save}>${others[0] ? "Save this text" : "Save"}<//><a class="button" href=${back}>Cancel</a></div>
    </div>
    ${others.map((other, at) => html`<${Section} title="The other text" class="card"><p><b>${other.summary}</b></p><${Prose} text=${other.text} /><div class="acts"><${Button} onClick=${swap(at)}>Swap<//></div><//>`)}
  </div>`}<//>`;
}
