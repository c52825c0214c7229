"""In a real browser: what pages of other sites, ports and rebound names can do to a gateway, and what its own can."""

from __future__ import annotations

import contextlib
import http.server
import json
import subprocess
import threading
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from browser import browser
from forking import warm_start
from harness import toy, write_config

LIMIT = 20_000
# Names that a page's owner lets point to this machine; the second is for a gateway on an address of its own.
RULES = "MAP rebind.test 127.0.0.1, MAP rebind2.test 127.0.0.2, MAP evil.test 127.0.0.1, MAP other.localhost 127.0.0.1"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules={RULES}",
    # Newer browsers ask before a public page reaches a private address; others do not, and people say yes.
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
]
# Everything that a page can send without asking first, and what it could read of the answers.
ATTACK = """
async ([target, socket]) => {
  const read = [];
  const within = (work) => Promise.race([work, new Promise(done => setTimeout(done, 3000))]).catch(() => {});
  const memory = JSON.stringify({key: "planted", text: "by a page"});
  const look = async (path, options) => {
    const answer = await fetch(target + path, options);
    const text = await answer.text();
    if (answer.type !== "opaque" && answer.ok) read.push([path, text]);
  };
  for (const path of ["/api/servers", "/api/memories", "/health", "/metrics", "/openapi.json", "/mcp", "/"]) {
    await within(look(path));
    await within(look(path, {mode: "no-cors"}));
  }
  for (const kind of ["text/plain", "application/json", "application/x-www-form-urlencoded"]) {
    for (const mode of ["no-cors", "cors"]) {
      const options = {method: "POST", mode, body: memory, headers: {"content-type": kind}, credentials: "include"};
      await within(look("/api/memories", options));
      await within(look("/api/tools/memory_add/call", {...options, body: `{"arguments": ${memory}}`}));
      await within(look("/api/tools/memory_add/call", {...options, referrerPolicy: "no-referrer"}));
    }
  }
  for (const path of ["/api/servers/one/disable", "/api/servers/one/refresh"]) {
    await within(look(path, {method: "POST", mode: "no-cors"}));
  }
  navigator.sendBeacon(target + "/api/memories", memory);
  navigator.sendBeacon(target + "/api/memories", new Blob([memory], {type: "text/plain"}));
  const loaded = (tag, path) => within(new Promise((done) => {
    const node = document.createElement(tag);
    node.onload = () => { if (tag !== "iframe") read.push([tag, path]); done(); };
    node.onerror = done;
    node.src = target + path;
    document.body.append(node);
  }));
  await loaded("img", "/api/memories");
  await loaded("script", "/openapi.json");
  await loaded("iframe", "/docs");
  await within(new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = "sink";
    frame.onload = done;
    const form = document.createElement("form");
    form.method = "POST"; form.enctype = "text/plain"; form.target = "sink"; form.action = target + "/api/memories";
    const field = document.createElement("input");
    field.name = '{"key": "planted", "text": "'; field.value = '"}';
    form.append(field);
    document.body.append(frame, form);
    form.submit();
  }));
  await within(new Promise((done) => {
    const source = new EventSource(target + "/mcp");
    source.onopen = () => { read.push(["EventSource", "/mcp"]); done(); };
    source.onerror = () => { source.close(); done(); };
  }));
  await within(new Promise((done) => {
    const opened = new WebSocket(socket);
    opened.onopen = () => { read.push(["WebSocket", socket]); done(); };
    opened.onerror = done;
  }));
  return read;
}
"""


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """One browser for all; its absence is a failure, not a reason to skip."""
    path = browser()
    assert path is not None, "no browser: run `.venv/bin/python tests/browser/install.py`"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(chromium: Browser) -> Generator[Page]:
    """A page in a context of its own."""
    context = chromium.new_context()
    context.set_default_timeout(LIMIT)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def elsewhere() -> Generator[int]:
    """The port of a web server with an empty page at every address."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><body></body>")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def gateway(tmp_path: Path, host: str) -> Generator[str]:
    """A gateway that listens on `host`, and its address on this machine."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, toolsets=["memory"])
    command = [*warm_start(), "serve", "--config", str(config), "--host", host, "--port", "0"]
    # Without a token a gateway for other machines does not start: what is tried here is what stops a browser.
    command += ["--insecure"] if host == "0.0.0.0" else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            yield next(word for word in first.split() if word.startswith("http")).removesuffix("/mcp")
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway that nobody succeeds in changing, for all that try it in vain."""
    with gateway(tmp_path_factory.mktemp("unharmed"), "127.0.0.1") as url:
        yield url


def ask(url: str, path: str) -> Any:
    """What the gateway answers to a program of this machine."""
    with urllib.request.urlopen(url + path) as answer:
        return json.loads(answer.read())["data"]


def attack(page: Page, target: str) -> list[list[str]]:
    """Do everything that a page can do to a gateway; what it could read."""
    socket = f"ws://{urlsplit(target).netloc}/mcp"
    return page.evaluate(ATTACK, [target, socket])


def assert_unharmed(url: str) -> None:
    """No memory was written, and no server was switched off."""
    assert ask(url, "/api/memories")["memories"] == []
    assert {row["enabled"] for row in ask(url, "/api/servers")["servers"]} == {True}


@pytest.mark.parametrize("host", ["localhost", "other.localhost", "127.0.0.1", "evil.test"])
def test_pages_of_other_origins_read_nothing_and_change_nothing(
    unharmed: str, page: Page, elsewhere: int, host: str
) -> None:
    """CSRF, from another port of this machine (a dev server, a notebook) as from the web."""
    for target in (unharmed, f"http://localhost:{urlsplit(unharmed).port}"):
        page.goto(f"http://{host}:{elsewhere}/")
        # It does reach the gateway.
        sent = "async (to) => (await fetch(to, {mode: 'no-cors'})).type"
        assert page.evaluate(sent, f"{target}/health") == "opaque"
        assert attack(page, target) == []
    assert_unharmed(unharmed)


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0", "127.0.0.2"])
def test_a_rebound_name_reads_nothing_and_changes_nothing(tmp_path: Path, page: Page, bind: str) -> None:
    """DNS rebinding: the page's own name leads to the gateway, so that the browser takes them for one."""
    with gateway(tmp_path, bind) as url:
        name = "rebind2.test" if bind == "127.0.0.2" else "rebind.test"
        own = f"http://{name}:{urlsplit(url).port}"

        def attackers_page(route: Route) -> None:
            route.fulfill(body="<!doctype html><title>mine</title><body></body>", content_type="text/html")

        # The page was loaded before the name led here.
        page.route(f"{own}/loaded-before", attackers_page)
        page.goto(f"{own}/loaded-before")
        assert page.evaluate("document.title") == "mine"
        # It does reach the gateway, and may read what that says.
        assert page.evaluate("async () => (await fetch('/health')).status") == 421
        assert attack(page, own) == []
        assert attack(page, url) == []
        assert_unharmed(url)


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_pages_of_our_own_can_do_everything(tmp_path: Path, page: Page, bind: str) -> None:
    """The same requests are good from the gateway's own pages, whichever of its names is used."""
    with gateway(tmp_path, bind) as url:
        for number, host in enumerate(("127.0.0.1", "localhost", "other.localhost")):
            own = f"http://{host}:{urlsplit(url).port}"
            page.goto(f"{own}/docs")
            status = page.evaluate(
                """async (key) => (await fetch("/api/memories", {
                    method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({key})
                })).status""",
                f"key-{number}",
            )
            assert status == 201
            assert (
                page.evaluate("async () => (await (await fetch('/api/memories')).json()).data.memories.length")
                == number + 1
            )


def test_links_from_elsewhere_lead_to_pages(unharmed: str, page: Page, elsewhere: int) -> None:
    """Somebody follows a link of a chat, a wiki or a search engine to the gateway's pages."""
    for path, words in (("/", "Pegboard"), ("/#/rest", "Pegboard")):
        page.goto(f"http://evil.test:{elsewhere}/")
        page.evaluate(
            "(to) => { document.body.innerHTML = `<a href=${to}>there</a>` }",
            unharmed + path,
        )
        page.click("text=there")
        page.wait_for_url(unharmed + path)
        assert words in page.content()
    page.goto(f"http://evil.test:{elsewhere}/")
    page.evaluate("(to) => { location.href = to }", f"{unharmed}/api/memories")
    page.wait_for_url(f"{unharmed}/api/memories")
    assert "refused" in page.content()
