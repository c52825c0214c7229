"""Ticking in a real folder: all or nothing, one byte, never over somebody else's change."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.result import Conflict, ToolErrorCode, ToolFailure
from pegboard.storage import Storage
from pegboard.toolsets.tasks import checkbox
from pegboard.toolsets.tasks.folder import Folder
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.tasks.taskfile import parse
from tasks.project import statuses, tasks_md, write_tasks

pytestmark = pytest.mark.anyio

TICKER = Path(__file__).with_name("ticker.py")


def while_writing(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Have something done between the reading of a file and its replacement."""
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        monkeypatch.setattr(checkbox.os, "fsync", real)
        do()

    monkeypatch.setattr(checkbox.os, "fsync", fsync)


async def test_only_the_box_changes(registry: Registry, root: Path) -> None:
    """CRLF, a mark at the beginning, no end, bytes of another encoding: all of it stays."""
    data = b"\xef\xbb\xbf# T\xe9\r\n\r\n- [ ] one\r\n\t* [X] two\r\n- [ ] three <!-- depends: 1 -->"
    write_tasks(root)
    tasks_md(root, "a").parent.mkdir()
    tasks_md(root, "a").write_bytes(data)
    await registry.update("a/3", status="completed")
    assert tasks_md(root, "a").read_bytes() == data.replace(b"[ ] three", b"[x] three")
    await registry.update("a/2", status="in_progress")
    await registry.update("a/3", status="pending")
    assert tasks_md(root, "a").read_bytes() == data.replace(b"[X]", b"[ ]")


async def test_a_box_that_is_so_already_is_not_written(registry: Registry, root: Path) -> None:
    """An upper-case tick stays one, and the file is not touched."""
    write_tasks(root, a="- [X] one\n")
    before = tasks_md(root, "a").stat()
    await registry.update("a/1", status="completed")
    after = tasks_md(root, "a").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o750])
async def test_the_mode_stays_and_nothing_is_left_behind(registry: Registry, root: Path, mode: int) -> None:
    """Another file is in its place, with the same rights; no draft stays beside it."""
    write_tasks(root, a="- [ ] one\n")
    file = tasks_md(root, "a")
    file.chmod(mode)
    inode = file.stat().st_ino
    await registry.update("a/1", status="completed")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.stat().st_ino != inode
    assert [path.name for path in file.parent.iterdir()] == ["tasks.md"]


