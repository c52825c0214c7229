"""`add` and `add-json` as people type them: what goes into the file, what is said, and how it ends."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner, Result

from forking import warm_start
from harness import serving, toy, write_config
from pegboard.cli.add import separate_command
from pegboard.cli.app import app
from screen import on_screen
from servers.toy import BUILT_IN
from servers.toy_http import http_toy

Run = Callable[..., Result]
MISSING = "no-such-command-here"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "pegboard.json", {})


@pytest.fixture
def run(config: Path) -> Run:
    """Runs a command in this process."""

    def run(*command: str, stdin: str = "") -> Result:
        return CliRunner().invoke(app, [command[0], "--config", str(config), *command[1:]], input=stdin)

    return run


def entries(config: Path) -> dict[str, Any]:
    return json.loads(config.read_text("utf-8"))["mcpServers"]


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["x", "npx", "-y", "pkg"], ["x", "--", "npx", "-y", "pkg"]),
        (["x", "npx", "-y", "pkg", "--help-me"], ["x", "--", "npx", "-y", "pkg", "--help-me"]),
        (["-e", "A=1", "x", "npx", "-y", "pkg"], ["-e", "A=1", "x", "--", "npx", "-y", "pkg"]),
        (["x", "--env", "A", "npx", "-y"], ["x", "--env", "A", "--", "npx", "-y"]),
        (["x", "--env=A", "npx", "-y"], ["x", "--env=A", "--", "npx", "-y"]),
        (["x", "--", "npx", "-c", "pkg"], ["x", "--", "npx", "-c", "pkg"]),
        (["x", "npx", "--", "-c", "pkg"], ["x", "npx", "--", "-c", "pkg"]),
        (["x", "https://d.example", "-H", "A: b"], ["x", "https://d.example", "-H", "A: b"]),
        (["x"], ["x"]),
        ([], []),
    ],
)
def test_the_two_dashes_are_put_in_where_they_were_left_out(args: list[str], meant: list[str]) -> None:
    """Options of an address may stand behind it; those behind a command are the command's."""
    assert separate_command(args) == meant


def test_a_command_needs_no_dashes(run: Run, config: Path) -> None:
    """`add x npx -y pkg` is what it looks like."""
    command = toy()
    done = run("add", "one", command["command"], *command["args"])
    assert done.exit_code == 0, done.stderr
    assert f"one was added to {config}: {len(BUILT_IN)} tools." in done.stdout
    assert entries(config)["one"] == {"command": command["command"], "args": command["args"]}


def test_an_option_that_may_be_either_ones_is_asked_back(run: Run, config: Path) -> None:
    """With both commands to type, and without what was secret."""
    before = config.read_bytes()
    done = run("add", "x", "--env", "KEY=tulip", "python", "--token", "tulip2", "-c", "print(1)")
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "pegboard: is -c an option of Pegboard or of the command? Type one of these:",
        "  pegboard add --config " + str(config) + " x --env 'KEY=…' -c … -- python --token [redacted]",
        "  pegboard add --config " + str(config) + " x --env 'KEY=…' -- python --token [redacted] -c …",
    ]
    assert config.read_bytes() == before


def test_variables_and_headers_in_every_form(run: Run, config: Path) -> None:
    """`K=V` and `K`, `K: V` and `K=V`; a name alone is filled in when the server starts."""
    run("add", "a", "--env", "A=1=2", "-e", "B", "--", MISSING)
    assert entries(config)["a"]["env"] == {"A": "1=2", "B": "${B}"}
    with http_toy() as listening:
        url = listening.url
        done = run("add", "d", url, "-H", "Authorization: Bearer a=b:c", "--header", "X-K=v: w", "-H", "E:")
        assert done.exit_code == 0, done.stderr
        assert entries(config)["d"] == {
            "type": "http",
            "url": url,
            "headers": {"Authorization": "Bearer a=b:c", "X-K": "v: w", "E": ""},
        }


