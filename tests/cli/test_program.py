"""How messages call `pegboard`, wherever it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness import toy, write_config
from pegboard.cli.app import app
from pegboard.cli.program import _COMMANDS, with_program

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
    assert set(_COMMANDS) == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


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
    assert f"starts `{off_path} serve`" in said
