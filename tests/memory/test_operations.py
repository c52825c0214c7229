"""What can be done with memories, and what each operation leaves as it was."""

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from memory.clock import START, Clock
from memory.consistency import assert_consistent
from memory.peek import peek, peek_all
from pegboard.result import Conflict, ToolErrorCode, ToolFailure
from pegboard.storage.database import Database, DatabaseConnection
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Brief, Link, order_links

pytestmark = pytest.mark.anyio

MINUTES = 60.0
Act = Callable[[Memories], Awaitable[object]]


async def refused(operation: Awaitable[object], *words: str, code: str = "TOOL_INVALID_INPUT") -> str:
    """The message of an operation that must be refused, with all of these words in it."""
    with pytest.raises(ToolFailure) as caught:
        await operation
    error = caught.value.error
    assert error.code == ToolErrorCode(code)
    assert not error.retryable
    for word in words:
        assert word in error.message
    return error.message


async def everything(database: Database) -> list[list[tuple[Any, ...]]]:
    """Every row of every table, to see that nothing changed."""
    tables = ("memory_spaces", "memories", "memory_links", "memory_terms", "memory_words", "memory_spelt")
    return await database.read(
        lambda connection: [sorted(connection.rows(f"SELECT * FROM {name}"), key=repr) for name in tables]
    )


def keys(links: Any) -> list[str]:
    """Where links lead."""
    return [link.key for link in links]


# Adding


async def test_a_memory_comes_back_as_it_was_written(memories: Memories) -> None:
    """Every part of a memory is kept exactly, whatever characters it has."""
    text = "line one\n\ttab  two spaces \u202eRTL 日本語 🎉 '\"%_\\ \x01 é e\u0301 "
    links = [Link("b", "bug", "refund", 0.8), Link("c", "design")]
    written, created = await memories.add("shop:a", " a summary ", text, links)
    read = await memories.get("shop:a", sort_links=False)
    assert created
    assert (read.key, read.namespace, read.summary, read.text) == ("shop:a", "home", " a summary ", text)
    assert read.links == links == [Link("b", "bug", "refund", 0.8), Link("c", "design", "", 0.5)]
    assert (written.text, written.version, read.version) == (text, 1, 1)


async def test_only_a_key_is_needed(memories: Memories, clock: Clock) -> None:
    """Summary, text and links may be empty; a new memory starts at 50 and is active."""
    await memories.add("bare")
    clock.forward(1)
    memory = await peek(memories, "bare")
    assert (memory.summary, memory.text, list(memory.links)) == ("", "", [])
    assert memory.meta.score == pytest.approx(50, abs=0.01)
    assert memory.meta.status == "active"
    assert (memory.meta.created_at, memory.meta.updated_at, memory.meta.last_accessed_at) == (START, START, START)


async def test_an_existing_key_is_refused(memories: Memories, database: Database) -> None:
    """Adding a key again is an error that says what to do, and changes nothing."""
    await memories.add("a", "one", "first", [Link("b", "bug")])
    before = await everything(database)
    with pytest.raises(Conflict, match="memory_update, or replace"):
        await memories.add("a", "two", "second")
    assert await everything(database) == before


async def test_replacing_keeps_what_leads_to_a_memory(memories: Memories, database: Database, clock: Clock) -> None:
    """`replace` puts other words and links in place; incoming links, created_at, score and use stay."""
    await memories.add("a", "one", "first wording", [Link("x", "bug")])
    await memories.add("b", links=[Link("a", "design")])
    for _ in range(3):
        await memories.get("a")
    clock.forward(5 * MINUTES)
    before = await peek(memories, "a")
    after, created = await memories.add("a", "two", "second wording", [Link("y", "bug")], replace=True)
    assert not created
    assert (after.summary, after.text, keys(after.links), after.version) == ("two", "second wording", ["y"], 2)
    assert after.meta == replace(before.meta, updated_at=clock.now)
    assert after.meta.in_degree == 1
    assert keys((await memories.get("b")).links) == ["a"]
    assert [hit.key for hit in (await memories.search("second")).items] == ["a"]
    assert (await memories.search("first")).total == 0
    await assert_consistent(database)


async def test_replacing_what_is_not_there_adds_it(memories: Memories) -> None:
    """`replace` is no demand that there is something to replace."""
    assert (await memories.add("a", replace=True))[1]


# Looking


