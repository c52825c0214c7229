"""`pegboard chats …`, as people and scripts use it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chats.makers import OLD, START, Home, session
from forking import warm_start
from harness import write_config
from screen import run_on_screen


def pegboard(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [*warm_start(), "chats", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))


def ok(*args: str) -> str:
    done = pegboard(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def data(*args: str) -> Any:
    return json.loads(ok(*args, "--json"))["data"]


def on_terminal(*args: str, **options: Any) -> str:
    """What a person sees of a command."""
    code, shown = run_on_screen([*warm_start(), "chats", *args], **options)
    assert code == 0, shown
    return shown


@pytest.fixture
def dialogs(home: Home) -> Home:
    """Two dialogs, the second the newer, with what trips a terminal."""
    home.chat("aa-one", session("how does [red] C:\\temp quokka work?"), folder="file:///srv/app", at=OLD)
    later = session("second", "third quokka", creationDate=START + 10**6, customTitle="Über\nalles [bold]")
    for turn in later["requests"]:
        turn["timestamp"] += 10**6
    home.chat("ab-two", later, workspace="w2", folder="file:///srv/till", at=OLD + 1000)
    return home


def test_list_shows_the_latest_first(dialogs: Home) -> None:
    """A table for people, the tool's rows for programs, and pages."""
    del dialogs
    table = ok("list").splitlines()
    assert [line.split()[0] for line in table if line.lstrip().startswith("a")] == ["ab-two", "aa-one"]
    assert "Über alles [bold]" in "\n".join(table)
    assert [each["sessionId"] for each in data("list")["sessions"]] == ["ab-two", "aa-one"]
    assert [each["sessionId"] for each in data("list", "--workspace", "/srv/app")["sessions"]] == ["aa-one"]
    assert "--offset 1" in ok("list", "--limit", "1")
    assert data("list", "--limit", "1", "--offset", "1")["sessions"][0]["sessionId"] == "aa-one"


def test_show_takes_an_id_or_its_beginning(dialogs: Home) -> None:
    """Without one it is the latest; a beginning that several share is refused with their names."""
    del dialogs
    assert "> third quokka" in ok("show")
    assert "C:\\temp" in ok("show", "aa-")
    only = ok("show", "ab-two", "--request", "2")
    assert "## 2. Request" in only
    assert "> second" not in only
    assert [turn["request"] for turn in data("show", "ab")["requests"]] == ["second", "third quokka"]
    several = pegboard("show", "a")
    assert several.returncode == 2
    assert "aa-one" in several.stderr
    assert "ab-two" in several.stderr
    for args in (("show", "zz"), ("show", "ab-two", "--request", "9")):
        assert pegboard(*args).returncode == 2
    assert "Index 9 exceeds total requests (2)" in pegboard("show", "ab-two", "--request", "9").stderr


def test_search_says_where_it_was_found(dialogs: Home) -> None:
    """With the id and the number that `show` takes."""
    del dialogs
    text = ok("search", "quokka")
    assert "ab-two --request 2" in text
    assert "C:\\temp quokka work" in text
    assert {hit["sessionId"] for hit in data("search", "quokka")["results"]} == {"aa-one", "ab-two"}
    assert "Nothing found" in ok("search", "wombat")


def test_export_writes_markdown(dialogs: Home, tmp_path: Path) -> None:
    """One is printed or goes into a file, several go into a folder, each under a name of its own."""
    del dialogs
    assert ok("export", "aa-one").startswith("# how does")
    file = tmp_path / "one.md"
    assert str(file) in ok("export", "aa-one", "--to", str(file))
    assert "C:\\temp" in file.read_text("utf-8")
    folder = tmp_path / "all"
    ok("export", "--all", "--to", str(folder))
    names = sorted(path.name for path in folder.iterdir())
    assert [name.endswith(".md") for name in names] == [True, True]
    assert any("über-alles-bold-ab-two" in name for name in names)
    ok("export", "--all", "--workspace", "/srv/till", "--to", str(tmp_path / "till"))
    assert len(list((tmp_path / "till").iterdir())) == 1
    for wrong in (("export",), ("export", "--all"), ("export", "aa-one", "--all"), ("export", "aa", "ab")):
        assert pegboard(*wrong).returncode == 2


def test_ids_that_look_alike_have_files_of_their_own(home: Home, tmp_path: Path) -> None:
    """Whatever in them cannot stand in the name of a file."""
    ids = ("a_b", "a-b", "a b", "a.b", "A-b", "x" * 200, "x" * 201)
    for each in ids:
        home.chat(each, session("same"))
    ok("export", "--all", "--to", str(tmp_path / "all"))
    names = [path.name.lower() for path in (tmp_path / "all").iterdir()]
    assert len(set(names)) == len(ids)
    assert {"2026-01-01-same-a_b.md", "2026-01-01-same-a-b.md"} <= set(names)


def test_an_export_goes_on_after_a_file_that_fails(dialogs: Home, tmp_path: Path) -> None:
    """What could not be written is named at the end, and so says the exit code."""
    del dialogs
    folder = tmp_path / "all"
    name = "2026-01-01-how-does-red-c-temp-quokka-work-aa-one.md"
    (folder / name / "in the way").mkdir(parents=True)
    done = pegboard("export", "--all", "--to", str(folder))
    assert (done.returncode, "ab-two" in done.stdout) == (1, True)
    assert "1 could not be written" in done.stderr
    assert "aa-one: " in done.stderr
    assert [path for path in folder.iterdir() if path.name.endswith(".part")] == []
    one = pegboard("export", "aa-one", "--to", str(tmp_path / "no" / "such" / "folder" / "one.md"))
    assert (one.returncode, "aa-one: " in one.stderr) == (1, True)


def test_an_id_with_markup_in_it_is_listed(home: Home, tmp_path: Path) -> None:
    """As it is: it is no markup of ours."""
    home.chat("[red]x", session("hello"))
    home.export("e.json", session("hello", session_id="id [/bold] x"))
    config = write_config(tmp_path / "pegboard.json", {}, chats={"exports": [str(home.folder / "exports")]})
    listed = ok("list", "--config", str(config))
    assert "[red]x" in listed
    assert "id [/bold] x" in listed


@pytest.mark.parametrize(("columns", "last"), [(40, "title"), (80, "requests"), (140, "source")])
def test_a_narrow_terminal_shows_what_a_chat_is_called_by(dialogs: Home, columns: int, last: str) -> None:
    """Its id and its title first, and the rest where there is room."""
    del dialogs
    shown = on_terminal("list", columns=columns)
    head, *rows = [
        line for line in shown.split("Reading chats")[-1].splitlines() if line.lstrip().startswith(("id", "ab"))
    ]
    assert head.split()[:2] == ["id", "title"]
    assert head.split()[-1] == last
    assert any(row.split()[0] == "ab-two" and "Über alles" in row for row in rows)


def test_a_machine_without_chats_says_so(home: Home) -> None:
    """Nothing is an answer, too."""
    del home
    assert "No chats" in ok("list")
    assert data("list")["pagination"]["total"] == 0
    assert pegboard("show").returncode == 2
    assert "there are no chats" in pegboard("show").stderr


def test_on_a_terminal_the_first_reading_shows_how_far_it_is(home: Home) -> None:
    """Thousands of files take a while; a pipe gets no bar."""
    for number in range(200):
        home.chat(f"s{number}", session(f"hello {number}"))
    shown = on_terminal("list", "--limit", "1", stdout=subprocess.DEVNULL)
    assert "Reading chats" in shown
    assert "%" in shown
    assert pegboard("list").stderr == ""
