"""The fields of records, by the paths that lead to them; and what is said of one that no record has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from pegboard.exactjson import as_list, as_object
from pegboard.names import nearest
from pegboard.result import ToolFailure, invalid
from pegboard.results.path import EACH, Step, reach, write_path
from pegboard.text import quote_start

_MOST_DEPTH, _MOST_FIELDS, _MOST_ITEMS = 3, 500, 5
_SAMPLE, _SHOWN, _SHOWN_NAMES = 200, 60, 20
_KINDS = ((bool, "true or false"), (int | float, "numbers"), (str, "texts"), (list, "lists"))


class FieldSearch:
    """Looks for a field in records, one by one."""

    def __init__(self, name: str, steps: tuple[Step, ...]) -> None:
        self.name = name
        self._steps = steps
        # How far the path led at best, and whether there was something there that has not what comes next.
        self._most = -1
        self._is_refuted = False

    @property
    def is_found(self) -> bool:
        """Whether one of the records has it."""
        return self._most == len(self._steps)

    @property
    def is_missing(self) -> bool:
        """Whether none had it, and not only because what it would be in is empty everywhere."""
        return self._is_refuted and not self.is_found

    def look(self, record: Any) -> None:
        """Look into one more."""
        depth, is_empty = reach(record, self._steps)
        if depth > self._most:
            self._most, self._is_refuted = depth, not is_empty
        elif depth == self._most:
            self._is_refuted = self._is_refuted or not is_empty


def check_fields(fields: Sequence[tuple[str, tuple[Step, ...]]], likely: Iterable[Any], records: Sequence[Any]) -> None:
    """Refuse fields that no record has: to leave them out would look as if they were empty. Records that are `likely`
    to have them are looked at first."""
    searches = [FieldSearch(*field) for field in fields]
    for record in chain(likely, records):
        for search in searches:
            search.look(record)
        searches = [search for search in searches if not search.is_found]
        if not searches:
            return
    if (missing := next((search for search in searches if search.is_missing), None)) is not None:
        raise refuse_field("fields", missing.name, records)


def refuse_field(argument: str, field: str, records: Sequence[Any]) -> ToolFailure:
    """What is said of a field that no record has: which there are, those first that may have been meant."""
    some = [record for _, record in zip(range(_SAMPLE), records, strict=False)]
    names = list(dict.fromkeys(name for record in some for name in _list_fields(record, (), 0)))[:_MOST_FIELDS]
    if not names:
        kind = next((name for kind, name in _KINDS if some and isinstance(some[0], kind)), "no objects")
        advice = 'write where without a field, as in "> 5" or "= word"' if argument == "where" else "leave fields out"
        return invalid(f'{argument}: no record has "{quote_start(field, _SHOWN)}", the records are {kind}: {advice}')
    same = [name for name in names if name.rpartition(".")[2] == field]
    first = list(dict.fromkeys([*same, *nearest(field, names)]))
    names = [*first, *(name for name in names if name not in first)]
    shown = ", ".join(quote_start(name, _SHOWN) for name in names[:_SHOWN_NAMES])
    more = ", …" if len(names) > _SHOWN_NAMES else ""
    return invalid(f'{argument}: no record has "{quote_start(field, _SHOWN)}"; there are {shown}{more}')


def _list_fields(value: Any, steps: tuple[Step, ...], depth: int) -> Iterator[str]:
    members, items = as_object(value), as_list(value)
    if items is not None and depth:
        for item in items[:_MOST_ITEMS]:
            if isinstance(item, dict):
                yield from _list_fields(item, (*steps, EACH), depth)
    for key, inner in (members or {}).items():
        path = (*steps, key)
        below = list(_list_fields(inner, path, depth + 1)) if depth < _MOST_DEPTH else []
        yield from below or [write_path(path).replace(f"[{EACH}]", "[]")]