async def test_what_is_not_there_is_said_so(memories: Memories) -> None:
    """An unknown key is `TOOL_NOT_FOUND`, with key and namespace in the message, for every operation on one memory."""
    acts: list[Act] = [
        lambda m: m.get("nope"),
        lambda m: m.update("nope", text="x"),
        lambda m: m.rename("nope", "other"),
        lambda m: m.delete("nope"),
        lambda m: m.read_linked("nope"),
    ]
    for act in acts:
        await refused(act(memories), '"nope"', '"home"', code="TOOL_NOT_FOUND")


async def test_looking_counts(memories: Memories, clock: Clock) -> None:
    """A get and the start of a walk are accesses; what a walk comes along is traversed; lists, searches and what
    the page shows of one are not."""
    await memories.add("a", links=[Link("b", "bug")])
    await memories.add("b")
    clock.forward(10)
    await memories.get("a")
    clock.forward(10)
    await memories.read_linked("a")
    await memories.list()
    await memories.search("a b")
    clock.forward(10)
    before = await memories.whole("a")
    await memories.neighbourhood("a")
    assert await memories.whole("a") == before
    first, second = await peek(memories, "a"), await peek(memories, "b")
    assert (first.meta.access_count, first.meta.traverse_count, first.meta.last_accessed_at) == (2, 0, START + 20)
    assert (second.meta.access_count, second.meta.traverse_count, second.meta.last_accessed_at) == (0, 1, START)
    assert (first.version, first.meta.updated_at) == (1, START)


# Changing


async def test_an_update_changes_what_is_given(memories: Memories, database: Database, clock: Clock) -> None:
    """What is left out stays; the version counts each change; the index knows the new words."""
    await memories.add("a", "alpha", "beta", [Link("x", "bug")])
    clock.forward(7)
    assert (await memories.update("a", summary="gamma")).version == 2
    assert (await memories.update("a", text="delta", version=2)).version == 3
    assert (await memories.update("a", links=[])).version == 4
    memory = await memories.update("a", summary="", text="epsilon", links=[Link("z", "design")])
    assert (memory.summary, memory.text, keys(memory.links), memory.version) == ("", "epsilon", ["z"], 5)
    assert (memory.meta.created_at, memory.meta.updated_at) == (START, START + 7)
    for word in ("alpha", "beta", "gamma", "delta"):
        assert (await memories.search(word)).total == 0
    assert (await memories.search("epsilon")).total == 1
    await assert_consistent(database)


async def test_an_update_with_nothing_is_refused(memories: Memories) -> None:
    """The message says what could be given."""
    await memories.add("a")
    await refused(memories.update("a", version=1), "summary, text or links")


async def test_a_stale_version_is_refused(memories: Memories, database: Database) -> None:
    """Whoever read an older version, or one that never was, changes nothing and is told the present one."""
    await memories.add("a", "one")
    await memories.update("a", summary="two")
    before = await everything(database)
    for stale in (1, 3, 2**80):
        with pytest.raises(Conflict, match="at version 2"):
            await memories.update("a", summary="three", text="x", links=[Link("b", "bug")], version=stale)
    assert await everything(database) == before


# Renaming


async def test_renaming_keeps_links_score_and_history(memories: Memories, database: Database, clock: Clock) -> None:
    """Links to and from a memory, also its own to itself, its use, score and times go along with it."""
    await memories.add("a", "Alpha", "wording", [Link("b", "bug", "t", 0.9), Link("a", "design")])
    await memories.add("b", links=[Link("c", "bug"), Link("a", "bug", "back", 0.2)])
    await memories.get("a")
    clock.forward(3 * MINUTES)
    before = await peek(memories, "a")
    after = await memories.rename("a", "z:new-name")
    assert after.meta == replace(before.meta, updated_at=clock.now)
    assert (after.summary, after.text, after.version) == ("Alpha", "wording", 2)
    assert [(link.key, link.type) for link in after.links] == [("b", "bug"), ("z:new-name", "design")]
    incoming = await memories.get("b", sort_links=False)
    assert incoming.links == [Link("c", "bug"), Link("z:new-name", "bug", "back", 0.2)]
    await refused(memories.get("a"), code="TOOL_NOT_FOUND")
    assert [hit.key for hit in (await memories.search("name")).items] == ["z:new-name"]
    await assert_consistent(database)


