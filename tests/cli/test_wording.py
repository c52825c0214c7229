"""Texts for people do not speak of tools for agents, and the other way round."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import pegboard as package
from forking import warm_start
from harness import open_board, toy, without_config, write_config
from pegboard.cli.app import app
from pegboard.cli.wording import _PHRASES, for_people
from screen import run_on_screen

SOURCE = Path(package.__file__).parent
# Names of tools, as agents know them.
AGENTS = re.compile(r"\b(tool_(find|load|call|describe)|memory_\w+|registry_\w+)\b")


def pegboard(*words: str, config: Path, cwd: Path) -> str:
    command = [*warm_start(), *words, "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("phrase", _PHRASES)
def test_each_phrase_is_still_said(phrase: str) -> None:
    """A phrase that nobody says any more would be translated in vain, and the new one not at all."""
    files = [path.read_text("utf-8") for path in SOURCE.rglob("*.py") if path.name != "wording.py"]
    # A long text is written on several lines.
    texts = [re.sub(r'"\s+f?"', "", text) for text in files]
    assert any(phrase in text for text in texts)


def test_errors_of_commands_name_commands(tmp_path: Path) -> None:
    """An unknown tool, a memory that is there already or not at all, tasks of no project, a server that is off."""
    config = write_config(
        tmp_path / "pegboard.json", {"off": toy({"enabled": False})}, toolsets=["discovery", "memory", "tasks"]
    )
    twice = ("memory", "add", "a", "--text", "x")
    subprocess.run([*warm_start(), *twice, "--config", str(config)], check=True, timeout=60, capture_output=True)
    said = [
        without_config(pegboard(*command, config=config, cwd=tmp_path))
        for command in (("call", "nope"), twice, ("memory", "get", "zzz"), ("tasks", "next"), ("call", "off__x"))
    ]
    assert [AGENTS.findall(text) for text in said] == [[]] * 5
    assert "`pegboard find WORDS` searches for tools." in said[0]
    assert "use --replace, or `pegboard memory update`" in said[1]
    assert "`pegboard memory search WORDS` finds others" in said[2]
    assert "give --path" in said[3]
    assert "`pegboard enable off` enables it" in said[4]


def test_help_speaks_of_no_tool_for_agents() -> None:
    """Neither of all commands together nor of one."""
    for words in ([], ["find"], ["call"], ["tools"], ["memory", "add"], ["tasks", "next"]):
        done = subprocess.run([*warm_start(), *words, "--help"], capture_output=True, text=True, timeout=60, check=True)
        assert AGENTS.findall(done.stdout) == []


def every_help(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it, at 80 columns."""
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    yield " ".join(words), shown.output
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_help(inner, (*words, name))


def test_no_help_is_cut_off() -> None:
    """At 80 columns, of no command: neither in a list of commands nor in one of options."""
    helps = dict(every_help(typer.main.get_command(app)))
    assert {"", "token", "token add", "secrets", "audit", "memory", "login"} <= helps.keys()
    cut = {
        (name, line)
        for name, text in helps.items()
        for line in text.splitlines()
        if line.rstrip().endswith("...") and not line.startswith("Usage: ")
    }
    assert cut == set()


def test_messages_end_their_lines_between_words(tmp_path: Path) -> None:
    """On a terminal; a path stays whole, and a command to copy has no breaks in it."""
    config = write_config(tmp_path / "pegboard.json", {"gone": {"command": "no-such-command-here"}})
    code, shown = run_on_screen([*warm_start(), "restart", "gone", "--config", str(config)], columns=60)
    assert code == 4
    lines = shown.splitlines()
    assert str(config) in "".join(lines)
    assert "without a gateway no server is kept running." in " ".join(" ".join(lines).split())
    assert lines[-1].startswith("  Start it: ") or f"serve --config {config}" in "".join(lines)
    code, shown = run_on_screen([*warm_start(), "add", "x", "--transport", "carrier-pigeon", "--", "y"], columns=40)
    assert code == 2
    assert max(map(len, shown.splitlines())) <= 40


def test_nothing_found_is_said(tmp_path: Path) -> None:
    """Instead of a table without a row."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["discovery", "memory"])
    for words, said in (
        (["find", "qqqq"], "Nothing fits. Try other words."),
        (["memory", "search", "qqqq"], "Nothing found."),
    ):
        command = [*warm_start(), *words, "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == f"{said}\n"


@pytest.mark.anyio
async def test_agents_are_not_told_of_commands(tmp_path: Path) -> None:
    """They cannot run any."""
    async with open_board(tmp_path, {"off": toy({"enabled": False})}) as board:
        result = await board.call("off__echo", {})
    assert result.error is not None
    assert result.error.message == "server off is disabled"


def test_what_is_nobodys_phrase_stays() -> None:
    """Messages of servers are theirs."""
    assert for_people("server x is disabled by its owner") == "server x is disabled by its owner"
