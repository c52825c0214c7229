"""`pegboard serve` as the person at its terminal sees it, and as a program does."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import serving, toy, write_config
from pegboard.cli.banner import show_banner
from pegboard.cli.first_steps import example_server
from pegboard.cli.http_transport import find_running
from pegboard.cli.program import find_program, use_config
from pegboard.cli.rest_client import RestClient
from pegboard.config import Location
from screen import on_screen

NPM = "import sys; [print('npm error', n, file=sys.stderr) for n in range(30)]; sys.exit(1)"


def gateway(config: Path) -> RestClient:
    transport = find_running(config)
    assert transport is not None
    return RestClient(transport)


def serve(config: Path, *more: str) -> list[str]:
    return [*warm_start(), "serve", "--config", str(config), "--port", "0", *more]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A good server, one that fails as npm does, one that is off, and one with a mistake."""
    servers = {
        "good": toy(),
        "npm": {"command": sys.executable, "args": ["-I", "-S", "-c", NPM]},
        "off": toy({"enabled": False}),
        "unset": {"command": "x", "env": {"KEY": "${NOT_SET_HERE}"}},
    }
    return write_config(tmp_path / "my config.json", servers, toolsets=["memory", "discovery"])


@pytest.mark.scenario("first hour: A start on a terminal is calm")
def test_a_start_is_calm(config: Path) -> None:
    """The address, a table of servers, one line for Pegboard's own tools, what to do next, and no log before it."""
    with on_screen(serve(config)) as screen:
        text = screen.until("Calls are shown below.")
    lines = text.splitlines()
    assert re.fullmatch(r"Pegboard listens on http://127\.0\.0\.1:\d+/mcp with 4 servers\.", lines[0])
    assert "".join(lines[1:]).startswith(f"Config: {config}")
    at = next(at for at, line in enumerate(lines) if line.startswith("───"))
    table = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[at + 1 : at + 5]}
    assert table == {"good": "ready ?", "npm": "ready ?", "off": "disabled ?", "unset": "invalid ?"}
    assert "unset: ${NOT_SET_HERE} has no value: set NOT_SET_HERE in the environment" in lines
    assert "Pegboard's own tools: 15 (discovery 6, memory 9)." in lines
    assert re.search(r"http://127\.0\.0\.1:\d+/mcp/NAME", text)
    # Each command can be pasted, and is about this config.
    commands = [line for line in lines if line.startswith("  ") and "--config" in line]
    assert len(commands) >= 3
    assert all(f"--config '{config}'" in line for line in commands)
    assert any(" install claude-code " in line for line in commands)
    assert any(" add " in line for line in commands)
    assert "registered" not in text


@pytest.mark.scenario("first hour: One line a call")
def test_states_and_calls_follow_one_line_each(config: Path) -> None:
    """As servers answer, with the last lines of what a failed one wrote; then a line a call."""
    with on_screen(serve(config)) as screen:
        screen.until("Calls are shown below.")
        rest = gateway(config)
        assert "error" in rest.refresh(["npm", "good"])["npm"]
        text = screen.until("All 2 new servers have been asked: 1 ready, 1 not.")
        rest.refresh(["npm"])
        rest.call("good__echo", {"x": 1})
        rest.call("good__fails", {})
        text = screen.until("good__fails")
    after = text.partition("Calls are shown below.")[2]
    assert len(re.findall(r"good  ready, \d+ tools", after)) == 1
    assert after.count("npm  unreachable: the process exited with code 1") == 1
    assert re.findall(r"npm error (\d+)", after) == ["27", "28", "29"]
    assert re.search(r"\d\d:\d\d:\d\d  REST  good__echo  \d+ ms  ok\n", after)
    assert re.search(r"\d\d:\d\d:\d\d  REST  good__fails  \d+ ms  error", after)