async def test_renaming_merges_links_that_become_the_same(memories: Memories) -> None:
    """A memory that waited for the new key and had a link to the old one keeps the stronger link of each type."""
    await memories.add("old")
    await memories.add("b", links=[Link("new", "bug", "waiting", 0.1), Link("old", "bug", "real", 0.9)])
    await memories.add("c", links=[Link("new", "bug"), Link("old", "design")])
    await memories.add("d", links=[Link("new", "bug", "waiting", 0.9), Link("old", "bug", "real", 0.1)])
    await memories.add("e", links=[Link("new", "bug", "waiting"), Link("old", "bug", "real")])
    renamed = await memories.rename("old", "new")
    assert (await memories.get("b")).links == [Link("new", "bug", "real", 0.9)]
    assert {link.type for link in (await memories.get("c")).links} == {"bug", "design"}
    assert (await memories.get("d")).links == [Link("new", "bug", "waiting", 0.9)]
    assert (await memories.get("e")).links == [Link("new", "bug", "real", 0.5)]
    assert renamed.meta.in_degree == 5


async def test_renaming_onto_another_is_refused(memories: Memories, database: Database) -> None:
    """A key that is taken stays with whom it has; the same key again is nothing."""
    await memories.add("a", links=[Link("b", "bug")])
    await memories.add("b")
    before = await everything(database)
    with pytest.raises(Conflict, match="new_key"):
        await memories.rename("a", "b")
    assert (await memories.rename("a", "a")).version == 1
    assert await everything(database) == before


# Deleting


async def test_deleting_takes_a_memory_and_its_own_links(memories: Memories, database: Database) -> None:
    """Links that lead to it stay and join up when it comes back, as a new memory with a new score."""
    await memories.add("a", "Alpha", "unicorn", [Link("b", "bug")])
    await memories.add("b", links=[Link("a", "bug")])
    await memories.get("a")
    gone = await memories.delete("a")
    assert (gone.key, gone.text) == ("a", "unicorn")
    b = await memories.get("b")
    assert (keys(b.links), b.meta.in_degree, b.meta.out_degree) == (["a"], 0, 1)
    assert (await memories.search("unicorn")).total == 0
    assert (await memories.list()).total == 1
    await refused(memories.delete("a"), code="TOOL_NOT_FOUND")
    again, _ = await memories.add("a")
    assert (again.version, again.meta.access_count, again.meta.in_degree, again.meta.out_degree) == (1, 0, 1, 0)
    await assert_consistent(database)


# Links


async def test_links_join_up_when_their_target_is_written(memories: Memories) -> None:
    """A link may point to a memory that is not there; once it is, degrees and walks know it."""
    await memories.add("a", links=[Link("later", "bug")])
    assert [step.memory.key for step in await memories.read_linked("a")] == ["a"]
    assert (await peek(memories, "a")).meta.out_degree == 1
    later, _ = await memories.add("later")
    assert later.meta.in_degree == 1
    assert [step.memory.key for step in await memories.read_linked("a")] == ["a", "later"]


async def test_links_are_unique_by_target_and_type(memories: Memories) -> None:
    """Of two links of the same type to the same memory the last counts; other types stand beside it."""
    memory, _ = await memories.add("a", links=[Link("b", "bug", "1"), Link("b", "design"), Link("b", "bug", "2", 0.9)])
    assert {(link.type, link.term) for link in memory.links} == {("bug", "2"), ("design", "")}
    assert memory.meta.out_degree == 2


async def test_degrees_are_true_after_every_operation(memories: Memories, database: Database) -> None:
    """After each step every degree equals a recount of all links."""
    steps: list[Act] = [
        lambda m: m.add("a", links=[Link("b", "bug"), Link("a", "bug")]),
        lambda m: m.add("b", links=[Link("a", "bug"), Link("c", "bug")]),
        lambda m: m.add("c"),
        lambda m: m.update("a", links=[Link("c", "bug"), Link("c", "design")]),
        lambda m: m.rename("c", "d"),
        lambda m: m.add("b", links=[Link("d", "bug")], replace=True),
        lambda m: m.delete("d"),
        lambda m: m.add("d", links=[Link("a", "bug")]),
        lambda m: m.delete("a"),
    ]
    for step in steps:
        await step(memories)
        there = {memory.key: memory for memory in await peek_all(memories)}
        every = [link.key for memory in there.values() for link in memory.links]
        for key, memory in there.items():
            assert memory.meta.in_degree == every.count(key)
            assert memory.meta.out_degree == len(memory.links)
            assert (await memories.get(key)).meta.in_degree == memory.meta.in_degree
    await assert_consistent(database)


