"""What is in memory of a folder: the newest that was read, in whichever order answers come."""

from __future__ import annotations

from pathlib import Path

from pegboard.toolsets.tasks.folder import Folder
from pegboard.toolsets.tasks.folder_state import FolderState
from pegboard.toolsets.tasks.table import Delta, TaskRow
from pegboard.toolsets.tasks.task import Priority
from pegboard.toolsets.tasks.taskfile import digest
from tasks.project import write_tasks


def known(priority: Priority | None = None) -> TaskRow:
    """What is kept of the task."""
    return TaskRow(1, "a", 1, digest("one"), "one", 0, "", priority=priority)


def test_an_older_answer_that_comes_later_changes_nothing(root: Path) -> None:
    """Two who read at once may be overtaken by each other."""
    write_tasks(root, a="- [ ] one\n")
    book = FolderState(Folder(root / "openspec"))
    newer = Delta(2, None, whole=True, rows=[known(priority="high")], needs=())
    older = Delta(1, None, whole=True, rows=[known(priority="low")], needs=())
    for delta in (newer, older):
        state = book.take(delta)
        assert [task.priority for task in state.all()] == ["high"]
        assert state.version == 2


def test_what_is_new_goes_in_the_place_of_what_was(root: Path) -> None:
    """A row that is read again is the same task, and the others stay."""
    write_tasks(root, a="- [ ] one\n- [ ] two\n")
    book = FolderState(Folder(root / "openspec"))
    other = TaskRow(2, "a", 2, digest("two"), "two", 0, "", priority="low")
    book.take(Delta(1, None, whole=True, rows=[known(), other], needs=()))
    state = book.take(Delta(2, 5.0, whole=False, rows=[known(priority="high")], needs=()))
    assert [task.priority for task in state.all()] == ["high", "low"]
    assert state.synced_at == 5.0
