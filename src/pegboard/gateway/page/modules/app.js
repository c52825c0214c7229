// The page: its frame, and which screen is in it.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./parts/html.js";
import { ApiError, onLocked, remove } from "./parts/api.js";
import { focusHeading, keepFocus } from "./parts/focus.js";
import { listen, useConnection, useResource } from "./parts/live.js";
import { to, useRoute } from "./parts/route.js";
import { holdClicks } from "./parts/second_click.js";
import { Attendant, Button, Problem } from "./parts/ui.js";
import { SignIn } from "./parts/sign_in.js";
import Access from "./screens/access.js";
import Add from "./screens/add.js";
import Calls from "./screens/calls.js";
import Changes from "./screens/changes.js";
import Chats from "./screens/chats.js";
import Clients from "./screens/clients.js";
import Memory from "./screens/memory.js";
import Overview from "./screens/overview.js";
import Rest from "./screens/rest.js";
import Server from "./screens/server.js";
import Servers from "./screens/servers.js";
import SignIns from "./screens/sign_ins.js";
import Tasks from "./screens/tasks.js";
import Tool from "./screens/tool.js";
import Tools from "./screens/tools.js";

/** @typedef {{parts: string[], query: Record<string, string>, self: any}} ScreenProps */
/** @type {[string, (props: any) => any, string?][]} each is called by its address, but for the first; and what it needs: a toolset, or to be an admin */
const PLACES = [
  ["", Overview],
  ["servers", Servers],
  ["tools", Tools],
  ["calls", Calls],
  ["changes", Changes, "admin"],
  ["memory", Memory, "memory"],
  ["chats", Chats, "chats"],
  ["tasks", Tasks, "tasks"],
  ["clients", Clients, "admin"],
  ["sign-ins", SignIns],
  ["access", Access, "admin"],
];
/** @type {Map<string, (props: any) => any>} */
const SCREENS = new Map([["servers/", Server], ["add", Add], ["tools/", Tool], ["rest", Rest]]);
for (const [place, screen] of PLACES) SCREENS.set(place, screen);

/** The screen of an address; one with a name behind it may be another. @param {string[]} parts */
function screenOf(parts) {
  const [first = "", second] = parts;
  return second !== undefined && SCREENS.has(`${first}/`) ? `${first}/` : first;
}

function App() {
  const [isLocked, setLocked] = useState(false);
  const self = useResource("whoami", ["config", "tokens"]);
  useEffect(() => { onLocked(() => setLocked(true)); }, []);
  const isIn = self.data !== undefined && !isLocked;
  useEffect(() => { listen(isIn); }, [isIn]);
  if (isLocked) return html`<${SignIn} onDone=${() => { setLocked(false); self.reload(); }} /><${Attendant} />`;
  if (self.data === undefined) return self.error ? html`<main id="main"><${Problem} error=${self.error} reload=${self.reload} /></main>` : null;
  return html`<${Frame} self=${self.data} onSignOut=${async () => { await remove("session"); setLocked(true); }} /><${Attendant} />`;
}

/** @param {{self: any, onSignOut: () => any}} props */
function Frame({ self, onSignOut }) {
  const { parts, query } = useRoute();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const name = screenOf(parts);
  const path = parts.join("/");
  const isFirst = useRef(true);
  useEffect(() => {
    setMenuOpen(false);
    // Whoever goes to another screen reads on from its heading; on the first one the browser decides.
    if (!isFirst.current) {
      focusHeading();
      scrollTo(0, 0);
    }
    isFirst.current = false;
  }, [path]);
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); focusHeading(); }}>Skip to the content</a>
    <div class="frame">
      <header class="bar">
        <a class="brand" href="#/"><img src="/static/icon.svg" alt="" width="26" height="26" /> Pegboard</a>
        <button type="button" class="menu" aria-expanded=${isMenuOpen} aria-controls="places" onClick=${() => setMenuOpen(!isMenuOpen)}>Menu</button>
        <nav id="places" class=${isMenuOpen ? "open" : ""} aria-label="Screens">
          ${PLACES.filter(([, , needs]) => !needs || (needs === "admin" ? self.admin : self.gives.toolsets.includes(needs))).map(([place]) => html`<a href=${to(place ? [place] : [])}
            aria-current=${(parts[0] ?? "") === place || (place === "servers" && name === "add") ? "page" : undefined}>${place ? place[0].toUpperCase() + place.slice(1) : "Overview"}</a>`)}
          <div class="foot">
            <${Status} />
            <p class="who">${self.kind === "local" ? "You, on this machine" : self.name}</p>
            <p><a href="#/rest">REST</a>${self.kind !== "local" && html` · <${Button} kind="link" onClick=${onSignOut}>Sign out<//>`}</p>
          </div>
        </nav>
      </header>
      <main id="main" key=${name}><${Place} name=${name} parts=${parts} query=${query} self=${self} /></main>
    </div>`;
}

/** How the page hears from the gateway: one quiet line. */
function Status() {
  const connection = useConnection();
  const words = { open: "Live", connecting: "Connecting …", lost: "The gateway does not answer. Trying again …" };
  return html`<p class=${`live ${connection}`} role="status">${words[connection]}</p>`;
}

/** @param {{name: string} & ScreenProps} props */
function Place({ name, ...props }) {
  const [error, resetError] = useErrorBoundary((problem) => console.error(problem));
  const Shown = SCREENS.get(name);
  if (error) return html`<${Problem} error=${new ApiError("This screen has failed; the browser's console says why.", 0)} reload=${resetError} />`;
  if (!Shown) return html`<h1 tabindex="-1">Not here</h1><${Problem} error=${new ApiError("There is no such screen.", 404)} />`;
  return html`<${Shown} key=${name.endsWith("/") ? props.parts.join("/") : name} ...${props} />`;
}

// The address of the reference in text for people.
if (location.pathname === "/docs") history.replaceState(null, "", "/#/rest");
const root = document.getElementById("app");
if (root) {
  keepFocus(root);
  holdClicks();
  render(html`<${App} />`, root);
}