async def written_for_order(memories: Memories, clock: Clock) -> list[str]:
    """A memory `from` whose links lead to memories of different scores; the order that they should have."""
    await memories.add("loved", "word")
    await memories.add("plain", "word")
    await memories.add("tie-b", "word")
    await memories.add("tie-a", "word")
    await memories.add(
        "from",
        "needle",
        links=[
            Link("tie-b", "bug", weight=0.5),
            Link("missing", "bug", weight=0.8),
            Link("plain", "bug", weight=0.7),
            Link("tie-a", "bug", weight=0.5),
            Link("nothing", "bug", weight=0.0),
            Link("loved", "bug", weight=0.7),
            Link("absent", "bug", weight=0.0),
        ],
    )
    for _ in range(5):
        await memories.get("loved")
    clock.forward(1)
    # missing: 0.8 x 50 = 40; plain: 0.7 x 51; loved: 0.7 x 59 = 41; ties by key.
    return ["loved", "missing", "plain", "tie-a", "tie-b", "absent", "nothing"]


async def test_links_have_one_order_everywhere(memories: Memories, clock: Clock) -> None:
    """Weight times the target's score, then weight, then key; a missing target counts 50; in get, search and walk."""
    order = await written_for_order(memories, clock)
    assert keys((await memories.get("from")).links) == order
    assert keys((await memories.search("needle")).items[0].links) == order
    assert keys((await memories.fulltext(["needle"])).items[0].links) == order
    assert keys((await memories.read_linked("from"))[0].memory.links) == order
    assert keys((await memories.update("from", text="x")).links) == order
    assert [step.memory.key for step in await memories.read_linked("from")] == [
        "from",
        "loved",
        "plain",
        "tie-a",
        "tie-b",
    ]


async def test_unsorted_links_have_the_order_they_were_written_in(memories: Memories, clock: Clock) -> None:
    """`sortLinks: false` shows links as they were given, and a walk follows them so."""
    await written_for_order(memories, clock)
    written = ["tie-b", "missing", "plain", "tie-a", "nothing", "loved", "absent"]
    assert keys((await memories.get("from", sort_links=False)).links) == written
    assert keys((await memories.search("needle", sort_links=False)).items[0].links) == written
    assert keys((await memories.fulltext(["needle"], sort_links=False)).items[0].links) == written
    walk = await memories.read_linked("from", sort_links=False)
    assert keys(walk[0].memory.links) == written
    assert [step.memory.key for step in walk] == ["from", "tie-b", "plain", "tie-a", "loved"]


async def test_equal_products_are_ordered_by_weight(memories: Memories) -> None:
    """Where weight times score is the same, the heavier link comes first."""
    links = [Link("x", "bug", weight=0.0), Link("c", "bug", weight=0.25), Link("b", "bug", weight=0.5)]
    await memories.add("a", links=links)
    assert keys((await memories.get("a")).links) == ["b", "c", "x"]


# Walking


async def test_a_walk_has_the_nearest_first(memories: Memories) -> None:
    """Each memory once, with its distance, within depth, breadth and total, through circles too."""
    for number in range(8):
        onward = [Link(f"m{number + 1}", "design"), Link("m0", "bug")]
        await memories.add(f"m{number}", links=onward)
    for number in range(8):
        await memories.add(f"leaf{number}")
    await memories.update("m0", links=[Link("m1", "bug", weight=1), *(Link(f"leaf{n}", "bug") for n in range(8))])

    async def walk(depth: int = 3, breadth: int = 5, total: int = 20) -> list[tuple[str, int]]:
        return [(step.memory.key, step.depth) for step in await memories.read_linked("m0", depth, breadth, total)]

    first = [("m0", 0), ("m1", 1), ("leaf0", 1), ("leaf1", 1), ("leaf2", 1), ("leaf3", 1)]
    assert await walk() == [*first, ("m2", 2), ("m3", 3)]
    assert await walk(depth=1, breadth=2) == first[:3]
    assert await walk(total=1) == first[:1]
    assert await walk(total=3) == first[:3]
    assert len(await walk(depth=6, breadth=20, total=50)) == 15
    assert (await walk(depth=6, breadth=1))[-1] == ("m6", 6)


# Lists


