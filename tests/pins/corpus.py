"""Real definitions, without their words: what tests replay and look through.

`python tests/pins/corpus.py history GIT_DIR` makes the history of GitHub's MCP server (MIT), which keeps the definition
of each tool as a file (`pkg/github/__toolsnaps__`), from its repository. `python tests/pins/corpus.py tools FILE...`
makes the collection of real tools from JSON files in which tools stand anywhere.

Each word of a text is replaced by a short digest, so that equal words stay equal; what stands between words, and
whatever is no letter, stays as it is. Names, types and values of schemas stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
HISTORY, TOOLS = DATA / "history.json.xz", DATA / "tools.json.xz"
SNAPSHOTS = "pkg/github/__toolsnaps__"
FIRST = "v0.6.0"
_RELEASE = re.compile(r"v\d+\.\d+\.\d+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
# What is prose, wherever it stands.
_PROSE = frozenset({"description", "title", "$comment", "pattern", "default", "src", "examples", "format"})
_KEPT = frozenset({"pattern", "default", "examples", "format"})


@dataclass(frozen=True)
class Release:
    """A release, and the tools that it had."""

    version: str
    tools: tuple[dict[str, Any], ...]


def load_history() -> list[Release]:
    """Every release, the first one being where the history begins."""
    data = json.loads(lzma.decompress(HISTORY.read_bytes()))
    made = data["definitions"]
    return [Release(version, tuple(made[at] for at in numbers)) for version, numbers in data["releases"]]


def load_tools() -> list[dict[str, Any]]:
    """Real tools of many servers."""
    return json.loads(lzma.decompress(TOOLS.read_bytes()))


def disguise(value: Any, *, is_prose: bool = False) -> Any:
    """A definition without its words."""
    if isinstance(value, str):
        return _disguise_text(value) if is_prose else value
    if isinstance(value, list):
        return [disguise(item, is_prose=is_prose) for item in value]
    if isinstance(value, dict):
        return {key: disguise(item, is_prose=_is_prose(key, item)) for key, item in value.items()}
    return value


def _is_prose(key: str, item: Any) -> bool:
    return key in _PROSE - _KEPT and isinstance(item, str)


def _disguise_text(text: str) -> str:
    shown = _ASCII_WORD.sub(lambda match: _digest(match[0])[:3], text)
    return "".join(map(_disguise_letter, shown))


def _disguise_letter(letter: str) -> str:
    """Another letter of the same script, always the same one."""
    if letter.isascii() or unicodedata.category(letter) not in {"Lo", "Ll", "Lu"}:
        return letter
    page, number = ord(letter) & ~0x3F, int(_digest(letter), 16)
    near = (chr(page + (number + step) % 0x40) for step in range(0x40))
    return next(other for other in near if unicodedata.category(other) == unicodedata.category(letter))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _git(repository: str, *words: str) -> str:
    return subprocess.run(["git", "--git-dir", repository, *words], check=True, capture_output=True, text=True).stdout


def make_history(repository: str) -> None:
    """Read the history out of a repository, and keep it."""
    tags = [tag for tag in _git(repository, "tag").split() if _RELEASE.fullmatch(tag)]
    tags.sort(key=lambda tag: [int(part) for part in tag[1:].split(".")])
    numbers: dict[str, int] = {}
    releases: list[tuple[str, list[int]]] = []
    for tag in tags[tags.index(FIRST) :]:
        files = _git(repository, "ls-tree", "-r", tag, "--", SNAPSHOTS).splitlines()
        found: dict[str, int] = {}
        for line in files:
            tool = disguise(json.loads(_git(repository, "cat-file", "blob", line.split()[2])))
            text = json.dumps(tool, ensure_ascii=False)
            # Some tools have a file for each of their forms: the first one counts, as in a list.
            found.setdefault(tool["name"], numbers.setdefault(text, len(numbers)))
        releases.append((tag, list(found.values())))
    _write(HISTORY, {"releases": releases, "definitions": list(map(json.loads, numbers))})


def make_tools(files: list[str]) -> None:
    """Collect all tools of these files, each once."""
    texts = {json.dumps(tool, ensure_ascii=False): None for file in files for tool in _tools_in(_read(file))}
    _write(TOOLS, [disguise(json.loads(text)) for text in texts])


def _read(file: str) -> Any:
    return json.loads(Path(file).read_text("utf-8"))


def _tools_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and isinstance(value.get("inputSchema"), dict):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _tools_in(item)


def _write(path: Path, data: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), preset=9))


if __name__ == "__main__":
    kind, *given = sys.argv[1:]
    if kind == "history":
        make_history(given[0])
    else:
        make_tools(given)
