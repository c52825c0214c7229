"""The difference between two definitions as people read it: their canonical forms line by line, with what hides made
visible."""

from __future__ import annotations

import difflib
from typing import Any

from pegboard import exactjson
from pegboard.hidden_text import reveal
from pegboard.pins.canonical import canonical_form

# What a model reads first stands first, and of more lines that differ the rest is left out: nobody reads it.
_FIRST = ("name", "title", "description")
_MOST_LINES = 2000
# A definition of more lines is not compared line by line: that takes long.
_MOST_COMPARED = 20_000
_CONTEXT = 3


def diff_definitions(kind: str, name: str, approved: Any, said: Any) -> str:
    """A unified diff; one side is empty where something is new, or gone."""
    before, after = (_lines(kind, definition) for definition in (approved, said))
    title = reveal(kind if kind == name else f"{kind} {name}").replace("\n", " ")
    names = f"{title} (approved)", f"{title} (now)"
    if max(len(before), len(after)) > _MOST_COMPARED:
        return "\n".join(["--- " + names[0], "+++ " + names[1], *_cut([f"+{line}" for line in after])])
    return "\n".join(_cut(list(difflib.unified_diff(before, after, *names, n=_CONTEXT, lineterm=""))))


def _cut(lines: list[str]) -> list[str]:
    rest = len(lines) - _MOST_LINES
    return lines if rest <= 0 else [*lines[:_MOST_LINES], f"… {rest} more lines, which are not shown"]


def _lines(kind: str, definition: Any) -> list[str]:
    if definition is None:
        return []
    form = canonical_form(definition, has_hints=kind == "tool")
    if (members := exactjson.as_object(form)) is not None:
        form = {key: members[key] for key in (*_FIRST, *members) if key in members}
    # Control characters are escapes in it, but for its own line ends.
    return reveal(exactjson.dump(form, indent=2).decode()).split("\n")