async def test_owner_group_and_attributes_stay(registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of somebody else stays theirs, as far as the system lets us; what else is known of it stays with it."""
    write_tasks(root, a="- [ ] one\n")
    file = tasks_md(root, "a")
    with contextlib.suppress(OSError):
        # Not every file system has a place for it.
        os.setxattr(file, "user.colour", b"green")
    attributes = os.listxattr(file)
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(checkbox.os, "chown", lambda _, uid, gid: given.append((uid, gid)))
    before = file.stat()
    await registry.update("a/1", status="completed")
    assert given == [(before.st_uid, -1), (-1, before.st_gid)]
    assert os.listxattr(file) == attributes
    assert file.stat().st_mtime_ns > before.st_mtime_ns


async def test_who_may_not_give_a_file_away_ticks_it_all_the_same(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the administrator may set an owner."""
    write_tasks(root, a="- [ ] one\n")

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(checkbox.os, "chown", refuse)
    await registry.update("a/1", status="completed")
    assert tasks_md(root, "a").read_text() == "- [x] one\n"


async def test_a_write_protected_file_stays_as_it_is(registry: Registry, root: Path) -> None:
    """Whoever protects a file means it, also where its folder would let another one take its place."""
    write_tasks(root, a="- [ ] one\n")
    tasks_md(root, "a").chmod(0o444)
    with pytest.raises(ToolFailure, match=r"a/1 was not changed: a/tasks.md cannot be written: it is write-protected"):
        await registry.update("a/1", status="completed")
    assert tasks_md(root, "a").read_text() == "- [ ] one\n"
    assert await statuses(registry) == {"a/1": "pending"}
    await registry.update("a/1", priority="high")


async def test_a_refusal_does_not_say_where_on_the_machine_the_file_is(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client elsewhere learns which file it was, and nothing of the folders around it."""
    write_tasks(root, a="- [ ] one\n")
    while_writing(monkeypatch, lambda: tasks_md(root, "a").write_bytes(b"- [ ] two\n"))
    with pytest.raises(Conflict, match=r"a/tasks\.md has changed") as refused:
        await registry.update("a/1", status="completed")
    assert str(root) not in str(refused.value)


async def test_two_links_to_one_file_wait_for_each_other(registry: Registry, root: Path) -> None:
    """Ticks through several changes whose tasks.md are one file all count."""
    write_tasks(root, a="".join(f"- [ ] Task of number {number}\n" for number in range(1, 13)))
    for change in ("b", "c"):
        (root / "openspec" / "changes" / change).mkdir()
        tasks_md(root, change).symlink_to(tasks_md(root, "a"))
    ticks = (registry.update(f"{'abc'[number % 3]}/{number}", status="completed") for number in range(1, 13))
    await asyncio.gather(*ticks)
    assert tasks_md(root, "a").read_text().count("[x]") == 12


async def test_a_lock_that_nobody_gives_back_keeps_nobody_waiting_for_ever(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program that is stuck is told; once it is gone, the tick is made."""
    import fcntl

    write_tasks(root, a="- [ ] one\n")
    monkeypatch.setattr(checkbox, "_PATIENCE", 0)
    handle = os.open(tasks_md(root, "a").parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ToolFailure, match=r"another program holds a/tasks\.md") as refused:
        await registry.update("a/1", status="completed")
    assert (refused.value.error.code, refused.value.error.retryable) == (ToolErrorCode.UNAVAILABLE, True)
    os.close(handle)
    await registry.update("a/1", status="completed")
    assert tasks_md(root, "a").read_text() == "- [x] one\n"


def test_a_link_that_is_turned_around_leads_nowhere_else(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at where it leads and the reading: the file outside stays as it is, though it says the same."""
    write_tasks(root, a="- [ ] one\n")
    file, inside, outside = tasks_md(root, "a"), tasks_md(root, "a").with_name("real.md"), tmp_path / "outside.md"
    file.rename(inside)
    outside.write_text("- [ ] one\n")
    file.symlink_to(outside)
    read = Folder.bytes

    def turned(folder: Folder, path: Path) -> bytes | None:
        file.unlink()
        file.symlink_to(inside)
        return read(folder, path)

    monkeypatch.setattr(Folder, "bytes", turned)
    seen = parse(inside.read_bytes(), "a").items[0]
    with pytest.raises(Conflict, match="leads out"):
        checkbox.set_box(Folder(root / "openspec"), file, TaskId("a", 1), seen, ticked=True)
    assert outside.read_text() == inside.read_text() == "- [ ] one\n"


async def test_a_change_in_between_is_never_overwritten(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that saves while the new file is written keeps its words; the task stays as it was, everywhere."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n")
    await registry.sync()
    file = tasks_md(root, "a")
    while_writing(monkeypatch, lambda: file.write_bytes(b"- [ ] one\n- [x] two\n"))
    with pytest.raises(Conflict, match="changed since it was read"):
        await registry.update("a/1", status="completed", priority="high")
    assert file.read_bytes() == b"- [ ] one\n- [x] two\n"
    assert [path.name for path in file.parent.iterdir()] == ["tasks.md"]
    task = (await registry.list()).tasks[0]
    assert (task.status, task.priority, task.completed_at) == ("pending", "medium", None)
    await registry.update("a/1", status="completed")
    assert file.read_bytes() == b"- [x] one\n- [x] two\n"


async def test_a_file_that_went_away_in_between_is_not_made_again(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails, and nothing is there."""
    write_tasks(root, a="- [ ] one\n")
    file = tasks_md(root, "a")
    while_writing(monkeypatch, file.unlink)
    with pytest.raises(ToolFailure):
        await registry.update("a/1", status="completed")
    assert list(file.parent.iterdir()) == []


async def test_a_number_that_is_another_task_by_now_is_refused(registry: Registry, root: Path) -> None:
    """Whoever looked at the list of the last sync may mean the other one: nothing is ticked until they look again."""
    write_tasks(root, a="- [ ] Draw the form\n- [ ] Check passwords\n")
    await registry.sync()
    before = "- [ ] Buy a house\n- [ ] Draw the form\n- [ ] Check passwords\n"
    write_tasks(root, a=before)
    for change in ({"status": "completed"}, {"priority": "high"}):
        with pytest.raises(Conflict, match=r"Draw the form.*Buy a house"):
            await registry.update("a/1", **change)
    with pytest.raises(Conflict, match="Draw the form"):
        await registry.deps("a/3", "add", ["1"])
    assert tasks_md(root, "a").read_text() == before
    await registry.sync()
    await registry.update("a/2", status="completed")
    assert tasks_md(root, "a").read_text() == before.replace("- [ ] Draw", "- [x] Draw")


async def test_a_number_that_was_told_before_the_file_changed_is_refused(registry: Registry, root: Path) -> None:
    """Also in a folder that was never synced: the caller has to look again, and trying again is not looking."""
    write_tasks(root, a="- [ ] Draw the form\n- [ ] Check passwords\n", b="- [ ] Other\n")
    await registry.list()
    after = "- [ ] Buy a house\n- [ ] Draw the form\n- [ ] Check passwords\n"
    write_tasks(root, a=after)
    for _ in range(2):
        with pytest.raises(Conflict, match=r"changed since it was read\. It was 'Draw the form' and is 'Buy a house'"):
            await registry.update("a/1", status="completed")
        with pytest.raises(Conflict, match="Check passwords"):
            await registry.deps("a/2", "add", ["3"])
        with pytest.raises(Conflict, match="Draw the form"):
            await registry.deps("b/1", "add", ["a/1"])
    assert tasks_md(root, "a").read_text() == after
    assert (await registry.next("a")).tasks[0].content == "Buy a house"
    await registry.update("a/1", status="completed")
    assert tasks_md(root, "a").read_text() == after.replace("- [ ] Buy", "- [x] Buy")


async def test_a_task_that_was_renumbered_in_its_text_is_still_the_one_that_was_told(
    registry: Registry, root: Path
) -> None:
    """The number that is printed in a text is not what tells a task from others."""
    write_tasks(root, a="- [ ] 1.1 Draw the form\n")
    await registry.list()
    write_tasks(root, a="- [ ] 2.1 Draw the form\n")
    await registry.update("a/1", status="completed")
    assert tasks_md(root, "a").read_text() == "- [x] 2.1 Draw the form\n"


async def test_a_hand_that_changed_another_line_is_in_nobodys_way(registry: Registry, root: Path) -> None:
    """Ticks of others and lines at the end keep a task what it is: both changes stay."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n")
    await registry.sync()
    write_tasks(root, a="- [ ] one\n- [x] two\n- [ ] three\n")
    updated = await registry.update("a/1", status="completed")
    assert tasks_md(root, "a").read_text() == "- [x] one\n- [x] two\n- [ ] three\n"
    assert {difference.id for difference in updated.synced.differences} == {"a/1", "a/2", "a/3"}


async def test_a_link_inside_of_the_folder_stays_one(registry: Registry, root: Path) -> None:
    """What it leads to is changed."""
    write_tasks(root, a="- [ ] one\n")
    file = tasks_md(root, "a")
    file.rename(file.with_name("real.md"))
    file.symlink_to("real.md")
    await registry.update("a/1", status="completed")
    assert file.is_symlink()
    assert file.with_name("real.md").read_text() == "- [x] one\n"


async def test_a_folder_that_cannot_be_written_says_so(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clear failure, and the registry does not believe in a tick that is not there."""
    write_tasks(root, a="- [ ] one\n")

    def full(*_: object, **__: object) -> tuple[int, str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkbox.tempfile, "mkstemp", full)
    with pytest.raises(ToolFailure, match="No space left on device"):
        await registry.update("a/1", status="completed")
    assert await statuses(registry) == {"a/1": "pending"}


async def test_many_ticks_at_once_all_count(registry: Registry, root: Path) -> None:
    """Of one process, of tasks in the same file."""
    write_tasks(root, a="".join(f"- [ ] Task of number {number}\n" for number in range(1, 21)))
    await registry.sync()
    await asyncio.gather(*(registry.update(f"a/{number}", status="completed") for number in range(1, 21)))
    assert set((await statuses(registry)).values()) == {"completed"}
    assert all(task.completed_at is not None for task in (await registry.list()).tasks)


async def test_ticks_of_several_processes_all_count(storage: Storage, place: str, root: Path) -> None:
    """Each ticks its own tasks of one file, and none is lost, in the file nor in the registry."""
    write_tasks(root, a="".join(f"- [ ] Task of number {number}\n" for number in range(1, 31)))
    registry = Registry(storage.database, Project(here=lambda: root))
    await registry.sync()
    processes = [
        subprocess.Popen([sys.executable, str(TICKER), place, str(root), str(first), "3", "30"]) for first in (1, 2, 3)
    ]
    assert await asyncio.gather(*(asyncio.to_thread(process.wait, 60) for process in processes)) == [0, 0, 0]
    assert tasks_md(root, "a").read_text().count("[x]") == 30
    assert all(task.completed_at is not None for task in (await registry.list()).tasks)
    assert not (await registry.sync()).conflicts
