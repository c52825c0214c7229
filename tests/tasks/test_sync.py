"""A sync: what is told, what survives, and that the second one finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.clock import Clock
from pegboard.toolsets.tasks.outcomes import Synced
from pegboard.toolsets.tasks.registry import Registry
from tasks.project import statuses, tasks_md, write_tasks

pytestmark = pytest.mark.anyio


def told(synced: Synced) -> dict[str, list[str]]:
    """The ids of what was added, updated, removed."""
    return {
        kind: [difference.id for difference in synced.differences if difference.kind == kind]
        for kind in ("added", "updated", "removed")
    }


NOTHING = {"added": [], "updated": [], "removed": []}


async def test_added_updated_removed(registry: Registry, root: Path) -> None:
    """Each task once, with what is another way about it; a second sync has nothing to tell."""
    write_tasks(root, a="- [ ] Draw the form\n- [ ] Check passwords\n- [x] Plan it all\n", b="- [ ] Buy a house\n")
    first = await registry.sync()
    assert told(first) == {**NOTHING, "added": ["a/1", "a/2", "a/3", "b/1"]}
    assert (first.changes, first.conflicts) == (2, [])
    assert told(await registry.sync()) == NOTHING
    write_tasks(root, a="- [ ] New\n- [x] Check passwords <!-- depends: 1 -->\n- [ ] Draw the big form\n")
    tasks_md(root, "b").unlink()
    second = await registry.sync()
    assert told(second) == {"added": ["a/1"], "updated": ["a/2", "a/3"], "removed": ["a/3", "b/1"]}
    what = {difference.id: difference.what for difference in second.differences if difference.kind == "updated"}
    assert what["a/2"] == "ticked, dependencies"
    assert what["a/3"] == "number 1 → 3, text, before: Draw the form"
    assert told(await registry.sync()) == NOTHING


async def test_a_dry_run_changes_nothing(registry: Registry, root: Path, clock: Clock) -> None:
    """It tells the same as the real one, and the real one still has all of it to do."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n")
    await registry.update("a/1", status="in_progress")
    write_tasks(root, a="- [x] one\n- [ ] three is new\n")
    clock.forward(10)
    before = await registry.list()
    for force in (False, True):
        dry = await registry.sync(dry_run=True, force=force)
        assert dry.dry_run
        assert told(dry) == {"added": ["a/2"], "updated": ["a/1"], "removed": ["a/2"]}
        assert [conflict.id for conflict in dry.conflicts] == ["a/1"]
    after = await registry.list()
    assert after.state.version == before.state.version
    real = await registry.sync()
    assert (real.differences, real.conflicts) == (dry.differences, dry.conflicts)


async def test_a_dry_run_makes_no_registry(registry: Registry, root: Path) -> None:
    """Where there was none, there is none afterwards."""
    write_tasks(root, a="- [ ] one\n")
    await registry.sync(dry_run=True)
    assert (await registry.init()).created


@pytest.mark.parametrize(
    "after",
    [
        "- [ ] First of all\n- [ ] 1.1 Draw\n- [ ] 1.2 Check\n- [ ] 1.3 Ship\n",
        "- [ ] 2.1 First of all\n- [ ] 2.2 Draw\n- [ ] 2.3 Check\n- [ ] 2.4 Ship\n",
        "# Head\n\n* [ ]   1.3  Ship\n* [ ] 1.2 Check\n* [ ] 1.1 Draw\n",
        "- [ ] 1.2 Check\n",
    ],
)
async def test_what_was_set_by_hand_survives_a_renumbering(registry: Registry, root: Path, after: str) -> None:
    """Status, priority, assignee, notes, times and dependencies follow the words, wherever they stand."""
    write_tasks(root, a="- [ ] 1.1 Draw\n- [ ] 1.2 Check\n- [ ] 1.3 Ship\n", b="- [ ] Elsewhere\n")
    await registry.update("a/2", status="in_progress", priority="high", assignee="ada", notes="careful")
    await registry.deps("a/2", "add", ["b/1"])
    before = (await registry.list()).tasks[1]
    write_tasks(root, a=after)

    async def check() -> None:
        listed = await registry.list()
        task = next(task for task in listed.tasks if "Check" in task.content)
        assert (task.status, task.priority, task.assignee, task.notes) == ("in_progress", "high", "ada", "careful")
        assert (task.started_at, task.known) == (before.started_at, before.known)
        assert list(map(str, listed.state.needs[task.id])) == ["b/1"]
        others = [other for other in listed.tasks if other.id != task.id]
        assert all((other.status, other.assignee) == ("pending", None) for other in others)

    # At once, and after the sync took note.
    await check()
    await registry.sync()
    await check()


