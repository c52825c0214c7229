"""Whatever is done to files and registry in whichever order: what must hold, holds."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.clock import Clock
from pegboard.result import ToolFailure
from pegboard.storage import Storage, open_storage
from pegboard.toolsets.tasks.folder import Folder
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.state import State
from pegboard.toolsets.tasks.task import PRIORITIES, STATUSES, TaskId
from tasks.project import tasks_md

T = TypeVar("T")
CHANGES = ("a", "b", "c")
NUMBERS = itertools.count()


class World:
    """A storage and a loop that many examples share, each with a folder of its own."""

    def __init__(self, folder: Path, place: str) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._storage: Storage = open_storage(place)
        self.do(self._storage.open())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done."""
        return self._loop.run_until_complete(work)

    def registry(self) -> tuple[Registry, Path]:
        """A registry of an empty folder."""
        root = self._folder / f"project-{next(NUMBERS)}"
        (root / "openspec" / "changes").mkdir(parents=True)
        return self.beside(root), root

    def beside(self, root: Path) -> Registry:
        """Another registry of the same folder, which has seen nothing yet."""
        return Registry(self._storage.database, Project(here=lambda: root), clock=Clock())

    def close(self) -> None:
        """Let go of it."""
        self.do(self._storage.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


@pytest.fixture
def world(tmp_path: Path, place: str) -> Generator[World]:
    """On each database."""
    world = World(tmp_path, place)
    yield world
    world.close()


# A line of a file: whether it is ticked, what it says, what it depends on.
lines = st.tuples(
    st.booleans(),
    st.sampled_from(["Draw", "Check", "Ship", "Write tests", "1.1 Draw", "Draw the form", "Buy a house", "日本"]),
    st.lists(st.sampled_from(["1", "2", "3", "9", "a/1", "b/2", "c/1", "d/1", "soon"]), max_size=2),
)
files = st.lists(lines, max_size=6)
task_ids = st.builds(lambda change, number: f"{change}/{number}", st.sampled_from(CHANGES), st.integers(1, 4))
# One step: a file is written anew or taken away, or somebody does something.
steps = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(CHANGES), files),
    st.tuples(st.just("shuffle"), st.sampled_from(CHANGES), st.integers(0, 99)),
    st.tuples(st.just("remove"), st.sampled_from(CHANGES), st.none()),
    st.tuples(st.just("status"), task_ids, st.sampled_from(STATUSES)),
    st.tuples(st.just("priority"), task_ids, st.sampled_from(PRIORITIES)),
    st.tuples(st.just("add"), task_ids, task_ids),
    st.tuples(st.just("drop"), task_ids, task_ids),
    st.tuples(st.just("sync"), st.booleans(), st.none()),
)
many_steps = st.builds(
    lambda first, then: [*(("write", change, file) for change, file in zip(CHANGES, first, strict=True)), *then],
    st.tuples(files, files, files),
    st.lists(steps, max_size=12),
)
slow = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def line(ticked: bool, words: str, depends: list[str]) -> str:
    """A line of a tasks.md."""
    comment = f" <!-- depends: {', '.join(depends)} -->" if depends else ""
    return f"- [{'x' if ticked else ' '}] {words}{comment}\n"


async def do(registry: Registry, root: Path, what: str, which: Any, how: Any) -> None:
    """One step; what is refused is refused."""
    try:
        match what:
            case "write":
                file = tasks_md(root, which)
                file.parent.mkdir(exist_ok=True)
                file.write_text("".join(itertools.starmap(line, how)))
            case "shuffle":
                file = tasks_md(root, which)
                if file.exists():
                    rows = file.read_text().splitlines(keepends=True)
                    random.Random(how).shuffle(rows)
                    file.write_text("".join(rows))
            case "remove":
                shutil.rmtree(tasks_md(root, which).parent, ignore_errors=True)
            case "status" | "priority":
                await registry.update(which, **{what: how})
            case "add":
                await registry.deps(which, "add", [how])
            case "drop":
                await registry.deps(which, "remove", [how])
            case _:
                await registry.sync(force=which)
    except ToolFailure:
        pass


