"""The pages as text: headings, links and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its kind, its text, and the line that it begins at."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class DocPage:
    """One page."""

    path: Path

    @property
    def name(self) -> str:
        """Its path in the project."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        """What stands in it."""
        return self.path.read_text("utf-8")

    @cached_property
    def prose(self) -> str:
        """What stands in it beside code blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, *kinds: str) -> Iterator[Block]:
        """Its code blocks of these kinds."""
        for found in _FENCE.finditer(self.text):
            if found["kind"] in kinds:
                indent = re.compile(f"^{found['indent']}", re.MULTILINE)
                line = self.text[: found.start("text")].count("\n") + 1
                yield Block(found["kind"], indent.sub("", found["text"]), line)

    def links(self) -> Iterator[str]:
        """Where it links to."""
        return (found[1] for found in _LINK.finditer(self.prose))

    def code(self) -> Iterator[str]:
        """What stands in backticks in a sentence."""
        return (found[1] for found in _CODE.finditer(self.prose))

    def anchors(self) -> set[str]:
        """What a link to it can have behind `#`, as GitHub makes them."""
        return {anchor(found[1]) for found in _HEADING.finditer(self.prose)}


def anchor(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def all_pages() -> list[DocPage]:
    """Every page of the documentation, and those of the folder above."""
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [DocPage(path) for path in (*above, *sorted(DOCS.rglob("*.md")))]
