// Requests to REST. Every answer is `{success, data}` or `{success, error}`; here it is data, or an ApiError.

/** What REST says went wrong. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status 0 where the gateway did not answer
   * @param {string} [code]
   * @param {any} [data] what a failed call gave all the same
   */
  constructor(message, status, code = "", data = undefined) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

/** @type {(() => void) | undefined} */
let lock;

/** Tell the page when the gateway wants a token. @param {() => void} listener */
export function onLocked(listener) {
  lock = listener;
}

/**
 * Send a request, and have the response whatever its status is. `../` leads out of `/api/`.
 * @param {string} path below `/api/`, with its query
 * @param {{method?: string, text?: string, accept?: string, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 *   `text` is a body that is JSON already
 */
export async function send(path, { method = "GET", text, accept = "application/json", headers = {}, signal } = {}) {
  /** @type {Record<string, string>} */
  const kind = text === undefined ? {} : { "content-type": "application/json" };
  let response;
  try {
    response = await fetch(`/api/${path}`, { method, body: text, headers: { accept, ...kind, ...headers }, signal });
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new ApiError("The gateway does not answer.", 0);
  }
  if (response.status === 401) lock?.();
  return response;
}

/**
 * What REST answers.
 * @param {string} path
 * @param {{method?: string, body?: unknown, text?: string, headers?: Record<string, string>, signal?: AbortSignal, parse?: (text: string) => any}} [options]
 * @returns {Promise<any>}
 */
export async function ask(path, { body, text, parse, ...options } = {}) {
  const response = await send(path, { ...options, text: text ?? (body === undefined ? undefined : JSON.stringify(body)) });
  return readAnswer(await response.text(), response.status, parse);
}

/**
 * The data of an answer's text, or the error in it.
 * @param {string} text @param {number} status @param {(text: string) => any} parse
 */
export function readAnswer(text, status, parse = JSON.parse) {
  let answer;
  try {
    answer = parse(text);
  } catch {
    throw new ApiError(`The gateway answered with status ${status}, and nothing that could be read.`, status);
  }
  if (answer?.success) return answer.data;
  throw new ApiError(answer?.error?.message ?? `status ${status}`, status, answer?.error?.code, answer?.data);
}

/** @param {string} path @param {unknown} [body] */
export const post = (path, body = {}) => ask(path, { method: "POST", body });
/** @param {string} path @param {unknown} body */
export const patch = (path, body) => ask(path, { method: "PATCH", body });
/** @param {string} path */
export const remove = (path) => ask(path, { method: "DELETE" });

/**
 * A path with a query; what is empty is left out.
 * @param {string} path @param {Record<string, string | number | boolean | null | undefined>} query
 */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value || value === 0);
  const text = new URLSearchParams(/** @type {any} */ (given)).toString();
  return text ? `${path}?${text}` : path;
}

/** Part of a path. @param {string} text */
export const part = (text) => encodeURIComponent(text);

/** Where a server is in REST. @param {string} name @param {string} [more] */
export const serverPath = (name, more = "") => `servers/${part(name)}${more}`;
