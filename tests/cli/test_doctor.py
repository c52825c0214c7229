"""`pegboard doctor`: what is wrong, and advice that fits the fault."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import serving, toy, write_config
from pegboard.cli.advice import advise
from pegboard.config import ServerSpec
from screen import on_screen

NPM_404 = (
    "the process exited with code 1; it said: npm error code E404 | npm error 404 Not Found | "
    "npm error 404  'mcp-servr@*' is not in this registry."
)
UV_404 = "it said: ╰─▶ Because mcp-servr was not found in the package registry and you require mcp-servr, we can"


def command(*words: str, **more: Any) -> ServerSpec:
    return ServerSpec(name="web", given_name="web", transport="stdio", command=words[0], args=words[1:], **more)


def address(url: str = "http://127.0.0.1:9/mcp", **headers: str) -> ServerSpec:
    return ServerSpec(name="web", given_name="web", transport="http", url=url, headers=headers)


@pytest.mark.scenario("first hour: Advice fits the fault")
@pytest.mark.parametrize(
    ("said", "spec", "advice"),
    [
        (
            "${BRAVE_API_KEY} has no value: set BRAVE_API_KEY in the environment",
            command("npx"),
            "export BRAVE_API_KEY in the shell that starts `pegboard serve`, then restart it",
        ),
        (
            "${A} has no value: set A in the environment; .env is not used: line 2: write NAME=VALUE",
            command("npx"),
            "correct .env beside the config first (line 2: write NAME=VALUE)",
        ),
        ("${file:key} cannot be read: there is no file /x/key", command("npx", problem="x"), "the file is missing: "),
        ("${input:my-key} has no value: set PEGBOARD_INPUT_MY_KEY", command("npx"), "export PEGBOARD_INPUT_MY_KEY in"),
        ("command 'uvx' was not found on PATH: install it", command("uvx"), "install uv (`pip install uv`"),
        ("command 'npx' was not found on PATH: install it", command("npx"), "install Node.js"),
        ("there is no program at /x/foo", command("/x/foo"), 'install it, or correct "command" in its entry'),
        ("command 'foo' was not found on PATH", command("foo"), 'install foo, or give its full path in "command"'),
        (NPM_404, command("npx", "-y", "mcp-servr"), "no package is called 'mcp-servr': check the spelling"),
        (UV_404, command("uvx", "--from", "mcp-servr", "x"), "no package is called 'mcp-servr'"),
        ("it said: npm error code EAI_AGAIN", command("npx", "a"), "is the network there?"),
        ("web wants credentials (HTTP 401)", address(), 'put "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}'),
        ("web wants credentials (HTTP 401)", address(authorization="x"), "is it still valid"),
        ("web wants a sign-in with OAuth (HTTP 401)", address(), "the server wants OAuth. If it takes tokens as well"),
        ("web wants a sign-in with OAuth (HTTP 401)", address(Authorization="x"), "is it still valid?"),
        ("web refused the credentials (HTTP 403)", address(Authorization="x"), "check what the token may do"),
        ("cannot be reached: [Errno 111] Connect call failed", address(), "is the port right? http://127.0.0.1:9/mcp"),
        (
            "server web: its sign-in cannot be renewed now: [Errno 111] Connect call failed",
            address(),
            "this is about its authorization server",
        ),
        (
            "cannot be reached: the name of its host cannot be resolved (Name or service not known)",
            address(),
            "is the host's name right",
        ),
        ('timed out: no answer within 5 s (its "connectTimeout")', address(), 'raise "connectTimeout"'),
        ('timed out: no answer within 60 s (its "startTimeout")', command("x"), 'raise "startTimeout" in its entry'),
        ("answered with HTTP 404", address(), "Many servers are at /mcp"),
        ("it wrote 'hello', which is not JSON-RPC: is it", command("x"), "is this an MCP server over stdio?"),
        ("the process exited with code 1", command("uvx", "a"), "is the package's name right? Try it by hand: uvx a"),
        ("the process exited with code 1", command("./a", "b"), "run it by hand to see what it says: ./a b"),
        ("broke", address(), "is http://127.0.0.1:9/mcp the right address, and is it up?"),
        ("no command", command("x", problem="no command"), "correct its entry in the config"),
    ],
)
def test_advice_fits_the_fault(said: str, spec: ServerSpec, advice: str) -> None:
    """What a person has to do, in the place where it has to be done."""
    assert advice in advise(said, spec)


@contextlib.contextmanager
def refusing(**headers: str) -> Generator[str]:
    """A server that answers everything with 401."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(401)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()


