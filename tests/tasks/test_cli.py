"""`pegboard tasks`: for people, and as JSON for programs; alone and beside a running gateway."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import serving, write_config
from pegboard.toolsets.tasks.commands import _show_sync
from screen import run_on_screen
from tasks.project import tasks_md, whole, write_tasks

ESCAPES = "red \x1b[31mline\x1b[2J \x1b]0;title\x07 \x9b2J end"


def in_a_terminal(config: Path, cwd: Path, width: int, *args: str) -> str:
    """What a person sees in a terminal so wide."""
    command = [*warm_start(), "tasks", *args, "--config", str(config)]
    code, seen = run_on_screen(command, columns=width, cwd=cwd, NO_COLOR="1")
    assert code == 0, seen
    return seen


def pegboard(config: Path, cwd: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the group somewhere."""
    command = [*warm_start(), "tasks", *args, "--config", str(config)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd, env={**os.environ, **env}
    )


def ok(config: Path, cwd: Path, *args: str) -> str:
    """What it prints where all is well."""
    done = pegboard(config, cwd, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(config: Path, cwd: Path, *args: str) -> dict[str, Any]:
    """The same for programs."""
    return json.loads(ok(config, cwd, *args, "--json"))["data"]


@pytest.fixture(params=["alone", "beside a running gateway"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Path]:
    """A config; whoever answers, the answers are the same."""
    path = write_config(tmp_path / "pegboard.json", {}, toolsets=["tasks"])
    if request.param == "alone":
        yield path
    else:
        with serving(path):
            yield path


def test_one_change_is_no_changes(config: Path, tmp_path: Path) -> None:
    """A count is said as people say it."""
    root = tmp_path / "project"
    write_tasks(root, add_users="- [ ] Table\n")
    assert "1 change: 1 added" in ok(config, root, "sync")


def test_a_project_is_worked_through(config: Path, tmp_path: Path) -> None:
    """From anywhere inside of it: synced, listed, asked for the next, done, drawn."""
    root = whole(tmp_path / "project")
    write_tasks(root, add_users="- [ ] Table [b]\n- [ ] Page <!-- depends: 1, add-login/2 -->\n")
    inside = root / "src" / "deep"
    inside.mkdir(parents=True)
    assert "2 changes: would be 4 added" in ok(config, inside, "sync", "--dry-run")
    assert "2 changes: 4 added, 0 updated, 0 removed" in ok(config, inside, "sync")
    listed = ok(config, inside, "list", "--status", "pending")
    assert "Table [b]" in listed
    assert "3 of 3 tasks: 3 pending" in listed
    assert [task["id"] for task in as_json(config, inside, "list", "--change", "add-users")["tasks"]] == [
        "add-users/1",
        "add-users/2",
    ]
    said = ok(config, inside, "next", "--count", "2")
    assert said.startswith("add-login/2  1.2 Build\n    priority medium; add-login is at 1 of 2;")
    assert "add-users/1  Table [b]" in said
    assert "1 task waits" in said
    assert as_json(config, inside, "next", "--change", "add-users")["recommended"]["id"] == "add-users/1"
    assert "add-login/2 is completed: 1.2 Build" in ok(config, inside, "done", "add-login/1.2")
    assert "can be begun now: add-users/2" in ok(config, inside, "done", "add-users/1")
    assert tasks_md(root, "add-users").read_text().startswith("- [x] Table [b]\n")
    drawn = ok(config, inside, "graph")
    assert "☑ add-users/1  Table [b]\n└─ ☐ add-users/2  Page" in drawn
    assert ok(config, inside, "graph", "--mermaid", "--change", "add-users").startswith("flowchart LR\n")
    assert as_json(config, inside, "graph")["rows"]


def test_the_picture_is_denied_with_the_list(tmp_path: Path) -> None:
    """Without a gateway as over REST."""
    root = whole(tmp_path / "project")
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["tasks"], tools={"deny": ["registry_list"]})
    denied = pegboard(config, root, "graph", "--json")
    assert denied.returncode != 0
    assert "tools.deny" in json.loads(denied.stdout)["error"]["message"]


def test_a_path_may_be_named(config: Path, tmp_path: Path) -> None:
    """Relative to where one stands, by either name of the option."""
    whole(tmp_path / "project")
    for option in ("--path", "--workspace", "-p"):
        assert as_json(config, tmp_path, "list", option, "project")["total"] == 2


def test_exit_codes(config: Path, tmp_path: Path) -> None:
    """2 for a wrong call, with a message on stderr, or as JSON; 0 where there is nothing to do."""
    root = whole(tmp_path / "project")
    for args, words in (
        (("done", "add-login/7"), "add-login has 2"),
        (("done", "nonsense"), "change-id/number"),
        (("next", "--change", "nope"), "no change 'nope'"),
        (("list", "--status", "done"), "status"),
        (("list", "--limit", "0"), "limit"),
        (("graph", "--change", "nope"), "no change 'nope'"),
        (("list", "--path", str(tmp_path)), "openspec init"),
    ):
        done = pegboard(config, root, *args)
        assert done.returncode == 2, (args, done.stdout)
        assert words in done.stderr, (args, done.stderr)
        assert "Traceback" not in done.stderr
    failed = pegboard(config, root, "done", "add-login/7", "--json")
    assert (failed.returncode, json.loads(failed.stdout)["error"]["code"]) == (2, "TOOL_NOT_FOUND")
    ok(config, root, "done", "add-login/2")
    assert "nothing is pending: 2 completed" in ok(config, root, "next")
    write_tasks(tmp_path / "plain", a="- [ ] one\n")
    assert "No task depends on another." in ok(config, tmp_path / "plain", "graph")


def test_conflicts_and_problems_are_shown(config: Path, tmp_path: Path) -> None:
    """What a box says against the registry, and what could not be read."""
    root = whole(tmp_path / "project")
    ok(config, root, "done", "add-login/2")
    file = tasks_md(root, "add-login")
    file.write_text(file.read_text().replace("- [x] 1.2", "- [ ] 1.2"))
    tasks_md(root, "broken").mkdir(parents=True)
    said = ok(config, root, "sync")
    assert "conflict: add-login/2 is completed here and not ticked in its file" in said
    assert "left out: changes/broken: tasks.md is not a file" in said
    assert "settled for the file" in ok(config, root, "sync", "--force")
    assert "conflict" not in ok(config, root, "sync")


def test_a_sync_says_what_became_of_which_task(tmp_path: Path) -> None:
    """Before it is done and after; of very many the first."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["tasks"])
    root = write_tasks(tmp_path / "project", a="- [ ] one\n- [ ] two\n")
    ok(config, root, "sync")
    write_tasks(root, a="- [x] one\n- [ ] altogether different\n")
    for args in (("sync", "--dry-run"), ("sync",)):
        said = ok(config, root, *args)
        assert "  ~ a/1  one  (ticked)\n  + a/2  altogether different\n  - a/2  two\n" in said
    write_tasks(root, b="- [ ] more of them\n" * 30)
    said = ok(config, root, "sync")
    assert said.count("  + b/") == 20
    assert said.endswith("  … 10 more\n")


def test_no_text_steers_the_terminal(tmp_path: Path) -> None:
    """A tasks.md of somebody else may hold escape sequences: they are not passed on, whichever command shows them."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["tasks"])
    root = write_tasks(tmp_path / "project", a=f"- [ ] {ESCAPES}\n- [ ] two {ESCAPES} <!-- depends: 1 -->\n")
    shown = [
        ok(config, root, *args)
        for args in (("list",), ("next", "--count", "2"), ("graph",), ("graph", "--mermaid"), ("done", "a/1"))
    ]
    tasks_md(root, "a").write_text(f"- [ ] {ESCAPES}\n")
    shown.append(ok(config, root, "sync"))
    for text in shown:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), text


