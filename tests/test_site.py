"""The documentation as a site: it is built without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docpages.pages import DOCS, ROOT, all_pages
from screenshots.__main__ import open_browser
from screenshots.diagram import diagrams, mark

# What a browser fetches by itself; a link is followed by people.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Loads(HTMLParser):
    """The addresses that a page makes a browser fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a tag that loads something."""
        values = dict(attrs)
        is_loaded = tag in LOADED and values.get("rel") not in ("canonical", "prev", "next")
        if is_loaded and (address := values.get(LOADED[tag])):
            self.found.append(address)


def test_every_page_is_in_the_site(site: Path) -> None:
    """The pages of docs/, the changes and how to contribute."""
    pages = {page.relative_to(DOCS).with_suffix(".html").as_posix() for page in DOCS.rglob("*.md")}
    built = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    assert built - {"404.html"} == pages | {"changelog.html", "contributing.html"}


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    """Neither scripts nor styles, fonts or pictures: reading tells nobody."""
    loaded = {page.name: Loads(page.read_text("utf-8")).found for page in site.rglob("*.html")}
    assert loaded["index.html"]
    assert [address for found in loaded.values() for address in found if re.match(r"(https?:)?//", address)] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", style.read_text("utf-8")), style.name


def test_what_pages_load_is_in_the_site(site: Path) -> None:
    """A picture or a script that is missing is noticed."""
    for page in site.rglob("*.html"):
        for address in Loads(page.read_text("utf-8")).found:
            path = address.partition("?")[0].partition("#")[0]
            start = site if path.startswith("/") else page.parent
            assert (start / path.lstrip("/")).exists(), f"{page.name}: {address}"


def test_the_site_works_as_files_and_asks_nobody(site: Path) -> None:
    """A page that is opened as a file can be searched; a real browser sends nothing to any host."""
    with open_browser() as chromium:
        page = chromium.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "guides" / "boards.html").as_uri())
        page.click("[data-md-component=search-query]")
        page.keyboard.type("startTimeout")
        page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
    assert [url for url in asked if not url.startswith("file:")] == []


def test_diagrams_are_pictures(site: Path) -> None:
    """Mermaid's script would come from another host."""
    assert 'src="pictures/architecture.svg"' in (site / "architecture.html").read_text("utf-8")
    assert not [page.name for page in site.rglob("*.html") if "language-mermaid" in page.read_text("utf-8")]


def test_a_picture_is_drawn_from_the_diagram_as_it_is_now() -> None:
    """`make screenshots` draws it anew."""
    assert {path.name: mark(source) in path.read_text("utf-8") for path, source in diagrams().items()} == {
        path.name: True for path in diagrams()
    }


def test_every_picture_is_shown_on_a_page() -> None:
    """What nobody sees is not made."""
    texts = "".join(page.text for page in all_pages())
    shown = {path.name for path in diagrams()} | set(re.findall(r"pictures/([\w-]+\.\w+)\)", texts))
    assert {path.name for path in (DOCS / "pictures").iterdir()} == shown


@pytest.mark.parametrize("picture", sorted((DOCS / "pictures").iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small_and_shows_no_machine(picture: Path) -> None:
    """No folder of a real machine, and nothing that a browser would fetch."""
    content = picture.read_bytes()
    assert len(content) < 200_000
    if picture.suffix == ".svg":
        text = content.decode()
        assert not re.search(r"/(root|tmp|work|Users)/", text)
        assert not re.search(r"url\([\"']?https?:|(href|src)=[\"']https?:", text)
