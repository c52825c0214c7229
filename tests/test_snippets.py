"""What the documentation shows runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in DOCS.glob("*.md") if SNIPPET.search(page.read_text("utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_from_top_to_bottom(page: Path) -> None:
    """As one program; an error names the page and its line."""
    text = page.read_text("utf-8")
    names: dict[str, object] = {"__name__": page.stem}
    for found in SNIPPET.finditer(text):
        lines_before = text[: found.start(1)].count("\n")
        exec(compile("\n" * lines_before + found[1], page, "exec"), names)


def test_there_are_snippets() -> None:
    """Or the test above would pass for the wrong reason."""
    assert "formats.md" in [page.name for page in PAGES]
