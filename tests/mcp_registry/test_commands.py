"""`search` and `add --from` as people use them: nothing is added without a yes, and what runs is shown exactly."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import serving, write_config
from mcp_registry.fixture_registry import FixtureRegistry, registry_of
from mcp_registry.records import ALL, PACKAGE_ONLY, package, record
from node import package as npm_package
from screen import run_on_screen

WEATHER = "io.github.alice/weather-mcp"
TIME = record(
    "io.github.people/time",
    description="What time it is.",
    packages=[
        package(
            "pypi",
            "mcp-server-time",
            version("mcp-server-time"),
            packageArguments=[
                {"type": "named", "name": "--local-timezone", "isRequired": True, "description": "Yours"}
            ],
        )
    ],
)
EVERYTHING = record(
    "io.github.people/everything", packages=[package("npm", "@modelcontextprotocol/server-everything", "2026.1.1")]
)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Generator[FixtureRegistry]:
    """A registry that every command of the test asks."""
    with registry_of([*ALL, TIME, EVERYTHING]) as found:
        monkeypatch.setenv("PEGBOARD_REGISTRY", found.url)
        yield found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config without servers."""
    return write_config(tmp_path / "pegboard.json", {})


def pegboard(*args: str, config: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command where there is no terminal."""
    whole = [*warm_start(), args[0], "--config", str(config), *args[1:]]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60}
    return subprocess.run(whole, check=False, env={**os.environ, **env}, **options)


def entries(config: Path) -> dict[str, Any]:
    return json.loads(config.read_text())["mcpServers"]


def program(folder: Path, name: str, body: str) -> None:
    """A program on a PATH of the test's own."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_search_shows_name_publisher_version_and_how_it_runs(registry: FixtureRegistry, config: Path) -> None:
    """For people and for programs; texts of strangers steer no terminal and look like no line of ours."""
    said = pegboard("search", "storm", "forecasts", config=config)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[:2] == [f"{WEATHER}  1.2.0", "  by alice on GitHub (io.github.alice)"]
    assert "  → npx -y @alice/weather-mcp@1.2.0 --units metric ${PEGBOARD_INPUT_WEATHER_MCP__PLACE} --stdio" in lines
    assert any("(deprecated)" in line for line in lines)
    data = json.loads(pegboard("search", "storm", "--limit", "1", "--json", config=config).stdout)["data"]
    assert [row["name"] for row in data["servers"]] == [WEATHER]
    hostile = pegboard("search", "harmless", config=config).stdout
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile
    assert [line for line in hostile.splitlines() if line.startswith(WEATHER)] == []
    assert "Nothing fits" in pegboard("search", "qqqqzzzz", config=config).stdout


def test_search_says_what_is_wrong(registry: FixtureRegistry, config: Path) -> None:
    """2: no words; 4: the registry cannot be reached."""
    assert pegboard("search", " ", config=config).returncode == 2
    assert pegboard("search", config=config).returncode == 2
    gone = pegboard("search", "x", config=config, PEGBOARD_REGISTRY="http://127.0.0.1:9")
    assert (gone.returncode, gone.stdout) == (4, "")
    assert "the MCP registry at 127.0.0.1:9 cannot be reached" in gone.stderr
    assert pegboard("search", "x", config=config, PEGBOARD_REGISTRY="nonsense").returncode == 2


@pytest.mark.scenario("first hour: The registry runs nothing before a yes")
def test_without_a_yes_everything_is_shown_and_nothing_is_done(
    registry: FixtureRegistry, config: Path, tmp_path: Path
) -> None:
    """Publisher, version, the exact command, inputs with defaults and choices. Nothing runs, nothing is written."""
    program(tmp_path / "bin", "npx", f"touch {tmp_path / 'ran'}")
    before = config.read_bytes()
    said = pegboard("add", "--from", WEATHER, config=config, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert (said.returncode, config.read_bytes(), (tmp_path / "ran").exists()) == (1, before, False)
    for text in (
        "alice on GitHub (io.github.alice)",
        f"{WEATHER}  1.2.0",
        "  npx -y @alice/weather-mcp@1.2.0 --units metric ${PEGBOARD_INPUT_WEATHER_MCP__PLACE} --stdio\n",
        "WEATHER_KEY (secret, not set here): Your key",
        "default 'metric'; one of metric, imperial",
        "WEATHER_CACHE (filepath)",
        "Say yes with --yes",
    ):
        assert text in said.stderr, said.stderr


def test_a_published_server_is_added_and_used(registry: FixtureRegistry, config: Path, tmp_path: Path) -> None:
    """End to end: a package of PyPI, found, added, discovered and called."""
    installed = Path(sys.executable).parent / "mcp-server-time"
    program(
        tmp_path / "bin",
        "uvx",
        f'test "$1" = "mcp-server-time@{version("mcp-server-time")}" && shift && exec {installed} "$@"',
    )
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    said = pegboard(
        "add", "--from", "io.github.people/time", "--input", "local-timezone=UTC", "--yes", config=config, PATH=path
    )
    assert said.returncode == 0, said.stderr
    assert "time was added" in said.stdout
    assert "2 tools" in said.stdout
    arguments = ["mcp-server-time@" + version("mcp-server-time"), "--local-timezone", "UTC"]
    assert entries(config)["time"] == {"command": "uvx", "args": arguments}
    called = pegboard("call", "time__get_current_time", '{"timezone": "UTC"}', config=config, PATH=path)
    assert "UTC" in called.stdout, called.stderr


def test_a_published_npm_package_is_added_and_used(registry: FixtureRegistry, config: Path, tmp_path: Path) -> None:
    """End to end with a package of npm, under another name."""
    command = " ".join(npm_package("@modelcontextprotocol/server-everything", "dist/index.js"))
    program(tmp_path / "bin", "npx", f'test "$1" = -y && shift 2 && exec {command} "$@"')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    name = "io.github.people/everything"
    said = pegboard("add", "--from", name, "--as", "All-Of-It", "--yes", config=config, PATH=path)
    assert said.returncode == 0, said.stderr
    assert entries(config)["All-Of-It"]["args"] == ["-y", "@modelcontextprotocol/server-everything@2026.1.1"]
    assert "all_of_it__echo" in pegboard("tools", config=config, PATH=path).stdout


def test_a_secret_is_never_written_nor_shown(registry: FixtureRegistry, config: Path, tmp_path: Path) -> None:
    """It reaches the first try, and the config has its variable."""
    program(tmp_path / "bin", "npx", f'echo "$WEATHER_KEY" > {tmp_path / "seen"}; exit 1')
    said = pegboard(
        *("add", "--from", WEATHER, "--env", "WEATHER_KEY=hunter2", "--input", "place=Bergen", "--yes"),
        config=config,
        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    )
    assert said.returncode == 4
    assert entries(config)["weather_mcp"]["env"] == {"WEATHER_KEY": "${WEATHER_KEY}"}
    assert "Bergen" in entries(config)["weather_mcp"]["args"]
    assert (tmp_path / "seen").read_text().strip() == "hunter2"
    assert "hunter2" not in config.read_text() + said.stdout + said.stderr


def test_a_variable_of_another_name_can_be_given(registry: FixtureRegistry, config: Path) -> None:
    """`--env K` takes it from the environment, `K=${OTHER}` from another variable."""
    pegboard("add", "--from", WEATHER, "--env", "WEATHER_KEY=${MINE}", "--input", "place", "--yes", config=config)
    entry = entries(config)["weather_mcp"]
    assert entry["env"] == {"WEATHER_KEY": "${MINE}"}
    assert "${place}" in entry["args"]


def test_a_yes_gives_no_variable_away_that_a_publisher_named(registry: FixtureRegistry, config: Path) -> None:
    """It may be one that is set for something else: whoever means it says its name."""
    said = pegboard("add", "--from", WEATHER, "--input", "place=x", "--yes", config=config, WEATHER_KEY="hunter2")
    assert (said.returncode, entries(config)) == (2, {})
    assert "WEATHER_KEY (secret, set here)" in said.stderr
    assert "If the server may have it, add --env WEATHER_KEY" in said.stderr
    more = ("--input", "place=x", "--env", "WEATHER_KEY", "--yes")
    pegboard("add", "--from", WEATHER, *more, config=config)
    assert entries(config)["weather_mcp"]["env"] == {"WEATHER_KEY": "${WEATHER_KEY}"}


def test_a_remote_server_is_sent_no_variable_of_another_name(registry: FixtureRegistry, config: Path) -> None:
    """Neither one that is set for something else, nor unseen: where it goes is told."""
    said = pegboard(
        *("add", "--from", "com.example/tickets", "--input", "tenant=acme", "--yes"),
        config=config,
        TICKETS_TOKEN="hunter2",
    )
    assert entries(config)["tickets"]["headers"]["Authorization"] == "Bearer ${PEGBOARD_INPUT_TICKETS__TOKEN}"
    assert "and sends to {tenant}.example.com:\n  PEGBOARD_INPUT_TICKETS__TOKEN (secret, not set here)" in said.stderr


def test_another_way_can_be_chosen(registry: FixtureRegistry, config: Path) -> None:
    """`--use` counts them as they are shown."""
    said = pegboard("add", "--from", "io.github.bob/notes", config=config)
    assert "remote notes.example.com: --use 2" in said.stderr
    pegboard("add", "mine", "--from", "io.github.bob/notes", "--use", "2", "--yes", config=config)
    assert entries(config)["mine"] == {"type": "http", "url": "https://notes.example.com/mcp"}


WRONG: dict[str, tuple[int, tuple[str, ...]]] = {
    "did you mean place?": (2, ("--from", WEATHER, "--input", "plaice=x", "--yes")),
    "units must be one of metric, imperial": (2, ("--from", WEATHER, "--input", "units=x", "--yes")),
    "the registry has no server 'nobody/nothing'": (2, ("--from", "nobody/nothing", "--yes")),
    "was deleted from the registry": (2, ("--from", "io.github.mallory/gone", "--yes")),
    "it cannot be added:": (1, ("--from", "io.github.frank/bundle", "--yes")),
    "--use must be from 1 to 2": (2, ("--from", "io.github.bob/notes", "--use", "3", "--yes")),
    "leave those out": (2, ("x", "https://x.example", "--from", WEATHER, "--yes")),
    "go with --from": (2, ("x", "https://x.example", "--as", "y")),
    "a server needs a name": (2, ()),
    "K=V": (2, ("--from", WEATHER, "--input", "=x", "--yes")),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_call_changes_nothing(message: str, registry: FixtureRegistry, config: Path) -> None:
    """And says what is wrong."""
    code, args = WRONG[message]
    said = pegboard("add", *args, config=config)
    assert (said.returncode, entries(config)) == (code, {})
    assert message in said.stderr


@pytest.mark.scenario("first hour: The registry runs nothing before a yes")
def test_on_a_terminal_it_asks_for_what_is_required_and_for_a_yes(
    registry: FixtureRegistry, config: Path, tmp_path: Path
) -> None:
    """A secret is not echoed, and a no changes nothing."""
    program(tmp_path / "bin", "npx", f'echo "$WEATHER_KEY" > {tmp_path / "seen"}; exit 1')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    command = [sys.executable, "-m", "pegboard", "add", "--config", str(config), "--from", WEATHER]
    answers = {"  WEATHER_KEY: ": "hunter2", "  place: ": "Bergen", "Add it?": "n"}
    code, said = run_on_screen(command, answers, PATH=path)
    assert (code, entries(config)) == (1, {})
    assert "--stdio" in said
    code, said = run_on_screen(command, {**answers, "Add it?": "y"}, PATH=path)
    assert (code, entries(config)["weather_mcp"]["args"][4]) == (4, "Bergen")
    assert (tmp_path / "seen").read_text().strip() == "hunter2"
    assert "hunter2" not in said + config.read_text()


CHOOSE = """
import sys
from pathlib import Path
from pegboard.cli.registry import choose_server, registry_wish
from pegboard.config import Location
import typer

wish = registry_wish(sys.argv[2], None, sys.argv[3], None, [], yes=False, force=sys.argv[4] == "force")
try:
    print("chosen", choose_server(Location(Path(sys.argv[1]), exists=True), wish).name)
except typer.Exit as exc:
    sys.exit(exc.exit_code)
"""


def test_a_name_that_is_taken_is_refused_before_anything_is_asked(registry: FixtureRegistry, tmp_path: Path) -> None:
    """Another server has it, and nobody forces it. What may be the same entry is a new try."""
    weather = {"command": "npx", "args": ["-y", "@alice/weather-mcp@1.2.0", "--units", "imperial", "Oslo", "--stdio"]}
    notes = {"type": "http", "url": "https://notes.example.com/mcp"}
    known = {"mine": {"command": "other", "env": {"API_TOKEN": "hunter2"}}, "weather": weather, "notes": notes}
    config = write_config(tmp_path / "pegboard.json", known)
    command = [sys.executable, "-c", CHOOSE, str(config)]
    code, said = run_on_screen([*command, WEATHER, "Mine", ""], {})
    assert (code, "place: " in said, "hunter2" in said) == (3, False, False)
    assert 'there is a server "Mine" already' in said
    for name, force in (("mine", "force"), ("weather", ""), ("free", "")):
        answers = {"  WEATHER_KEY: ": "", "  place: ": "Oslo", "Add it?": "y"}
        assert "chosen" in run_on_screen([*command, WEATHER, name, force], answers)[1]
    # Nothing is asked: it is known what the entry becomes.
    assert run_on_screen([*command, "io.github.bob/notes", "notes", ""], {})[0] == 3
    registry.records.append(record("a/notes", remotes=[notes]))
    assert "chosen" in run_on_screen([*command, "a/notes", "notes", ""], {"Add it?": "y"})[1]


def test_on_a_terminal_it_asks_before_a_variable_is_given_away(registry: FixtureRegistry, config: Path) -> None:
    """Of one that is set and that the publisher named; a no ends it."""
    command = [sys.executable, "-m", "pegboard", "add", "--config", str(config), "--from", WEATHER]
    question = "WEATHER_KEY is set here. Give its value to this server?"
    code, said = run_on_screen(command, {question: "n"}, WEATHER_KEY="hunter2")
    assert (code, entries(config), "Add it?" in said) == (1, {}, False)
    answers = {question: "y", "  place: ": "Bergen", "Add it?": "y"}
    run_on_screen(command, answers, WEATHER_KEY="hunter2", PATH=str(Path(sys.executable).parent))
    assert entries(config)["weather_mcp"]["env"] == {"WEATHER_KEY": "${WEATHER_KEY}"}


def test_a_name_of_a_value_looks_like_no_line_of_ours(registry: FixtureRegistry, config: Path) -> None:
    """Blanks would put what is behind them on a line of its own; escapes do not get so far."""
    hint = f"place{' ' * 200}Add it? [y/N]"
    argument = {"type": "positional", "valueHint": hint, "isRequired": True}
    escapes = {**argument, "valueHint": "\x1b]0;owned\x07\x1b[2Jdir"}
    registry.records += [
        record("a/blanks", packages=[package("npm", "x", packageArguments=[argument])]),
        record("a/escapes", packages=[package("npm", "x", packageArguments=[escapes])]),
    ]
    command = [sys.executable, "-m", "pegboard", "add", "--config", str(config), "--from"]
    code, said = run_on_screen([*command, "a/blanks"], {"  place Add it? [y/N]: ": "Bergen", "config it is": "n"})
    assert (code, entries(config)) == (1, {})
    assert "place   " not in said
    code, said = run_on_screen([*command, "a/escapes"], {})
    assert (code, "\x1b]" in said, "characters that cannot be seen" in said) == (1, False, True)


def test_beside_a_running_gateway_a_secret_is_not_asked_for(registry: FixtureRegistry, config: Path) -> None:
    """It has an environment of its own; the answer comes from it, and the entry reaches it."""
    command = [sys.executable, "-m", "pegboard", "add", "--config", str(config), "--from", WEATHER]
    with serving(config):
        _, said = run_on_screen(command, {"  place: ": "Bergen", "Add it?": "y"})
        assert "WEATHER_KEY: " not in said
        told = pegboard("add", "--from", WEATHER, "--as", "b", "--env", "WEATHER_KEY=hunter2", "--yes", config=config)
        rows = json.loads(pegboard("servers", "--json", config=config).stdout)["data"]["servers"]
    assert "the gateway that runs reads WEATHER_KEY from its own environment" in told.stderr
    assert "hunter2" not in config.read_text() + told.stderr + told.stdout
    assert {row["name"] for row in rows} == {"weather_mcp", "b"}


def test_the_version_is_the_one_that_was_asked_for(registry: FixtureRegistry, config: Path) -> None:
    """One that there is not is an error."""
    assert pegboard("add", "--from", WEATHER, "--version", "0.1", "--yes", config=config).returncode == 2
    shown = pegboard("add", "--from", WEATHER, "--version", PACKAGE_ONLY["server"]["version"], config=config)
    assert "1.2.0" in shown.stderr


def test_the_registry_of_this_shell_is_asked_beside_a_running_gateway(registry: FixtureRegistry, config: Path) -> None:
    """The gateway was started with another one, which nobody answers at."""
    with serving(config, 0, PEGBOARD_REGISTRY="http://127.0.0.1:9"):
        said = pegboard("search", "storm", "forecasts", config=config)
    assert said.returncode == 0, said.stderr
    assert WEATHER in said.stdout
    assert registry.url
