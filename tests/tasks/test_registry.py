"""Operations on tasks: what is set stays, what is asked for is honoured, what is wrong is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory.clock import Clock
from pegboard.result import Conflict, ToolErrorCode, ToolFailure
from pegboard.storage import Storage
from pegboard.toolsets.tasks.outcomes import TaskFilter
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.task import TaskId
from tasks.project import statuses, tasks_md, write_tasks

pytestmark = pytest.mark.anyio

LOGIN = "- [x] 1.1 Plan\n- [ ] 1.2 Build <!-- depends: 1 -->\n- [ ] 1.3 Ship <!-- depends: 2, add-users/1 -->\n"
USERS = "- [ ] Table\n- [ ] Page\n"


async def ids(registry: Registry, **wanted: Any) -> list[str]:
    """The tasks that pass a filter."""
    return [str(task.id) for task in (await registry.list(TaskFilter(**wanted))).tasks]


async def test_init_says_whether_there_was_one(registry: Registry, root: Path) -> None:
    """The first makes an empty registry, the second finds it; neither touches a file."""
    write_tasks(root, add_login=LOGIN)
    first, second = await registry.init(), await registry.init()
    assert (first.created, second.created) == (True, False)
    assert (first.changes, first.tasks, first.folder) == (1, 3, root / "openspec")
    assert tasks_md(root, "add-login").read_text() == LOGIN
    assert (await registry.sync()).changes == 1


async def test_tasks_are_there_as_their_files_say(registry: Registry, root: Path) -> None:
    """Without any beginning: status by the box, medium priority, the line, and what blocks each."""
    write_tasks(root, add_login=LOGIN, add_users=USERS)
    listed = await registry.list()
    shown = [listed.state.display(task) for task in listed.tasks]
    assert [(row["id"], row["status"], row["blocked_by"], row["source_line"]) for row in shown] == [
        ("add-login/1", "completed", [], 1),
        ("add-login/2", "pending", [], 2),
        ("add-login/3", "pending", ["add-login/2", "add-users/1"], 3),
        ("add-users/1", "pending", [], 1),
        ("add-users/2", "pending", [], 2),
    ]
    assert {row["id"]: row["why_blocked"] for row in shown if "why_blocked" in row} == {
        "add-login/3": "add-login/2 is pending; add-users/1 is pending"
    }
    assert {row["priority"] for row in shown} == {"medium"}
    assert {row["synced_at"] for row in shown} == {None}
    assert (listed.total, listed.match_count) == (5, 5)


async def test_a_task_is_known_by_the_number_before_its_text(registry: Registry, root: Path) -> None:
    """A number with a dot is the one in the file, one without is a place; the answer says which task it was."""
    numbered = "- [ ] Begin\n- [ ] 1.1 Plan\n- [ ] **1.2.** Build\n- [ ] 2. Ship\n"
    write_tasks(root, a=numbered, b="- [ ] 1.1 Other\n")
    done = await registry.update("a/1.1", status="completed")
    assert (str(done.task.id), done.state.display(done.task)["printed_number"]) == ("a/2", "1.1")
    assert tasks_md(root, "a").read_text() == numbered.replace("[ ] 1.1", "[x] 1.1")
    assert str((await registry.update("a/2", priority="high")).task.id) == "a/2"
    added = await registry.deps("a/1.2", "add", ["1.1", "b/1.1", "2"])
    assert (str(added.task.id), list(map(str, added.added))) == ("a/3", ["a/2", "b/1"])
    removed = await registry.deps("a/1.2", "remove", ["b/1.1"])
    assert list(map(str, removed.removed)) == ["b/1"]
    shown = [done.state.display(task).get("printed_number") for task in done.state.changes["a"].tasks]
    assert shown == [None, "1.1", "1.2", "2"]


async def test_a_number_before_the_text_that_is_not_unique_is_refused(registry: Registry, root: Path) -> None:
    """The error lists the tasks that have it, and nothing is changed."""
    write_tasks(root, a="- [ ] 1.1 Plan\n- [ ] 1.1 Build\n")
    with pytest.raises(ToolFailure, match=r"2 tasks of a have the number 1\.1: a/1 \(1\.1 Plan\), a/2 \(1\.1 Build\)"):
        await registry.update("a/1.1", status="completed")
    with pytest.raises(ToolFailure, match=r"no task of a has the number 1\.2 before its text"):
        await registry.update("a/1.2", status="completed")
    assert await statuses(registry) == {"a/1": "pending", "a/2": "pending"}


async def test_a_number_before_the_text_follows_its_task_and_no_other(registry: Registry, root: Path) -> None:
    """A task that moved is still meant by it; once the number stands before another task, it is refused."""
    write_tasks(root, a="- [ ] 1.1 Plan the whole thing\n- [ ] 1.2 Build\n")
    await registry.list()
    write_tasks(root, a="- [ ] New\n- [ ] 1.1 Plan the whole thing\n- [ ] 1.2 Build\n")
    assert str((await registry.update("a/1.2", status="completed")).task.id) == "a/3"
    write_tasks(root, a="- [ ] 1.1 Something else entirely\n- [ ] 1.2 Plan the whole thing\n- [x] 1.3 Build\n")
    with pytest.raises(Conflict, match=r"a/2 was not changed.*It was '1\.2 Build'"):
        await registry.update("a/1.2", status="completed")


async def test_every_filter_is_honoured(registry: Registry, root: Path) -> None:
    """Change, status, priority, assignee and unblocked, alone and together; limit and offset."""
    write_tasks(root, add_login=LOGIN, add_users=USERS)
    await registry.update("add-users/1", priority="high", assignee="ada")
    await registry.update("add-users/2", status="blocked")
    assert await ids(registry, change="add-users") == ["add-users/1", "add-users/2"]
    assert await ids(registry, status="pending") == ["add-login/2", "add-login/3", "add-users/1"]
    assert await ids(registry, priority="high") == ["add-users/1"]
    assert await ids(registry, assignee="ada") == ["add-users/1"]
    assert await ids(registry, unblocked=True, status="pending") == ["add-login/2", "add-users/1"]
    assert await ids(registry, unblocked=True) == ["add-login/1", "add-login/2", "add-users/1"]
    assert await ids(registry, change="add-login", priority="high") == []
    page = await registry.list(limit=2, offset=3)
    assert [str(task.id) for task in page.tasks] == ["add-users/1", "add-users/2"]
    assert (page.total, page.match_count) == (5, 5)


async def test_numbers_are_in_order_as_numbers(registry: Registry, root: Path) -> None:
    """2 stands before 10."""
    write_tasks(root, a="".join(f"- [ ] Task {n}\n" for n in range(1, 13)))
    assert await ids(registry) == [f"a/{n}" for n in range(1, 13)]
    assert [task.id.number for task in (await registry.next(count=12)).tasks] == list(range(1, 13))


async def test_times_are_stamped(registry: Registry, root: Path, clock: Clock) -> None:
    """Begun and completed, each once; back to pending, both are gone."""
    write_tasks(root, a="- [ ] one\n")
    begun = (await registry.update("a/1", status="in_progress")).task
    assert (begun.started_at, begun.completed_at) == (clock.now, None)
    start = clock.now
    clock.forward(60)
    assert (await registry.update("a/1", status="in_progress")).task.started_at == start
    done = (await registry.update("a/1", status="completed")).task
    assert (done.started_at, done.completed_at) == (start, clock.now)
    clock.forward(60)
    assert (await registry.update("a/1", status="completed")).task.completed_at == start + 60
    again = (await registry.update("a/1", status="in_progress")).task
    assert (again.started_at, again.completed_at) == (start, None)
    back = (await registry.update("a/1", status="pending")).task
    assert (back.started_at, back.completed_at) == (None, None)


async def test_what_is_left_out_stays_and_what_is_empty_goes(registry: Registry, root: Path) -> None:
    """Each value by itself; only a status touches the file."""
    write_tasks(root, a="- [ ] one\n")
    inode = tasks_md(root, "a").stat().st_ino
    await registry.update("a/1", priority="critical", assignee="ada", notes="wait\nfor it")
    task = (await registry.update("a/1", assignee="")).task
    assert (task.priority, task.assignee, task.notes, task.status) == ("critical", None, "wait\nfor it", "pending")
    assert tasks_md(root, "a").stat().st_ino == inode


async def test_what_is_kept_is_kept(storage: Storage, registry: Registry, root: Path) -> None:
    """Another registry on the same storage knows it, and what the first does afterwards."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n")
    other = Registry(storage.database, Project(here=lambda: root))
    await registry.update("a/1", status="skipped", priority="low")
    assert await statuses(other) == {"a/1": "skipped", "a/2": "pending"}
    await other.update("a/2", status="in_progress")
    await registry.deps("a/1", "add", ["2"])
    assert await statuses(registry) == {"a/1": "skipped", "a/2": "in_progress"}
    assert (await other.deps("a/2")).dependants == [TaskId("a", 1)]