def test_the_transport_can_be_said(run: Run, config: Path) -> None:
    """`--transport sse` and `--sse` are the same."""
    for name, options in {"a": ["--transport", "sse"], "b": ["--sse"], "c": ["-t", "streamable-http"]}.items():
        run("add", name, "http://127.0.0.1:9/x", *options)
    assert [entries(config)[name]["type"] for name in "abc"] == ["sse", "sse", "http"]
    run("add", "d", "--transport", "stdio", "--", MISSING)
    assert entries(config)["d"] == {"command": MISSING, "args": []}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["x", "https://d.example", "-H", "nothing"], '--header needs "K: V" or K=V'),
        (["x", "https://d.example", "--env", "A=1"], "a URL stands alone"),
        (["x", "https://d.example", "more"], "a URL stands alone"),
        (["x", "ftp://d.example"], "begins with http:// or https://"),
        (["x", "https://d.example", "-t", "stdio"], "--transport stdio is for a command"),
        (["x", "https://d.example", "-t", "odd"], "--transport must be stdio, http or sse, found 'odd'"),
        (["x", "https://d.example", "-t", "http", "--sse"], "contradict each other"),
        (["x", "-H", "A: b", "--", "npx"], "are for a URL"),
        (["x", "-t", "http", "--", "npx"], "are for a URL"),
        (["x", "--env", "=1", "--", "npx"], "--env needs K=V, or the name of a variable"),
        (["x", "--env", "two words", "--", "npx"], "--env needs K=V, or the name of a variable"),
        ([" ", "--", "npx"], "a server needs a name: pegboard add NAME URL"),
        (["docs", "mcp.example.com/mcp"], "did you mean https://mcp.example.com/mcp?"),
        (["docs", "mcp.example.com/mcp", "-H", "A: b"], "did you mean https://mcp.example.com/mcp?"),
        (["docs", "localhost:8000/mcp"], "did you mean http://localhost:8000/mcp?"),
        (["docs", "--", "127.0.0.1:8000"], "did you mean http://127.0.0.1:8000?"),
        (["x", "npx 'pkg"], "a quote is never closed"),
        (["https://mcp.linear.app/mcp"], "a name is missing before the URL: pegboard add linear https://mcp.linear"),
        (["time2"], "time2 needs a URL or a command: pegboard add time2 URL, or pegboard add time2 -- COMMAND"),
        ([], "For a published one: pegboard add --from NAME"),
        (["me", "http://localhost:7420/mcp"], "this is Pegboard itself"),
        (["me", "http://127.0.0.1:7420/mcp/cursor"], "this is Pegboard itself"),
        (["me", "--", "pegboard", "stdio"], "this is Pegboard itself"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_changes_nothing(
    run: Run, config: Path, command: list[str], said: str
) -> None:
    """Exit code 2."""
    before = config.read_bytes()
    done = run("add", *command)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["uvx", "mcp-server-moon"], "moon -- uvx mcp-server-moon"),
        (["npx", "-y", "@scope/server-weather"], "weather -- npx -y @scope/server-weather"),
        (["npx", "--", "-y", "@scope/server-weather"], "weather -- npx -y @scope/server-weather"),
        (["docker", "run", "-i", "--rm", "mcp/time"], "time -- docker run -i --rm mcp/time"),
        (["-e", "K=V", "uvx", "--from", "git-server", "serve-git"], "-- uvx --from git-server serve-git"),
    ],
)
def test_a_program_is_no_name(run: Run, config: Path, words: list[str], meant: str) -> None:
    """Who forgets the name is told what to type; nothing is written."""
    before = config.read_bytes()
    done = run("add", *words)
    assert (done.exit_code, config.read_bytes()) == (2, before)
    assert "a name is missing before the command:\n  pegboard add " in done.stderr
    assert meant in done.stderr


