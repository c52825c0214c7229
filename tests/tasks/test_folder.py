"""An OpenSpec folder: what is read of it, what is not, and that a change is never missed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pegboard.toolsets.tasks.folder import MAX_FILE, Folder, Stamp, Unreadable
from tasks.project import tasks_md, whole, write, write_tasks


@pytest.fixture
def folder(root: Path) -> Folder:
    """The folder of the project."""
    return Folder(root / "openspec")


def test_changes_are_read_and_the_archive_is_not(root: Path, folder: Folder) -> None:
    """Changes with and without tasks.md by their titles; hidden folders and files are no changes."""
    whole(root)
    write(
        root,
        {"changes/no-tasks/proposal.md": "## Why\n", "changes/.git/tasks.md": "- [ ] x\n", "changes/README.md": ""},
    )
    found = folder.contents()
    assert {name: change.title for name, change in found.changes.items()} == {
        "add-login": "Add a login",
        "no-tasks": "no-tasks",
    }
    assert found.changes["no-tasks"].tasks is None
    assert found.problems == []


def test_a_file_is_read_again_only_when_it_changed(root: Path, folder: Folder) -> None:
    """The same bytes are the same object, however often somebody looks."""
    write_tasks(root, a="- [ ] one\n", b="- [ ] two\n")
    first = folder.contents().changes
    again = folder.contents().changes
    assert again["a"].tasks is first["a"].tasks
    write_tasks(root, a="- [x] one\n")
    after = folder.contents().changes
    assert after["a"].tasks is not first["a"].tasks
    assert after["b"].tasks is first["b"].tasks


def test_a_change_within_one_tick_of_the_clock_is_seen(root: Path, folder: Folder) -> None:
    """A tick leaves the size as it is, and a quick hand the time: it counts all the same."""
    write_tasks(root, a="- [ ] one\n")
    file = tasks_md(root, "a")
    for turn in range(20):
        found = folder.contents().changes["a"].tasks
        assert found is not None
        assert found.items[0].ticked == (turn % 2 == 1)
        times = file.stat().st_atime_ns, file.stat().st_mtime_ns
        with file.open("r+b") as opened:
            opened.write(b"- [x]" if turn % 2 == 0 else b"- [ ]")
        os.utime(file, ns=times)


def test_a_stamp_of_a_moment_ago_is_not_trusted(root: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a clock is too slow to tell two changes apart, the bytes do; later, the stamp is enough."""
    write_tasks(root, a="- [ ] one\n")
    now = time.time_ns()
    for modified, seen in ((now, True), (now - 10**9, False)):
        stamp = Stamp(1, 10, modified, modified)
        monkeypatch.setattr(folder, "_stamp", lambda path, own=stamp: own if path.name == "tasks.md" else None)
        write_tasks(root, a="- [ ] one\n")
        folder.contents()
        write_tasks(root, a="- [x] one\n")
        found = folder.contents().changes["a"].tasks
        assert found is not None
        assert found.items[0].ticked is seen


def test_links_that_lead_out_are_not_followed(root: Path, tmp_path: Path, folder: Folder) -> None:
    """Not a file, not a change, not a folder in between; those that stay inside are."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "tasks.md").write_text("- [ ] secret\n")
    (outside / "spec.md").write_text("# Secret\n")
    write_tasks(root, a="- [ ] one\n")
    changes = root / "openspec" / "changes"
    (changes / "by-folder").symlink_to(outside)
    (changes / "by-file").mkdir()
    (changes / "by-file" / "tasks.md").symlink_to(outside / "tasks.md")
    (changes / "inside").symlink_to(changes / "a")
    (changes / "circle").symlink_to(changes / "circle")
    found = folder.contents()
    assert sorted(found.changes) == ["a", "inside"]
    assert found.problems == [("changes/by-file", "tasks.md is a link that leads out of the folder")]
    (changes / "a" / "specs").symlink_to(outside)
    assert folder.names("changes/a/specs") == []
    with pytest.raises(Unreadable, match="leads out"):
        folder.text(changes / "a" / "specs" / "spec.md")
    assert folder.files(changes / "by-file") == []


def test_what_is_no_file_or_too_large_is_told(root: Path, folder: Folder) -> None:
    """A pipe would be waited for, and a film would fill the memory."""
    write_tasks(root, a="- [ ] one\n", film="x")
    with tasks_md(root, "film").open("r+b") as film:
        film.truncate(MAX_FILE + 1)
    tasks_md(root, "pipe").parent.mkdir()
    os.mkfifo(tasks_md(root, "pipe"))
    tasks_md(root, "dir").mkdir(parents=True)
    found = folder.contents()
    assert sorted(found.changes) == ["a"]
    assert [path for path, _ in found.problems] == ["changes/dir", "changes/film", "changes/pipe"]


def test_names_that_cannot_be_said_are_no_changes(root: Path, folder: Folder) -> None:
    """Bytes that are no UTF-8, and control characters; other scripts and spaces are fine."""
    for name in (b"\xff\xfe", b"a\nb", "日本".encode(), b"with space"):
        file = tasks_md(root, os.fsdecode(name))
        file.parent.mkdir()
        file.write_bytes(b"- [ ] one\n")
    assert sorted(folder.contents().changes) == ["with space", "日本"]


def test_no_folder_is_an_empty_one(tmp_path: Path) -> None:
    """Nothing to read is nothing wrong."""
    assert Folder(tmp_path / "openspec").contents().changes == {}
