"""Reads kept results: some records, some characters, what words stand in, what a path leads to. An answer is never
larger than its reader's cap, and says where the next one begins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from msgspec import Raw

from pegboard import exactjson
from pegboard.result import ToolFailure, invalid
from pegboard.results.condition import Condition, parse_conditions
from pegboard.results.fields import check_fields
from pegboard.results.hits import Hits
from pegboard.results.inner_texts import inner_texts
from pegboard.results.json_value import parse_value
from pegboard.results.keeper import PIECE, KeptResult, ResultKeeper
from pegboard.results.passages import PassageSearch
from pegboard.results.path import EACH, Step, lead_of, parse_path, select, values_at, write_path
from pegboard.results.record_filter import explain_nothing, filter_records
from pegboard.results.records import Records, find_records, records_at
from pegboard.results.turns import Turns
from pegboard.results.words import count_words, split_words
from pegboard.storage.results import ResultOwner

# What stands around a page: the id, numbers, names of members.
_AROUND = 300
_LEAST_ROOM = 60
_MOST_FIELDS = 50
# So many records of a page are looked at first for a field that may be in none.
_LIKELY = 20
_MOST_WORDS = "No {} has all of the words; these have most of them."
# Where that is so, they are only what somebody may have meant: as many as show that.
_FEW = 5
# A list in a record that is too large is named if it has so many items, and its path is no longer than this.
_MANY, _LONGEST_PATH = 10, 200
_OTHER_TEXTS = 'Other texts of the result were not searched: path="" searches all of it.'
_TEXT = ord('"')
_OPENING = b"{["


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """What somebody wants to read."""

    result_id: str
    offset: int = 0
    limit: int | None = None
    query: str | None = None
    path: str | None = None
    fields: Sequence[str] = ()
    where: str | None = None


class ResultReader:
    """Answers readings from what is kept."""

    def __init__(self, keeper: ResultKeeper) -> None:
        self._keeper = keeper
        # A long text is opened as a whole where its records are wanted: not too many at once.
        self._turns = Turns(2, 6)

    async def read(self, wanted: ResultQuery, owner: ResultOwner, cap: int) -> dict[str, Any]:
        """A page in at most about so many characters."""
        choice = _Choice.of(wanted)
        kept = await self._keeper.find(wanted.result_id, owner)
        room = max(cap - _AROUND, _LEAST_ROOM)
        steps = _steps_to_records(kept, wanted)
        async with self._turns.take(owner.principal):
            if steps is None:
                if choice.is_of_records:
                    raise _refuse_records(kept, wanted)
                return await self._read_text(kept, wanted, choice, room)
            start, end = kept.json or (0, kept.characters)
            text = await self._keeper.read(kept, start, end)
            answer = await asyncio.to_thread(_read_json, kept.result_id, text, steps, wanted, choice, room)
        if choice.words and (start, end) != (0, kept.characters):
            answer["message"] = " ".join(filter(None, [answer.get("message"), _OTHER_TEXTS]))
        return answer

    async def knows(self, result_id: str, owner: ResultOwner) -> bool:
        """Whether a result is kept for this owner; if that cannot be looked up now, it is not."""
        try:
            await self._keeper.find(result_id, owner)
        except ToolFailure:
            return False
        return True

    async def value(self, result_id: str, path: str | None, owner: ResultOwner) -> Any:
        """A whole result as a value, or what a path leads to in it."""
        part = await self.part(result_id, path, owner)
        return None if part is None else part[0]

    async def measure(self, result_id: str, owner: ResultOwner) -> int:
        """How many characters a result has."""
        return (await self._keeper.find(result_id, owner)).characters

    async def part(
        self, result_id: str, path: str | None, owner: ResultOwner, most: int | None = None
    ) -> tuple[Any, int] | None:
        """The same with how much it is as JSON; `None` if that is more than may be."""
        steps = parse_path(path) if path else ()
        kept = await self._keeper.find(result_id, owner)
        async with self._turns.take(owner.principal):
            start, end = kept.json or (0, kept.characters)
            if kept.json is None and steps:
                raise invalid(f'"{result_id}" is a text, so that there is no path "{path}" in it')
            text = await self._keeper.read(kept, start, end)
            return await asyncio.to_thread(_parse_value, text, steps, most, is_json=kept.json is not None)

    async def text(self, result_id: str, owner: ResultOwner) -> tuple[KeptResult, str]:
        """All of a result."""
        kept = await self._keeper.find(result_id, owner)
        return kept, await self._keeper.read(kept)

    async def _read_text(self, kept: KeptResult, wanted: ResultQuery, choice: _Choice, room: int) -> dict[str, Any]:
        if choice.words:
            hits = Hits(wanted.offset, wanted.limit, room)
            await self._search(kept, choice.words, hits)
            return _list_passages(kept.result_id, hits, choice)
        end = wanted.offset + min(wanted.limit or room, room)
        text = await self._keeper.read(kept, wanted.offset, end) if wanted.offset < kept.characters else ""
        return _page_of_text(kept.result_id, text, wanted.offset, kept.characters, room)

    async def _search(self, kept: KeptResult, words: list[str], hits: Hits) -> None:
        search = PassageSearch(words, hits)
        async for _, piece in self._keeper.pieces(kept, 0, kept.characters):
            await asyncio.to_thread(search.feed, piece)
        search.finish()


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which records somebody wants, and what of them."""

    words: list[str]
    conditions: list[Condition]
    fields: list[tuple[str, tuple[Step, ...]]]

    @classmethod
    def of(cls, wanted: ResultQuery) -> _Choice:
        words = [] if wanted.query is None else split_words(wanted.query)
        conditions = [] if wanted.where is None else parse_conditions(wanted.where)
        if len(wanted.fields) > _MOST_FIELDS:
            raise invalid(f"fields: at most {_MOST_FIELDS}")
        fields: dict[tuple[Step, ...], str] = {}
        for field in wanted.fields:
            fields.setdefault(parse_path(field), field)
        return cls(words, conditions, [(field, steps) for steps, field in fields.items()])

    @property
    def is_of_records(self) -> bool:
        return bool(self.conditions or self.fields)

    @property
    def filters(self) -> bool:
        """Whether not all records are wanted."""
        return bool(self.conditions or self.words)

    def project(self, record: Any, room: int) -> dict[str, Any] | None:
        """The wanted fields of a record, by the paths that they were asked for by; `None` if they have no room."""
        projected: dict[str, Any] = {}
        for name, steps in self.fields:
            found = values_at(record, steps)
            if found:
                is_one = len(found) == 1 and EACH not in steps
                projected[name] = found[0] if is_one else found
                # Each may be all of the record.
                room -= len(exactjson.dump(projected[name]).decode())
            if room < 0:
                return None
        return projected