def test_a_server_may_be_called_like_a_program(run: Run, config: Path) -> None:
    """Where a command follows, or an address."""
    run("add", "docker", "--", sys.executable, "-c", "1")
    run("add", "node", "http://127.0.0.1:9/mcp")
    assert list(entries(config)) == ["docker", "node"]


def test_a_secret_that_was_typed_wrongly_is_not_repeated(run: Run) -> None:
    """Whoever leaves out the name of a header has typed its value."""
    assert "tulip" not in run("add", "x", "https://d.example", "-H", "tulip-secret").stderr
    assert "tulip" not in run("add", "x", "-e", "tulip secret", "--", "npx").stderr


@pytest.mark.scenario("first hour: A server that cannot be reached is kept and said")
def test_a_server_that_cannot_be_reached_stays_and_the_same_again_is_a_new_try(run: Run, config: Path) -> None:
    """Both say so, with the commands that go on; the file is not changed again."""
    first = run("add", "gone", "--", MISSING)
    assert first.exit_code == 4
    assert MISSING in first.stderr
    assert first.stderr.splitlines()[-3:] == [
        f"gone is in {config} all the same.",
        f"  To ask it again: pegboard refresh gone --config {config}",
        f"  To take it out:  pegboard remove gone --config {config}",
    ]
    before = config.read_bytes()
    again = run("add", "gone", "--", MISSING)
    assert again.exit_code == 4
    assert f"gone is in {config} already, with the same entry. It is asked again." in again.stdout
    assert config.read_bytes() == before


def test_the_same_again_finds_a_server_that_is_there_now(run: Run, config: Path, tmp_path: Path) -> None:
    """The cause was mended in the meantime."""
    program = tmp_path / "server"
    assert run("add", "late", "--", str(program)).exit_code == 4
    command = toy()
    words = " ".join(f"'{word}'" for word in [command["command"], *command["args"]])
    program.write_text(f"#!/bin/sh\nexec {words}\n")
    program.chmod(0o755)
    done = run("add", "late", "--", str(program))
    assert done.exit_code == 0, done.stderr
    assert f"late: {len(BUILT_IN)} tools." in done.stdout


@pytest.mark.scenario("first hour: A server that cannot be reached is kept and said")
def test_another_server_of_that_name_needs_force(run: Run, config: Path) -> None:
    """Which shows what it replaces, without its secrets."""
    run("add", "x", "--env", "TOKEN=tulip", "--", MISSING, "--token", "tulip")
    before = config.read_bytes()
    refused = run("add", "X", "--", MISSING, "other")
    assert refused.exit_code == 3
    assert 'there is a server "X" already' in refused.stderr
    assert f"{MISSING} --token [redacted]" in refused.stderr
    assert "--force" in refused.stderr
    assert config.read_bytes() == before
    forced = run("add", "X", "--force", "--", MISSING, "other")
    assert f"x was replaced in {config}. It was: {MISSING} --token [redacted]" in forced.stdout
    assert entries(config) == {"x": {"command": MISSING, "args": ["other"]}}
    assert "tulip" not in refused.output + forced.output


def test_json_says_what_was_done(run: Run, config: Path) -> None:
    """Success and failure in the one shape, with the server and the file."""
    command = toy()
    good = json.loads(run("add", "one", "--json", "--", command["command"], *command["args"]).stdout)
    assert good["data"] == {"registered": len(BUILT_IN), "server": "one", "path": str(config)}
    bad = run("add", "gone", "--json", "--", MISSING)
    assert bad.exit_code == 4
    said = json.loads(bad.stdout)
    assert (said["success"], said["data"]["server"]) == (False, "gone")
    assert said["error"]["code"] == "TOOL_UNAVAILABLE"


