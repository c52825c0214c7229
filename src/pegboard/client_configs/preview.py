"""A preview: what a change does to a client's file, as a unified diff that shows no value but ours."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence

from pegboard.client_configs.program import FileFormat
from pegboard.client_configs.value_mask import mask_values

_LINE_END = re.compile(r"\r\n|\n|\r")
_CONTEXT = 2
# A diff of a long file takes long, and nobody reads it.
_MOST_LINES = 20_000
_SIGNS = {"equal": (" ", ""), "delete": ("-", ""), "insert": ("", "+"), "replace": ("-", "+")}


def mask_diff(path: str, before: str, after: str, file_format: FileFormat, shown: Collection[str]) -> str:
    """The change as a unified diff; of the values only those can be read that are written like one of `shown`."""
    before, after = before.removeprefix("\ufeff"), after.removeprefix("\ufeff")
    old, new = _lines(before), _lines(after)
    start, end = _same_ends(old, new) if len(old) + len(new) > _MOST_LINES else (0, 0)
    # Lines are compared as they are, and shown masked: two that differ may look the same.
    matcher = difflib.SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end])
    old, new = (_lines(mask_values(text, file_format, shown))[start:] for text in (before, after))
    lines = [f"--- {path}", f"+++ {path}"]
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        lines += _hunk(group, start, old, new)
    return "\n".join(lines)


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]], start: int, old: Sequence[str], new: Sequence[str]
) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(start, first[1], last[2])} +{_range(start, first[3], last[4])} @@"
    for tag, old_start, old_end, new_start, new_end in group:
        removed, added = _SIGNS[tag]
        if removed:
            yield from (f"{removed}{line}" for line in old[old_start:old_end])
        if added:
            yield from (f"{added}{line}" for line in new[new_start:new_end])


def _range(offset: int, start: int, end: int) -> str:
    """Where a part of a file begins, in lines from 1, and how many it has, as `diff -u` writes that."""
    if end - start == 1:
        return str(offset + end)
    return f"{offset + start + (end > start)},{end - start}"


def _lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _same_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin and end with, but for those that are shown around a change."""
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-end - 1] == new[-end - 1]:
        end += 1
    return max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