async def test_two_folders_are_two_registries(registry: Registry, root: Path, tmp_path: Path) -> None:
    """The same ids elsewhere are other tasks."""
    write_tasks(root, a="- [ ] one\n")
    write_tasks(tmp_path / "other", a="- [ ] one\n")
    await registry.update("a/1", priority="high")
    there = await registry.list(path=str(tmp_path / "other"))
    assert there.tasks[0].priority == "medium"


async def test_dependants_are_told_when_they_can_begin(registry: Registry, root: Path) -> None:
    """The last of several that is completed, and only then; unticked, it blocks again."""
    write_tasks(root, add_login=LOGIN, add_users=USERS)
    assert (await registry.update("add-login/2", status="completed")).unblocked == []
    done = await registry.update("add-users/1", status="completed")
    assert list(map(str, done.unblocked)) == ["add-login/3"]
    await registry.update("add-users/1", status="pending")
    assert TaskId("add-login", 3) in (await registry.state()).blocks


async def test_out_of_turn_is_possible_and_told(registry: Registry, root: Path) -> None:
    """Somebody who completes a blocked task knows better, but should know."""
    write_tasks(root, add_login=LOGIN, add_users=USERS)
    done = await registry.update("add-login/3", status="completed")
    assert done.task.status == "completed"
    assert done.remark is not None
    assert "add-users/1 is pending" in done.remark
    assert done.state.display(done.task)["blocked_by"] == []
    assert TaskId("add-login", 3) not in done.state.blocks