def test_a_file_that_gets_a_secret_is_its_owners_alone(run: Run, config: Path) -> None:
    """One without a secret keeps its mode."""
    config.chmod(0o644)
    run("add", "a", "--env", "TOKEN", "--", MISSING)
    assert config.stat().st_mode & 0o777 == 0o644
    run("add", "b", "--env", "TOKEN=tulip", "--", MISSING)
    assert config.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "%s", "args": ["a"]}',
        '{"mcpServers": {"other": {"command": "%s", "args": ["a"]}}}',
        '"other": {"cmd": "%s", "args": ["a"]},',
        '[mcp_servers.other]\ncommand = "%s"\nargs = ["a"]',
        "%s a",
        "claude mcp add other -- %s a",
    ],
)
def test_add_json_takes_whatever_the_reader_knows(run: Run, config: Path, text: str) -> None:
    """From the command line and from the standard input, under the name that was given."""
    for name, argument, stdin in (("one", [text % MISSING], ""), ("two", ["--yes", "-"], text % MISSING)):
        done = run("add-json", name, *argument, stdin=stdin)
        assert done.exit_code == 4, done.stderr
        assert entries(config)[name] == {"command": MISSING, "args": ["a"]}


def test_add_json_shows_what_nobody_typed_and_needs_a_yes(run: Run, config: Path) -> None:
    """A link is encoded, and what is piped in may come from anywhere."""
    entry = {"command": MISSING, "args": ["-c", "touch /tmp/x; exec cat"], "env": {"PATH": "/tmp/evil"}}
    encoded = base64.b64encode(json.dumps(entry).encode()).decode()
    link = f"cursor://anysphere.cursor-deeplink/mcp/install?name=weather&config={encoded}"
    before = config.read_bytes()
    for text, stdin in ((link, ""), ("-", json.dumps(entry))):
        done = run("add-json", "weather", text, stdin=stdin)
        assert done.exit_code == 1
        assert f'weather: {MISSING} -c "touch /tmp/x; exec cat"\n  env PATH=/tmp/evil\n' in done.stderr
        assert "add --yes to write it" in done.stderr
        assert config.read_bytes() == before
    done = run("add-json", "weather", link, "--yes", "--json")
    assert (done.exit_code, MISSING in done.stderr) == (4, True)
    assert json.loads(done.stdout)["data"]["server"] == "weather"
    assert entries(config) == {"weather": entry}


def test_add_json_asks_about_a_link_at_a_terminal(config: Path) -> None:
    """A no changes nothing; a yes adds it."""
    link = f"vscode:mcp/install?{quote(json.dumps({'name': 'v', 'command': MISSING}))}"
    for answer, written in (("n\n", {}), ("y\n", {"v": {"command": MISSING}})):
        with on_screen([*warm_start(), "add-json", "v", link, "--config", str(config)]) as screen:
            assert f"v: {MISSING}\n" in screen.until("[y/N]")
            screen.type(answer)
            screen.finish()
        assert entries(config) == written


def test_add_json_takes_the_one_of_that_name(run: Run, config: Path) -> None:
    """Of several; without one it names them, and the command for all."""
    text = json.dumps({"mcpServers": {"a": {"command": MISSING}, "b": {"command": "y"}}})
    run("add-json", "A", text)
    assert entries(config) == {"A": {"command": MISSING}}
    done = run("add-json", "c", text)
    assert (done.exit_code, "2 servers (a, b)" in done.stderr, "pegboard import -" in done.stderr) == (2, True, True)


@pytest.mark.scenario("first hour: A misspelt key is named with its nearest")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"comand": "x"}', '"comand" is not a key: did you mean "command"?'),
        ('{"command": "x"', "line 1: not JSON"),
        ('{"url": "nowhere"}', "must be an http:// or https:// address"),
        ("{}", "there are no servers in it"),
        ("", "it is empty"),
    ],
)
def test_add_json_says_what_is_wrong(run: Run, config: Path, text: str, said: str) -> None:
    """Exit code 2, and nothing is written."""
    before = config.read_bytes()
    done = run("add-json", "x", text)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert config.read_bytes() == before


