"""How fast the page is with many tools: `python -m benchmarks.page [--tools N] [--rounds N]`.

A gateway of its own has the tools of one server in this process; a real browser opens screens, cold (nothing in its
cache) and warm. A screen is there when its first rows, or its figures, are to be seen. What is measured is the median
of some rounds. The bar for a screen is a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.catalogue import tools

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright

from browser import browser
from harness import serving, write_config
from servers.toy import Settings
from servers.toy_http import http_toy

BAR = 1000.0
COMMAND = (sys.executable, "-m", "pegboard")
# The screens that are measured: their name, their address, and what has to be there.
SCREENS = {
    "overview": ("", "tbody tr"),
    "servers": ("servers", "tbody tr"),
    "one server": ("servers/big", "tbody tr"),
    "tools": ("tools", "tbody tr, main li"),
    "calls": ("calls", "tbody tr"),
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
Numbers = dict[str, float]
# Of environment variables: whoever runs it may have a Pegboard.
Folders = dict[str, Any]


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tools", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    path = browser()
    if path is None:
        sys.exit("no browser: run `.venv/bin/python tests/browser/install.py`")
    made = [{**tool, "name": str(tool["name"]).partition("__")[2]} for tool in tools(given.tools)]
    for tool in made:
        tool.pop("server")
    with tempfile.TemporaryDirectory() as place, http_toy(Settings(name="big", raw_tools=made)) as server:
        config = write_config(Path(place) / "pegboard.json", {"big": {"url": server.url}}, expose="auto")
        own: Folders = dict.fromkeys(("HOME", "PEGBOARD_STATE_DIR", "PEGBOARD_CONFIG_DIR"), f"{place}/own")
        with serving(config, command=COMMAND, **own) as (_, mcp), sync_playwright() as playwright:
            url = mcp.removesuffix("/mcp")
            post(f"{url}/api/servers/big/refresh")
            post(f"{url}/api/tools/{first_tool(url)}/call", b'{"arguments": {}}')
            chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
            results = measure_screens(chromium, url, given.rounds)
            chromium.close()
        starts = measure_starts(config, given.rounds, own)
    show(results, starts, given.tools, given.rounds)


def post(address: str, body: bytes = b"{}") -> None:
    """One request of a program of this machine, however it goes."""
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def first_tool(url: str) -> str:
    """The name of a tool."""
    with urllib.request.urlopen(f"{url}/api/tools?server=big", timeout=60) as answer:
        return json.load(answer)["data"]["tools"][0]["name"]


def measure_screens(chromium: Browser, url: str, rounds: int) -> dict[tuple[str, str], Numbers]:
    """Each screen, cold and warm."""
    taken: dict[tuple[str, str], list[Numbers]] = {}
    missing: set[str] = set()
    for _ in range(rounds):
        for name, (address, wanted) in SCREENS.items():
            if name in missing:
                continue
            context = chromium.new_context(viewport={"width": 1280, "height": 860})
            for state in ("cold", "warm"):
                found = open_screen(context, f"{url}/#/{address}", wanted)
                if found is None:
                    missing.add(name)
                    break
                taken.setdefault((name, state), []).append(found)
            context.close()
    return {
        key: {each: statistics.median(row[each] for row in rows) for each in rows[0]} for key, rows in taken.items()
    }


def open_screen(context: BrowserContext, address: str, wanted: str) -> Numbers | None:
    """One visit, in a tab of its own; `None` where there is no such screen."""
    page = context.new_page()
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))  # noqa: PLW0108
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(f"main :is({wanted}), .problem").first.wait_for(timeout=30_000)
    taken = (time.perf_counter() - started) * 1000
    if page.get_by_text("The screen could not be loaded.").count():
        page.close()
        return None
    page.wait_for_timeout(300)
    paint, heap, loaded = state_of(page)
    page.close()
    return {"rows": taken, "paint": paint, "bytes": loaded, "requests": float(len(asked)), "heap": heap}


def state_of(page: Page) -> tuple[float, float, float]:
    """Milliseconds to the first paint, MB of the JS heap, and kB that came over the wire."""
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
    loaded = page.evaluate(
        """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
          .reduce((sum, entry) => sum + entry.transferSize, 0)"""
    )
    protocol = page.context.new_cdp_session(page)
    protocol.send("HeapProfiler.collectGarbage")
    heap: dict[str, Any] = protocol.send("Runtime.getHeapUsage")
    return float(paint), heap["usedSize"] / 1e6, loaded / 1000


def measure_starts(config: Path, rounds: int, own: Folders) -> Numbers:
    """Milliseconds from the command to an answer: to `/health` alone, and to that and the page's document."""
    answers: dict[str, list[float]] = {"serve": [], "serve, and the page once": []}
    for _ in range(rounds):
        for name, paths in (("serve", ["/health"]), ("serve, and the page once", ["/health", "/", "/static/app.js"])):
            answers[name].append(milliseconds(lambda paths=paths: start(config, paths, own)))
    return {name: statistics.median(each) for name, each in answers.items()}


def start(config: Path, paths: list[str], own: Folders) -> float:
    """When everything was answered."""
    with serving(config, command=COMMAND, **own) as (_, mcp):
        for path in paths:
            with urllib.request.urlopen(mcp.removesuffix("/mcp") + path, timeout=60) as answer:
                answer.read()
        return time.perf_counter()


def milliseconds(work: Callable[[], float]) -> float:
    """From now to the moment that it gives."""
    started = time.perf_counter()
    return (work() - started) * 1000


def show(results: dict[tuple[str, str], Numbers], starts: Numbers, count: int, rounds: int) -> None:
    """The tables."""
    table = Table(title=f"The page with {count:,} tools, median of {rounds} rounds")
    for title in ("screen", "cache", "first paint", "first rows", "kB", "requests", "JS heap"):
        table.add_column(title, justify="left" if title in {"screen", "cache"} else "right")
    for (name, state), row in results.items():
        there = f"{row['rows']:.0f} ms{'' if row['rows'] < BAR else ' (too slow)'}"
        sizes = f"{row['bytes']:.0f}", f"{row['requests']:.0f}", f"{row['heap']:.1f} MB"
        table.add_row(name, state, f"{row['paint']:.0f} ms", there, *sizes)
    console = Console()
    console.print(table)
    for name in SCREENS.keys() - {name for name, _ in results}:
        console.print(f"{name}: there is no such screen")
    for name, taken in starts.items():
        console.print(f"{name}: {taken:.0f} ms to the last answer")
    slow = [f"{name}, {state}" for (name, state), row in results.items() if row["rows"] >= BAR]
    console.print(f"Slower than a second: {', '.join(slow)}" if slow else "Every screen is there within a second.")


if __name__ == "__main__":
    main()
