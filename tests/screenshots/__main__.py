"""Makes the pictures of the documentation: `make screenshots`, or some of them: `ARGS="servers find"`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Browser, sync_playwright

from browser import browser
from docpages.newcomer import Newcomer
from docpages.terminal import Terminal
from oauth.authority import open_authority
from oauth.guarded_server import open_guarded
from screenshots import diagram, page_pictures, terminal_picture

SERVE = "pegboard serve"
# What a new user does before there is something to see.
FIRST = ("pegboard import", "pegboard add time -- uvx mcp-server-time")
COMMANDS = {
    "install": "pegboard install claude-code",
    "servers": "pegboard servers",
    "find": 'pegboard find "what time is it in Tokyo"',
    "doctor": "pegboard doctor",
}
CALL = "pegboard call time__get_current_time timezone=Asia/Tokyo"
FLAGS = ["--no-sandbox", "--disable-gpu", "--force-device-scale-factor=1", "--hide-scrollbars"]


def main(names: list[str]) -> int:
    """Make them; what cannot be made is said, and the others go on."""
    diagram.PICTURES.mkdir(exist_ok=True)
    failed = [
        name for name, make in pictures() if (not names or name in names or name == "") and not attempt(name, make)
    ]
    return 1 if failed else 0


def attempt(name: str, make: Callable[[], None]) -> bool:
    """Whether a picture could be made."""
    try:
        make()
    except Exception as exc:
        print(f"{name}: {str(exc).strip()[:2000] or type(exc).__name__}", file=sys.stderr)
        return False
    print(name)
    return True


def pictures() -> Iterator[tuple[str, Callable[[], None]]]:
    """Each picture, and what makes it. Commands that change something are run whether or not they are wanted."""
    newcomer = Newcomer()
    try:
        for command in FIRST:
            newcomer.run(command)
        gateway = newcomer.start(SERVE, "/mcp")
        for name, command in COMMANDS.items():
            terminal = newcomer.run(command)
            yield name, lambda name=name, command=command, terminal=terminal: save(newcomer, name, command, terminal)
        newcomer.run(CALL)
        yield "serve", lambda: save(newcomer, "serve", SERVE, gateway)
        with open_browser() as chromium, open_authority() as authority, open_guarded(authority) as guarded:
            yield "page", lambda: photograph(chromium, f"http://127.0.0.1:{newcomer.port}/docs")
            page_pictures.furnish(newcomer, guarded.url)
            take = functools.partial(page_pictures.photograph, chromium, newcomer, guarded.url)
            for name, address, scheme in page_pictures.names():
                yield name, functools.partial(take, name, address, scheme)
            for path, source in diagram.diagrams().items():
                yield path.stem, lambda path=path, source=source: write(path, diagram.draw(chromium, source))
    finally:
        newcomer.close()


def save(newcomer: Newcomer, name: str, command: str, terminal: Terminal) -> None:
    """A picture of a terminal."""
    terminal.drain()
    if terminal.process.poll():
        raise RuntimeError(f"{command} ended with {terminal.process.returncode}:\n{terminal.text}")
    write(diagram.PICTURES / f"{name}.svg", terminal_picture.draw(command, terminal.styled(), newcomer.shown))


def write(path: Path, svg: str) -> None:
    """Keep a picture."""
    path.write_text(svg, "utf-8")


def photograph(chromium: Browser, url: str) -> None:
    """A picture of the page that shows the REST API."""
    page = chromium.new_page(viewport={"width": 1000, "height": 640})
    page.goto(url)
    page.get_by_text("POST").first.wait_for()
    page.screenshot(path=diagram.PICTURES / "page.png")
    page.close()


@contextmanager
def open_browser() -> Generator[Browser]:
    """The browser that the tests use."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=FLAGS)
        yield chromium
        chromium.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
