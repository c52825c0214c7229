"""What a server or a client sends cannot keep the gateway busy: work and memory are bounded, and foreseen."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from loopwatch import loopwatch
from pegboard import exactjson
from pegboard.access.principal import LOCAL
from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint
from pegboard.clients.request_context import Answering
from pegboard.config import ServerSpec, Settings
from pegboard.result import ToolFailure
from pegboard.results import handles, passages, structured
from pegboard.results.contents import ResultTexts, texts_of
from pegboard.results.hits import Passage
from pegboard.results.keeper import KeptResult
from pegboard.results.reader import ResultQuery
from pegboard.results.results import Results
from pegboard.results.room import Room
from pegboard.results.schema_work import SchemaWork, TooMuchWork
from pegboard.results.structured import shorten_structured
from pegboard.storage.results import ResultOwner
from pegboard.tool import RegisteredTool

pytestmark = pytest.mark.anyio

TOOL = RegisteredTool("shelf__get", "shelf", "get", {"name": "shelf__get", "inputSchema": {"type": "object"}})
LONG = {"v": "x" * 100_000}


def client(principal: str) -> Client:
    return Client(Endpoint(principal=replace(LOCAL, id=principal)), era="modern", name="somebody")


@pytest.fixture
async def results(tmp_path: Path) -> AsyncGenerator[Results]:
    """What a board has of large results."""
    async with Board(Settings(expose="search", storage=f"sqlite:{tmp_path}/kept.db")) as board:
        yield board.results


# Schemas


def chain(length: int, link: Callable[[dict[str, str]], Any]) -> dict[str, Any]:
    """A schema of so many definitions, each of which refers to the next one, somehow."""
    links = {f"d{number}": link({"$ref": f"#/$defs/d{number + 1}"}) for number in range(length)}
    return {"properties": {"v": {"$ref": "#/$defs/d0"}}, "$defs": {**links, f"d{length}": {"type": "string"}}}


FOREVER = {
    "two branches at each link": chain(40, lambda after: {"anyOf": [{"allOf": [after, {"maxLength": 0}]}] * 2}),
    "conditions": chain(40, lambda after: {"if": after, "then": after, "else": after}),
    "names of members": chain(40, lambda after: {"dependentSchemas": {"a": after, "b": {"not": after}}}),
    "a circle": chain(1, lambda _: {"$ref": "#/$defs/d0"}),
    "too deep": chain(500, lambda after: after),
    "what is left over": {"allOf": [{"properties": {"v": {"type": "string"}}}], "unevaluatedProperties": False},
    "a reference that moves": {"properties": {"v": {"$dynamicRef": "#v"}}},
    "a reference to elsewhere": {"properties": {"v": {"$ref": "https://example.com/v"}}},
    "another place for references": {"properties": {"v": {"$id": "https://example.com/", "$ref": "#/x"}}, "x": {}},
    "a number without an end": {"properties": {"v": {"maxLength": 10**100}}},
    "many names": {"properties": {"v": {"enum": list(range(30_000))}}},
}


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize("name", FOREVER)
def test_a_schema_that_would_take_too_long_is_not_used(name: str) -> None:
    """Found out without validating; the value stays whole."""
    with pytest.raises(TooMuchWork):
        SchemaWork(FOREVER[name]).foresee({"v": "x"})
    assert shorten_structured(LONG, FOREVER[name], 5000) is LONG


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"items": {}}}, [["x"] * 1000] * 1000),
        ({}, [["x"] * 1000] * 1000),
        ({"propertyNames": {"pattern": "^k"}}, {f"k{number}" * 100: 1 for number in range(1000)}),
        ({"patternProperties": {"^k": {}}}, {f"k{number}" * 100: 1 for number in range(1000)}),
        ({"uniqueItems": True}, [["x"] * 1000] * 100),
        ({"additionalProperties": {"type": "string"}}, {f"k{number}": "x" for number in range(100_000)}),
        ({"items": {"enum": list(range(1000))}}, [5] * 1000),
        ({"properties": {"v": {"pattern": "x"}}}, LONG),
    ],
)
def test_a_value_is_weighed_with_its_schema(schema: Any, value: Any) -> None:
    """Many values, long texts for patterns, long lists to compare."""
    work = SchemaWork(schema)
    work.foresee(value[:2] if isinstance(value, list) else dict(list(value.items())[:0]))
    with pytest.raises(TooMuchWork):
        work.foresee(value)


@pytest.mark.scenario("results: What others send keeps nobody waiting")
def test_errors_that_are_too_many_are_not_asked_for() -> None:
    """Each holds a copy of the value that it is about."""
    work = SchemaWork({"allOf": [{"type": "string"}] * 400}).foresee([["x"] * 20] * 50)
    assert not work.may_have_errors
    assert SchemaWork({"items": {"items": {"type": "string"}}}).foresee([["x"] * 20] * 50).may_have_errors


@pytest.mark.scenario("results: What others send keeps nobody waiting")
def test_all_rounds_together_have_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is over the value stays whole."""
    schema = {"properties": {"v": {"type": "string"}}}
    assert shorten_structured(LONG, schema, 5000) != LONG
    monkeypatch.setattr(structured, "_MOST_SECONDS", -1.0)
    assert shorten_structured(LONG, schema, 5000) is LONG


