"""Pages that the code writes: `UPDATE_DOCS=1` writes them, every other run compares."""

from __future__ import annotations

import os
from pathlib import Path

HOW = "This page is written by `UPDATE_DOCS=1 make test ARGS=tests/test_docs.py`."


def check_page(page: Path, text: str) -> None:
    """The page says exactly this."""
    if os.environ.get("UPDATE_DOCS"):
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
    assert page.read_text("utf-8") == text


def table(*rows: tuple[str, ...]) -> str:
    """A Markdown table; the first row is its head."""
    head, *body = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