async def test_dependencies_are_added_and_removed(registry: Registry, root: Path) -> None:
    """Across changes and within one; added twice is once; those of the file are the file's."""
    write_tasks(root, add_login=LOGIN, add_users=USERS)
    added = await registry.deps("add-users/2", "add", ["1", "add-login/2", "add-users/1"])
    assert list(map(str, added.added)) == ["add-users/1", "add-login/2"]
    assert (await registry.deps("add-users/2", "add", ["1"])).added == []
    found = await registry.deps("add-users/2")
    assert list(map(str, found.state.needs[found.task.id])) == ["add-users/1", "add-login/2"]
    assert list(map(str, (await registry.deps("add-users/1")).dependants)) == ["add-login/3", "add-users/2"]
    removed = await registry.deps("add-users/2", "remove", ["1"])
    assert list(map(str, removed.removed)) == ["add-users/1"]
    with pytest.raises(ToolFailure, match="it depends on add-login/2"):
        await registry.deps("add-users/2", "remove", ["1"])
    with pytest.raises(ToolFailure, match=r"line 2 of its tasks\.md"):
        await registry.deps("add-login/2", "remove", ["1"])
    assert tasks_md(root, "add-login").read_text() == LOGIN


async def test_a_cycle_is_refused_and_named(registry: Registry, root: Path) -> None:
    """Through files and registry alike, however long, and a task by itself."""
    write_tasks(root, add_login=LOGIN, add_users=USERS)
    await registry.deps("add-users/1", "add", ["2"])
    with pytest.raises(Conflict, match="add-users/2 → add-login/3 → add-users/1 → add-users/2"):
        await registry.deps("add-users/2", "add", ["add-login/3"])
    with pytest.raises(Conflict, match="add-users/2 → add-users/2"):
        await registry.deps("add-users/2", "add", ["2"])
    assert TaskId("add-users", 2) not in (await registry.state()).needs


