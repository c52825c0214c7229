"""The glossary is short and true: each word stands in the docstring of its module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| (?P<word>[^|`]+) \| [^|]+ \| `(?P<module>[^`|]+)` \|$")
LINES = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
WORDS = [(found["word"], found["module"]) for line in LINES if (found := ROW.match(line))]


def test_the_glossary_is_short_sorted_and_whole() -> None:
    """At most forty-five words, each once; every line of the table below its head is one of them."""
    words = [word for word, _ in WORDS]
    assert len(words) == len([line for line in LINES if line.startswith("|")]) - 2
    assert 0 < len(words) <= 45
    assert words == sorted(set(words), key=str.lower)


@pytest.mark.parametrize(("word", "module"), WORDS)
def test_a_word_stands_in_the_docstring_of_its_module(word: str, module: str) -> None:
    """So that whoever searches the source for it finds the module."""
    source = (ROOT / "src" / "pegboard" / module).read_text("utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    assert re.search(rf"\b{re.escape(word)}", " ".join(docstring.split()), re.IGNORECASE)