def test_a_server_that_is_off_has_no_errors_and_a_mistake_is_said_once(tmp_path: Path) -> None:
    """Neither in a table nor in a line; once it is on, one line says what is wrong."""
    servers = {"Off": {"command": "x", "env": {"KEY": "${NOT_SET_HERE}"}, "enabled": False}}
    path = write_config(tmp_path / "p.json", servers)
    with on_screen(serve(path)) as screen:
        assert "NOT_SET_HERE" not in screen.until("Calls are shown below.")
        assert gateway(path).servers()["data"]["servers"][0]["lastError"] is None
        command = [*warm_start(), "enable", "off", "--config", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        text = screen.until("the config file was read again: 1 server")
    assert done.returncode == 4
    assert "off is enabled in" in done.stdout
    assert "off: ${NOT_SET_HERE} has no value" in done.stderr
    assert "→ export NOT_SET_HERE in the shell that starts" in done.stderr
    after = text.partition("Calls are shown below.")[2]
    assert after.count("NOT_SET_HERE has no value") + after.count("{NOT_SET_HERE} has no value") == 1
    assert "off  invalid: " in after
    assert "is called" not in after


def test_programs_get_json_lines(config: Path) -> None:
    """Where stderr is no terminal every line is an event, and registrations are there, each and all together."""
    command = serve(config)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "listens on" in process.stdout.readline()
    rest = gateway(config)
    for _ in range(3):
        rest.refresh(["npm"])
    rest.call("good__echo", {})
    process.terminate()
    _, err = process.communicate(timeout=30)
    events = [json.loads(line) for line in err.splitlines()]
    names = [event["event"] for event in events]
    assert sum(name.startswith("MCP tool registered: ") for name in names) == 15
    [own] = [event for event in events if event["event"] == "toolsets.registered"]
    assert (own["toolCount"], own["toolsets"]) == (15, {"discovery": 6, "memory": 9})
    # Once for Pegboard's own, once for the server that was called.
    assert names.count("tools.registry.updated") == 2
    failures = [event for event in events if "failed" in event["event"] and "npm" in event.values()]
    assert [event["event"] for event in failures] == ["tools.discovery.server.failed"]
    assert len(failures[0]["errorMessage"]) < 800
    assert "tool.called" not in names


@pytest.mark.scenario("first hour: A start on a terminal is calm")
def test_a_level_that_was_asked_for_shows_events_themselves(config: Path) -> None:
    """`PEGBOARD_LOG` is for whoever wants the whole log, on a terminal too."""
    with on_screen(serve(config), PEGBOARD_LOG="info") as screen:
        text = screen.until("Calls are shown below.")
    assert "MCP tool registered: memory_add" in text
    with on_screen(serve(config), PEGBOARD_LOG="warning") as screen:
        screen.until("Calls are shown below.")
        gateway(config).call("good__echo", {})
        screen.process.send_signal(signal.SIGINT)
        code, text = screen.finish()
    assert code == 0
    assert "good__echo" not in text


def test_a_narrow_terminal_without_colours(config: Path) -> None:
    """Names and notes are whole, lines end between words, and NO_COLOR is obeyed."""
    with on_screen(serve(config), 40, NO_COLOR="1") as screen:
        text = screen.until("Calls are shown below.")
        # Rich makes headings bold; that is no colour.
        assert "\x1b[3" not in screen.raw
    note = text[text.index("unset: ") :].splitlines()[:3]
    assert note == ["unset: ${NOT_SET_HERE} has no value: set", "  NOT_SET_HERE in the environment", note[2]]


def test_a_config_that_every_command_finds_is_not_named(tmp_path: Path) -> None:
    """Without servers, and with the user's own config, the commands are as short as they can be."""
    process = subprocess.Popen(
        [*warm_start(), "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    process.terminate()
    said += process.stdout.read()
    assert process.wait(20) == 0
    process.stdout.close()
    assert "with 0 servers" in said
    assert "Add your first server:" in said
    assert "--config" not in said


def test_a_first_start_names_import_only_where_there_are_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their servers are what most people have; whoever has servers here knows the way."""
    location = Location(write_config(tmp_path / "p.json", {}), exists=True)
    use_config(location)
    show_banner("http://127.0.0.1:1", location, [], {}, "you")
    assert " import" not in capsys.readouterr().out
    (Path.home() / ".cursor").mkdir(parents=True)
    (Path.home() / ".cursor" / "mcp.json").write_text("{}")
    show_banner("http://127.0.0.1:1", location, [], {}, "you")
    assert f"pegboard import --config {location.path}" in capsys.readouterr().out
    row = {"name": "a", "state": "idle", "tools": 1, "seen": True, "enabled": True, "lastError": None}
    show_banner("http://127.0.0.1:1", location, [row], {}, "you")
    assert " import" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("here", "words"),
    [({"uvx", "npx"}, "time -- uvx"), ({"npx"}, "everything -- npx -y"), (set[str](), "docs https://")],
)
def test_the_first_server_is_one_that_can_run_here(here: set[str], words: str) -> None:
    """A first command that fails would be the last one."""
    assert " ".join(example_server(lambda name: name if name in here else None)).startswith(words)


@pytest.mark.scenario("first hour: A port in use says who has it")
@pytest.mark.parametrize("same", [True, False])
def test_a_port_in_use_says_who_has_it(tmp_path: Path, same: bool) -> None:
    """That Pegboard runs there, with which config, and commands that help; nothing else is printed."""
    path = write_config(tmp_path / "a.json", {})
    other = path if same else write_config(tmp_path / "b.json", {})
    with serving(path) as (_, url):
        port = url.split(":")[2].split("/")[0]
        command = [*warm_start(), "serve", "--config", str(other), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    first, see, elsewhere = done.stderr.splitlines()
    assert first.startswith(f"pegboard: cannot listen on 127.0.0.1:{port}: Pegboard runs there already, with ")
    assert ("this config" in first) is same
    assert (str(path) in first) is not same
    assert see.endswith(f" status --config {path}")
    assert re.search(rf" serve --port \d+ --config {other}$", elsewhere)
    assert f"--port {port} " not in elsewhere


def test_a_port_of_another_program_says_so(tmp_path: Path) -> None:
    """And which port would do."""
    path = write_config(tmp_path / "a.json", {})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [*warm_start(), "serve", "--config", str(path), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "another program listens there." in done.stderr
    assert " --port " in done.stderr.splitlines()[1]


@pytest.mark.parametrize("windows", [False, True])
def test_the_program_is_called_by_its_name_or_by_its_path(tmp_path: Path, windows: bool) -> None:
    """By its name only where that finds this one; below the current folder the path is short."""
    scripts = tmp_path / ".venv" / ("Scripts" if windows else "bin")
    scripts.mkdir(parents=True)
    own = scripts / ("pegboard.exe" if windows else "pegboard")
    own.touch()
    other = tmp_path / "other"
    other.touch()
    python = str(scripts / "python")
    options: dict[str, Any] = {"python": python, "folder": tmp_path, "is_windows": windows}
    found = find_program(which=lambda _: str(own), **options)
    assert (found.words, found.is_on_path) == (("pegboard",), True)
    for elsewhere in (None, str(other)):
        found = find_program(which=lambda _, it=elsewhere: it, **options)
        assert (found.words, found.is_on_path) == ((str(own.relative_to(tmp_path)),), False)
    far: dict[str, Any] = {**options, "folder": tmp_path / "x"}
    assert find_program(which=lambda _: None, **far).words == (str(own),)
    own.unlink()
    assert find_program(which=lambda _: None, **options).words == (python, "-m", "pegboard")