def _steps_to_records(kept: KeptResult, wanted: ResultQuery) -> tuple[Step, ...] | None:
    """The path to follow in the JSON of a result; `None` to read it as text."""
    if wanted.path is None:
        return None if kept.path is None else parse_path(kept.path)
    if wanted.path == "":
        return None
    if kept.json is None:
        raise invalid(f'"{kept.result_id}" is a text, so that there is no path in it: leave path out')
    return parse_path(wanted.path)


def _refuse_records(kept: KeptResult, wanted: ResultQuery) -> ToolFailure:
    """What is said to whoever wants records of what is read as a text."""
    what = "where and fields are for records"
    if kept.json is None:
        return invalid(f'{what}, and "{kept.result_id}" is a text: find words in it with query, go on with offset')
    if wanted.path == "":
        return invalid(f'{what}, and path="" reads everything as a text: leave path out, or say where the records are')
    return invalid(f'{what}, and "{kept.result_id}" has no list of them: say with path what to read, or use query')


class _ParsedRecords(Sequence[Any]):
    """Records as values, each of them read when it is looked at."""

    def __init__(self, records: Sequence[memoryview]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, at: int) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  nobody slices them
        return _parse(self._records[at])


def _read_json(
    result_id: str, text: str, steps: tuple[Step, ...], wanted: ResultQuery, choice: _Choice, room: int
) -> dict[str, Any]:
    chosen = select(text.encode("utf-8", "surrogatepass"), steps)
    if isinstance(chosen, list):
        return _read_records(result_id, chosen, None, wanted, choice, room)
    found = records_at(chosen, steps)
    if found is not None:
        return _read_records(result_id, found.items, found, wanted, choice, room)
    if not choice.is_of_records and not (choice.words and lead_of(chosen) == _OPENING[0]):
        return _read_value(result_id, chosen, wanted, choice, room)
    return _read_records(result_id, [chosen], None, wanted, choice, room)


