// Addresses within the page: `#/tools/NAME?tab=calls`. Each screen has one, so that commands can print links to it.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { withQuery } from "./api.js";
import { confirm, hear } from "./ui.js";

/** @typedef {{parts: string[], query: Record<string, string>}} Route */

// The address with which the page was loaded. What the page itself noted there has a state, which no link can give.
const LOADED = history.state ? "" : location.hash;

/** Whether what stands in the address may be of a link of another site, and no choice of whoever is here. */
export const isLinked = () => location.hash === LOADED;

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a screen. @param {string[]} parts @param {Record<string, any>} [query] */
export const to = (parts, query = {}) => withQuery(`#/${parts.map(encodeURIComponent).join("/")}`, query);

/** A link to the screen of something. @param {string[]} parts @param {any} [words] its name, if nothing else is said */
export const linkTo = (parts, words = parts[1]) => html`<a href=${to(parts)}>${words}</a>`;

/** Go to a screen. @param {string} address @param {boolean} [replace] without a step in the browser's history */
export function go(address, replace = false) {
  if (!replace) location.hash = address;
  else {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** Asks before what somebody has begun to write is lost. @type {(() => void) | undefined} */
let leaving;

/**
 * Ask before leaving a screen while something is not saved.
 * @param {any} unsaved what that is, if anything @returns {() => void} lets go of it, before what is done now leads elsewhere
 */
export function useLeaving(unsaved) {
  const holds = useRef(/** @type {any} */ (undefined));
  // What was let go of stays so, however often it is drawn, until it is another.
  useMemo(() => { holds.current = unsaved; }, [unsaved]);
  const letGo = () => { holds.current = false; };
  useEffect(() => {
    const here = location.hash;
    const unload = (/** @type {Event} */ event) => { if (holds.current) event.preventDefault(); };
    const goOn = hear("beforeunload", unload);
    leaving = async () => {
      const there = location.hash;
      if (!holds.current || there === here) return;
      history.pushState(null, "", here);
      if (!await confirm("Leave without saving?", "What you wrote here would be lost.", "Leave")) return;
      letGo();
      // Where it leads stands in the browser's history before what was put back.
      history.back();
    };
    return () => {
      goOn();
      leaving = undefined;
    };
  }, []);
  return letGo;
}

/** Where the page is. @returns {Route} */
export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const change = () => {
      // It may put the address back.
      leaving?.();
      setHash(location.hash);
    };
    return hear("hashchange", change);
  }, []);
  const [path, query] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { parts: path.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query)) };
}
