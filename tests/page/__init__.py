"""The page in a real browser, against a real gateway with real servers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.request
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, expect

from forking import warm_start
from harness import serving, write_config

HERE = Path(__file__).parent
AXE = HERE / "node_modules/axe-core/axe.min.js"
LIMIT = 20_000
PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1280, "height": 860}
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_FINDINGS = """async (rules) => {
  const said = (node) => node.html.slice(0, 160) + " " + (node.failureSummary ?? "");
  const found = await axe.run(document, {runOnly: rules, resultTypes: ["violations"]});
  return found.violations.map((each) => each.id + ": " + each.nodes.map(said).join(" | "));
}"""
_DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

expect.set_options(timeout=LIMIT)


@dataclass
class Visit:
    """A browser's page at a gateway, and everything that it asked for and complained of."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note_request)

    def _note_console(self, message: ConsoleMessage) -> None:
        # Hints of the browser to whoever writes a page, of which it says itself that they are no warnings.
        if message.type not in {"debug", "verbose"}:
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.strangers.append(request.url)

    def open(self, screen: str = "") -> Page:
        """Go to a screen by its address, as a link in a terminal does."""
        self.page.goto(f"{self.url}/#/{screen}")
        # Where only the part behind # is another, nothing is loaded: until it is drawn, the screen before is there.
        self.page.evaluate(_DRAWN)
        self.page.locator("main h1").wait_for(timeout=LIMIT)
        return self.page

    def check(self) -> None:
        """Nothing was asked of anybody else, and nothing was complained of."""
        assert self.strangers == []
        assert self.complaints == []

    def check_accessible(self) -> None:
        """No finding of axe-core as the page is now, and nothing wider than the window."""
        assert AXE.exists(), "axe-core is missing: run `make set-up`"
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(_FINDINGS, _RULES)
        assert found == [], found
        self.check_fits()

    def check_fits(self) -> None:
        """Nothing is wider than the window."""
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{wide} px wider than the window"


@contextlib.contextmanager
def visiting(context: BrowserContext, url: str) -> Generator[Visit]:
    """A visit, checked when it ends."""
    context.set_default_timeout(LIMIT)
    visit = Visit(context.new_page(), url)
    yield visit
    visit.check()
    visit.page.close()


@contextlib.contextmanager
def gateway(folder: Path, servers: Mapping[str, Any], **own: Any) -> Generator[str]:
    """A gateway with these servers, and its address. What it keeps is its own, whatever else the module starts."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {"expose": "auto", "toolsets": ["discovery", "memory", "chats", "tasks"], **own}
    own.setdefault("storage", f"sqlite:{folder / 'storage.db'}")
    config = write_config(folder / "pegboard.json", servers, **own)
    with serving(config) as (_, mcp):
        yield mcp.removesuffix("/mcp")


def rest(url: str, method: str = "GET", body: Any = None, **headers: str) -> Any:
    """What REST answers to a program of this machine."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"content-type": "application/json", **headers}, method=method)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)["data"]


def pegboard(config: Path, *words: str) -> str:
    """What a command prints."""
    command = [*warm_start(), *words, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
