"""The pages for a browser, each a file of its own beside this one."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def page(name: str) -> str:
    """The text of a page."""
    return (Path(__file__).parent / f"{name}.html").read_text("utf-8")