def test_add_json_names_what_it_leaves_out(run: Run) -> None:
    """On stderr, where programs do not read it."""
    done = run("add-json", "x", json.dumps({"command": MISSING, "autoApprove": ["a"], "timeout": 30000}))
    assert "note: left out: autoApprove (approval stays with the client)" in done.stderr
    assert "note: timeout is taken as 30000 milliseconds" in done.stderr


def test_a_file_in_another_shape_says_how_to_bring_it_in(tmp_path: Path) -> None:
    """Whatever is asked of it, and `import` then writes it anew, with a backup."""
    path = tmp_path / "pegboard.json"
    path.write_text(json.dumps({"mcp": {"t": {"type": "local", "command": [MISSING, "a"], "enabled": False}}}))
    before = path.read_bytes()
    runner = CliRunner()
    for command in (["servers"], ["add", "x", "y"], ["doctor"]):
        done = runner.invoke(app, [command[0], "--config", str(path), *command[1:]])
        assert f"pegboard import --config {path} {path}" in done.output + done.stderr, command
        assert done.exit_code != 0
    assert path.read_bytes() == before
    done = runner.invoke(app, ["import", str(path), "--yes", "--config", str(path)])
    assert done.exit_code == 0, done.stderr
    assert entries(path) == {"t": {"command": MISSING, "args": ["a"], "enabled": False}}
    backup = done.stdout.partition("The file as it was: ")[2].split()[0]
    assert Path(backup).read_bytes() == before


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"mcpServers": {"a": {"command": "x"}}, "pegboard": {"expose": "all"}} // mine', 0),
        ('{"mcpServers": {"a": {"command": "x"}}, "pegboard": {"expose": "odd"}}', 3),
        ('{"mcpServers": {"a": {"command": "x"}},', 3),
    ],
)
def test_a_config_of_our_own_is_never_written_anew(tmp_path: Path, content: str, code: int) -> None:
    """Whoever imports it into itself has everything already, or a mistake to mend."""
    path = tmp_path / "pegboard.json"
    path.write_text(content)
    for beside in ([], ["npx -y other"]):
        options = ["--yes", "--off"] if not beside else ["--yes", "--off", "--only", "other"]
        done = CliRunner().invoke(app, ["import", str(path), *beside, *options, "--config", str(path)])
        assert done.exit_code == code, done.output
        assert content.partition("}}")[0] in path.read_text()
        if not beside or code:
            assert path.read_text() == content


