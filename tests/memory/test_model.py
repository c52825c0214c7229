"""Memories behave like a plain dictionary of them, whatever is done in whichever order."""

import asyncio
import itertools
import math
from collections.abc import Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from memory.clock import Clock
from memory.consistency import assert_consistent
from memory.peek import peek_all
from pegboard.result import ToolFailure
from pegboard.storage import Storage, open_storage
from pegboard.storage.database import DatabaseConnection
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link, Memory

T = TypeVar("T")
SPACES = ("red", "r_d")
KEYS = ("a", "b", "b:c", "B", "日本")
NUMBERS = itertools.count()

keys = st.sampled_from(KEYS)
spaces = st.sampled_from(SPACES)
links = st.lists(
    st.builds(
        Link,
        st.sampled_from([*KEYS, "nowhere"]),
        st.sampled_from(["bug", "design"]),
        st.sampled_from(["", "term"]),
        st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    ),
    max_size=4,
)
words = st.sampled_from(["", "alpha", "alpha beta", "beta gamma", "GitHub 日本語 alpha", "connecting connect"])


@dataclass
class Note:
    """What a memory is, in the model."""

    unique: str
    summary: str
    text: str
    created: float
    updated: float
    accessed: float
    version: int = 1
    accesses: int = 0
    traverses: int = 0
    links: dict[tuple[str, str], Link] = field(default_factory=dict[tuple[str, str], Link])


class Model:
    """One namespace."""

    def __init__(self) -> None:
        self.notes: dict[str, Note] = {}

    def in_degree(self, key: str) -> int:
        return sum(target == key for note in self.notes.values() for target, _ in note.links)

    def score(self, key: str, now: float) -> float:
        """The formula of the facts; what is not written counts 50."""
        note = self.notes.get(key)
        if note is None:
            return 50.0
        quarters = (now - note.accessed) / 900
        f = note.accesses / (1 + quarters)
        d = self.in_degree(key) + len(note.links)
        return 50 * (1 - 0.05 * (1 - math.exp(-quarters))) + 10 * f / (f + 1) + 5 * d / (d + 5)

    def in_order(self, note: Note, now: float) -> list[Link]:
        """Sorted as links are shown, by scores of two places."""

        def place(link: Link) -> tuple[float, float, str, str]:
            worth = round(link.weight * round(self.score(link.key, now), 2), 2)
            return -worth, -link.weight, link.key, link.type

        return sorted(note.links.values(), key=place)

    def rename(self, old: str, new: str) -> None:
        """The links to it follow; of two that become the same the stronger stays, else the one that led to it."""
        self.notes[new] = self.notes.pop(old)
        for note in self.notes.values():
            kept: dict[tuple[str, str], Link] = {}
            for link in note.links.values():
                other = note.links.get((new if link.key == old else old, link.type)) if link.key in {old, new} else None
                if other and (link.weight < other.weight or (link.key == new and link.weight == other.weight)):
                    continue
                key = new if link.key == old else link.key
                kept[key, link.type] = Link(key, link.type, link.term, link.weight)
            note.links = kept


def _clear(connection: DatabaseConnection) -> None:
    names = ("terms", "links", "words", "spelt")
    for table in (*(f"memory_{name}" for name in names), "memories", "memory_spaces"):
        connection.execute(f"DELETE FROM {table}")
    if connection.dialect == "sqlite":
        connection.execute("INSERT INTO memory_spellings (memory_spellings) VALUES ('delete-all')")
    else:
        connection.execute("DELETE FROM memory_spellings")


