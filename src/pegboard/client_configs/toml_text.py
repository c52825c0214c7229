"""TOML as text: a table is appended, or cut out again, and every other byte stays.

The standard library reads TOML and does not write it. So a change is made on the text, and then the text is read: only
what means exactly the same, but for our table, is used.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pegboard.exactjson import as_object

BOM = "\ufeff"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Parts of a key with dots between them. Python's parser takes quadratic time and memory for it.
_PART = r"(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+"
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:\.[ \t]*+{_PART}){{100}}")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class TomlEditError(ValueError):
    """A change that cannot be made in the text."""


def is_too_deep(text: str) -> bool:
    """Whether a text has a key of more than a hundred parts, which is no config of anybody."""
    return _DEEP_KEY.search(text) is not None


def read_toml(text: str) -> dict[str, Any]:
    """What a TOML text says; `ValueError` with place and reason if it is none."""
    if is_too_deep(text):
        raise TomlEditError("it is nested too deep")
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except RecursionError:
        raise TomlEditError("it is nested too deep") from None


def toml_table(path: Sequence[str], members: Mapping[str, Any], line_end: str = "\n") -> str:
    """A table with its header; a member that is an object is a table of its own behind it."""
    inner = {key: table for key, value in members.items() if (table := as_object(value)) is not None}
    plain = {key: value for key, value in members.items() if key not in inner}
    lines = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(key)} = {_value(value)}" for key, value in plain.items())]
    text = line_end.join([*lines, ""])
    return text + "".join(line_end + toml_table((*path, key), value, line_end) for key, value in inner.items())


def append_table(text: str, path: Sequence[str], members: Mapping[str, Any]) -> str:
    """The text with a new table behind everything else; `TomlEditError` where TOML does not allow that."""
    before = read_toml(text)
    line_end = "\r\n" if "\r\n" in text else "\n"
    table = toml_table(path, members, line_end)
    if not text.removeprefix(BOM).strip():
        changed = text + table
    elif text.endswith("\n"):
        changed = text + line_end + table
    else:
        # A file without a final line end stays one.
        changed = text + line_end * 2 + table.removesuffix(line_end)
    try:
        after = read_toml(changed)
    except ValueError as exc:
        raise TomlEditError(f"[{'.'.join(path)}] cannot be added behind what is there ({exc})") from None
    if not say_the_same(without(after, path), without(before, path)):
        raise TomlEditError(f"[{'.'.join(path)}] cannot be added without changing something else")
    return changed


def cut_table(text: str, path: Sequence[str]) -> str:
    """The text without a table and the tables inside it; `TomlEditError` if it is not written as such."""
    wanted = tuple(path)
    lines = _LINE.findall(text)
    kept: list[str] = []
    at = 0
    while at < len(lines):
        if _header(lines[at])[: len(wanted)] != wanted:
            kept.append(lines[at])
            at += 1
            continue
        at = _table_end(lines, at)
        if kept and not kept[-1].strip():
            kept.pop()
    changed = "".join(kept)
    try:
        left = read_toml(changed)
    except ValueError:
        left = {}
    if not say_the_same(left, without(left, path, keep_empty=True)) or not say_the_same(
        without(left, path), without(read_toml(text), path)
    ):
        raise TomlEditError(f"{'.'.join(path)} is not written as a table of its own: take it out by hand")
    return changed


def without(data: dict[str, Any], path: Sequence[str], *, keep_empty: bool = False) -> dict[str, Any]:
    """The data without what stands at a path, nor, unless they are kept, the objects around it that are empty then."""
    first, *rest = path
    if not rest:
        return {key: value for key, value in data.items() if key != first}
    inner = as_object(data.get(first))
    if inner is None:
        return data
    changed = without(inner, rest, keep_empty=keep_empty)
    if changed or keep_empty:
        return {**data, first: changed}
    return {key: value for key, value in data.items() if key != first}


def say_the_same(left: object, right: object) -> bool:
    """Whether two values are equal, by their texts: `nan` is never equal to itself."""
    return repr(left) == repr(right)


def _table_end(lines: list[str], start: int) -> int:
    """Behind the last line that says something before the next header: what comments say there is about that one."""
    end = at = start + 1
    while at < len(lines) and not _header(lines[at]):
        at += 1
        if (said := lines[at - 1].strip()) and not said.startswith("#"):
            end = at
    return len(lines) if at == len(lines) and not any(line.strip() for line in lines[end:]) else end


def _header(line: str) -> tuple[str, ...]:
    """The path of a table's header; empty if the line is none. A line of a text over several lines may look like one:
    then the outcome does not mean the same, and is not used."""
    line = line.removeprefix(BOM).strip()
    if not line.startswith("["):
        return ()
    try:
        data: object = tomllib.loads(line)
    except (ValueError, RecursionError):
        return ()
    path: list[str] = []
    while inner := as_object(_first(data)):
        key, data = next(iter(inner.items()))
        path.append(key)
    return tuple(path)


def _first(value: object) -> object:
    """The value, or the one item of an array of tables."""
    return cast("list[object]", value)[0] if isinstance(value, list) and value else cast("object", value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, cast('list[object]', value)))}]"
    return json.dumps(value)