def picture(state: State) -> object:
    """All that a state says."""
    return {str(task.id): state.display(task) for task in state.all()}, state.blocks, state.needs


@slow
@given(many_steps)
def test_a_sync_is_idempotent(world: World, taken: list[Any]) -> None:
    """The second one finds nothing new, and what every task is stays as it was, also before the first."""
    registry, root = world.registry()

    async def run() -> None:
        for step in taken:
            await do(registry, root, *step)
        live = {str(task.id): (task.status, task.priority) for task in (await registry.state()).all()}
        dry = await registry.sync(dry_run=True)
        first = await registry.sync()
        after = picture(await registry.state())
        second = await registry.sync()
        assert dry.differences == first.differences
        assert second.differences == []
        assert all(conflict.here == "completed" for conflict in second.conflicts)
        assert {key: value[:2] for key, value in live.items()} == {
            str(task.id): (task.status, task.priority) for task in (await registry.state()).all()
        }
        again = picture(await registry.state())
        assert again == after

    world.do(run())


def leads_back(rows: dict[str, dict[str, Any]], start: str) -> bool:
    """Whether a task comes back to itself along what tasks depend on."""
    seen, waiting = {start}, [start]
    while waiting:
        for needed in rows.get(waiting.pop(), {}).get("depends_on", []):
            if needed == start:
                return True
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return False


@slow
@given(many_steps)
def test_what_is_next_never_has_to_wait(world: World, taken: list[Any]) -> None:
    """Told by the answers alone: whatever an offered task depends on exists, is completed, and leads nowhere back."""
    registry, root = world.registry()

    async def run() -> None:
        for step in taken:
            await do(registry, root, *step)
            offered = await registry.next(count=50)
            listed = await registry.list(limit=500)
            rows = {str(task.id): listed.state.display(task) for task in listed.tasks}

            free = {
                name
                for name, row in rows.items()
                if row["status"] == "pending"
                and all(rows.get(needed, {}).get("status") == "completed" for needed in row["depends_on"])
                and not leads_back(rows, name)
            }
            assert {str(task.id) for task in offered.tasks} == free

    world.do(run())


@slow
@given(many_steps)
def test_what_is_remembered_is_what_is_there(world: World, taken: list[Any]) -> None:
    """A registry that saw every step and one that sees the last only say the same; so does one that begins at once."""
    registry, root = world.registry()

    async def run() -> None:
        for step in taken:
            await do(registry, root, *step)
            seen = await registry.state()
            fresh = await world.beside(root).state()
            assert picture(seen) == picture(fresh)
            assert seen.cyclic.keys() == fresh.cyclic.keys()

    world.do(run())


@slow
@given(many_steps, task_ids, st.sampled_from(STATUSES))
def test_an_update_changes_one_box_at_most(world: World, taken: list[Any], which: str, status: str) -> None:
    """In all files together; and what is refused changes nothing at all."""
    registry, root = world.registry()

    async def run() -> None:
        for step in taken:
            await do(registry, root, *step)
        before = {change: tasks_md(root, change).read_bytes() for change in CHANGES if tasks_md(root, change).exists()}
        was = {str(task.id): (task.status, task.priority, task.content) for task in (await registry.state()).all()}
        try:
            await registry.update(which, status=status)
        except ToolFailure:
            expected = was
        else:
            expected = {**was, which: (status, *was[which][1:])}
        assert {
            str(task.id): (task.status, task.priority, task.content) for task in (await registry.state()).all()
        } == expected
        for change, data in before.items():
            after = tasks_md(root, change).read_bytes()
            others = sum(a != b for a, b in zip(data, after, strict=True))
            assert others <= (change == which.partition("/")[0])

    world.do(run())


def test_folders_are_read_as_their_names_say(tmp_path: Path) -> None:
    """The id of a task is the folder's name and the number, split at the first slash."""
    (tmp_path / "openspec" / "changes" / "x").mkdir(parents=True)
    (tmp_path / "openspec" / "changes" / "x" / "tasks.md").write_text("- [ ] one\n")
    assert list(Folder(tmp_path / "openspec").contents().changes) == ["x"]
    assert TaskId.parse("x/1") == TaskId("x", 1)
    assert TaskId.parse("x/y/1") is None