def comment(depth: int) -> dict[str, Any]:
    return {"text": "word " * 20, "replies": [comment(depth - 1)] * 6 if depth else []}


def test_schemas_of_trees_can_be_used() -> None:
    """What refers to itself by way of a value inside ends where that ends."""
    schema = {
        "$ref": "#/$defs/comment",
        "$defs": {
            "comment": {
                "type": "object",
                "required": ["text", "replies"],
                "properties": {
                    "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "replies": {"type": "array", "items": {"$ref": "#/$defs/comment"}},
                },
            }
        },
    }
    shorter = shorten_structured(comment(4), schema, 5000)
    assert len(json.dumps(shorter)) < 5000
    assert jsonschema_rs.validator_for(schema).is_valid(shorter)


# Formats


@pytest.mark.scenario("results: Structured content stays valid")
@pytest.mark.parametrize("where", ["plain", "anyOf", "$ref", "items"])
def test_strings_with_a_format_are_not_cut(where: str) -> None:
    """Real clients check them: half of an address is none."""
    address = {"type": "string", "format": "uri"}
    url: dict[str, Any] = {
        "plain": address,
        "anyOf": {"anyOf": [address, {"type": "null"}]},
        "$ref": {"$ref": "#/$defs/address"},
        "items": {"type": "array", "items": address},
    }[where]
    row = {"type": "object", "required": ["url"], "properties": {"url": url, "mail": {"format": "email"}}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "$defs": {"address": address}}
    long = "https://example.com/" + "a" * 90 + "?q=%20"
    mail = "a" * 60 + "@example.com"
    rows = [{"url": [long] if where == "items" else long, "mail": mail, "note": "n" * 300} for _ in range(200)]
    shorter = shorten_structured({"rows": rows}, schema, 1500)
    assert len(json.dumps(shorter)) <= 1500
    assert [(row["url"], row["mail"]) for row in shorter["rows"]] == [
        (row["url"], row["mail"]) for row in rows[: len(shorter["rows"])]
    ]
    assert shorter["rows"]
    assert len(shorter["rows"][0]["note"]) < 300
    assert jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(shorter)


