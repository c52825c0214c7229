"""Memories go into files and come out of them as they were, from any database to any other, and to `server-memory`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters

from memory.clock import START, Clock
from memory.consistency import assert_consistent
from node import package
from pegboard.result import Conflict, ToolFailure
from pegboard.storage import StorageError, open_storage
from pegboard.storage.database import Database, DatabaseConnection
from pegboard.toolsets.memory.limits import MAX_KEY, MAX_LINKS
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link, moment
from pegboard.toolsets.memory.timestamps import exact, seconds_of
from pegboard.toolsets.memory.transfer import Format, Imported, export_memories, import_memories

pytestmark = pytest.mark.anyio

HEADER = {"format": "pegboard-memories", "version": 1}


async def exported(memories: Memories, namespace: str | None = None, format: Format = "pegboard") -> list[bytes]:
    """The lines of a file."""
    lines: list[bytes] = []
    count = await export_memories(memories, lines.append, namespace=namespace, format=format)
    if format == "pegboard":
        assert count == len(lines) - 1
    return lines


def lines(*rows: dict[str, Any]) -> list[str]:
    """A file of these."""
    return [json.dumps(row) for row in rows]


def counts(imported: Imported) -> tuple[int, int, int, int]:
    """Added, replaced, skipped, invalid."""
    return imported.added, imported.replaced, imported.skipped, imported.invalid


@asynccontextmanager
async def opened(place: str) -> AsyncGenerator[tuple[Memories, Database]]:
    """Memories at another place, with a clock of their own."""
    storage = open_storage(place)
    await storage.open()
    yield Memories(storage.database, namespace="other", clock=Clock(START + 1e6)), storage.database
    await storage.close()


async def fill(memories: Memories, clock: Clock) -> None:
    """Memories of several namespaces that went through something."""
    odd = 'quotes " \\ and\r\nlines\u2028\u0085 <mark>, 決済サービス, ünïcödé 🦊\t'
    await memories.add("pay:design:api", "How we pay", odd, [Link("z", "bug", "why", 0.1), Link("a", "design")])
    clock.forward(0.1234567)
    await memories.add("a", "", "")
    await memories.update("a", text="changed twice", links=[Link("not-written", "own kind", weight=1.0)])
    clock.forward(1 / 3)
    await memories.get("a")
    await memories.read_linked("pay:design:api")
    await memories.add("Ä 100%_", "another project", "stripe", namespace="p%_")
    await memories.add("a", "the same key", "elsewhere", namespace="p2")
    await memories.rename("a", "b", namespace="p2")


async def test_memories_come_back_exactly(memories: Memories, database: Database, clock: Clock, tmp_path: Path) -> None:
    """Export, import into an empty database, export: the same bytes, a working index, the same scores."""
    await fill(memories, clock)
    before = await exported(memories)
    assert json.loads(before[0]) == HEADER
    async with opened(f"sqlite:{tmp_path / 'copy.db'}") as (copy, copied):
        assert counts(await import_memories(copy, before)) == (4, 0, 0, 0)
        assert await exported(copy) == before
        await assert_consistent(copied)
        copy._clock = clock
        for query in ("決済", "changd", "pay"):
            assert await copy.search(query, namespace="home") == await memories.search(query)
        assert await copy.list(namespace="home") == await memories.list()
    await assert_consistent(database)


async def test_sqlite_moves_to_postgres(clock: Clock, tmp_path: Path, postgres_url: str) -> None:
    """And back, with nothing lost."""
    async with opened(f"sqlite:{tmp_path / 'first.db'}") as (first, _):
        await fill(first, clock)
        before = await exported(first)
    async with opened(postgres_url) as (second, database):
        await import_memories(second, before)
        assert await exported(second) == before
        await assert_consistent(database)
    async with opened(f"sqlite:{tmp_path / 'third.db'}") as (third, _):
        await import_memories(third, await exported_from(postgres_url))
        assert await exported(third) == before


async def exported_from(place: str) -> list[bytes]:
    """The lines of a file with everything at a place."""
    async with opened(place) as (memories, _):
        return await exported(memories)


async def test_many_memories_are_moved_a_part_at_a_time(memories: Memories, tmp_path: Path) -> None:
    """More than fit into one page or one transaction, with links across."""
    rows = [{"key": f"m{n:04}", "text": f"word{n}", "links": [{"key": f"m{n + 1:04}"}]} for n in range(1203)]
    assert counts(await import_memories(memories, lines(HEADER, *rows))) == (1203, 0, 0, 0)
    before = await exported(memories)
    assert [json.loads(line)["key"] for line in before[1:]] == [row["key"] for row in rows]
    path = tmp_path / "memories.jsonl"
    path.write_bytes(b"".join(before))
    async with opened(f"sqlite:{tmp_path / 'copy.db'}") as (copy, _):
        with path.open("rb") as file:
            await import_memories(copy, file)
        assert await exported(copy) == before
        assert [hit.key for hit in (await copy.search("word1102", namespace="home")).items][:1] == ["m1102"]


async def test_what_exists_is_kept(memories: Memories) -> None:
    """Without `replace` nothing that is there changes."""
    await memories.add("a", "mine")
    imported = await import_memories(memories, lines({"key": "a", "summary": "theirs"}, {"key": "b"}, {"key": "b"}))
    assert counts(imported) == (1, 0, 2, 0)
    assert (await memories.get("a")).summary == "mine"


async def test_what_exists_can_be_replaced(memories: Memories, database: Database, clock: Clock) -> None:
    """With its words, links and history; links to it stay, and no version stands for two texts."""
    await memories.add("a", "mine", "stripe", [Link("x", "bug")])
    await memories.update("a", text="stripes")
    await memories.add("b", links=[Link("a", "design")])
    clock.forward(60)
    saved = {"key": "a", "summary": "theirs", "text": "paypal", "access_count": 7, "base": 80, "version": 1}
    moments = {"created_at": "2026-01-31T12:00:00Z", "updated_at": "2026-02-01T12:00:00.25+02:00"}
    imported = await import_memories(memories, lines({**saved, **moments, "links": []}), replace=True)
    assert counts(imported) == (0, 1, 0, 0)
    memory = await memories.get("a")
    assert (memory.summary, memory.text, memory.version, memory.links) == ("theirs", "paypal", 3, [])
    assert memory.meta.access_count == 8
    assert memory.meta.in_degree == 1
    assert exact(memory.meta.created_at) == "2026-01-31T12:00:00Z"
    assert exact(memory.meta.updated_at) == "2026-02-01T10:00:00.25Z"
    assert not (await memories.search("stripes")).items
    await assert_consistent(database)


async def test_other_links_are_another_version(memories: Memories) -> None:
    """Whoever read a memory before its links were replaced is refused, as with other words."""
    await memories.add("a", "same", "same", [Link("x", "bug"), Link("y", "bug")])
    kept = {"key": "a", "summary": "same", "text": "same", "version": 1}

    async def version_after(*links: Link) -> int:
        rows = [link.to_dict() for link in links]
        assert (await import_memories(memories, lines({**kept, "links": rows}), replace=True)).replaced == 1
        return (await memories.get("a")).version

    assert await version_after(Link("x", "bug"), Link("y", "bug")) == 1
    assert await version_after(Link("x", "bug", weight=0.9), Link("y", "bug")) == 2
    assert await version_after(Link("y", "bug"), Link("x", "bug", weight=0.9)) == 3
    with pytest.raises(Conflict, match="version 3"):
        await memories.update("a", text="stale", version=1)
    twice = [{**kept, "links": []}, {**kept, "links": [{"key": "z"}]}]
    await import_memories(memories, lines(*twice), replace=True)
    assert (await memories.get("a")).version == 5


async def test_the_same_file_twice_changes_nothing(memories: Memories, clock: Clock) -> None:
    """Replacing a memory by itself is not a change."""
    await fill(memories, clock)
    before = await exported(memories)
    assert counts(await import_memories(memories, before, replace=True)) == (0, 4, 0, 0)
    assert await exported(memories) == before


async def test_memories_of_one_namespace_go_to_another(memories: Memories, clock: Clock) -> None:
    """Export takes one namespace, import another."""
    await fill(memories, clock)
    only = await exported(memories, "p2")
    assert [json.loads(line)["key"] for line in only[1:]] == ["b"]
    assert await exported(memories, "nobody") == [only[0]]
    await import_memories(memories, only, namespace="p3")
    moved = [json.loads(line) for line in await exported(memories, "p3")][1]
    assert moved == {**json.loads(only[1]), "namespace": "p3"}


@pytest.mark.parametrize("replace_them", [True, False])
async def test_a_dry_run_writes_nothing(memories: Memories, *, replace_them: bool) -> None:
    """It counts what would be done, even where a key comes again."""
    await memories.add("a", "mine")
    before = await exported(memories)
    rows = [*({"key": f"k{n}"} for n in range(700)), {"key": "a", "summary": "x"}, {"key": "k1"}, {"key": ""}]
    tried = await import_memories(memories, lines(*rows), replace=replace_them, dry_run=True)
    assert await exported(memories) == before
    assert tried == await import_memories(memories, lines(*rows), replace=replace_them)
    assert tried.added == 700


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object"),
        ("[]", "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        ("{}", "key is missing"),
        ('{"key": 7}', "key must be a text"),
        ('{"key": " "}', "key must not be empty"),
        (json.dumps({"key": "k" * (MAX_KEY + 1)}), "512 is the most"),
        ('{"key": "k", "text": "a\\u0000b"}', "NUL"),
        ('{"key": "k", "summary": null}', "summary must be a text"),
        ('{"key": "k", "namespace": "a\\nb"}', "control characters"),
        ('{"key": "k", "links": {}}', "links must be a list"),
        ('{"key": "k", "links": ["a"]}', "each must be an object"),
        ('{"key": "k", "links": [{"key": "a", "weight": 2}]}', "between 0 and 1"),
        ('{"key": "k", "links": [{"key": "a", "weight": "1"}]}', "weight must be a number"),
        ('{"key": "k", "version": 0}', "version must be a whole number"),
        ('{"key": "k", "version": true}', "version must be a number"),
        ('{"key": "k", "access_count": 1e300}', "access_count must be"),
        ('{"key": "k", "base": 101}', "base must be between"),
        ('{"key": "k", "base": null}', "base must be a number"),
        ('{"key": "k", "created_at": "yesterday"}', "created_at must be a moment"),
        ('{"key": "k", "created_at": 7}', "created_at must be a text"),
        ('{"type": "entity", "name": "k"}', "entityType must be a text"),
        ('{"type": "entity", "name": "k", "entityType": "t", "observations": "o"}', "list of texts"),
        ('{"type": "entity", "name": "a\\nb", "entityType": "t"}', "control characters"),
        ('{"type": "relation", "from": "k", "to": "x"}', "relationType must be a text"),
        ('{"type": "relation", "from": "k", "to": "", "relationType": "x"}', "must not be empty"),
        ('{"type": "relation", "from": "k", "to": "x", "relationType": "x"}', "no entity of the name 'k'"),
    ],
)
async def test_a_bad_line_is_told_and_the_others_go_on(tmp_path: Path, line: str | bytes, message: str) -> None:
    """Its number and what is wrong with it."""
    async with opened(f"sqlite:{tmp_path / 'own.db'}") as (memories, _):
        imported = await import_memories(memories, ['{"key": "a"}', "", line, '{"key": "b"}'])
        assert counts(imported) == (2, 0, 0, 1)
        (problem,) = imported.to_dict()["problems"]
        assert problem["line"] == 3
        assert message in problem["message"]


async def test_of_many_problems_the_first_are_told(tmp_path: Path) -> None:
    """A wrong file does not fill the screen."""
    async with opened(f"sqlite:{tmp_path / 'own.db'}") as (memories, _):
        imported = await import_memories(memories, ["x"] * 1000)
        assert imported.invalid == 1000
        assert len(imported.problems) == 20


async def test_words_that_cannot_be_searched_are_told(tmp_path: Path) -> None:
    """What only the index can refuse has a line number, too."""
    text = "".join(chr(0x4E00 + n % 20_000) + chr(0x4E00 + n * 7 % 19_997) for n in range(100_000))
    async with opened(f"sqlite:{tmp_path / 'own.db'}") as (memories, _):
        imported = await import_memories(memories, lines({"key": "a"}, {"key": "b", "text": text}))
        assert counts(imported) == (1, 0, 0, 1)
        assert imported.problems[0].line == 2
        assert "different words" in imported.problems[0].message


async def test_a_file_of_another_version_is_refused(memories: Memories) -> None:
    """Its lines may mean something else."""
    with pytest.raises(ToolFailure, match="pegboard-memories 2"):
        await import_memories(memories, lines({**HEADER, "version": 2}, {"key": "a"}))
    assert not (await memories.list()).items


async def test_a_file_may_be_written_by_hand(memories: Memories, clock: Clock) -> None:
    """A key is enough; byte order marks, empty lines and line ends of any system do no harm."""
    await import_memories(
        memories, [b'\xef\xbb\xbf{"key": "a"}\r\n', b"\r\n", b'  {"key": "b", "created_at": "2026-01-31T12:00:00"}']
    )
    a, b = await memories.get("a"), await memories.get("b")
    assert (a.version, a.meta.created_at, a.summary) == (1, clock.now, "")
    assert exact(b.meta.updated_at) == "2026-01-31T12:00:00Z"


async def test_a_file_that_was_begun_is_not_begun_again(memories: Memories) -> None:
    """Where a lost connection makes the database start over, lines would stand in the file twice."""
    await memories.add("a")

    class Losing:
        async def read(self, work: Any) -> None:
            await real.read(work)
            await real.read(work)

    real = memories._database
    memories._database = Losing()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(StorageError, match="export again"):
        await exported(memories)


async def test_a_failed_batch_leaves_nothing(memories: Memories, database: Database) -> None:
    """One transaction holds them all."""

    def boom(connection: DatabaseConnection) -> None:
        connection.execute("DROP TABLE memory_spellings")

    await database.write(boom)
    with pytest.raises(StorageError):
        await import_memories(memories, lines({"key": "a"}, {"key": "brandnewword"}))
    assert not (await memories.list()).items


@given(st.floats(1, 2.5e11))
def test_no_digit_of_a_moment_is_lost(seconds: float) -> None:
    """Whatever the clock says comes back."""
    assert seconds_of(exact(seconds), "at") == seconds


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(["Z", "+14:00", "-14:00", ""]), st.integers(0, 10**12))
@example(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "Z", 9999999999)
@example(datetime(9999, 12, 30, 23, 59, 59, tzinfo=UTC), "Z", 9999999999)
@example(datetime(1, 1, 1, tzinfo=UTC), "+14:00", 0)
def test_a_moment_that_is_taken_can_be_shown(day: datetime, zone: str, rest: int) -> None:
    """At either end of the calendar one is refused or has a date, in every form that it is shown in."""
    try:
        seconds = seconds_of(f"{day.replace(tzinfo=None).isoformat(timespec='seconds')}.{rest}{zone}", "at")
    except ToolFailure:
        assert day.year in (1, 9999)
        return
    assert seconds_of(exact(seconds), "at") == seconds
    assert moment(seconds)


@pytest.mark.parametrize("text", ["0001-01-02T00:00:00Z", "9999-12-31T00:00:00Z"])
def test_the_first_and_the_last_moment_are_taken(text: str) -> None:
    """A day less than the calendar has on each end."""
    assert exact(seconds_of(text, "at")) == text


@pytest.mark.parametrize(
    "text",
    ["", "2026", "2026-13-01T00:00:00Z", "12:00:00", "9" * 50, "9999-12-31T23:59:59.9Z", "0001-01-01T00:00:00+14:00"],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """With the name of what is wrong."""
    with pytest.raises(ToolFailure, match="at must be a moment"):
        seconds_of(text, "at")


ENTITIES = [
    {"name": "Ada Lovelace", "entityType": "person", "observations": ["writes programs", 'likes 数学, "quotes"']},
    {"name": "Engine", "entityType": "machine", "observations": []},
    {"name": "Notes", "entityType": "memory", "observations": ["one line", "two\nlines", "  indented", "", "\\n"]},
]
RELATIONS = [
    {"from": "Ada Lovelace", "to": "Engine", "relationType": "programs"},
    {"from": "Ada Lovelace", "to": "Charles", "relationType": "knows"},
]


@asynccontextmanager
async def server_memory(file: Path) -> AsyncGenerator[Client]:
    """The real server on a file."""
    command, *args = package("@modelcontextprotocol/server-memory", "dist/index.js")
    parameters = StdioServerParameters(command=command, args=args, env={"MEMORY_FILE_PATH": str(file)})
    async with Client(parameters, mode="legacy") as client:
        yield client


async def graph_of(file: Path) -> Any:
    """What the real server finds in a file."""
    async with server_memory(file) as client:
        return (await client.call_tool("read_graph", {})).structured_content


async def test_a_file_of_server_memory_moves_in(memories: Memories, database: Database, tmp_path: Path) -> None:
    """Entities become memories, relations links; the file is made by the real server."""
    file = tmp_path / "graph.jsonl"
    async with server_memory(file) as client:
        await client.call_tool("create_entities", {"entities": ENTITIES})
        await client.call_tool("create_relations", {"relations": RELATIONS})
    with file.open("rb") as rows:
        assert counts(await import_memories(memories, rows)) == (3, 0, 0, 0)
    memory = await memories.get("Ada Lovelace", sort_links=False)
    assert (memory.summary, memory.text) == ("person", 'writes programs\nlikes 数学, "quotes"')
    assert [(link.key, link.type) for link in memory.links] == [("Engine", "programs"), ("Charles", "knows")]
    assert [hit.key for hit in (await memories.search("数学")).items] == ["Ada Lovelace"]
    await assert_consistent(database)


async def test_memories_move_out_to_server_memory(memories: Memories, tmp_path: Path) -> None:
    """The real server reads what we write, and has what it had before they moved in."""
    graph = [*({"type": "entity", **each} for each in ENTITIES), *({"type": "relation", **each} for each in RELATIONS)]
    await import_memories(memories, lines(*graph))
    await memories.add("elsewhere", "in another namespace", namespace="p2")
    file = tmp_path / "graph.jsonl"
    file.write_bytes(b"".join(await exported(memories, format="server-memory")))
    assert await graph_of(file) == {"entities": ENTITIES, "relations": RELATIONS}


async def test_memories_come_back_from_the_file_of_server_memory(memories: Memories) -> None:
    """Summary, text and kinds of links; one without a summary has none again, and lines are as they were."""
    texts = ["", "a", "a\n", "\n\na\r\n b", "a\u2028b\nc"]
    for n, text in enumerate(texts):
        await memories.add(f"m{n}", "" if n % 2 else "summary", text, [Link("m0", "bug"), Link("m0", "design")])
    before = await exported(memories, format="server-memory")
    await import_memories(memories, before, namespace="copy")
    for n, text in enumerate(texts):
        memory = await memories.get(f"m{n}", namespace="copy")
        assert (memory.summary, memory.text) == ("" if n % 2 else "summary", text)
        assert [(link.key, link.type) for link in memory.links] == [("m0", "bug"), ("m0", "design")]
    assert await exported(memories, "copy", format="server-memory") == before


async def test_entities_replace_words_and_keep_the_history(memories: Memories, clock: Clock) -> None:
    """That file knows no history, so the memory's own goes on."""
    await memories.add("Engine", "old", "old")
    await memories.get("Engine")
    clock.forward(60)
    await import_memories(memories, lines({"type": "entity", **ENTITIES[1]}), replace=True)
    memory = await memories.get("Engine")
    assert (memory.summary, memory.text, memory.version) == ("machine", "", 2)
    assert memory.meta == replace(memory.meta, created_at=START, updated_at=START + 60, access_count=2)


