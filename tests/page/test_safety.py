"""What pages of other origins can do to the page and with its cookie, and which secrets a browser is ever given."""

from __future__ import annotations

import http.client
import http.server
import json
import threading
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, expect

from harness import serving, toy, write_config
from page import Visit, gateway, pegboard, rest
from page.walk import Gathering, screens

# What a page of somebody else tries with the cookie that the browser sends to this host, whatever the port.
ATTACK = """
async (target) => {
  const read = [];
  const within = (work) => Promise.race([work, new Promise((done) => setTimeout(done, 2000))]).catch(() => {});
  const look = async (path, options) => {
    const answer = await fetch(target + path, {credentials: "include", ...options});
    const text = await answer.text();
    if (answer.type !== "opaque" && answer.ok) read.push([path, text]);
  };
  const evil = JSON.stringify({name: "evil", entry: {command: "touch", args: ["/tmp/evil"]}});
  for (const mode of ["cors", "no-cors"]) {
    for (const path of ["/", "/static/app.js", "/api/whoami", "/api/servers", "/api/calls", "/api/tokens"])
      await within(look(path, {mode}));
    for (const kind of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
      const headers = {"content-type": kind};
      await within(look("/api/servers", {mode, method: "POST", headers, body: evil}));
      await within(look("/api/servers/one/disable", {mode, method: "POST", headers, body: "{}"}));
      const token = '{"name": "evil", "rule": {"admin": true}}';
      await within(look("/api/tokens", {mode, method: "POST", headers, body: token}));
      await within(look("/api/session", {mode, method: "POST", headers, body: "{}"}));
    }
  }
  for (const method of ["DELETE", "PATCH", "PUT"])
    await within(look("/api/servers/one", {method, headers: {"content-type": "application/json"}, body: "{}"}));
  await within(look("/api/session", {method: "DELETE"}));
  await within(new Promise((done) => {
    const source = new EventSource(target + "/api/events", {withCredentials: true});
    source.onopen = () => { read.push(["EventSource"]); done(); };
    source.onerror = () => { source.close(); done(); };
  }));
  const load = (tag, path, extra) => within(new Promise((done) => {
    const node = Object.assign(document.createElement(tag), extra);
    node.onload = () => { read.push([tag, path]); done(); };
    node.onerror = done;
    node.src = target + path;
    document.body.append(node);
  }));
  await load("script", "/static/app.js", {type: "module"});
  await load("script", "/static/app.js", {});
  await load("img", "/static/icon.svg", {});
  const make = (tag, members) => Object.assign(document.createElement(tag), members);
  const forms = [["/api/servers", "text/plain"], ["/api/servers/one/disable", "application/x-www-form-urlencoded"]];
  for (const [path, enctype] of forms) {
    await within(new Promise((done) => {
      const frame = make("iframe", {name: "sink", onload: done});
      const form = make("form", {method: "POST", enctype, target: "sink", action: target + path});
      form.append(make("input", {name: '{"a": "', value: '"}'}));
      document.body.append(frame, form);
      form.submit();
    }));
  }
  return read;
}
"""
# An opened window that the opener has lost is closed as far as it can tell.
OPEN = """
(target) => new Promise((done) => {
  const opened = window.open(target);
  const started = Date.now();
  const look = setInterval(() => {
    let words = "";
    try { words = opened.document.body.innerText; } catch {}
    if (opened.closed || words || Date.now() - started > 10000) { clearInterval(look); done([opened.closed, words]); }
  }, 50);
})
"""
INJECT = """
async (elsewhere) => {
  const refused = [];
  document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
  const script = document.createElement("script");
  script.textContent = "window.wasInjected = true";
  const style = document.createElement("style");
  style.textContent = "body { display: none }";
  const picture = document.createElement("img");
  picture.src = elsewhere;
  const frame = document.createElement("iframe");
  frame.src = elsewhere;
  document.body.append(script, style, picture, frame);
  document.body.setAttribute("onclick", "window.wasInjected = true");
  document.body.click();
  await fetch(elsewhere, {mode: "no-cors"}).catch(() => {});
  // What the test itself evaluates may evaluate more; what runs later may not.
  setTimeout(() => { (0, eval)("window.wasInjected = true"); }, 0);
  for (let turn = 0; turn < 100 && refused.length < 7; turn += 1) await new Promise((done) => setTimeout(done, 20));
  return [[...new Set(refused)].sort(), Boolean(window.wasInjected), getComputedStyle(document.body).display];
}
"""
REFRESH = """
async (name) => {
  const headers = {"content-type": "application/json"};
  const answer = await fetch(`/api/servers/${name}/refresh`, {method: "POST", headers});
  // An answer that nobody reads and nobody keeps does not end.
  await answer.text();
}
"""
SECRETS = {
    "env": "tulip-in-the-env-1",
    "variable": "tulip-in-a-variable-2",
    "header": "tulip-in-a-header-3",
    "userinfo": "tulip-in-the-userinfo-4",
    "query": "tulip-in-the-query-5",
    "argument": "tulip-in-an-argument-6",
    "file": "tulip-in-a-file-7",
}


