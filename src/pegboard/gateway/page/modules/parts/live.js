// What changes at the gateway, over one stream of events for the whole page.
//
// An event says that something is another now; what it is, is read from REST. The stream is closed while nobody sees
// the page, because a browser has six connections to an origin. When it comes back all is read anew.
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { ApiError, ask } from "./api.js";

const REOPEN_AFTER = 2000;
// Several events in a row are one reading.
const GATHER = 120;
// Between two readings of the same address.
const PAUSE = 400;

/** @typedef {{kind: string, data: any}} Fact */
/** @typedef {"connecting" | "open" | "lost"} Connection */

/** @type {Set<(fact: Fact) => void>} */
const listeners = new Set();
/** @type {EventSource | null} */
let source = null;
/** @type {Connection} */
let state = "connecting";
let reopening = 0;
let hasBeenOpen = false;
let isOn = false;
const KINDS = "server call calls tools config sessions logins tokens storage log memory tasks changes".split(" ");

/** @param {Fact} fact */
function tell(fact) {
  for (const listener of [...listeners]) listener(fact);
}

/** @param {Connection} next */
function become(next) {
  if (state === next) return;
  state = next;
  tell({ kind: "connection", data: next });
}

function open() {
  if (source || !isOn || document.hidden) return;
  const opened = new EventSource("/api/events");
  source = opened;
  opened.addEventListener("hello", (event) => {
    become("open");
    // Whoever goes on from where they were has missed nothing.
    if (hasBeenOpen && !JSON.parse(event.data).resumed) tell({ kind: "resync", data: {} });
    hasBeenOpen = true;
  });
  opened.addEventListener("resync", () => tell({ kind: "resync", data: {} }));
  for (const kind of KINDS) opened.addEventListener(kind, (event) => tell({ kind, data: JSON.parse(event.data) }));
  opened.onerror = () => {
    become("lost");
    // A browser comes back by itself after a broken connection, and never after a status that is not 200.
    if (opened.readyState !== EventSource.CLOSED) return;
    close();
    clearTimeout(reopening);
    reopening = setTimeout(open, REOPEN_AFTER);
    // Why the stream was refused a browser does not tell; where it wants a token, any request is told so.
    ask("whoami").catch(() => {});
  };
}

function close() {
  source?.close();
  source = null;
}

/** Begin to listen, or stop: while the gateway wants a token there is nothing to hear. @param {boolean} on */
export function listen(on) {
  isOn = on;
  if (on) open();
  else close();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else open();
});

/** Be told of facts while a component is shown. @param {(fact: Fact) => void} listener */
export function useFacts(listener) {
  const newest = useRef(listener);
  newest.current = listener;
  useEffect(() => {
    const hear = (/** @type {Fact} */ fact) => newest.current(fact);
    listeners.add(hear);
    return () => { listeners.delete(hear); };
  }, []);
}

/** How the stream is. @returns {Connection} */
export function useConnection() {
  const [now, setNow] = useState(state);
  useEffect(() => setNow(state), []);
  useFacts(({ kind, data }) => { if (kind === "connection") setNow(data); });
  return now;
}

/**
 * @template T
 * @typedef {{data: T | undefined, error: ApiError | undefined, isLoading: boolean, reload: () => void, set: (data: T) => void}} Resource
 */

/**
 * What was given last, until something else is, or an error.
 * @template T
 * @param {{data: T | undefined, error: unknown}} given @returns {T | undefined}
 */
export function useKept({ data, error }) {
  const last = useRef(data);
  if (data || error) last.current = data;
  return last.current;
}

/**
 * What an address of REST gives, read again when something of these kinds changes. The old stays until the new is
 * there, so nothing jumps.
 * @param {string | null} address nothing is read while it is null
 * @param {string[] | ((fact: Fact) => boolean)} [kinds] which facts make it read again
 * @param {(text: string) => any} [parse] where numbers have to stay exact
 * @param {string} [text] what is sent, as JSON, where it answers to that alone
 * @returns {Resource<any>}
 */
export function useResource(address, kinds = [], parse = undefined, text = "") {
  const path = address && address + text;
  const [shown, setShown] = useState(/** @type {{path: string | null, data?: any, error?: ApiError}} */ ({ path: null }));
  const [turn, setTurn] = useState(0);
  const timer = useRef(0);
  const lastRead = useRef(0);
  const isReading = useRef(false);
  const isStale = useRef(false);
  useEffect(() => {
    if (address === null) return undefined;
    const stop = new AbortController();
    isReading.current = true;
    isStale.current = false;
    lastRead.current = Date.now();
    ask(address, { method: text ? "POST" : "GET", text: text || undefined, signal: stop.signal, parse }).then(
      (data) => setShown({ path, data }),
      (error) => {
        if (stop.signal.aborted) return;
        const known = error instanceof ApiError ? error : new ApiError(String(error), 0);
        // While the gateway is away what was there stays; the status line says it.
        setShown((before) => ({ path, data: known.status === 0 && before.path === path ? before.data : undefined, error: known }));
      },
    ).finally(() => {
      if (stop.signal.aborted) return;
      isReading.current = false;
      if (isStale.current) setTurn((number) => number + 1);
    });
    return () => stop.abort();
  }, [path, turn]);
  const reload = useCallback(() => {
    if (isReading.current) isStale.current = true;
    else setTurn((number) => number + 1);
  }, []);
  useFacts((fact) => {
    const isBack = shown.error?.status === 0 && fact.kind === "connection" && fact.data === "open";
    const isMeant = isBack || fact.kind === "resync" || (Array.isArray(kinds) ? kinds.includes(fact.kind) : kinds(fact));
    if (!isMeant || timer.current) return;
    const wait = Math.max(GATHER, lastRead.current + PAUSE - Date.now());
    timer.current = setTimeout(() => { timer.current = 0; reload(); }, wait);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  const isCurrent = shown.path === path;
  return {
    data: isCurrent ? shown.data : undefined,
    error: isCurrent ? shown.error : undefined,
    isLoading: path !== null && !isCurrent,
    reload,
    set: (data) => setShown({ path, data }),
  };
}