async def test_names_of_a_file_are_one_however_they_are_typed(memories: Memories) -> None:
    """A key, an entity and both ends of a relation may have their accents composed or not."""
    one, two = "caf\u00e9", "cafe\u0301"
    entity = {"type": "entity", "name": two, "entityType": "place"}
    relation = {"type": "relation", "from": one, "to": f"{two}:b", "relationType": "r"}
    assert counts(await import_memories(memories, lines(entity, relation))) == (1, 0, 0, 0)
    assert counts(await import_memories(memories, lines({"key": two}, {"key": one}))) == (0, 0, 2, 0)
    assert [link.key for link in (await memories.get(one)).links] == [f"{one}:b"]


async def test_relations_are_kept_as_far_as_they_can_be(memories: Memories) -> None:
    """In any order, each once; too many are told by line, and so is a second entity of a name."""
    hub = {"type": "entity", "name": "hub", "entityType": "t", "observations": ["one"]}
    many: Iterable[dict[str, Any]] = (
        {"type": "relation", "from": "hub", "to": f"n{n // 2}", "relationType": "r"} for n in range(2 * MAX_LINKS + 4)
    )
    imported = await import_memories(memories, lines(*many, hub, {**hub, "observations": ["two"]}))
    assert counts(imported) == (1, 0, 0, 3)
    assert [each.line for each in imported.problems] == [2 * MAX_LINKS + 6, 2 * MAX_LINKS + 1, 2 * MAX_LINKS + 3]
    memory = await memories.get("hub")
    assert (memory.text, len(memory.links)) == ("one", MAX_LINKS)
