"""Shortens structured content so that it still is what its tool says (`outputSchema`): clients refuse anything else.

Lists and strings are shortened everywhere, and those are put back of which the schema says that they must not be. Where
the schema allows one more member, that says what was left out. Where nothing helps it stays whole: a result without it,
or with one that is not valid, would be an error for its client.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import jsonschema_rs

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.results.path import write_path
from pegboard.results.schema_work import Place, SchemaWork, TooMuchWork
from pegboard.text import truncate

# How much of strings is kept, and of lists: less and less until it fits.
_STEPS = ((2000, 50), (500, 20), (200, 10), (80, 5), (40, 2), (20, 1), (0, 0))
_MOST_ROUNDS, _MOST_ERRORS = 20, 200
_MARK = "…"
# The member that says what was left out. Another name is taken where there is one of this name already.
MARKER = "pegboard/shortened"
_MOST_TOLD, _LONGEST_PATH = 5, 100
# Seconds of the processor for all rounds together; looked at between them.
_MOST_SECONDS = 1.0
# Bytes of a pattern as the validator has it, which takes time in proportion to the text: no lookaround, no way back.
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=2**16)


def shorten_structured(value: Any, schema: Any, room: int, whole: str = "") -> Any:
    """The value in at most so many characters where the schema allows that; else all of it. `whole` says how all of it
    is read."""
    if len(exactjson.dump(value).decode()) <= room:
        return value
    try:
        work = SchemaWork(schema)
    except TooMuchWork:
        return value
    validator = _validator(schema)
    if validator is None:
        return value
    deadline = time.thread_time() + _MOST_SECONDS
    unmarked: Any = None
    for strings, items in _STEPS:
        shorter = _shorten(value, strings, items, work, validator, deadline)
        if shorter is None or len(exactjson.dump(shorter).decode()) > room:
            continue
        marked = _mark(value, shorter, whole)
        if marked is None or not _is_valid(work, validator, marked):
            return shorter
        if len(exactjson.dump(marked).decode()) <= room:
            return marked
        unmarked = shorter if unmarked is None else unmarked
    return value if unmarked is None else unmarked


def _mark(value: Any, shorter: Any, whole: str) -> dict[str, Any] | None:
    """The shortened value with a member that says what was left out; `None` if it is no object."""
    members = as_object(shorter)
    if members is None:
        return None
    told = list(islice(_list_cuts(value, shorter, ()), _MOST_TOLD + 1))
    words = [*told[:_MOST_TOLD], *(["more"] if len(told) > _MOST_TOLD else [])]
    name = MARKER
    while name in members:
        name += "_"
    return {**members, name: f"left out here: {', '.join(words)}{f'; {whole}' if whole else ''}"}


def _list_cuts(before: Any, after: Any, place: Place) -> Iterator[str]:
    """What was left out, in words: of which list how many items, of which string how many characters."""
    where = truncate(write_path(place), _LONGEST_PATH) or "the whole"
    if isinstance(before, str):
        if before != after:
            yield f"{len(before) - len(after) + len(_MARK):,} characters of {where}"
        return
    items, kept = as_list(before), as_list(after) or []
    if items is not None and len(items) > len(kept):
        yield f"{len(items) - len(kept):,} of {len(items):,} items of {where}"
    for step, item in _steps(after):
        yield from _list_cuts(before[step], item, (*place, step))


def _steps(value: Any) -> Iterable[tuple[str | int, Any]]:
    members = as_object(value)
    return enumerate(as_list(value) or []) if members is None else members.items()


def _is_valid(work: SchemaWork, validator: Any, value: Any) -> bool:
    try:
        work.foresee(value)
        return bool(validator.is_valid(exactjson.as_floats(value)))
    except (TooMuchWork, TypeError, ValueError, RecursionError):
        return False


def _validator(schema: Any) -> Any:
    try:
        return jsonschema_rs.validator_for(
            schema, retriever=_refuse_to_fetch, validate_formats=False, pattern_options=_PATTERNS, mask=_MARK
        )
    except Exception:
        # Whatever is wrong with it: nobody can say what would be valid.
        return None


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"a schema must not need {uri}")


def _shorten(value: Any, strings: int, items: int, work: SchemaWork, validator: Any, deadline: float) -> Any:
    """The value shortened as far as the schema allows; `None` if it is not valid even then, or that takes too long."""
    whole: set[Place] = set()
    for _ in range(_MOST_ROUNDS):
        if time.thread_time() > deadline:
            return None
        shorter = _trim(value, strings, items, whole, ())
        try:
            places = _wrong_places(work, validator, value, shorter)
        except (TooMuchWork, TypeError, ValueError, RecursionError):
            return None
        if not places:
            return shorter
        # What is wrong, and what it stands in: a list of which too few items are left is the place itself.
        added = {_cut_place(value, shorter, place, whole) for place in places} - {None}
        if not added:
            return None
        whole |= {place for place in added if place is not None}
    return None


def _wrong_places(work: SchemaWork, validator: Any, value: Any, shorter: Any) -> list[Place]:
    foreseen = work.foresee(shorter)
    # Clients check formats, too.
    if cut := [place for place in foreseen.formats if _value_at(value, place) != _value_at(shorter, place)]:
        return cut
    floats = exactjson.as_floats(shorter)
    if validator.is_valid(floats):
        return []
    if not foreseen.may_have_errors:
        raise TooMuchWork
    places: list[Place] = []
    for error in validator.iter_errors(floats):
        places.append(tuple(error.instance_path))
        if len(places) == _MOST_ERRORS:
            break
    return places


def _value_at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def _cut_place(value: Any, shorter: Any, place: Sequence[str | int], whole: set[Place]) -> Place | None:
    """The innermost list or string on the way to a place that was shortened, or the first one below it."""
    cut: Place | None = None
    before, after = value, shorter
    for number, step in enumerate((*place, None)):
        if _is_cut(before, after) and place[:number] not in whole:
            cut = tuple(place[:number])
        if step is None:
            break
        try:
            before, after = before[step], after[step]
        except (KeyError, IndexError, TypeError):
            break
    return cut if cut is not None else _first_cut(before, after, tuple(place), whole)


def _first_cut(before: Any, after: Any, place: Place, whole: set[Place]) -> Place | None:
    if _is_cut(before, after):
        return None if place in whole else place
    for step, item in _steps(after):
        if (found := _first_cut(before[step], item, (*place, step), whole)) is not None:
            return found
    return None


def _is_cut(before: Any, after: Any) -> bool:
    if isinstance(before, str):
        return before != after
    items = as_list(before)
    return items is not None and len(items) != len(as_list(after) or ())


def _trim(value: Any, strings: int, items: int, whole: set[Place], place: Place) -> Any:
    if isinstance(value, str):
        is_kept = len(value) <= strings or len(value) <= len(_MARK) or place in whole
        return value if is_kept else value[: max(strings - 1, 0)] + _MARK
    if (members := as_object(value)) is not None:
        return {key: _trim(item, strings, items, whole, (*place, key)) for key, item in members.items()}
    if (inner := as_list(value)) is None:
        return value
    kept = inner if place in whole else inner[:items]
    return [_trim(item, strings, items, whole, (*place, number)) for number, item in enumerate(kept)]