def doctor(config: Path) -> dict[str, dict[str, str]]:
    done = subprocess.run(
        [*warm_start(), "doctor", "--json", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return {finding["about"]: finding for finding in json.loads(done.stdout)["data"]["findings"]}


@pytest.mark.scenario("first hour: Advice fits the fault")
def test_a_401_with_and_without_oauth(tmp_path: Path) -> None:
    """Who wants OAuth says so in a header; who does not is given a token."""
    with refusing(WWW_Authenticate='Bearer resource_metadata="https://x/.well-known"') as signs_in, refusing() as plain:
        config = write_config(tmp_path / "p.json", {"oauth": {"url": signs_in}, "token": {"url": plain}})
        found = doctor(config)
    assert found["server oauth"]["said"].startswith(
        "wants a sign-in, which cannot work: the resource metadata at https://x"
    )
    assert found["server oauth"]["advice"].startswith("try again later")
    assert "wants credentials (HTTP 401)" in found["server token"]["said"]
    assert "export TOKEN_TOKEN in the shell" in found["server token"]["advice"]
    assert "pegboard login token" in found["server token"]["advice"]


def test_a_server_that_takes_tokens_alone_is_not_signed_in_to(tmp_path: Path) -> None:
    """`add` and `servers` say of one that says nothing of a sign-in what the doctor says: a token is missing."""
    config = write_config(tmp_path / "p.json", {})
    with refusing() as plain:
        words = [*warm_start(), "add", "token", plain, "--config", str(config)]
        added = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert (added.returncode, "Sign in with" in added.stdout) == (4, False), added
        assert "export TOKEN_TOKEN in the shell" in " ".join(added.stderr.split())
        listed = [*warm_start(), "servers", "--config", str(config)]
        shown = subprocess.run(listed, capture_output=True, text=True, timeout=60, check=True).stdout
        login = [*warm_start(), "login", "token", "--config", str(config)]
        refused = subprocess.run(login, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2, refused
    said = " ".join(refused.stderr.split())
    assert "token wants credentials (HTTP 401), and says nothing of a sign-in" in said
    assert "export TOKEN_TOKEN in the shell" in said
    assert "needs credentials" in shown
    assert "sign in with" not in shown
    assert f"login --config {config} token" in shown


def test_a_gateway_that_runs_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said where it runs; its servers are not started again, and its environment counts, not the doctor's."""
    bad_tool = {"name": "bad", "inputSchema": {"type": "array"}}
    servers = {
        "good": toy(raw_tools=[bad_tool]),
        "gone": {"command": "no-such-command-here"},
        "keyed": toy({"env": {"KEY": "${DOCTOR_KEY}"}}),
        "off": toy({"enabled": False}),
    }
    config = write_config(tmp_path / "p.json", servers)
    with serving(config, DOCTOR_KEY="x") as (_, url):

        def pid() -> str:
            words = [*warm_start(), "call", "good__pid", "--config", str(config)]
            return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout

        before = pid()
        found = doctor(config)
        assert pid() == before
        config.write_text("{")
        assert "config" in doctor(config)
    assert found["gateway"]["said"] == f"runs at {url}"
    assert found["storage"]["level"] == "ok"
    assert found["server good"]["said"].startswith("tool 'bad' is left out: ")
    assert found["server keyed"]["level"] == "ok"
    assert found["server gone"]["level"] == "error"
    assert found["server gone"]["advice"].startswith("install no-such-command-here")
    assert found["server off"]["said"] == "disabled"
    alone = doctor(write_config(config, servers))
    assert alone["gateway"]["said"].startswith("none runs with this config")
    assert alone["server keyed"]["advice"].startswith("export DOCTOR_KEY in the shell that starts `pegboard serve`")


def test_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    """How many of how many, while it takes its time; it is gone when the findings are there."""
    servers = {"good": toy(), "slow": toy(start_delay=1.0)}
    words = [*warm_start(), "doctor", "--config", str(write_config(tmp_path / "p.json", servers))]
    with on_screen(words) as screen:
        screen.until("asking servers for their tools: 1 of 2")
        code, text = screen.finish()
    assert code == 0
    assert re.search(r"ok    server slow: \d+ tools, protocol ", text)
    assert text.rstrip().endswith("Everything works.")
    piped = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert piped.stderr == ""
