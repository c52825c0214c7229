"""`pegboard chats …`, as people and scripts use it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chats.makers import OLD, START, Home, session


def pegboard(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [sys.executable, "-m", "pegboard", "chats", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))


def ok(*args: str) -> str:
    done = pegboard(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def data(*args: str) -> Any:
    return json.loads(ok(*args, "--json"))["data"]


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
    main, side = pty.openpty()
    command = [sys.executable, "-m", "pegboard", "chats", "list", "--limit", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=side, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(side)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0
    os.close(main)
    assert b"Reading chats" in shown
    assert b"%" in shown
    assert pegboard("list").stderr == ""
