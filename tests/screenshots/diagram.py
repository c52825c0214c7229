"""Diagrams: Mermaid's text in a page becomes an SVG, drawn by Mermaid in a browser."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from playwright.sync_api import Browser

from docpages.pages import DOCS, DocPage

PICTURES = DOCS / "pictures"
MERMAID = Path(__file__).parent / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
OPTIONS = '{startOnLoad: false, theme: "neutral", fontFamily: "sans-serif", htmlLabels: false, handDrawnSeed: 1}'


def diagrams() -> dict[Path, str]:
    """Each diagram of the docs by the picture that it becomes: a page has one at most."""
    found: dict[Path, str] = {}
    for path in sorted(DOCS.rglob("*.md")):
        for block in DocPage(path).blocks("mermaid"):
            assert PICTURES / f"{path.stem}.svg" not in found, f"{path.name} has two diagrams"
            found[PICTURES / f"{path.stem}.svg"] = block.text
    return found


def mark(source: str) -> str:
    """What tells which text a picture was drawn from."""
    return f"<!-- drawn from {hashlib.sha256(source.encode()).hexdigest()} -->"


def draw(browser: Browser, source: str) -> str:
    """The SVG of a diagram."""
    page = browser.new_page()
    page.set_content("<body></body>")
    page.add_script_tag(path=MERMAID)
    svg: str = page.evaluate(
        f"async (source) => {{ mermaid.initialize({OPTIONS}); return (await mermaid.render('diagram', source)).svg }}",
        source,
    )
    page.close()
    return f"{shorten(svg)}\n{mark(source)}\n"


def shorten(svg: str) -> str:
    """The same picture without what nobody sees: tenths of a pixel are exact enough."""
    bare = re.sub(r' data-[a-z-]+="[^"]*"', "", svg.strip())
    return re.sub(r"-?\d+\.\d\d+", lambda number: f"{float(number[0]):.1f}", bare)
