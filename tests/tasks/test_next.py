"""What to do next: the order, the reasons, and that nothing is offered which has to wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.toolsets.tasks.graph import draw_graph
from pegboard.toolsets.tasks.outcomes import TaskFilter
from pegboard.toolsets.tasks.registry import Registry
from tasks.project import tasks_md, write_tasks

pytestmark = pytest.mark.anyio


async def offered(registry: Registry, count: int = 50, change: str | None = None) -> list[str]:
    """The ids of what is offered."""
    return [str(task.id) for task in (await registry.next(change, count)).tasks]


async def test_priority_then_progress_then_number(registry: Registry, root: Path) -> None:
    """A change that is further goes first, and 2 before 10."""
    write_tasks(
        root,
        fresh="".join(f"- [ ] Fresh {number}\n" for number in range(1, 12)),
        half="- [x] Half 1\n- [ ] Half 2\n",
        third="- [x] Third 1\n- [ ] Third 2\n- [ ] Third 3\n",
    )
    await registry.update("fresh/10", priority="critical")
    await registry.update("fresh/2", priority="critical")
    await registry.update("half/2", priority="low")
    await registry.update("fresh/3", priority="backlog")
    await registry.update("fresh/4", priority="high")
    assert await offered(registry) == [
        *("fresh/2", "fresh/10", "fresh/4", "third/2", "third/3"),
        *(f"fresh/{number}" for number in (1, 5, 6, 7, 8, 9, 11)),
        *("half/2", "fresh/3"),
    ]


async def test_count_and_change_are_honoured(registry: Registry, root: Path) -> None:
    """One unless more are asked for, and only of the change that was named."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n", b="- [x] done\n- [ ] three\n- [ ] four\n")
    assert await offered(registry, 1) == ["b/2"]
    assert await offered(registry, 1, "a") == ["a/1"]
    assert await offered(registry, 2, "a") == ["a/1", "a/2"]
    assert await offered(registry, 3) == ["b/2", "b/3", "a/1"]


async def test_what_has_to_wait_is_not_offered(registry: Registry, root: Path) -> None:
    """Missing, unmet, unreadable or cyclic dependencies, and every status but pending."""
    write_tasks(
        root,
        a=(
            "- [ ] 1 free\n- [ ] 2 unmet <!-- depends: 1 -->\n- [ ] 3 missing <!-- depends: 99 -->\n"
            "- [ ] 4 missing change <!-- depends: nowhere/1 -->\n- [ ] 5 unreadable <!-- depends: soon -->\n"
            "- [ ] 6 itself <!-- depends: 6 -->\n- [ ] 7 circle <!-- depends: 8 -->\n"
            "- [ ] 8 circle <!-- depends: 7 -->\n"
            "- [ ] 9 begun\n- [ ] 10 blocked\n- [ ] 11 skipped\n- [x] 12 done\n- [ ] 13 met <!-- depends: 12 -->\n"
            "- [ ] 14 of a skipped one <!-- depends: 11 -->\n- [ ] 15 half <!-- depends: 12, 99 -->\n"
        ),
    )
    for number, status in ((9, "in_progress"), (10, "blocked"), (11, "skipped")):
        await registry.update(f"a/{number}", status=status)
    found = await registry.next(count=50)
    assert [task.id.number for task in found.tasks] == [1, 13]
    # Those that are pending and wait, and the one that was set to blocked.
    assert found.blocked == 10


async def test_a_circle_that_is_half_done_is_still_one(registry: Registry, root: Path) -> None:
    """Nobody can say what comes first, so it is told and not guessed."""
    write_tasks(root, a="- [x] one <!-- depends: 2 -->\n- [ ] two <!-- depends: 1 -->\n")
    found = await registry.next()
    assert found.tasks == []
    assert "a cycle" in found.reason


async def test_it_says_why(registry: Registry, root: Path) -> None:
    """Why this one; and where there is none, why not."""
    write_tasks(root, a="- [x] one\n- [ ] two <!-- depends: 1 -->\n- [ ] three <!-- depends: 2 -->\n")
    found = await registry.next()
    assert found.reason == "priority medium; a is at 1 of 3; all it depends on is completed (a/1)"
    await registry.update("a/2", status="in_progress")
    assert (await registry.next()).reason == "nothing can be begun now: 1 held up, a/3 among them: a/2 is in_progress"
    await registry.update("a/3", status="blocked")
    await registry.update("a/2", status="completed")
    assert (await registry.next()).reason == "nothing can be begun now: 1 held up, a/3 among them: was set to blocked"
    await registry.update("a/3", status="skipped")
    assert (await registry.next()).reason == "nothing is pending: 2 completed, 1 skipped"


async def test_no_tasks_at_all(registry: Registry) -> None:
    """An empty folder is no failure."""
    found = await registry.next()
    assert (found.tasks, found.reason, found.blocked) == ([], "there are no tasks", 0)


async def test_what_was_ticked_a_moment_ago_counts(registry: Registry, root: Path) -> None:
    """No sync is needed between an editor and the next question."""
    write_tasks(root, a="- [ ] one\n- [ ] two <!-- depends: 1 -->\n")
    await registry.sync()
    assert await offered(registry) == ["a/1"]
    write_tasks(root, a="- [x] one\n- [ ] two <!-- depends: 1 -->\n")
    assert await offered(registry) == ["a/2"]


async def test_a_change_that_cannot_be_read_is_not_said_to_be_missing(registry: Registry, root: Path) -> None:
    """Whoever asks for it is told why; what depends on it waits for the same reason, until it can be read again."""
    write_tasks(root, big=f"- [x] one\n{'x' * 2_000_001}", a="- [ ] two <!-- depends: big/1 -->\n")
    for ask in (
        lambda: registry.next("big"),
        lambda: registry.list(TaskFilter(change="big")),
        lambda: registry.update("big/1", status="completed"),
        lambda: registry.deps("a/1", "add", ["big/1"]),
        lambda: draw_graph(registry, "text", "big"),
    ):
        with pytest.raises(ToolFailure, match=r"tasks of 'big': tasks\.md has 2,000,011 bytes") as failed:
            await ask()
        assert failed.value.error.code == ToolErrorCode.EXECUTION_FAILED
    found = await registry.next()
    assert (found.tasks, found.problems[0][0]) == ([], "changes/big")
    assert "big/1 cannot be read" in found.reason
    tasks_md(root, "big").unlink()
    assert "big/1 does not exist" in (await registry.next()).reason
    write_tasks(root, big="- [x] one\n")
    assert [str(task.id) for task in (await registry.next()).tasks] == ["a/1"]


async def test_nothing_takes_the_place_of_a_task_that_is_gone(registry: Registry, root: Path) -> None:
    """A change that is called as the gone one is told is another one: what was depended on is still missing."""
    write_tasks(root, a="- [ ] one\n", b="- [ ] two\n")
    await registry.deps("b/1", "add", ["a/1"])
    tasks_md(root, "a").unlink()
    assert "a (gone)/1 does not exist" in (await registry.next("b")).reason
    other = tasks_md(root, "a (gone)")
    other.parent.mkdir()
    other.write_text("- [x] something else\n")
    found = await registry.next("b")
    assert (found.tasks, "a (gone)*/1 does not exist" in found.reason) == ([], True)
    await registry.deps("b/1", "remove", ["a (gone)*/1"])
    assert await offered(registry) == ["b/1"]