# Turns


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize("size", [60_000, 5_000_000])
async def test_nobody_waits_while_anothers_results_are_abridged(
    size: int, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many somebody has: each principal has turns of its own."""
    keep, free = results.keeper.keep, asyncio.Event()

    async def keep_slowly(text: str, facts: Any, owner: Any) -> str | None:
        if owner.principal == "token:1":
            await free.wait()
        return await keep(text, facts, owner)

    monkeypatch.setattr(results.keeper, "keep", keep_slowly)
    result = {"content": [{"type": "text", "text": "word " * (size // 5)}]}
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(results.fit(result, client("token:1"), TOOL)) for _ in range(20)]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            given = await results.fit(result, client("token:2"), TOOL)
        assert len(given["content"][0]["text"]) <= 40_000
        assert not any(task.done() for task in waiting)
        free.set()
    assert all(len(task.result()["content"][0]["text"]) <= 40_000 for task in waiting)


@pytest.mark.scenario("results: What others send keeps nobody waiting")
async def test_large_results_are_compared_with_their_text_in_turn(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time of each principal: that alone may take much memory."""
    under_way, seen = Counter[str](), list[int]()

    def compare(result: Any) -> ResultTexts:
        under_way["now"] += 1
        seen.append(under_way["now"])
        try:
            time.sleep(0.01)
            return texts_of(result)
        finally:
            under_way["now"] -= 1

    monkeypatch.setattr("pegboard.results.results.texts_of", compare)
    result = {"content": [{"type": "text", "text": "word " * 1_000_000}], "structuredContent": {"a": 1}}
    await asyncio.gather(*(results.fit(result, client("token:1"), TOOL) for _ in range(4)))
    assert seen == [1] * 4


@pytest.mark.scenario("results: What others send keeps nobody waiting")
async def test_nobody_waits_while_another_reads(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages somebody asks for."""
    kept = {who: await results.keeper.keep("word " * 100, {}, ResultOwner(who)) for who in ("token:1", "token:2")}
    read, free = results.keeper.read, asyncio.Event()

    async def read_slowly(which: KeptResult, start: int = 0, end: int | None = None) -> str:
        if which.result_id == kept["token:1"]:
            await free.wait()
        return await read(which, start, end)

    monkeypatch.setattr(results.keeper, "read", read_slowly)

    async def page(who: str) -> Any:
        return await results.read(ResultQuery(str(kept[who]), path=""), client(who))

    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(page("token:1")) for _ in range(20)]
        while not waiting[0].done() and results.reader._turns._users["token:1"] != 20:
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert (await page("token:2"))["text"] == "word " * 100
        assert not any(task.done() for task in waiting)
        free.set()
    assert not results.reader._turns._users


# Reading


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize("is_json", [False, True])
async def test_hits_that_nobody_is_shown_are_only_counted(
    is_json: bool, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line in each of a million places takes no memory; the counts are those of all."""
    made = Counter[str]()

    class Counted(Passage):
        def __init__(self, *given: Any) -> None:
            made["passages"] += 1
            super().__init__(*given)

    monkeypatch.setattr(passages, "Passage", Counted)
    text = "".join(f"{'one two' if number % 10 == 9 else 'one'} {number}\n" for number in range(60_000))
    written = json.dumps({"text": text}) if is_json else text
    kept = await results.keeper.keep(written, {"start": 0, "end": len(written)} if is_json else {}, ResultOwner("t"))
    wanted = {"path": "text"} if is_json else {}
    offset, lines = 0, list[int]()
    for _ in range(3):
        query = ResultQuery(str(kept), offset=offset, limit=1000, query="one two", **wanted)
        page = await results.read(query, client("t"), 4000)
        assert page["total"] == 6000
        lines += [hit["line"] for hit in page["hits"]]
        for hit in page["hits"]:
            assert text[hit["offset"] :].startswith(f"one two {hit['line'] - 1}\n")
        offset = page["next"]
    assert lines == list(range(10, 10 * len(lines) + 1, 10))
    # A few of the lines with one of the words, until there is one with both.
    assert made["passages"] <= len(lines) + 100


@pytest.mark.scenario("results: What others send keeps nobody waiting")
async def test_fields_that_are_too_much_are_not_all_written(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same field by many names is one; what has no room is not measured on."""
    records = [{"a": "x" * 50_000, "b": "y", "n": number} for number in range(3)]
    written = json.dumps(records)
    kept = await results.keeper.keep(written, {"start": 0, "end": len(written), "path": ""}, ResultOwner("t"))
    sizes: list[int] = []
    dump = exactjson.dump

    def measure(value: Any, **options: Any) -> bytes:
        data = dump(value, **options)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(exactjson, "dump", measure)
    few = await results.read(ResultQuery(str(kept), fields=["b", "/b", "n"]), client("t"), 2000)
    assert few["records"] == [{"b": "y", "n": number} for number in range(3)]
    sizes.clear()
    many = ["a", *(f"{name}{rest}" for name in ("a", "/a") for rest in ("", "")), "b", "n"]
    page = await results.read(ResultQuery(str(kept), fields=many), client("t"), 2000)
    assert "tooLarge" in page["records"][0]
    assert sum(size > 10_000 for size in sizes) == 1


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize("is_json", [False, True])
async def test_words_that_nearly_fit_everywhere_hold_nobody_up(is_json: bool, results: Results) -> None:
    """However long they are: a search that compares all of a word at each place takes seconds."""
    text = "a" * 4_000_000
    written = json.dumps([{"x": text}, {"x": text}, {"x": "b"}]) if is_json else text
    facts = {"start": 0, "end": len(written), "path": ""} if is_json else {}
    kept = await results.keeper.keep(written, facts, ResultOwner("t"))
    with loopwatch() as watch:
        page = await results.read(ResultQuery(str(kept), query="a" * 199 + "b"), client("t"), 4000)
    watch.check()
    assert page["total"] == 0


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@pytest.mark.parametrize(
    "value",
    [
        {"name": "f", "content": "111111111111111 " * 1_000_000},
        {"name": "f", "parts": ["111111111111111 " * 500_000] * 2},
        {f"key {number}": number for number in range(600_000)},
        {"name": "f", "of": {f"key {number}": number for number in range(600_000)}},
    ],
    ids=["a long string", "long strings", "many members", "many members inside"],
)
async def test_a_large_value_is_read_part_by_part(
    value: Any, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To abridge it and to read on in it."""
    sizes: list[int] = []
    parse = exactjson.parse

    def measure(text: bytes | str) -> Any:
        sizes.append(len(text))
        return parse(text)

    monkeypatch.setattr(exactjson, "parse", measure)
    result = {"content": [{"type": "text", "text": json.dumps(value)}]}
    with loopwatch() as watch:
        given = await results.fit(result, client("t"), TOOL)
        kept = given["_meta"]["pegboard/result"]["id"]
        for path in ("", "content" if "content" in value else "name"):
            with suppress(ToolFailure):
                await results.read(ResultQuery(kept, path=path), client("t"), 4000)
    watch.check(0.12)
    assert max(sizes, default=0) <= 200_000


# Results as arguments


@pytest.mark.scenario("results: What others send keeps nobody waiting")
async def test_filled_in_results_are_bounded_together(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each use counts, and too much is known before anything is read."""
    monkeypatch.setattr(handles, "MOST_CHARACTERS", 10_000)
    written = json.dumps({"long": "x" * 4000, "short": "y" * 100})
    facts = {"start": 0, "end": len(written)}
    kept = await results.keeper.keep(written, facts, ResultOwner("t"))
    spec = ServerSpec(name="s", given_name="s", command="s", result_handles=True)
    whole, long = {"$result": kept}, {"$result": kept, "path": "long"}
    short = {"$result": kept, "path": "/short"}
    filled = await results.fill({"l": [whole, whole], "s": [short] * 15}, {}, client("t"), spec, ExitStack())
    assert filled == {"l": [json.loads(written)] * 2, "s": ["y" * 100] * 15}
    with pytest.raises(ToolFailure, match="more than 10,000 characters"):
        await results.fill({"l": [long] * 2, "w": whole}, {}, client("t"), spec, ExitStack())
    monkeypatch.setattr(results.keeper, "read", None)
    with pytest.raises(ToolFailure, match="more than 10,000 characters"):
        await results.fill({"l": [whole] * 3}, {}, client("t"), spec, ExitStack())


# What is on its way


@pytest.mark.scenario("results: What others send keeps nobody waiting")
async def test_whole_results_that_nobody_reads_are_bounded_together(results: Results) -> None:
    """A request for one has its room until its answer is written; the room of others is their own."""
    results._room = Room(1000, 5000)
    kept = {who: str(await results.keeper.keep("x" * 400, {}, ResultOwner(who))) for who in ("token:1", "token:2")}

    async def ask(who: str, answering: Answering | None) -> Any:
        caller = Caller(client(who), answering=answering)
        return (await results.read_resource(f"pegboard://result/{kept[who]}", caller))["contents"][0]["text"]

    unread = [Answering() for _ in range(3)]
    for answering in unread[:2]:
        assert await ask("token:1", answering) == "x" * 400
    for answering in (unread[2], None):
        with pytest.raises(ToolFailure, match="1,000 characters are on their way already: try again"):
            await ask("token:1", answering)
    assert await ask("token:2", Answering()) == "x" * 400
    unread[0].end()
    assert await ask("token:1", None) == "x" * 400
    assert await ask("token:1", unread[0]) == "x" * 400
    assert await ask("token:1", unread[2]) == "x" * 400


@pytest.mark.scenario("results: What others send keeps nobody waiting")
async def test_filled_in_results_of_all_calls_are_bounded_together(results: Results) -> None:
    """Those of a call have their room until it is over."""
    results._room = Room(1000, 5000)
    written = json.dumps({"long": "x" * 400})
    kept = await results.keeper.keep(written, {"start": 0, "end": len(written)}, ResultOwner("t"))
    spec = ServerSpec(name="s", given_name="s", command="s", result_handles=True)
    for handle in ({"$result": kept}, {"$result": kept, "path": "long"}):
        with ExitStack() as first, ExitStack() as second:
            for sending in (first, second):
                await results.fill({"a": handle}, {}, client("t"), spec, sending)
            with pytest.raises(ToolFailure, match="on their way already"):
                await results.fill({"a": handle}, {}, client("t"), spec, ExitStack())
            first.close()
            await results.fill({"a": handle}, {}, client("t"), spec, first)
    assert not results._room._taken


def test_there_is_room_for_one_of_any_size() -> None:
    """Else it could never be read; in all there is so much, whoever asks."""
    room = Room(1000, 2500)
    end = room.take("a", 5000)
    for who in ("a", "b"):
        with pytest.raises(ToolFailure, match="on their way"):
            room.take(who, 1)
    end()
    end()
    for who in ("a", "b"):
        room.take(who, 1000)
    with pytest.raises(ToolFailure, match="2,500 characters"):
        room.take("c", 501)
    room.take("c", 500)