class Machine(RuleBasedStateMachine):
    """Does the same to both, and compares all there is."""

    # Set by the test.
    place: str
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.models = {name: Model() for name in SPACES}
        self.clock = Clock()
        self.storage: Storage | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        self.storage = open_storage(self.place)
        self.run(self.storage.open())
        self.run(self._clear())
        self.memories = Memories(self.storage.database, clock=self.clock)

    async def _clear(self) -> None:
        """As if it were a new database, which would take longer to make."""
        assert self.storage is not None
        await self.storage.database.write(_clear)

    def teardown(self) -> None:
        if self.storage is not None:
            self.run(assert_consistent(self.storage.database))
            self.run(self.storage.close())

    @rule(seconds=st.sampled_from([0.5, 60.0, 3600.0]))
    def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)

    @rule(space=spaces, key=keys, summary=words, text=words, links=links, replace=st.booleans())
    def add(self, space: str, key: str, summary: str, text: str, links: list[Link], replace: bool) -> None:
        notes, unique = self.models[space].notes, f"uniq{next(NUMBERS)}"
        adding = self.memories.add(key, summary, f"{text} {unique}", links, namespace=space, replace=replace)
        if key in notes and not replace:
            with pytest.raises(ToolFailure, match="already"):
                self.run(adding)
            return
        now = self.clock.now
        note = notes.setdefault(key, Note("", "", "", now, now, now, version=0))
        note.unique, note.summary, note.text = unique, summary, f"{text} {unique}"
        note.links = {(link.key, link.type): link for link in links}
        note.version += 1
        note.updated = now
        written, created = self.run(adding)
        assert created == (note.version == 1 and note.created == now and note.accesses == 0)
        self.compare(space, written)

    @rule(
        space=spaces,
        key=keys,
        summary=st.none() | words,
        text=st.none() | words,
        links=st.none() | links,
        stale=st.sampled_from([None, 0, 0, 1]),
    )
    def update(
        self,
        space: str,
        key: str,
        summary: str | None,
        text: str | None,
        links: list[Link] | None,
        stale: int | None,
    ) -> None:
        note = self.models[space].notes.get(key)
        unique = f"uniq{next(NUMBERS)}"
        version = None if stale is None else (note.version if note else 1) + stale
        updating = self.memories.update(
            key,
            summary=summary,
            text=None if text is None else f"{text} {unique}",
            links=links,
            version=version,
            namespace=space,
        )
        if note is None or stale or (summary is None and text is None and links is None):
            with pytest.raises(ToolFailure):
                self.run(updating)
            return
        if summary is not None:
            note.summary = summary
        if text is not None:
            note.text, note.unique = f"{text} {unique}", unique
        if links is not None:
            note.links = {(link.key, link.type): link for link in links}
        note.version += 1
        note.updated = self.clock.now
        self.compare(space, self.run(updating))

    @rule(space=spaces, old=keys, new=keys)
    def rename(self, space: str, old: str, new: str) -> None:
        model = self.models[space]
        renaming = self.memories.rename(old, new, namespace=space)
        if old not in model.notes or (new in model.notes and new != old):
            with pytest.raises(ToolFailure):
                self.run(renaming)
            return
        if new != old:
            model.rename(old, new)
            model.notes[new].version += 1
            model.notes[new].updated = self.clock.now
        self.compare(space, self.run(renaming))

    @rule(space=spaces, key=keys)
    def delete(self, space: str, key: str) -> None:
        if self.models[space].notes.pop(key, None) is None:
            with pytest.raises(ToolFailure):
                self.run(self.memories.delete(key, namespace=space))
        else:
            assert self.run(self.memories.delete(key, namespace=space)).key == key

    @rule(space=spaces, key=keys)
    def get(self, space: str, key: str) -> None:
        note = self.models[space].notes.get(key)
        if note is None:
            with pytest.raises(ToolFailure):
                self.run(self.memories.get(key, namespace=space))
            return
        note.accesses += 1
        note.accessed = self.clock.now
        self.compare(space, self.run(self.memories.get(key, namespace=space)))

    @rule(space=spaces, key=keys, depth=st.integers(1, 3), breadth=st.integers(1, 3), total=st.integers(1, 6))
    def walk(self, space: str, key: str, depth: int, breadth: int, total: int) -> None:
        model = self.models[space]
        if key not in model.notes:
            return
        note = model.notes[key]
        note.accesses += 1
        note.accessed = self.clock.now
        expected = list(itertools.islice(self._walked(model, key, depth, breadth), total))
        steps = self.run(self.memories.read_linked(key, depth, breadth, total, namespace=space))
        assert [(step.memory.key, step.depth) for step in steps] == expected
        for other, _ in expected[1:]:
            model.notes[other].traverses += 1

    def _walked(self, model: Model, key: str, depth: int, breadth: int) -> Iterator[tuple[str, int]]:
        yield key, 0
        seen, edge = {key}, [key]
        for level in range(1, depth + 1):
            beyond: dict[str, None] = {}
            for each in edge:
                ordered = model.in_order(model.notes[each], self.clock.now)
                there = dict.fromkeys(link.key for link in ordered if link.key in model.notes and link.key not in seen)
                beyond.update(dict.fromkeys(itertools.islice(there, breadth)))
            seen |= beyond.keys()
            edge = list(beyond)
            yield from ((each, level) for each in edge)

    def compare(self, space: str, memory: Memory) -> None:
        """One memory, in full."""
        model, now = self.models[space], self.clock.now
        note = model.notes[memory.key]
        assert (memory.namespace, memory.summary, memory.text) == (space, note.summary, note.text)
        assert memory.version == note.version
        assert list(memory.links) == model.in_order(note, now)
        meta = memory.meta
        assert (meta.created_at, meta.updated_at, meta.last_accessed_at) == (note.created, note.updated, note.accessed)
        assert (meta.access_count, meta.traverse_count) == (note.accesses, note.traverses)
        assert (meta.in_degree, meta.out_degree) == (model.in_degree(memory.key), len(note.links))
        assert meta.score == pytest.approx(model.score(memory.key, now))

    @invariant()
    def everything_is_alike(self) -> None:
        if self.storage is None:
            return
        for space, model in self.models.items():
            page = self.run(self.memories.list(namespace=space))
            assert [memory.key for memory in page.items] == sorted(model.notes)
            assert page.total == len(model.notes)
            memories = self.run(peek_all(self.memories, space))
            assert [memory.meta for memory in page.items] == [memory.meta for memory in memories]
            for memory in memories:
                self.compare(space, memory)

    @rule(space=spaces)
    def search(self, space: str) -> None:
        """A unique word finds the memory that has it; another one those that have it; unsorted links are as written."""
        notes = self.models[space].notes
        for key, note in notes.items():
            found = self.run(self.memories.fulltext([note.unique], sort_links=False, namespace=space))
            assert [hit.key for hit in found.items] == [key]
            assert list(found.items[0].links) == list(note.links.values())
        for word in ("alpha", "github", "本"):
            found = self.run(self.memories.search(word, namespace=space))
            marks = ("日本",) if word == "本" else (word,)
            having = {
                key
                for key, note in notes.items()
                if any(mark in f"{key} {note.summary} {note.text}".lower() for mark in marks)
            }
            assert {hit.key for hit in found.items} == having
            assert found.total == len(having)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place, on each database in turn."""
    return f"sqlite:{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def runner() -> Generator[asyncio.Runner]:
    """A loop for all steps."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.parametrize(("place", "examples"), [("sqlite", 200), ("postgres", 60)], indirect=["place"])
def test_memories_are_like_the_model(
    place: str, examples: int, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents, links with their order, degrees, versions, times, scores, lists, walks and finds after every step."""
    monkeypatch.setattr(Machine, "place", place, raising=False)
    monkeypatch.setattr(Machine, "runner", runner, raising=False)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            derandomize=True,
        ),
    )