async def test_a_dependency_follows_the_task_that_is_needed(registry: Registry, root: Path) -> None:
    """What was added here names a task and not a number."""
    write_tasks(root, a="- [ ] Draw\n- [ ] Check\n", b="- [ ] Ship\n")
    await registry.deps("b/1", "add", ["a/2"])
    write_tasks(root, a="- [ ] New\n- [ ] Draw\n- [ ] Check\n")
    await registry.sync()
    state = await registry.state()
    assert [list(map(str, needed)) for needed in state.needs.values()] == [["a/3"]]


async def test_of_equal_texts_the_neighbours_tell_which_is_which(registry: Registry, root: Path) -> None:
    """Every section has its tests to write; the one in the second stays the one in the second."""
    before = "- [ ] Draw\n- [ ] Write tests\n- [ ] Check\n- [ ] Write tests\n- [ ] Ship\n- [ ] Write tests\n"
    write_tasks(root, a=before)
    await registry.update("a/4", status="in_progress")
    write_tasks(root, a="- [ ] New\n- [ ] Write tests\n" + before)
    assert {task for task, status in (await statuses(registry)).items() if status == "in_progress"} == {"a/6"}
    write_tasks(root, a=before.replace("- [ ] Draw\n- [ ] Write tests\n", ""))
    assert {task for task, status in (await statuses(registry)).items() if status == "in_progress"} == {"a/2"}


async def test_very_many_equal_texts_are_told_by_their_order(registry: Registry, root: Path) -> None:
    """It stays quick, and nothing is mixed up where nothing moved."""
    write_tasks(root, a="- [ ] Write tests\n" * 400)
    await registry.update("a/300", status="in_progress")
    write_tasks(root, a="- [ ] Write tests\n" * 401)
    assert (await statuses(registry))["a/300"] == "in_progress"
    assert told(await registry.sync()) == {**NOTHING, "added": ["a/401"]}


async def test_reworded_is_the_same_and_rewritten_is_another(registry: Registry, root: Path) -> None:
    """What is nearly the same keeps what was set; what is not begins anew."""
    write_tasks(root, a="- [ ] Draw the form\n- [ ] Check passwords\n")
    await registry.update("a/1", priority="high")
    await registry.update("a/2", priority="low")
    write_tasks(root, a="- [ ] Draw the large form\n- [ ] Buy a house\n")
    synced = await registry.sync()
    assert told(synced) == {"added": ["a/2"], "updated": ["a/1"], "removed": ["a/2"]}
    assert [task.priority for task in (await registry.list()).tasks] == ["high", "medium"]


