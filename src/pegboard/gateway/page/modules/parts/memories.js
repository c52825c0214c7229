// Where memories are, in REST and on the page.
import { part, withQuery } from "./api.js";
import { to } from "./route.js";

/** @typedef {{key: string, type: string, term?: string, weight?: number}} MemoryLink */
/** @typedef {{key: string, namespace: string, summary: string, text: string, links: MemoryLink[], version: number, meta: any}} Memory */

/** @param {string} key @param {string} [namespace] @param {string} [action] */
export const memoryPath = (key, namespace, action = "") => withQuery(`memories/${part(key)}${action}`, { namespace });

/** @param {string} key @param {Record<string, any>} query */
export const memoryAddress = (key, query) => to(["memory", key], query);
