"""Documented or it does not exist: every command, setting and package stands in the docs."""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from pegboard.cli.app import app
from pegboard.config import own, read, settings
from pegboard.toolsets.installed import load_parts

ROOT = Path(__file__).parent.parent
INTRODUCTION = """# Commands

`servers`, `tools`, `find`, `describe`, `call`, `refresh`, `search`, `memory …` (except `export` and `import`) and
`tasks …` ask a running `pegboard serve` of the same config. If there is none, they do the work themselves.

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | it failed |
| 2 | wrong usage |
| 3 | the config is wrong |
| 4 | a server could not be reached |

This page is written by `UPDATE_DOCS=1 make test ARGS=tests/test_docs.py`.
"""


def commands_page() -> str:
    """The help of every command."""
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    pages = [INTRODUCTION]
    for words in command_names():
        said = runner.invoke(app, [*words, "--help"], prog_name="pegboard").output.strip()
        pages.append(f"## {' '.join(words)}\n\n```text\n{said}\n```\n")
    return "\n".join(pages)


def command_names() -> list[list[str]]:
    """The words of every command, those of groups behind the others."""
    found = [[name] for name in names_in(app)]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        found += [[str(group.name), name] for name in names_in(group.typer_instance)]
    return found


def names_in(commands: Typer) -> list[str]:
    """The commands of a group."""
    return [str(each.name or getattr(each.callback, "__name__", "")) for each in commands.registered_commands]


def test_the_page_of_commands_is_their_help() -> None:
    """The docs cannot say anything else than the program."""
    page = ROOT / "docs" / "commands.md"
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(commands_page(), "utf-8")
    assert page.read_text("utf-8") == commands_page()


def keys_read() -> set[str]:
    """Every key that the config reader asks for."""
    source = "".join(inspect.getsource(module) for module in (read, own, *load_parts("settings").values()))
    listed = [key.strip('"') for keys in re.findall(r"for key in \(([^)]*)\)", source) for key in keys.split(", ")]
    found = {*re.findall(r'\.get\("(\w+)"\)', source), *listed, *own.settings_keys()}
    return found - {"pegboard", "serverUrl", "disabled", "allow", "deny"}


@pytest.mark.parametrize("key", sorted(keys_read()))
def test_every_setting_is_documented(key: str) -> None:
    """A key that is read stands in docs/config.md."""
    assert re.search(rf"`(\w+\.)?{key}[`.]", (ROOT / "docs" / "config.md").read_text("utf-8"))


def test_defaults_are_documented_as_they_are() -> None:
    """The table's default is the code's."""
    page = (ROOT / "docs" / "config.md").read_text("utf-8")
    spec = settings.ServerSpec(name="x", given_name="x")
    for key, value in {
        "timeout": spec.timeout,
        "connectTimeout": spec.connect_timeout,
        "startTimeout": spec.start_timeout,
        "idleTimeout": spec.idle_timeout,
        "ttl": spec.ttl,
        "maxNameLength": settings.Settings().max_name_length,
    }.items():
        assert re.search(rf"\| `{key}` \| {value:g} \|", page), key


def test_every_dependency_has_its_reason() -> None:
    """A package at run time has a line in docs/dependencies.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    names = [re.split(r"[\[>=<]", dependency)[0] for dependency in project["dependencies"]]
    assert [name for name in names if name not in page] == []


def test_versions_are_pinned_by_name_alone() -> None:
    """constraints.txt holds `name==version` lines; no lock file holds an address."""
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
    assert "://" not in (ROOT / "tests" / "node" / "package-lock.json").read_text("utf-8")
