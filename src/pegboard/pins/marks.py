"""Marks: what in a change somebody should look at first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pegboard import exactjson
from pegboard.pins.canonical import hint_of

# What a hint says when it becomes true, and when it becomes false; a hint that is not here says little by itself.
_HINT_WORDS: Mapping[str, tuple[str, str]] = {
    "readOnlyHint": ("it now says that it changes nothing", "it now says that it changes things"),
    "destructiveHint": ("it now says that it may destroy", "it now says that it destroys nothing"),
    "openWorldHint": ("it now says that it reaches others", "it now says that it reaches nobody else"),
}
_HEADER = "x-mcp-header"


def find_marks(kind: str, approved: Any, said: Any) -> list[str]:
    """Why a change wants a look: its hints are others, it has a user interface, it sends arguments in headers."""
    if kind != "tool":
        return []
    return list(_marks(exactjson.as_object(approved) or {}, exactjson.as_object(said) or {}, is_new=approved is None))


def _marks(before: Mapping[str, Any], after: Mapping[str, Any], *, is_new: bool) -> Iterator[str]:
    if not is_new:
        for hint, (yes, no) in _HINT_WORDS.items():
            if (is_true := hint_of(after, hint)) != hint_of(before, hint):
                yield yes if is_true else no
    if _has_interface(after) and not exactjson.is_same(_interface(before), _interface(after)):
        yield "it brings a user interface (_meta.ui)"
    if _count_headers(after) > _count_headers(before):
        yield f"it sends arguments in HTTP headers ({_HEADER})"


def _interface(tool: Mapping[str, Any]) -> Any:
    meta = exactjson.as_object(tool.get("_meta")) or {}
    return [item for key, item in sorted(meta.items()) if key == "ui" or key.startswith("ui/")]


def _has_interface(tool: Mapping[str, Any]) -> bool:
    return bool(_interface(tool))


def _count_headers(value: Any) -> int:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return sum(map(_count_headers, members.values())) + (_HEADER in members)
    return sum(map(_count_headers, cast("list[Any]", value))) if isinstance(value, list) else 0