def test_every_text_is_seen_in_a_narrow_terminal(tmp_path: Path) -> None:
    """A long id, folded, leaves room for the words and the status."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["tasks"])
    root = write_tasks(tmp_path / "project", **{"replace_the_" + "very_" * 10 + "old_login": "- [ ] Draw forms\n"})
    for width in (60, 80):
        seen = in_a_terminal(config, root, width, "list")
        assert "pending" in seen, seen
        assert "Draw" in seen, seen
        assert "forms" in seen, seen
        assert max(map(len, seen.splitlines())) <= width


def test_an_output_that_cannot_write_every_character_gets_the_rest(tmp_path: Path) -> None:
    """Where the locale is none of Unicode: a question mark in a picture, an escape in JSON, never a traceback."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["tasks"])
    root = write_tasks(tmp_path / "project", a="- [ ] Näher 😀\n- [ ] two <!-- depends: 1 -->\n")
    for args in (("graph",), ("next",), ("list",)):
        done = pegboard(config, root, *args, PYTHONIOENCODING="ascii")
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert "N?her ?" in done.stdout
    done = pegboard(config, root, "next", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["data"]["recommended"]["content"] == "Näher 😀"


def test_of_what_a_sync_changed_only_what_is_not_shown_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever happened to the tasks; with few of them nothing is left out."""
    rows = [{"change": change, "id": f"a/{at}", "content": "x"} for at, change in enumerate(("added", "removed"))]
    data = {"synced_changes": 1, "added": 1, "updated": 0, "removed": 1, "dry_run": False, "conflicts": []}
    _show_sync({**data, "changes": rows})
    assert "more" not in capsys.readouterr().out
    _show_sync({**data, "updated": 3, "removed": 2, "changes": rows})
    assert "… 4 more" in capsys.readouterr().out