async def test_two_who_would_make_a_cycle_together_do_not(storage: Storage, registry: Registry, root: Path) -> None:
    """Each is right by itself; the second one to write finds out."""
    import asyncio

    write_tasks(root, a="- [ ] one\n- [ ] two\n")
    await registry.sync()
    other = Registry(storage.database, Project(here=lambda: root))
    results = await asyncio.gather(
        registry.deps("a/1", "add", ["2"]), other.deps("a/2", "add", ["1"]), return_exceptions=True
    )
    assert sum(isinstance(result, Conflict) for result in results) == 1
    assert (await registry.state()).cyclic == {}


@pytest.mark.parametrize(
    ("call", "arguments", "code", "words"),
    [
        ("update", {"task_id": "a/9", "status": "completed"}, "NOT_FOUND", "a has 1"),
        ("update", {"task_id": "a/0", "status": "completed"}, "NOT_FOUND", "no task a/0"),
        ("update", {"task_id": "b/1", "status": "completed"}, "NOT_FOUND", "no change 'b'"),
        ("update", {"task_id": "a", "status": "completed"}, "INVALID_INPUT", "change-id/number"),
        ("update", {"task_id": "a/x", "status": "completed"}, "INVALID_INPUT", "change-id/number"),
        ("update", {"task_id": "a/1"}, "INVALID_INPUT", "nothing to change"),
        ("update", {"task_id": "a/1", "status": "done"}, "INVALID_INPUT", "status must be one of"),
        ("update", {"task_id": "a/1", "priority": "urgent"}, "INVALID_INPUT", "priority must be one of"),
        ("update", {"task_id": "a/1", "notes": "x\0"}, "INVALID_INPUT", "NUL"),
        ("update", {"task_id": "a/1", "assignee": "x" * 201}, "INVALID_INPUT", "201 characters"),
        ("deps", {"task_id": "a/1", "operation": "show"}, "INVALID_INPUT", "list, add, remove"),
        ("deps", {"task_id": "a/1", "operation": "add"}, "INVALID_INPUT", "needs depends_on"),
        ("deps", {"task_id": "a/1", "operation": "list", "depends_on": ["2"]}, "INVALID_INPUT", "takes no depends_on"),
        ("deps", {"task_id": "a/1", "operation": "add", "depends_on": ["b/2"]}, "NOT_FOUND", "no change 'b'"),
        ("deps", {"task_id": "a/1", "operation": "add", "depends_on": ["a/7"]}, "NOT_FOUND", "depends_on"),
        ("next", {"change": "add"}, "NOT_FOUND", "no change 'add'"),
        ("next", {"count": 0}, "INVALID_INPUT", "count"),
        ("list", {"limit": 501}, "INVALID_INPUT", "limit"),
        ("list", {"wanted": TaskFilter(change="nope")}, "NOT_FOUND", "no change 'nope'"),
    ],
)
async def test_what_is_wrong_is_said_and_nothing_changes(
    registry: Registry, root: Path, call: str, arguments: dict[str, Any], code: str, words: str
) -> None:
    """With the code that fits; the file and the registry stay as they are."""
    write_tasks(root, a="- [ ] one\n")
    with pytest.raises(ToolFailure) as failed:
        await getattr(registry, call)(**arguments)
    assert failed.value.error.code == ToolErrorCode[code]
    assert words in str(failed.value)
    assert tasks_md(root, "a").read_text() == "- [ ] one\n"
    assert (await registry.sync()).differences[0].kind == "added"


async def test_a_change_that_comes_close_is_offered(registry: Registry, root: Path) -> None:
    """Somebody who misspelt it reads which there is."""
    write_tasks(root, add_login=LOGIN)
    with pytest.raises(ToolFailure, match="did you mean add-login"):
        await registry.next("ad-login")


async def test_a_file_that_cannot_be_read_keeps_nobody_else_waiting(registry: Registry, root: Path) -> None:
    """Its change is left out, and said to be."""
    write_tasks(root, a="- [ ] one\n")
    tasks_md(root, "b").mkdir(parents=True)
    listed = await registry.list()
    assert [str(task.id) for task in listed.tasks] == ["a/1"]
    assert listed.problems == [("changes/b", "tasks.md is not a file")]