@pytest.fixture(scope="module")
def elsewhere() -> Generator[str]:
    """The address of a page of somebody else on this machine, at another port."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><link rel=icon href=data:,><body></body>")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("signed_in", [False, True], ids=["local", "cookie"])
def test_a_page_of_another_port_reads_and_changes_nothing(
    context: BrowserContext, tmp_path: Path, elsewhere: str, signed_in: bool
) -> None:
    """Neither as whoever sits at this machine nor with the cookie of the page, which a browser sends to every port of a
    host: no request, form, script, picture, stream or frame gets through."""
    config = tmp_path / "pegboard.json"
    with gateway(tmp_path, {"one": toy(name="one")}, auth={"required": signed_in}) as address:
        visit = Visit(context.new_page(), address)
        page = visit.open()
        if signed_in:
            token = next(word for word in pegboard(config, "token", "add", "me", "--admin").split() if "pgb_" in word)
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        before = config.read_bytes()
        other = context.new_page()
        other.goto(elsewhere)
        assert other.evaluate(ATTACK, address) == []
        frames = [each for each in other.frames if each.url.startswith(address)]
        assert [each.locator("h1").count() for each in frames] == [0] * len(frames)
        # What was done would be seen here, by the page that may see it.
        answer = page.evaluate("async () => (await fetch('/api/servers')).json()")
        assert [(row["name"], row["enabled"]) for row in answer["data"]["servers"]] == [("one", True)]
        tokens = page.evaluate("async () => (await fetch('/api/tokens')).json()")["data"]["tokens"]
        assert [row["name"] for row in tokens] == (["me"] if signed_in else [])
        assert config.read_bytes() == before
        page.reload()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        other.close()
        page.close()


def test_whoever_opens_the_page_has_no_handle_of_it(context: BrowserContext, tmp_path: Path, elsewhere: str) -> None:
    """A window that another site opens is on its own (COOP): it can be neither read nor steered."""
    with gateway(tmp_path, {}) as address:
        other = context.new_page()
        other.goto(elsewhere)
        with context.expect_page() as opened:
            closed, words = other.evaluate(OPEN, f"{address}/")
        assert (closed, words) == (True, "")
        assert opened.value.evaluate("window.opener") is None
        expect(opened.value.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        opened.value.close()
        other.close()


def test_the_policy_holds_in_the_browser(context: BrowserContext, tmp_path: Path, elsewhere: str) -> None:
    """Should markup of somebody ever get into the page, it runs nothing, styles nothing and asks nobody."""
    with gateway(tmp_path, {}) as address:
        page = Visit(context.new_page(), address).open()
        refused, was_injected, display = page.evaluate(INJECT, elsewhere)
        assert not was_injected
        assert display != "none"
        assert {"connect-src", "img-src", "script-src-elem", "style-src-elem", "script-src-attr"} <= set(refused)
        assert "script-src" in refused
        page.close()


@pytest.mark.parametrize("path", ["/", "/docs", "/static/app.js", "/static/app.css", "/api/events"])
def test_a_rebound_name_is_given_nothing_of_the_page(url: str, path: str) -> None:
    """Whoever comes by another name than the gateway's own gets no page, no module, no stream."""
    parts = urlsplit(url)
    for host in ("evil.test", f"evil.test:{parts.port}", "127.0.0.1.evil.test", "localhost.evil.test"):
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        connection.request("GET", path, headers={"host": host})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 421
        assert b"<script" not in body
        connection.close()
    with urllib.request.urlopen(f"{url}/static/app.js") as answer:
        assert answer.status == 200


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway without servers."""
    with gateway(tmp_path_factory.mktemp("safety"), {}) as address:
        yield address


def test_no_secret_of_the_config_reaches_the_browser(context: BrowserContext, tmp_path: Path) -> None:
    """Whatever screen is opened: not in the markup, not in an answer, not in an event, not in what is copied; even
    where a server writes its secret into its log, or fails with its address."""
    (tmp_path / "secret.txt").write_text(SECRETS["file"], "utf-8")
    start = toy(name="leaky")
    leak = 'echo "env $API_KEY $FROM_ELSEWHERE $FROM_FILE args $1" >&2; shift; exec "$@"'
    environment = {
        "API_KEY": SECRETS["env"],
        "FROM_ELSEWHERE": "${SAFETY_TEST_VALUE}",
        "FROM_FILE": f"${{file:{tmp_path}/secret.txt}}",
    }
    address = f"http://ada:{SECRETS['userinfo']}@127.0.0.1:9/mcp?api_key={SECRETS['query']}"
    servers = {
        "leaky": {
            "command": "sh",
            "args": ["-c", leak, "x", f"--token={SECRETS['argument']}", start["command"], *start["args"]],
            "env": environment,
        },
        "web": {"url": address, "headers": {"Authorization": f"Bearer {SECRETS['header']}"}},
        "wrong": {"url": address, "headers": {"X-Key": SECRETS["header"]}, "comand": "x"},
    }
    config = write_config(tmp_path / "pegboard.json", servers, toolsets=["memory", "chats", "tasks"])
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with serving(config, SAFETY_TEST_VALUE=SECRETS["variable"]) as (_, mcp):
        visit = Visit(context.new_page(), mcp.removesuffix("/mcp"))
        gathering = Gathering(visit)
        page = visit.open()
        for name in servers:
            page.evaluate(REFRESH, name)
        rest(f"{visit.url}/api/tools/leaky__environment/call", "POST", {"arguments": {}})
        gathering.walk(screens(list(servers), ["leaky__echo"]))
        visit.open("servers/leaky?tab=log")
        expect(page.get_by_label("Log of leaky")).to_contain_text("env")
        gathering.texts.append(page.content())
        for name in servers:
            visit.open(f"servers/{name}")
            page.get_by_role("button", name=f"More for {name}").click()
            page.get_by_role("menuitem", name="Copy as JSON").click()
            expect(page.get_by_text("What is secret comes from variables there.")).to_be_visible()
            gathering.texts.append(page.evaluate("navigator.clipboard.readText()"))
            page.get_by_role("button", name="Dismiss").click()
        text = gathering.everything()
        page.close()
    for where, secret in SECRETS.items():
        assert secret not in text, where
    assert json.loads(config.read_text("utf-8"))["mcpServers"] == servers
    # What was looked through is what the screens are made of.
    assert "leaky__echo" in text
    assert "[redacted]" in text
    assert any(each.startswith("server ") for each in gathering.events)
