"""Shells complete commands, options, and names of servers and tools."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import typer

from forking import warm_start
from harness import serving, toy, write_config
from pegboard.cli.app import app
from pegboard.cli.completion import _COMPLETERS, completion_script

SCHEMA = {"type": "object", "properties": {"when": {}, "where": {}, "$(touch x)": {}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for the PATH with a `pegboard` in it, and a config whose tools are in the catalog."""
    program = tmp_path / "bin" / "pegboard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(warm_start())} "$@"\n')
    program.chmod(0o755)
    tool = {"name": "look_up", "inputSchema": SCHEMA}
    write_config(tmp_path / "p.json", {"one": toy(raw_tools=[tool]), "other": toy({"enabled": False})})
    command = [str(program), "refresh", "--config", str(tmp_path / "p.json")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return tmp_path


@pytest.fixture(params=["alone", "beside a running gateway"])
def served(request: pytest.FixtureRequest, folder: Path) -> Generator[Path]:
    """Whoever answers, the answers are the same."""
    if request.param == "alone":
        yield folder
    else:
        with serving(folder / "p.json"):
            yield folder


def in_bash(folder: Path, *words: str) -> list[str]:
    """What bash offers at the last of these words, with the script that it is given."""
    line = " ".join(map(shlex.quote, words))
    script = (
        "source <(pegboard completion bash) && complete -p pegboard >&2 && "
        f"COMP_WORDS=({line}) COMP_CWORD={len(words) - 1} && _pegboard_completion pegboard; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PATH": path},
        cwd=folder,
    )
    assert "_pegboard_completion pegboard" in done.stderr
    return done.stdout.split()


def asked(shell: str, line: str, word: str = "", **more: str) -> str:
    """What the program answers to the script of another shell."""
    env: dict[str, Any] = {
        **os.environ,
        "_PEGBOARD_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": word,
        **more,
    }
    done = subprocess.run(warm_start(), capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.stderr == ""
    return done.stdout


def test_bash_completes_commands_and_options(folder: Path) -> None:
    """Those of groups as well."""
    assert in_bash(folder, "pegboard", "st") == ["stdio", "status"]
    assert in_bash(folder, "pegboard", "memory", "exp") == ["export"]
    assert in_bash(folder, "pegboard", "tools", "--st") == ["--status"]
    assert in_bash(folder, "pegboard", "completion", "p") == ["powershell"]


def test_bash_completes_names(served: Path) -> None:
    """Servers, tools and their arguments, of the config that the line names."""
    config = ["--config", str(served / "p.json")]
    assert in_bash(served, "pegboard", "disable", *config, "o") == ["one", "other"]
    assert in_bash(served, "pegboard", "logs", *config, "on") == ["one"]
    assert in_bash(served, "pegboard", "tools", *config, "--server", "ot") == ["other"]
    assert in_bash(served, "pegboard", "describe", *config, "one__loo") == ["one__look_up"]
    assert in_bash(served, "pegboard", "call", *config, "one__ec") == ["one__echo"]
    # What a shell would run is not offered.
    assert in_bash(served, "pegboard", "call", *config, "one__look_up", "") == ["when=", "where="]


def test_what_goes_wrong_stays_off_the_line(folder: Path) -> None:
    """A config that is not there, or broken: nothing is offered, and nothing is said."""
    (folder / "broken.json").write_text("{")
    for name in ("broken.json", "none.json"):
        assert in_bash(folder, "pegboard", "refresh", "--config", str(folder / name), "o") == []


def test_other_shells_get_names_in_their_form(folder: Path) -> None:
    """zsh a list to evaluate, fish and PowerShell a line each."""
    line = f"pegboard describe --config {folder / 'p.json'} one__look"
    assert asked("zsh", line) == "_arguments '*: :((\"one__look_up\"))'\n"
    assert asked("fish", line, _TYPER_COMPLETE_FISH_ACTION="get-args") == "one__look_up\n"
    assert asked("powershell", line, "one__look").startswith("one__look_up")
    assert "status" in asked("zsh", "pegboard st")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_script_calls_the_program(shell: str) -> None:
    """By its name, with the variable that it looks for."""
    script = completion_script(shell)
    assert f"complete_{shell}" in script
    assert "_PEGBOARD_COMPLETE" in script


def test_what_is_completed_is_there() -> None:
    """Each entry names a command and a parameter of it."""
    root: Any = typer.main.get_command(app)
    for path in _COMPLETERS:
        name, parameter = path.split()
        assert parameter in {known.name for known in root.commands[name].params}, path