async def test_lists_are_ordered_and_paged(memories: Memories, clock: Clock) -> None:
    """By key in code point order, or the latest change first; total counts all; pages have no doubles and no gaps."""
    order = ["B", "a", "a_b", "a%", "aXb", "é", "日"]
    for key in order:
        await memories.add(key)
        clock.forward(1)
    await memories.update("a", text="later")
    by_key = [memory.key for memory in (await memories.list()).items]
    assert by_key == sorted(order)
    recent = [memory.key for memory in (await memories.list(order="recent")).items]
    assert recent == ["a", "日", "é", "aXb", "a%", "a_b", "B"]
    pages = [await memories.list(limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [memory.key for page in pages for memory in page.items] == by_key
    assert {page.total for page in pages} == {7}


async def test_a_list_tells_of_each_what_is_known(memories: Memories, clock: Clock) -> None:
    """Summary, version, degrees and score are those of the memory itself; nobody's access counts."""
    await memories.add("a", "first", "text", [Link("b", "bug"), Link("c", "bug")])
    await memories.add("b", "second", "text", [Link("a", "bug")])
    await memories.update("b", text="other")
    await memories.get("a")
    clock.forward(600)
    page = await memories.list()
    for brief, memory in zip(page.items, await peek_all(memories), strict=True):
        assert brief == Brief(
            key=memory.key,
            namespace="home",
            summary=memory.summary,
            version=memory.version,
            meta=memory.meta,
        )


async def test_a_list_reads_only_what_it_shows(memories: Memories, database: Database) -> None:
    """However long texts are and however many links, they are not loaded; nor are keys looked at behind the prefix."""
    await memories.add("a", "summary", "t" * 1000, [Link("b", "bug")])
    statements: list[str] = []

    class Watched:
        """A connection that tells what it is asked."""

        def __init__(self, connection: DatabaseConnection) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def rows(self, sql: str, *params: Any) -> Any:
            statements.append(sql)
            return self._connection.rows(sql, *params)

    class WatchedDatabase:
        async def read(self, work: Callable[[Any], Any]) -> Any:
            return await database.read(lambda connection: work(Watched(connection)))

    memories._database = WatchedDatabase()  # pyright: ignore[reportAttributeAccessIssue]
    assert (await memories.list("a")).items[0].meta.out_degree == 1
    assert any("key >= ? AND key < ?" in sql for sql in statements)
    assert not [sql for sql in statements if "text" in sql or "SELECT source, target" in sql]


async def test_prefixes_are_plain_text(memories: Memories) -> None:
    """`%`, `_` and case mean themselves in a prefix."""
    last = "\U0010ffff"
    edges = ["z\ud7ff", "z\ud7ffa", "z\ue000", f"z{last}", f"z{last}a", last]
    for key in ("a_b", "aXb", "a%c", "A_b", "%", "日本:x", "日本語", *edges):
        await memories.add(key)

    async def listed(prefix: str) -> list[str]:
        page = await memories.list(prefix)
        assert page.total == len(page.items)
        return [memory.key for memory in page.items]

    assert await listed("a_") == ["a_b"]
    assert await listed("a%") == ["a%c"]
    assert await listed("%") == ["%"]
    assert await listed("日本") == ["日本:x", "日本語"]
    assert await listed("a" * 300) == []
    for prefix in ("z", "z\ud7ff", "z\ue000", f"z{last}", last, f"z{last}{last}"):
        assert await listed(prefix) == sorted(key for key in edges if key.startswith(prefix))


# Namespaces


async def test_the_default_namespace_is_the_constructors(database: Database) -> None:
    """Where nothing is said it is the one that the memories were made with, for every operation."""
    red, blue, plain = Memories(database, namespace="red"), Memories(database, namespace="blue"), Memories(database)
    await red.add("a", "crimson")
    assert (await red.get("a")).namespace == "red"
    assert (await blue.get("a", namespace="red")).summary == "crimson"
    await refused(blue.get("a"), '"blue"', code="TOOL_NOT_FOUND")
    assert (await plain.add("a"))[0].namespace == "default"


NAMES = ("home", "hom_", "h%", "%", "_", "HOME", "home ", "ho", "日本", "'; --")


async def test_namespaces_never_meet(memories: Memories, database: Database) -> None:
    """The same keys and words in many namespaces; each operation sees and changes its own only."""
    for name in NAMES:
        await memories.add("a", f"word {name}", "needle common", [Link("b", "bug")], namespace=name)
        await memories.add("b", "needle", namespace=name)
    for name in NAMES:
        assert [m.key for m in (await memories.list(namespace=name)).items] == ["a", "b"]
        for found in (
            await memories.search("needle", namespace=name),
            await memories.fulltext(["needle"], namespace=name),
        ):
            assert found.total == len(found.items) == 2
        assert (await memories.get("a", namespace=name)).summary == f"word {name}"
        assert (await memories.get("b", namespace=name)).meta.in_degree == 1
        walk = await memories.read_linked("a", namespace=name)
        assert {step.memory.namespace for step in walk} == {name}
        assert len(walk) == 2
    await memories.rename("b", "c", namespace="hom_")
    await memories.update("a", text="changed", namespace="h%")
    await memories.delete("a", namespace="_")
    await memories.add("a", "replaced", namespace="HOME", replace=True)
    home = await memories.get("a", namespace="home")
    assert (home.summary, home.text, keys(home.links), home.version) == ("word home", "needle common", ["b"], 1)
    assert keys((await memories.get("a", namespace="%")).links) == ["b"]
    assert (await memories.list(namespace="%")).total == 2
    assert (await memories.list(namespace="_")).total == 1
    assert (await memories.search("changed", namespace="home")).total == 0
    assert (await memories.list(namespace="unknown")).total == 0
    assert (await memories.search("needle", namespace="unknown")).total == 0
    await assert_consistent(database)


async def test_accents_are_one_key_however_they_are_typed(memories: Memories, database: Database) -> None:
    """A letter and its accent, as one character or as two: it is the same everywhere."""
    one, two = "caf\u00e9", "cafe\u0301"
    await memories.add(two, links=[Link(f"{two}:b", "bug"), Link(f"{one}:b", "bug", "the same")], namespace=two)
    with pytest.raises(Conflict):
        await memories.add(one, namespace=one)
    memory = await memories.get(two, namespace=one)
    assert (memory.key, memory.namespace, memory.links) == (one, one, [Link(f"{one}:b", "bug", "the same")])
    await memories.add(f"{two}:b", namespace=one)
    assert len(await memories.read_linked(one, namespace=two)) == 2
    for prefix in (one, two):
        assert (await memories.list(prefix, namespace=one)).total == 2
    await memories.update(two, text="x", namespace=two)
    await memories.rename(two, f"{two}:c", namespace=two)
    assert (await memories.delete(f"{two}:c", namespace=two)).key == f"{one}:c"
    await assert_consistent(database)


# Refusals

SURROGATE = "half \ud83d"
LONG_KEY = "k" * 513
WRONG: Mapping[str, tuple[str, Act]] = {
    "empty key": ("key", lambda m: m.add("")),
    "blank key": ("key", lambda m: m.add(" \u3000")),
    "NUL in key": ("key", lambda m: m.add("a\0b")),
    "line in key": ("key", lambda m: m.add("a\nb")),
    "unseen key": ("key", lambda m: m.add("\u200b \u2060\u202e")),
    "surrogate in key": ("key", lambda m: m.add(SURROGATE)),
    "long key": ("key", lambda m: m.add(LONG_KEY)),
    "NUL in summary": ("summary", lambda m: m.add("new", "a\0b")),
    "surrogate in summary": ("summary", lambda m: m.add("new", SURROGATE)),
    "long summary": ("summary", lambda m: m.add("new", "s" * 4001)),
    "NUL in text": ("text", lambda m: m.add("new", "", "a\0b")),
    "surrogate in text": ("text", lambda m: m.add("new", "", SURROGATE)),
    "long text": ("text", lambda m: m.add("new", "", "t" * 200_001)),
    "heavy link": ("weight", lambda m: m.add("new", links=[Link("b", "bug", weight=1.01)])),
    "light link": ("weight", lambda m: m.add("new", links=[Link("b", "bug", weight=-0.01)])),
    "link of no weight": ("weight", lambda m: m.add("new", links=[Link("b", "bug", weight=math.nan)])),
    "link to nothing": ("links", lambda m: m.add("new", links=[Link("", "bug")])),
    "link of no type": ("links", lambda m: m.add("new", links=[Link("b", "")])),
    "NUL in a link": ("links", lambda m: m.add("new", links=[Link("b", "bug", "a\0b")])),
    "surrogate in a link": ("links", lambda m: m.add("new", links=[Link("b", "bug", SURROGATE)])),
    "long term": ("links", lambda m: m.add("new", links=[Link("b", "bug", "t" * 201)])),
    "many links": ("links", lambda m: m.add("new", links=[Link(f"k{n}", "bug") for n in range(501)])),
    "replace NUL": ("text", lambda m: m.add("a", "", "a\0b", replace=True)),
    "update NUL": ("text", lambda m: m.update("a", text="a\0b")),
    "update long": ("summary", lambda m: m.update("a", summary="s" * 4001)),
    "update links": ("links", lambda m: m.update("a", links=[Link(f"k{n}", "bug") for n in range(501)])),
    "update key": ("key", lambda m: m.update(SURROGATE, text="x")),
    "get NUL": ("key", lambda m: m.get("a\0")),
    "get long": ("key", lambda m: m.get("k" * 100_000)),
    "delete surrogate": ("key", lambda m: m.delete("\ud800")),
    "linked NUL": ("key", lambda m: m.read_linked("a\0")),
    "rename from NUL": ("old_key", lambda m: m.rename("a\0", "b")),
    "rename to NUL": ("new_key", lambda m: m.rename("a", "b\0")),
    "rename to nothing": ("new_key", lambda m: m.rename("a", "")),
    "rename to a long key": ("new_key", lambda m: m.rename("a", LONG_KEY)),
    "unseen namespace": ("namespace", lambda m: m.add("new", namespace="\u200b")),
    "unseen link": ("links", lambda m: m.add("new", links=[Link("\ufeff", "bug")])),
    "empty namespace": ("namespace", lambda m: m.add("new", namespace="")),
    "NUL in namespace": ("namespace", lambda m: m.add("new", namespace="a\0")),
    "long namespace": ("namespace", lambda m: m.list(namespace="n" * 129)),
    "namespace of a search": ("namespace", lambda m: m.search("x", namespace="\ud800")),
    "list prefix": ("prefix", lambda m: m.list("\0")),
    "list order": ("order", lambda m: m.list(order="size")),
    "no limit": ("limit", lambda m: m.list(limit=0)),
    "high limit": ("limit", lambda m: m.search("x", limit=101)),
    "half a limit": ("limit", lambda m: m.search("x", limit=2.5)),  # pyright: ignore[reportArgumentType]
    "true limit": ("limit", lambda m: m.search("x", limit=True)),
    "negative offset": ("offset", lambda m: m.fulltext(["x"], offset=-1)),
    "endless offset": ("offset", lambda m: m.list(offset=2**70)),
    "operator": ("operator", lambda m: m.fulltext(["x"], "XOR")),  # pyright: ignore[reportArgumentType]
    "NUL in query": ("query", lambda m: m.search("a\0b")),
    "surrogate in query": ("query", lambda m: m.search(SURROGATE)),
    "NUL in keywords": ("keywords", lambda m: m.fulltext(["a", "\0"])),
    "many keywords": ("keywords", lambda m: m.fulltext([f"k{n}" for n in range(65)])),
    "depth": ("depth", lambda m: m.read_linked("a", depth=7)),
    "breadth": ("breadth", lambda m: m.read_linked("a", breadth=0)),
    "total": ("total", lambda m: m.read_linked("a", total=51)),
}


async def test_what_cannot_be_kept_is_refused(memories: Memories, database: Database) -> None:
    """Each refusal names the parameter and is short, and nothing at all is changed by it."""
    await memories.add("a", "Alpha", links=[Link("b", "bug")])
    await memories.add("a\N{REPLACEMENT CHARACTER}", "what NUL would become")
    before = await everything(database)
    for parameter, act in WRONG.values():
        message = await refused(act(memories), parameter)
        assert len(message) < 300
    assert await everything(database) == before


async def test_the_limits_themselves_are_allowed(memories: Memories, database: Database) -> None:
    """The longest key, summary, text, namespace, and the most links and keywords are kept, and found."""
    links = [Link("t" * 506 + f"{n:06}", "y" * 64, "m" * 200, 1.0) for n in range(500)]
    key, namespace = "日" * 512, "n" * 128
    words = " ".join(f"w{n}" for n in range(40_000))[:200_000]
    await memories.add(key, "s" * 4000, words, links, namespace=namespace)
    memory = await memories.get(key, namespace=namespace)
    assert (len(memory.text), len(memory.links), memory.meta.out_degree) == (200_000, 500, 500)
    assert (await memories.search("w29999", namespace=namespace)).total == 1
    assert (await memories.fulltext([f"w{n}" for n in range(64)], "AND", namespace=namespace)).total == 1
    assert (await memories.list(key[:511], limit=100, offset=0, namespace=namespace)).total == 1
    await assert_consistent(database)


async def test_a_text_of_very_many_words_is_kept_or_refused(memories: Memories, database: Database) -> None:
    """A long Chinese text is found by any part; one with more words than can be indexed is refused on both."""
    chance = random.Random(5)
    text = "".join(chr(chance.randrange(0x4E00, 0x7000)) if n % 40 else "。" for n in range(60_000))
    await memories.add("long", text=text)
    for at in (1, 30_001, 59_990):
        assert (await memories.fulltext([text[at : at + 6]])).total == 1
    scattered = "".join(chr(chance.randrange(0x20000, 0x2A000)) for _ in range(200_000))
    await refused(memories.add("wide", text=scattered), "text")
    await assert_consistent(database)


# Score


def expected_score(base: float, accesses: int, degree: int, elapsed: float) -> float:
    """The formula of the facts, written out once more."""
    quarters = elapsed / 900
    time_factor = 0.95 + 0.05 * math.e**-quarters
    f = accesses / (1 + quarters)
    usage = 10 - 10 / (f + 1)
    structure = 5 * degree / (degree + 5)
    return max(0.0, min(100.0, base * time_factor + usage + structure))


async def test_the_score_follows_the_facts(memories: Memories, clock: Clock) -> None:
    """Over use, links and time, also where the clock was set back, the score is the formula of what is stored."""
    await memories.add("a", links=[Link("b", "bug"), Link("c", "bug")])
    await memories.add("b", links=[Link("a", "bug")])
    for accesses, pause in enumerate((0.0, 1.0, 60.0, 900.0, 3600.0, 86_400.0, 1e9), 1):
        await memories.get("a")
        for elapsed in (0.0, pause):
            clock.forward(elapsed)
            seen = (await peek(memories, "a")).meta
            assert seen.score == pytest.approx(expected_score(50, accesses, 3, elapsed), abs=1e-9)
            assert seen.status == ("active" if clock.now - START < 86_400 else "cold")
            assert (await memories.search("a")).items[0].score == pytest.approx(seen.score, abs=1e-9)
    await memories.get("a")
    clock.forward(-500)
    assert (await peek(memories, "a")).meta.score == pytest.approx(expected_score(50, 8, 3, 0), abs=1e-9)


async def test_reading_a_new_memory_leaves_it_active(memories: Memories, clock: Clock) -> None:
    """It is new for a day, whoever looks at it; after that its score counts, which no use brings to 70 by itself."""
    await memories.add("a", links=[Link(f"b{n}", "bug") for n in range(100)])
    clock.forward(86_399)
    for _ in range(100):
        assert (await memories.get("a")).meta.status == "active"
    clock.forward(1)
    memory = await memories.get("a")
    assert (memory.meta.status, 64 < memory.meta.score < 65) == ("cold", True)


@pytest.mark.parametrize(
    ("base", "status"), [(0.0, "deprecated"), (29.9, "deprecated"), (31.6, "cold"), (100.0, "active")]
)
async def test_the_status_follows_the_score(
    memories: Memories, database: Database, clock: Clock, base: float, status: str
) -> None:
    """Active from 70, cold from 30, deprecated below; what is new counts as active; scores end at 0 and 100."""
    await memories.add("a")
    await database.write(lambda connection: connection.execute("UPDATE memories SET base = ?", base))
    assert (await peek(memories, "a")).meta.status == "active"
    clock.forward(30 * 86_400)
    memory = await peek(memories, "a")
    assert memory.meta.status == status
    assert 0 <= memory.meta.score <= 100
    for _ in range(50):
        memory = await memories.get("a")
    assert 0 <= memory.meta.score <= 100


def test_links_of_the_same_worth_are_ordered_by_key() -> None:
    """Scores count as they are shown: what differs behind the second place is no difference."""
    links = [Link("b", "see"), Link("a", "see"), Link("c", "see", weight=1.0)]
    assert keys(order_links(links, {"a": 50.0011, "b": 50.0012, "c": 25.0})) == ["c", "a", "b"]
