"""How messages call `pegboard`, wherever it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from harness import toy, write_config
from pegboard.cli import program
from pegboard.cli.app import app
from pegboard.cli.program import (
    _COMMANDS,
    _GROUPS,
    _WITHOUT_CONFIG,
    Program,
    command_for,
    use_config,
    with_program,
)
from pegboard.config import Location
from pegboard.config.locate import user_config

MISSING = "no-such-command-here"
BARE = re.compile(rf"(?<![\w./-])pegboard (?:{'|'.join(_COMMANDS)})\b")


@pytest.fixture
def off_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Nobody finds `pegboard` by its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return str(Path(sys.executable).with_name("pegboard"))


def test_every_command_is_known() -> None:
    """One that is missing would be called by its name where that finds nothing."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    groups = {name: command.commands for name, command in commands.items() if hasattr(command, "commands")}
    assert set(_COMMANDS) == set(commands)
    assert {name: set(inner) for name, inner in _GROUPS.items()} == {name: set(inner) for name, inner in groups.items()}
    every = commands | {f"{name} {word}": inner for name, group in groups.items() for word, inner in group.items()}
    without = {name for name, command in every.items() if not any("--config" in each.opts for each in command.params)}
    assert without - set(groups) == _WITHOUT_CONFIG


def test_commands_in_messages_are_for_the_same_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named where somebody named it, behind the command's own words, and once."""
    monkeypatch.setattr(program, "find_program", lambda: Program(("pegboard",), is_on_path=True))
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "my config.json"
    named = f"--config '{file}'"
    use_config(Location(file, exists=True))
    texts = {
        "run `pegboard token rotate ci --expires 30d`, or": f"run `pegboard token rotate {named} ci --expires 30d`, or",
        "pegboard enable x enables it": f"pegboard enable {named} x enables it",
        "`pegboard trust` and pegboard add-json -": f"`pegboard trust` and pegboard add-json {named} -",
        "pegboard serve --port 1 --config y": "pegboard serve --port 1 --config y",
        "the pegboard section": "the pegboard section",
    }
    assert {text: with_program(text) for text in texts} == texts
    assert command_for("add", "x", "--", "npx") == f"pegboard add x {named} -- npx"
    assert with_program(command_for("status")) == f"pegboard status {named}"
    use_config(Location(user_config(), exists=True))
    assert with_program("pegboard serve") == command_for("serve") == "pegboard serve"


@pytest.mark.usefixtures("off_path")
def test_only_commands_are_called_by_the_path() -> None:
    """A word that is a part of a path, or of a sentence, stays."""
    for text in ("the pegboard section", "/opt/pegboard serve", "~/pegboard/x", "pegboard adds", "Pegboard serve"):
        assert with_program(text) == text


def test_commands_in_messages_can_be_typed(tmp_path: Path, off_path: str) -> None:
    """Where the name is not on the PATH, each message has the path: after `make serve` nothing else would run."""
    servers = {"gone": {"command": MISSING}, "off": toy({"enabled": False}), "unset": {"url": "${NO_URL}"}}
    config = write_config(tmp_path / "pegboard.json", servers, toolsets=["discovery", "memory"])
    commands = (
        *(["servers"], ["tools"], ["doctor"], ["clients"], ["status"], ["install"], ["import", "claude-code"]),
        *(["call", "nope"], ["call", "off__x"], ["add", "gone", "other"], ["add", "late", MISSING], ["add"]),
        *(["memory", "get", "zzz"], ["refresh", "gone"], ["enable", "off"], ["logs"]),
    )
    for command in commands:
        done = CliRunner().invoke(app, [*command, "--config", str(config)])
        assert not BARE.search(done.output), done.output
    said = CliRunner().invoke(app, ["doctor", "--config", str(config)]).output
    assert f"starts `{off_path} serve --config {config}`" in said
