// Rows that REST gives some at a time: the first ones, then as many more as somebody wants.
import { html, useEffect, useState } from "./html.js";
import { ask, withQuery } from "./api.js";
import { useKept, useResource } from "./live.js";
import { Button, Loaded, ShowMore, Table, plural } from "./ui.js";

/**
 * @typedef {import("./live.js").Resource<any> & {rows: any[], total: number, readMore: () => Promise<void>}} Paged
 */

/**
 * The rows of an address, which says how many there are. While other ones are read, those of before stay.
 * @param {string} path @param {Record<string, any>} query with its limit @param {string} name what its rows are called there
 * @param {string[]} [kinds] @param {(text: string) => any} [parse] @returns {Paged}
 */
export function usePages(path, query, name, kinds, parse) {
  const key = withQuery(path, query);
  const first = useResource(key, kinds, parse);
  const [more, setMore] = useState(/** @type {{key: string, rows: any[]}} */ ({ key, rows: [] }));
  const further = more.key === key ? more.rows : [];
  // What was read before may have them under another name.
  const { data, head = [] } = useKept({ data: first.data && { data: first.data, head: first.data[name] }, error: first.error }) ?? {};
  const readOn = async (/** @type {any[]} */ read, /** @type {number} */ least) => {
    do {
      const offset = (query.offset ?? 0) + head.length + read.length;
      const answer = await ask(withQuery(path, { ...query, offset }), { parse });
      if (!answer[name].length) break;
      read = [...read, ...answer[name]];
    } while (read.length < least);
    setMore({ key, rows: read });
  };
  // What changed may be on any page.
  useEffect(() => { if (further.length) readOn([], further.length).catch(() => {}); }, [first.data]);
  const total = data?.pagination?.total ?? data?.filtered ?? data?.total ?? 0;
  return { ...first, data, rows: [...head, ...further], total, readMore: () => readOn(further, 0) };
}

/** The way to the rows behind those that are shown. @param {{of: Paged, from?: number}} props `from` is how many come before them */
export const More = ({ of, from = 0 }) => html`<${ShowMore} rest=${of.total - from - of.rows.length} onMore=${of.readMore} />`;

/** A table of such rows, with how many there are, and what the gateway remarks. @param {{of: Paged, noun: string} & Record<string, any>} props as a table has them */
export function PagedTable({ of, noun, ...table }) {
  return html`<${Loaded} of=${of}>${(data) => html`<p class="more" role="status">${plural(of.total, noun)} ${data.message && html`<span>${data.message}</span>`}<${Button} kind="plain" onClick=${of.reload}>Read again<//></p>
    <${Table} ...${table} rows=${of.rows} shown=${Infinity} /><${More} of=${of} />`}<//>`;
}