def test_the_process_itself_ends_so(config: Path) -> None:
    """As a shell sees it: exit code, nothing on stdout, no progress where there is no terminal."""
    command = [*warm_start(), "add", "--config", str(config), "gone", MISSING, "-y"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("pegboard: ")
    assert "asking" not in done.stderr


def test_a_variable_that_the_gateway_lacks_needs_a_new_gateway(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To ask again would be the same again: `add`, `refresh` and `doctor` say what helps."""
    command = toy()
    with serving(config):
        monkeypatch.setenv("MY_KEY", "tulip")
        words = ["--env", "MY_KEY", "--", command["command"], *command["args"]]
        said = [run("add", "one", *words), run("refresh", "one"), run("doctor")]
        for done in said:
            assert done.exit_code == 4
            assert "→ the gateway that runs was started without MY_KEY: stop it, and start it in" in done.output
        monkeypatch.delenv("MY_KEY")
        assert "→ export MY_KEY in the shell that starts `pegboard serve --config " in run("refresh", "one").stderr
    assert "tulip" not in "".join(done.output for done in said)


def test_a_variable_that_is_set_by_now_is_no_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only an entry says is not remembered beyond it."""
    command = toy()
    done = run("add", "one", "--env", "MY_KEY", "--", command["command"], *command["args"])
    assert (done.exit_code, "${MY_KEY} has no value" in run("servers").stdout) == (4, True)
    monkeypatch.setenv("MY_KEY", "x")
    assert "has no value" not in run("servers").stdout


def test_a_command_that_is_missing_comes_with_what_brings_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `doctor` says it."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert "→ install uv (`pip install uv` or" in run("add", "time", "--", "uvx", "mcp-server-time").stderr


def test_a_gateway_of_this_config_is_not_added_to_itself(run: Run, config: Path) -> None:
    """At whatever port it listens."""
    with serving(config) as (_, url):
        before = config.read_bytes()
        done = run("add", "me", url)
    assert (done.exit_code, "this is Pegboard itself" in done.stderr) == (2, True), done.stderr
    assert config.read_bytes() == before


def test_a_command_in_quotes_is_split(run: Run, config: Path, tmp_path: Path) -> None:
    """Unless there is a program of that name."""
    run("add", "a", f"{MISSING} -y 'two words'")
    assert entries(config)["a"] == {"command": MISSING, "args": ["-y", "two words"]}
    program = tmp_path / "my server"
    program.touch()
    run("add", "b", str(program))
    assert entries(config)["b"] == {"command": str(program), "args": []}


@pytest.mark.parametrize("word", ["server.py", "./bin/x", "my-server", "@scope/pkg", "node_modules/x"])
def test_a_file_is_no_address(run: Run, config: Path, word: str) -> None:
    """What looks like one only a little is what was typed."""
    run("add", "a", word)
    assert entries(config)["a"]["command"] == word


def test_an_entry_that_never_worked_is_corrected_by_another(run: Run, config: Path) -> None:
    """Nothing is lost; one that was seen is replaced by force alone."""
    run("add", "x", "--", MISSING, "--mistyped")
    command = toy()
    done = run("add", "x", "--", command["command"], *command["args"])
    assert done.exit_code == 0, done.stderr
    assert f"x was replaced in {config}. It was: {MISSING} --mistyped" in done.stdout
    refused = run("add", "x", "--", MISSING)
    assert (refused.exit_code, "--force" in refused.stderr) == (3, True)


def test_a_secret_in_plain_text_is_named_with_the_way_to_keep_it_out(run: Run, config: Path) -> None:
    """Not the secret itself; a variable is none."""
    said = run("add", "docs", "http://127.0.0.1:9/x", "-H", "Authorization: Bearer sk-tulip").stderr
    assert f"note: the secret in header Authorization is in {config} as plain text." in said
    assert "export DOCS_TOKEN, and give -H 'Authorization: Bearer ${DOCS_TOKEN}' instead" in said
    assert "tulip" not in said
    assert "and give -e API_TOKEN instead" in run("add", "b", "-e", "API_TOKEN=tulip", "--", MISSING).stderr
    assert "plain text" not in run("add", "c", "-e", "API_TOKEN", "--", MISSING).stderr


def test_add_json_takes_the_name_from_the_text(run: Run, config: Path) -> None:
    """Where none is given; from the standard input as well."""
    text = json.dumps({"mcpServers": {"one": {"command": MISSING}}})
    run("add-json", text)
    run("add-json", "-", "--yes", stdin=text.replace("one", "two"))
    assert entries(config) == {"one": {"command": MISSING}, "two": {"command": MISSING}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["t9", "{command:", "uvx}"], "the text needs quotes around it"),
        (["t9"], "the JSON text is missing: pegboard add-json t9 '{"),
    ],
)
def test_add_json_says_how_to_type_it(run: Run, config: Path, words: list[str], said: str) -> None:
    """Exit code 2, and nothing is written."""
    before = config.read_bytes()
    done = run("add-json", *words)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert config.read_bytes() == before


def test_whoever_is_asked_for_a_text_is_told_so(config: Path) -> None:
    """A command that waits in silence looks as if it hung."""
    with on_screen([*warm_start(), "import", "-", "--config", str(config)]) as screen:
        assert "Paste the text, then press Ctrl-D." in screen.until("Ctrl-D.")
