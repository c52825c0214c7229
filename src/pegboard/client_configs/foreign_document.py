"""A text as data with places, whichever of JSON (with comments), TOML and YAML it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pegboard.client_configs.reading import Steps, UnreadableText
from pegboard.client_configs.toml_text import is_too_deep
from pegboard.client_configs.yaml_text import parse_yaml
from pegboard.config import jsonc

_MOST_CHARACTERS = 4 * 2**20
_FENCE = re.compile(r"\A\s*```[\w-]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_TOML_START = re.compile(r"\A(?:\s|#[^\n]*\n)*(?:\[\[?[\w\"'. -]+\]\]?|[\w\"'.-]+[ \t]*=)")
_YAML_START = re.compile(r"\A(?:\s|#[^\n]*\n|---[ \t]*\n)*(?:- \S|-\n|[\w.\"'-]+:(?:\s|\Z))")
_JSON_TRIVIA = r"\A(?:\s++|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"
_JSON_START = re.compile(rf'{_JSON_TRIVIA}[{{\["]')
_KEY_START = re.compile(rf'{_JSON_TRIVIA}"')
_TOML_LINE = re.compile(r"at line (\d+)")


@dataclass(frozen=True, slots=True)
class ForeignDocument:
    """The data of a text, and the line of each part of it."""

    value: Any
    line: Callable[[Steps], int] = field(default=lambda _: 1)


def parse_document(text: str, suffix: str = "") -> ForeignDocument | None:
    """The data of a text, or `None` if it does not look like data; raises `UnreadableText`."""
    text = clean_text(text)
    if suffix in {".yaml", ".yml"}:
        return _parse_yaml(text)
    if suffix == ".toml":
        return _parse_toml(text)
    if _JSON_START.match(text):
        return _parse_json_or_toml(text)
    if suffix in {".json", ".jsonc"}:
        return _parse_json(text)
    if _TOML_START.match(text) and (found := _try_toml(text)) is not None:
        return found
    return _parse_yaml(text) if _YAML_START.match(text) else None


def clean_text(text: str) -> str:
    """The text without a byte order mark and the fence of Markdown; its lines keep their numbers."""
    if len(text) > _MOST_CHARACTERS:
        raise UnreadableText(f"it has more than {_MOST_CHARACTERS:,} characters")
    text = text.removeprefix("\ufeff")
    fenced = _FENCE.match(text)
    return text if fenced is None else "\n" * text[: fenced.start(1)].count("\n") + fenced[1]


def _parse_json_or_toml(text: str) -> ForeignDocument:
    """A `[` begins a list of JSON or a table of TOML."""
    if text.lstrip().startswith("[") and _TOML_START.match(text) and (found := _try_toml(text)) is not None:
        return found
    return _parse_json(text)


def _parse_json(text: str) -> ForeignDocument:
    # A part of an object, as READMEs show it: `"time": {…}`.
    whole = "{" + text + "\n}" if _KEY_START.match(text) else text
    try:
        document = jsonc.parse(whole)
    except jsonc.JsoncError as exc:
        raise UnreadableText(f"not JSON: {exc.reason}", exc.line) from None
    return ForeignDocument(document.value, lambda path: document.key_place(path)[0])


def _parse_toml(text: str) -> ForeignDocument:
    if is_too_deep(text):
        raise UnreadableText("not TOML: it is nested too deep")
    try:
        value = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as exc:
        found = _TOML_LINE.search(str(exc))
        # Without a line it is the end of the text.
        line = int(found[1]) if found else text.count("\n") + 1
        raise UnreadableText(f"not TOML: {str(exc).partition(' (at ')[0]}", line) from None
    except RecursionError:
        raise UnreadableText("not TOML: it is nested too deep") from None
    heads = _table_heads(text)
    return ForeignDocument(value, lambda path: _toml_line(heads, path))


def _try_toml(text: str) -> ForeignDocument | None:
    try:
        return _parse_toml(text)
    except UnreadableText:
        # Tables in brackets can be nothing else.
        if re.match(r"\s*\[\[?[\w-]+\.", text) or "\n[mcp_servers." in text:
            raise
        return None


def _toml_line(heads: Mapping[Steps, int], path: Steps) -> int:
    """The line of a table's head, or of the deepest one above it: Python's parser does not tell places."""
    return next((heads[path[:size]] for size in range(len(path), 0, -1) if path[:size] in heads), 1)


def _table_heads(text: str) -> dict[Steps, int]:
    """The path of each table's head, and its line."""
    heads: dict[Steps, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            heads.setdefault(_table_path(line), number)
    return heads


def _table_path(head: str) -> Steps:
    try:
        value: Any = tomllib.loads(head)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    steps: list[str] = []
    while isinstance(value, dict) and value:
        key, value = next(iter(cast("dict[str, Any]", value).items()))
        steps.append(key)
    return tuple(steps)


def _parse_yaml(text: str) -> ForeignDocument:
    value, lines = parse_yaml(text)

    def line(path: Steps) -> int:
        return next((lines[path[:size]] for size in range(len(path), -1, -1) if path[:size] in lines), 1)

    return ForeignDocument(value, line)
