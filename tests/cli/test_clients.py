"""`clients`, `install`, `uninstall` as people and scripts use them: real processes, real files, exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forking import COLD_START, warm_start
from harness import serving, toy, without_config, write_config
from screen import on_screen

CONTENT = '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "x", "env": {"API_KEY": "hunter2-s3cr3t"}}\n  }\n}\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which Cursor has a server, and Codex no file yet."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor" / "mcp.json").write_text(CONTENT)
    (home / ".codex").mkdir()
    return home


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "pegboard.json", {"one": toy()})


@pytest.fixture
def gateway(config: Path) -> Generator[str]:
    with serving(config) as (_, url):
        yield url.removesuffix("/mcp")


def pegboard(config: Path, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    # None of the programs of whoever runs the tests is a client here.
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "COLUMNS": "80", **env}
    command = [*warm_start(), args[0], "--config", str(config), *args[1:]]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
    )


def ok(config: Path, *args: str, **options: Any) -> str:
    done = pegboard(config, *args, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cursor(home: Path) -> Path:
    return home / ".cursor" / "mcp.json"


def test_from_nothing_to_connected_and_back(home: Path, config: Path, gateway: str) -> None:
    """Look, see the change, write it, see it there, find nothing to do, take it out: the file is as it was."""
    before = ok(config, "clients")
    assert "cursor  not connected  1        ~/.cursor/mcp.json" in before
    assert "Not found here: claude-code," in before
    shown = ok(config, "install", "cursor", "--dry-run")
    assert cursor(home).read_text() == CONTENT
    written = ok(config, "install", "cursor", "--yes")
    for text in (shown, written):
        assert f"an address (HTTP), because a gateway runs at {gateway}" in text
        assert f'+      "url": "{gateway}/mcp/cursor"' in text
        assert "hunter2" not in text
    assert "Checked: Pegboard answers" in written
    assert "Next: Cursor takes it over at once" in written
    assert "Undo: pegboard uninstall cursor" in written
    assert "cursor  http, board cursor  1" in ok(config, "clients")
    assert "There is nothing to do." in ok(config, "install", "cursor", "--yes")
    removed = ok(config, "uninstall", "cursor", "--yes")
    assert "is byte for byte as before the install" in removed
    assert cursor(home).read_text() == CONTENT
    assert "There is nothing to do." in ok(config, "uninstall", "cursor", "--yes")


def test_without_a_gateway_a_command_is_written(home: Path, config: Path) -> None:
    """With its whole path, the board, and the config that is not the usual one; and it works."""
    written = ok(config, "install", "cursor", "--yes")
    assert "a command, because no gateway runs now" in written
    assert "Checked: Pegboard answers" in written
    text = "".join(line for line in cursor(home).read_text().splitlines() if "//" not in line)
    entry = json.loads(text)["mcpServers"]["pegboard"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == ["stdio", "--board", "cursor", "--config", str(config)]


def test_all_found_clients_at_once(home: Path, config: Path, gateway: str) -> None:
    """One that cannot be changed is said, the others go on, and the exit code is 1."""
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{")
    done = pegboard(config, "install", "--all", "--yes")
    assert done.returncode == 1
    assert "Gemini CLI: " in done.stderr
    assert "settings.json: it cannot be read: 1:2" in done.stderr
    assert "pegboard" in cursor(home).read_text()
    codex = tomllib.loads((home / ".codex" / "config.toml").read_text())
    assert codex["mcp_servers"]["pegboard"] == {"url": f"{gateway}/mcp/codex"}
    pegboard(config, "uninstall", "--all", "--yes")
    assert cursor(home).read_text() == CONTENT
    assert list((home / ".codex").iterdir()) == []
    assert (home / ".gemini" / "settings.json").read_text() == "{"


@pytest.mark.scenario("first hour: Nothing is written without a yes")
def test_nothing_is_written_without_a_yes(home: Path, config: Path, gateway: str) -> None:
    """Where nobody can be asked, the change is shown, and the exit code is 1."""
    done = pegboard(config, "install", "cursor")
    assert done.returncode == 1
    assert '+    "pegboard": {' in done.stdout
    assert "there is no terminal to ask at. Use --yes" in done.stderr
    assert cursor(home).read_text() == CONTENT


@pytest.mark.scenario("first hour: Nothing is written without a yes")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_at_a_terminal_it_asks(home: Path, config: Path, gateway: str, answer: str, code: int) -> None:
    """A yes writes, a no does not."""
    command = [*COLD_START, "install", "cursor", "--config", str(config)]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with on_screen(command, PATH=path, NO_COLOR="1") as screen:
        screen.until("Write this?")
        screen.type(answer)
        ended, said = screen.finish()
    assert ended == code, said
    assert ("pegboard" in cursor(home).read_text()) == (code == 0)
    assert "\x1b[3" not in screen.raw
    assert code == 0 or "Nothing was changed." in said


WRONG = [
    (["install"], "say which client: pegboard install CLIENT, or pegboard install --all. Found here: cursor, codex."),
    (["install", "curser"], "there is no client 'curser': did you mean cursor"),
    (["install", "cursor", "--all"], "name clients, or use --all: not both"),
    (["install", "cursor", "--http", "--stdio"], "--http and --stdio cannot be used together"),
    (["install", "cursor", "--print", "--link"], "--print and --link cannot be used together"),
    (["install", "cursor", "--board", "a/b"], "--board takes letters, digits"),
    (["install", "cursor", "--name", "ü x"], "--name takes letters, digits"),
    (["install", "cursor", "--scope", "world"], "'world' is not one of 'user', 'project'"),
    (["install", "claude-desktop", "--http"], "Claude Desktop starts a command"),
    (["install", "windsurf", "--scope", "project"], "Windsurf has no config file for a project"),
    (["install", "amazon-q"], "Amazon Q can be imported from, and not installed to"),
    (["install", "zed", "--link"], "Zed has no one-click link: use --print"),
    (["install", "goose", "--link", "--stdio"], "a link for Goose needs an address"),
    (["uninstall"], "say which client: pegboard uninstall CLIENT"),
    (["uninstall", "nobody"], "there is no client 'nobody'"),
    (["uninstall", "amp"], "Pegboard is never installed to Amp"),
]


@pytest.mark.parametrize(("args", "message"), WRONG, ids=[" ".join(args) for args, _ in WRONG])
def test_a_wrong_call_is_named_and_changes_nothing(home: Path, config: Path, args: list[str], message: str) -> None:
    """Exit code 2, and what would be right."""
    done = pegboard(config, *args, "--yes")
    assert done.returncode == 2
    assert message in without_config(" ".join(done.stderr.split()))
    assert cursor(home).read_text() == CONTENT


def test_a_missing_config_is_said(home: Path, tmp_path: Path) -> None:
    """Exit code 3: an entry with it would never work."""
    done = pegboard(tmp_path / "no.json", "install", "cursor", "--yes")
    assert (done.returncode, cursor(home).read_text()) == (3, CONTENT)


def test_an_address_at_which_nobody_listens_yet_is_written_and_said(home: Path, config: Path) -> None:
    """Exit code 4: the entry is there, and what is missing is the gateway."""
    done = pegboard(config, "install", "codex", "--http", "--yes")
    if done.returncode == 0:
        pytest.skip("somebody listens on the usual port here")
    assert done.returncode == 4
    assert "Pegboard does not answer there yet" in done.stderr
    assert "→ start the gateway: pegboard serve" in done.stderr
    assert (home / ".codex" / "config.toml").exists()


def test_where_everybody_needs_a_token_a_command_is_written(home: Path, config: Path) -> None:
    """It needs none; an address that was asked for is written with what is still to be done, and does not "answer"."""
    write_config(config, {"one": toy()}, auth={"required": True})
    with serving(config):
        said = ok(config, "install", "cursor", "--yes")
        assert "a command, which needs no token" in " ".join(said.split())
        assert "Checked: Pegboard answers." in said
        assert '"stdio"' in cursor(home).read_text()
        done = pegboard(config, "install", "codex", "--http", "--yes")
        assert done.returncode == 4
        assert "Pegboard answers" not in done.stdout
        assert "Pegboard does not let this client in: it wants a token" in done.stderr
        assert "→ make a token: pegboard token add NAME" in without_config(done.stderr)
        assert "or install with --stdio, which needs none" in " ".join(done.stdout.split())


def test_an_entry_of_somebody_else_is_refused_with_the_diff(home: Path, config: Path, gateway: str) -> None:
    """`--force` overwrites it, and uninstall gives it back."""
    content = '{"mcpServers": {"pegboard": {"command": "other"}}}'
    cursor(home).write_text(content)
    done = pegboard(config, "install", "cursor", "--yes")
    assert done.returncode == 1
    assert "+" in done.stdout
    assert "'pegboard' is another server's entry" in done.stderr
    assert "use --force to overwrite it, or --name for another name" in done.stderr
    assert cursor(home).read_text() == content
    ok(config, "install", "cursor", "--yes", "--force")
    ok(config, "uninstall", "cursor", "--yes", "--restore")
    assert cursor(home).read_text() == content


def test_print_and_link_work_for_clients_that_are_not_here(home: Path, config: Path, gateway: str) -> None:
    """On the output there is nothing but what is pasted or clicked."""
    assert json.loads(ok(config, "install", "zed", "--print")) == {
        "context_servers": {"pegboard": {"url": f"{gateway}/mcp/zed"}}
    }
    assert tomllib.loads(ok(config, "install", "codex", "--print"))["mcp_servers"]
    assert "extensions:" in ok(config, "install", "goose", "--print")
    assert ok(config, "install", "vscode", "--link").startswith("vscode:mcp/install?%7B%22name%22")
    assert ok(config, "install", "goose", "--link").startswith("goose://extension?type=streamable_http&url=http")
    assert not (home / ".config" / "zed").exists()


@pytest.mark.parametrize("client", ["goose", "jetbrains"])
def test_clients_without_a_file_of_ours_get_the_snippet(home: Path, config: Path, client: str) -> None:
    """No YAML is written: it is shown, with what to do."""
    said = ok(config, "install", client)
    assert "Here is the entry" in said
    assert '"--board", "' in said or '"--board",' in said
    assert "Next: " in said


def test_the_project_has_a_file_of_its_own(home: Path, config: Path, gateway: str, tmp_path: Path) -> None:
    """That of the folder the command is typed in."""
    project = tmp_path / "project"
    project.mkdir()
    ok(config, "install", "cursor", "vscode", "--scope", "project", "--yes", cwd=project)
    assert json.loads((project / ".vscode" / "mcp.json").read_text())["servers"]["pegboard"]["type"] == "http"
    assert cursor(home).read_text() == CONTENT
    assert "cursor  http, board cursor" in ok(config, "clients", "--scope", "project", cwd=project)
    ok(config, "uninstall", "cursor", "vscode", "--scope", "project", "--yes", cwd=project)
    assert list(project.iterdir()) == []


def test_replace_leaves_only_pegboard(home: Path, config: Path, gateway: str) -> None:
    """What Pegboard serves goes, the rest stays, and uninstall brings all of it back."""
    content = json.dumps({"mcpServers": {"mine": {"command": "x"}, "dup": toy()}}, indent=2)
    cursor(home).write_text(content)
    said = ok(config, "install", "cursor", "--replace", "--yes")
    assert "Pegboard serves these, so they are taken out: dup." in said
    assert list(json.loads(cursor(home).read_text())["mcpServers"]) == ["mine", "pegboard"]
    ok(config, "uninstall", "cursor", "--yes")
    assert cursor(home).read_text() == content


def test_replace_keeps_what_does_not_work_in_pegboard(home: Path, config: Path) -> None:
    """Not reached, without a variable, disabled, or with other values: the client has the only way to it. A server
    that was never asked is asked now."""
    dead = {"command": "/no/such/program"}
    unset = {"command": "x", "env": {"TOKEN": "${PEGBOARD_TEST_UNSET}"}}
    theirs = {"dup": toy(), "dead": dead, "unset": unset, "off": {"command": "o"}, "test": {**toy(), "env": {"A": "1"}}}
    write_config(config, {"one": toy(), "dead": dead, "unset": unset, "off": {"command": "o", "enabled": False}})
    cursor(home).write_text(json.dumps({"mcpServers": theirs}, indent=2))
    said = ok(config, "install", "cursor", "--replace", "--yes")
    assert "so they are taken out: dup." in said
    assert (
        "Kept: dead (not reached), unset (a variable has no value), off (disabled), test (one of Pegboard has" in said
    )
    assert list(json.loads(cursor(home).read_text())["mcpServers"]) == ["dead", "unset", "off", "test", "pegboard"]
    again = ok(config, "install", "cursor", "--replace", "--yes")
    assert "There is nothing to do.\nKept: dead (not reached)" in again
    assert "that Pegboard serves" not in pegboard(config, "doctor").stdout
    (row,) = json.loads(ok(config, "install", "cursor", "--replace", "--yes", "--json"))["data"]["clients"]
    assert row["kept"][0] == {"name": "dead", "reason": "not reached"}


def test_what_to_do_next_fits_what_was_done(home: Path, config: Path) -> None:
    """After an uninstall there is no server to trust, to look at or to start."""
    installed = ok(config, "install", "vscode", "warp", "--yes")
    assert "Next: open the chat of VS Code, and trust the server when you are asked." in installed
    removed = ok(config, "uninstall", "vscode", "warp", "--yes")
    assert [line for line in removed.splitlines() if "Next" in line] == [
        "  Next: restart VS Code.",
        "  Next: Warp takes it over by itself.",
    ]


def test_an_address_needs_a_gateway_and_that_is_said(home: Path, config: Path) -> None:
    """After the install, and in the list of clients once nothing runs there. A command needs none."""
    with serving(config) as (_, url):
        written = without_config(ok(config, "install", "cursor", "codex", "--yes"))
        assert "Cursor, Codex need the gateway from now on.\n  Keep it running: pegboard service install\n" in written
        assert "  Or do without: pegboard install cursor codex --stdio\n" in written
        assert "no gateway" not in without_config(ok(config, "clients"))
    port = url.removesuffix("/mcp").rpartition(":")[2]
    listed = ok(config, "clients")
    assert "cursor  http, no gateway  1" in listed
    assert "since no gateway runs at their address: cursor, codex.\n  Start it: pegboard serve --port " + port in listed
    rows = {row["id"]: row for row in json.loads(ok(config, "clients", "--json"))["data"]["clients"]}
    assert (rows["cursor"]["running"], rows["cursor"]["address"]) == (False, f"{url}/cursor")
    with serving(config) as (_, other):
        address = other.removesuffix("/mcp")
        assert f"  The gateway is at {address}: pegboard install cursor codex\n" in without_config(
            ok(config, "clients")
        )
    without = ok(config, "install", "cursor", "codex", "--stdio", "--yes")
    assert "from now on" not in without
    assert "no gateway" not in without_config(ok(config, "clients"))


@pytest.mark.skipif(sys.platform != "linux", reason="the file of systemd")
def test_a_service_keeps_the_gateway_running(home: Path, config: Path, gateway: str) -> None:
    """Then there is nothing to say about it."""
    unit = home / ".config" / "systemd" / "user" / "pegboard.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    assert "from now on" not in ok(config, "install", "cursor", "--yes")


@pytest.mark.parametrize("has_gateway", [True, False])
def test_the_check_counts_tools_that_are_not_listed(home: Path, config: Path, has_gateway: bool) -> None:
    """Somebody with forty tools is not told of eight alone. The JSON has both numbers."""
    write_config(config, {"one": toy()}, expose="search", toolsets=["discovery", "memory"])
    ok(config, "refresh")
    with serving(config) if has_gateway else contextlib.nullcontext():
        total = json.loads(ok(config, "tools", "--json"))["data"]["total"]
        said = ok(config, "install", "cursor", "--yes")
        (row,) = json.loads(ok(config, "install", "codex", "--json", "--yes"))["data"]["clients"]
    listed, more = row["check"]["tools"], row["check"]["more"]
    assert more > listed
    assert f"Checked: Pegboard answers. It lists {listed} tools, and {more} more are found when needed." in said
    assert listed + more == total


def test_programs_get_json(home: Path, config: Path, gateway: str) -> None:
    """One shape, and no question."""
    rows = {row["id"]: row for row in json.loads(ok(config, "clients", "--json"))["data"]["clients"]}
    assert (rows["cursor"]["found"], rows["cursor"]["servers"], rows["cursor"]["connected"]) == (True, 1, False)
    assert rows["zed"]["found"] is False
    refused = pegboard(config, "install", "cursor", "--json")
    assert refused.returncode == 1
    (row,) = json.loads(refused.stdout)["data"]["clients"]
    assert (row["written"], row["outcome"], row["transport"]) == (False, "add", "http")
    (row,) = json.loads(ok(config, "install", "cursor", "--json", "--yes"))["data"]["clients"]
    assert (row["written"], row["board"], row["check"]["problem"]) == (True, "cursor", None)
    (row,) = json.loads(ok(config, "uninstall", "cursor", "--json", "--yes"))["data"]["clients"]
    assert (row["outcome"], row["names"], row["exact"]) == ("remove", ["pegboard"], True)
    failed = pegboard(config, "install", "cursor", "--json", "--yes", "--name", "a")
    answer = json.loads(failed.stdout)
    assert (answer["success"], answer["data"]["clients"][0]["outcome"]) == (False, "failed")
    assert "another server's entry" in answer["data"]["clients"][0]["problem"]


def test_variables_of_clients_are_those_of_the_shell(home: Path, config: Path, gateway: str, tmp_path: Path) -> None:
    """Also where a gateway runs that was started without them."""
    other = tmp_path / "codex home"
    other.mkdir()
    ok(config, "install", "codex", "--yes", CODEX_HOME=str(other))
    assert (other / "config.toml").exists()
    assert not (home / ".codex" / "config.toml").exists()


def test_doctor_looks_at_clients(home: Path, config: Path, gateway: str) -> None:
    """An entry that somebody took out is a finding with its advice, and no error."""
    ok(config, "install", "cursor", "--yes")
    assert "ok    client cursor: Pegboard is in" in ok(config, "doctor")
    cursor(home).write_text(CONTENT)
    said = ok(config, "doctor")
    assert "warn  client cursor: Pegboard was installed in" in said
    assert f"→ pegboard install --config {config} cursor" in said


def test_nothing_of_a_file_steers_the_terminal(home: Path, config: Path, gateway: str) -> None:
    """What others wrote into a config is shown plain."""
    cursor(home).write_text('{\n "mcpServers": {\n  "\x7f\u202eevil\u009b31m": {}\n }\n}')
    said = pegboard(config, "install", "cursor", "--yes")
    for text in (said.stdout, said.stderr):
        assert not {"\u202e", "\u009b", "\x7f"} & set(text)