async def test_ticked_by_hand_is_completed_and_told_once(registry: Registry, root: Path, clock: Clock) -> None:
    """The file's word counts over what was set here, at once; the sync takes it over."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n- [ ] three\n")
    await registry.update("a/1", status="in_progress")
    await registry.update("a/2", status="blocked")
    await registry.sync()
    clock.forward(100)
    write_tasks(root, a="- [x] one\n- [x] two\n- [x] three\n")
    assert set((await statuses(registry)).values()) == {"completed"}
    synced = await registry.sync()
    assert [(each.id, each.here, each.file) for each in synced.conflicts] == [
        ("a/1", "in_progress", "ticked"),
        ("a/2", "blocked", "ticked"),
    ]
    assert told(synced) == {**NOTHING, "updated": ["a/1", "a/2", "a/3"]}
    assert all(task.completed_at == clock.now for task in (await registry.list()).tasks)
    again = await registry.sync()
    assert (told(again), again.conflicts) == (NOTHING, [])


async def test_unticked_by_hand_is_pending_and_told_until_it_is_settled(registry: Registry, root: Path) -> None:
    """A tick that came from here and went away may be a mistake: ticked again it is as before; force lets go of it."""
    write_tasks(root, a="- [ ] one\n")
    await registry.update("a/1", status="in_progress")
    done = (await registry.update("a/1", status="completed")).task
    write_tasks(root, a="- [ ] one\n")
    assert await statuses(registry) == {"a/1": "pending"}
    for _ in range(2):
        (conflict,) = (await registry.sync()).conflicts
        assert (conflict.here, conflict.file) == ("completed", "not ticked")
    write_tasks(root, a="- [x] one\n")
    assert (await registry.sync()).conflicts == []
    assert (await registry.list()).tasks[0].completed_at == done.completed_at
    write_tasks(root, a="- [ ] one\n")
    (conflict,) = (await registry.sync(force=True)).conflicts
    assert "settled" in conflict.outcome
    again = await registry.sync()
    assert (told(again), again.conflicts) == (NOTHING, [])
    write_tasks(root, a="- [ ] one\n")
    await registry.update("a/1", status="completed")
    write_tasks(root, a="- [ ] one\n")
    await registry.update("a/1", status="in_progress")
    assert (await registry.sync()).conflicts == []


async def test_a_hand_alone_is_no_conflict(registry: Registry, root: Path) -> None:
    """Ticked and unticked in an editor, it is only an update."""
    write_tasks(root, a="- [x] one\n")
    await registry.sync()
    write_tasks(root, a="- [ ] one\n")
    synced = await registry.sync()
    assert (told(synced), synced.conflicts) == ({**NOTHING, "updated": ["a/1"]}, [])
    assert (await registry.list()).tasks[0].completed_at is None


async def test_what_is_gone_comes_back_with_what_was_known(registry: Registry, root: Path) -> None:
    """Another branch takes a change away and brings it back; forced, it is forgotten."""
    write_tasks(root, a="- [ ] one\n", b="- [ ] two\n")
    await registry.sync()
    await registry.update("a/1", status="in_progress", priority="high")
    tasks_md(root, "a").unlink()
    assert told(await registry.sync()) == {**NOTHING, "removed": ["a/1"]}
    assert told(await registry.sync()) == NOTHING
    write_tasks(root, a="- [ ] new\n- [ ] one\n")
    synced = await registry.sync()
    assert told(synced) == {**NOTHING, "added": ["a/1"], "updated": ["a/2"]}
    assert [task.priority for task in (await registry.list()).tasks] == ["medium", "high", "medium"]
    write_tasks(root, a="- [ ] new\n")
    await registry.sync(force=True)
    write_tasks(root, a="- [ ] new\n- [ ] one\n")
    assert told(await registry.sync()) == {**NOTHING, "added": ["a/2"]}
    assert {task.priority for task in (await registry.list()).tasks} == {"medium"}


async def test_a_needed_task_that_is_gone_is_still_waited_for(registry: Registry, root: Path) -> None:
    """Not even force makes its dependants free; taking the dependency away does."""
    write_tasks(root, a="- [ ] one\n", b="- [ ] two\n")
    await registry.deps("b/1", "add", ["a/1"])
    tasks_md(root, "a").unlink()
    for force in (False, True):
        await registry.sync(force=force)
        found = await registry.next()
        assert (found.tasks, found.blocked) == ([], 1)
        assert "a (gone)/1 does not exist" in found.reason
    await registry.deps("b/1", "remove", ["a (gone)/1"])
    assert [str(task.id) for task in (await registry.next()).tasks] == ["b/1"]


async def test_a_file_that_cannot_be_read_has_not_lost_its_tasks(registry: Registry, root: Path) -> None:
    """They are neither there nor removed until it can be read again."""
    write_tasks(root, a="- [ ] one\n")
    await registry.update("a/1", priority="high")
    file = tasks_md(root, "a")
    file.rename(root / "kept.md")
    file.mkdir()
    for force in (False, True):
        synced = await registry.sync(force=force)
        assert told(synced) == NOTHING
        assert synced.problems == [("changes/a", "tasks.md is not a file")]
    file.rmdir()
    (root / "kept.md").rename(file)
    assert told(await registry.sync()) == NOTHING
    assert (await registry.list()).tasks[0].priority == "high"


async def test_odd_characters_are_not_another_text_each_time(registry: Registry, root: Path) -> None:
    """What no database can keep, bytes that are no text: the second sync still has nothing to tell."""
    file = tasks_md(root, "a")
    file.parent.mkdir()
    file.write_bytes(b"- [ ] one \0 two\n- [ ] \xff\xfe\x80\n- [ ] \x1b[31m red\n- [ ] x <!-- depends: \0 -->\n")
    assert len((await registry.sync()).differences) == 4
    assert told(await registry.sync()) == NOTHING
