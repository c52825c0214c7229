// Overview: what needs somebody first, then how much there is, then what happens. Empty, it is the way in.
import { html } from "../parts/html.js";
import { LatestCalls } from "../parts/calls.js";
import { useResource } from "../parts/live.js";
import { linkTo, to } from "../parts/route.js";
import { Copy, Figure, Loaded, Reason, Screen, Section, Spark, State, count, millis, plural } from "../parts/ui.js";
import { isNew } from "./add.js";
import { Changed } from "./changes.js";
import { refusal } from "./servers.js";

const TROUBLE = ["unreachable", "lost", "needs_auth", "invalid"];
const MOST_TROUBLE = 20;

/** @param {import("../app.js").ScreenProps} props */
export default function Overview({ self }) {
  const servers = useResource("servers", ["server", "config", "tools", "logins", "changes"]);
  return html`<${Screen} title="Overview"><${Loaded} of=${servers}>${(data) => html`
    <${Attention} data=${data} self=${self} />
    ${data.servers.length || !self.admin ? html`<${Figures} servers=${data.servers} self=${self} /><${LatestCalls} filter=${{}} most=${8} all="All calls" self=${self} />` : html`<${Start} self=${self} />`}
    <${Address} />
  `}<//><//>`;
}

/** @param {{data: any, self: any}} props */
function Attention({ data, self }) {
  const health = useResource("../health", ["storage"]);
  const status = useResource("status", ["config", "storage"]);
  const troubled = data.servers.filter((server) => TROUBLE.includes(server.state));
  const changed = self.admin ? data.servers.filter((server) => server.changed) : [];
  const words = [
    refusal(data),
    ...(status.data?.configRemarks ?? []).map((/** @type {string} */ text) => `Config: ${text}`),
    health.error?.data?.storage ?? (health.data?.storage && `Storage: ${health.data.storage}`),
    health.data?.audit && `Audit: ${health.data.audit}`,
    status.data?.keyProblem && `Secret key: ${status.data.keyProblem}`,
    status.data?.open && "Everybody who reaches this gateway is let in, without a token.",
  ].filter(Boolean);
  if (!words.length && !troubled.length && !changed.length) return null;
  return html`<${Section} title="Needs attention">
    ${words.map((text) => html`<p class="attention">${text}</p>`)}
    ${troubled.slice(0, MOST_TROUBLE).map(({ name, state, needsLogin, lastError }) => {
    const tab = state === "invalid" ? "config" : "log";
    return html`<div class="attention" key=${name}>
      <${State} state=${state} signsIn=${Boolean(needsLogin)} /><b>${linkTo(["servers", name])}</b>
      <${Reason} text=${lastError} />
      <a class="button" href=${needsLogin ? "#/sign-ins" : to(["servers", name], { tab })}>${needsLogin ? "Sign in" : `See its ${tab}`}</a></div>`;
  })}
    ${changed.slice(0, MOST_TROUBLE).map((server) => html`<${Changed} key=${server.name} server=${server} />`)}
    ${troubled.length > MOST_TROUBLE && html`<p><a href="#/servers">${plural(troubled.length - MOST_TROUBLE, "more server")}</a></p>`}
  <//>`;
}

/** @param {{servers: any[], self: any}} props */
function Figures({ servers, self }) {
  const stats = useResource("stats", ["call", "tools", "server"]);
  const sessions = useResource("sessions", ["sessions"]);
  const enabled = servers.filter((server) => server.enabled);
  const ready = enabled.filter((server) => !TROUBLE.includes(server.state));
  const { tokens, total, points = [], recorded } = stats.data ?? {};
  const share = tokens?.all ? Math.max(0, 1 - tokens.first / tokens.all) : 0;
  const status = useResource("status", ["tools"]);
  return html`<div class="cards small">
    <${Figure} title="Servers" href="#/servers" value=${html`${count(ready.length)} <small>of ${count(enabled.length)} ready</small>`} note=${sessions.data ? `${plural(sessions.data.total, "client session")} open` : ""} />
    <${Figure} title="Tools" href="#/tools" value=${status.data ? count(status.data.tools) : "…"} note=${tokens ? `${count(tokens.all)} tokens, if a client listed them all` : ""} />
    <${Figure} title="A client's first prompt" href=${to(["tools"], { order: "tokens" })} value=${html`${tokens ? count(tokens.first) : "…"} <small>tokens</small>`}
      note=${tokens ? `${Math.round(share * 100)} % less than every tool${tokens.saved ? `; ${count(tokens.saved)} saved since the start` : ""}` : ""} />
    <${Figure} title="Calls of the last day" href=${to(["calls"], { tab: "numbers" })} value=${html`${total ? count(total.calls) : "…"} ${total?.errors > 0 && html`<small class="bad">${plural(total.errors, "error")}</small>`}`}
      note=${recorded === false ? "The audit is off: calls are not recorded." : total?.calls ? `p50 ${millis(total.p50)}, p99 ${millis(total.p99)}` : ""}>
      ${recorded !== false && html`<${Spark} values=${points.map((point) => point.calls)} marks=${points.map((point) => point.errors)} label="Calls over the last day" />`}<//>
  </div>${self.kind === "local" && sessions.data?.total === 0 && html`<${Unconnected} />`}`;
}

const CONNECT = ["Connect a client", "One entry in its config, which you see before it is written.", "Choose a client", ""];

/** A way to begin. @param {string[]} of @param {boolean} isFirst */
const showWay = ([title, text, words, way], isFirst) => html`<div class="card"><h3>${title}</h3><p>${text}</p>
  <p><a class=${isFirst ? "button main" : "button"} href=${way ? to(["add"], { way }) : "#/clients"}>${words}</a></p></div>`;

/** What is left to do while no client of this machine knows of Pegboard. */
function Unconnected() {
  const { data } = useResource("clients");
  return data && !data.clients.some((client) => client.connected) && showWay(CONNECT, true);
}

/** @param {{self: any}} props */
function Start({ self }) {
  const found = useResource(self.kind === "local" ? "import" : null);
  const servers = (found.data?.servers ?? []).filter(isNew);
  const clients = [...new Set(servers.map((server) => server.from))];
  const ways = [
    ["Take over what you have", servers.length ? `${plural(servers.length, "server")} found in ${clients.join(", ")}.` : "Servers of other clients on this machine.", servers.length ? "Look at them" : "Look for servers", "import"],
    ["Paste a snippet", "From any README or client, in any form.", "Paste", "paste"],
    ["Search the registry", "Servers that their authors published.", "Search", "registry"],
    CONNECT,
  ];
  const first = servers.length ? "import" : "paste";
  return html`<${Section} title="Begin here"><p class="prose">There are no servers yet. Add some; then connect your clients to Pegboard alone.</p>
    <div class="cards small">${ways.map((way) => showWay(way, way[3] === first))}</div><//>`;
}

function Address() {
  const address = `${location.origin}/mcp`;
  return html`<${Section} title="Address for MCP clients"><p><code>${address}</code> <${Copy} text=${address}>Copy<//></p><//>`;
}