def _read_records(
    result_id: str,
    items: Sequence[memoryview | Raw],
    found: Records | None,
    wanted: ResultQuery,
    choice: _Choice,
    room: int,
) -> dict[str, Any]:
    """A page of records; `found` says where they stand, if one path leads to each."""
    records = list(map(memoryview, items))
    places, message = _find_places(records, None if found is None else found.keys, choice)
    most = min(wanted.limit or len(places), _FEW if message else len(places))
    page = places[wanted.offset : wanted.offset + most]
    if page and choice.fields:
        parsed = _ParsedRecords(records)
        check_fields(choice.fields, (parsed[at] for at in page[:_LIKELY]), parsed)
    shown = _fit_records(records, page, choice, room, found)
    following = wanted.offset + len(shown)
    answer: dict[str, Any] = {"id": result_id, "unit": "records", **({"message": message} if message else {})}
    answer |= {"records": shown, "offset": wanted.offset}
    if choice.filters:
        answer["at"] = page[: len(shown)]
    if found is not None and found.keys is not None:
        answer["keys"] = [exactjson.well_formed(found.keys[at]) for at in page[: len(shown)]]
    return {**answer, "next": following if following < len(places) else None, "total": len(places)}


def _find_places(records: Sequence[memoryview], keys: Sequence[str] | None, choice: _Choice) -> tuple[list[int], str]:
    """The numbers of the records that are wanted, and what there is to say of them."""
    places = list(range(len(records)))
    if choice.conditions:
        places = filter_records(_ParsedRecords(records), choice.conditions)
        if not places:
            return [], explain_nothing(_ParsedRecords(records), choice.conditions)
    if not choice.words:
        return places, ""
    counts = ((at, _count_words(choice.words, records[at], keys[at] if keys else "")) for at in places)
    found = {at: count for at, count in counts if count}
    # Where nothing has all of the words, what has most of them.
    most = max(found.values(), default=0)
    places = [at for at, count in found.items() if count == most]
    return places, "" if not places or most == len(choice.words) else _MOST_WORDS.format("record")


def _count_words(words: Sequence[str], record: memoryview, key: str) -> int:
    try:
        return count_words(words, chain([key], inner_texts(record)))
    except exactjson.NotJson as exc:
        raise _refuse_record(exc) from None


def _fit_records(
    records: Sequence[memoryview], places: Sequence[int], choice: _Choice, room: int, found: Records | None
) -> list[Any]:
    keys = None if found is None else found.keys
    shown: list[Any] = []
    for at in places:
        # A number in `at` for each, and a name in `keys`, where those are told.
        room -= 12 if choice.filters else 0
        room -= 0 if keys is None else len(exactjson.dump(exactjson.well_formed(keys[at])).decode()) + 1
        record, size = _choose_of(records[at], choice, room)
        if size > room and shown:
            break
        if size > room:
            return [_describe_large(records[at], at, found)]
        shown.append(record)
        room -= size
    return shown


