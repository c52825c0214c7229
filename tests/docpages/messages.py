"""Messages of the program: every text of the source, with `…` where a value is filled in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from docpages.pages import ROOT, DocPage

GAP = "…"


@cache
def source_texts() -> tuple[str, ...]:
    """Every string of the source, a formatted one with `…` for its values; docstrings are not said to anybody."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    return tuple(text for module in modules for text in _texts(ast.parse(module.read_text("utf-8"))))


def _texts(tree: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else GAP for part in child.values]
            yield "".join(parts)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not is_docstring:
            yield from _texts(child)


def quoted_messages(page: DocPage) -> list[str]:
    """The messages that a page has as headings."""
    return [found[2] for found in re.finditer(r"^### (`+)(.*)\1$", page.text, re.MULTILINE)]


def is_said(message: str) -> bool:
    """Whether a text of the source can read so: the same words in the same order, values aside."""
    words = [re.escape(" ".join(piece.split())) for piece in message.split(GAP)]
    pattern = re.compile(".*".join(words))
    return any(pattern.search(" ".join(text.split())) for text in source_texts())