def _describe_large(record: memoryview, at: int, found: Records | None) -> dict[str, Any]:
    """What is told of a record that is too large for a page: how it is read, and the list in it, if there is one."""
    data = bytes(record)
    told: dict[str, Any] = {"tooLarge": len(data.decode("utf-8", "replace"))}
    where = "" if found is None else write_path((*found.path, found.step(at)))
    if found is None or not where:
        return {**told, "advice": "choose fields"}
    told |= {"path": where, "advice": "read it with this path"}
    inner = find_records(data)
    if inner is None or not inner.path or len(inner.items) < _MANY:
        return told
    step = EACH if found.keys is None else found.step(at)
    steps = (*found.path, step, *inner.path, *([EACH] if inner.keys is None else []))
    path = write_path(steps).replace(f"[{EACH}]", "[]")
    # A pointer has no step for each item.
    if len(path) > _LONGEST_PATH or parse_path(path) != steps:
        return told
    return {**told, "advice": f'read it with this path, or by records: path="{path}"'}


def _choose_of(data: memoryview, choice: _Choice, room: int) -> tuple[Any, int]:
    """What is wanted of a record, and how much room that takes: more than there is for what was not looked at."""
    if not choice.fields and len(data) > room:
        return None, room + 1
    record = choice.project(_parse(data), room) if choice.fields else _parse(data)
    if record is None and choice.fields:
        return None, room + 1
    return record, len(exactjson.dump(record).decode()) + 1


def _read_value(result_id: str, chosen: memoryview, wanted: ResultQuery, choice: _Choice, room: int) -> dict[str, Any]:
    """What a path leads to that is no list: a text by its characters, an object as far as it fits as a value."""
    data = bytes(chosen)
    if lead_of(data) == _TEXT:
        text = str(parse_value(data))
    elif len(data) <= room and not choice.words and not wanted.offset:
        return {"id": result_id, "unit": "value", "value": exactjson.parse(data)}
    else:
        text = data.decode("utf-8", "surrogatepass")
    if choice.words:
        hits = Hits(wanted.offset, wanted.limit, room)
        search = PassageSearch(choice.words, hits)
        for at in range(0, len(text), PIECE):
            search.feed(text[at : at + PIECE])
        search.finish()
        return _list_passages(result_id, hits, choice)
    part = text[wanted.offset : wanted.offset + min(wanted.limit or room, room)]
    return _page_of_text(result_id, part, wanted.offset, len(text), room)


def _page_of_text(result_id: str, text: str, offset: int, total: int, room: int) -> dict[str, Any]:
    """As much of a text as fits once it is written as JSON."""
    while (size := len(exactjson.dump(page := carry(text)).decode())) > room and len(text) > 1:
        text = text[: max(min(len(text) * room // size, len(text) - 1), 1)]
    following = offset + len(text)
    answer: dict[str, Any] = {"id": result_id, "unit": "characters", "text": page, "offset": offset}
    return {**answer, "next": following if following < total else None, "total": total}


def carry(text: str) -> str:
    """A text that is written exactly, halves of surrogate pairs included."""
    return text if exactjson.is_well_formed(text) else exactjson.SurrogateText(text)


def _list_passages(result_id: str, hits: Hits, choice: _Choice) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": result_id, "unit": "hits"}
    shown = hits.shown
    if hits.total and hits.words < len(choice.words):
        answer["message"] = _MOST_WORDS.format("place")
        shown = shown[:_FEW]
    following = hits.offset + len(shown)
    return {
        **answer,
        "hits": shown,
        "offset": hits.offset,
        "next": following if following < hits.total else None,
        "total": hits.total,
    }


def _parse(record: memoryview) -> Any:
    try:
        return parse_value(record)
    except exactjson.NotJson as exc:
        raise _refuse_record(exc) from None


def _refuse_record(exc: exactjson.NotJson) -> ToolFailure:
    return invalid(f'a record cannot be read: {exc}; read the text with path=""')


def _parse_value(text: str, steps: tuple[Step, ...], most: int | None, *, is_json: bool) -> tuple[Any, int] | None:
    if not is_json:
        return carry(text), len(text)
    chosen = select(text.encode("utf-8", "surrogatepass"), steps)
    size = sum(map(len, chosen)) if isinstance(chosen, list) else len(chosen)
    if steps and most is not None and size > most:
        return None
    return ([_parse(each) for each in chosen] if isinstance(chosen, list) else _parse(chosen)), size
