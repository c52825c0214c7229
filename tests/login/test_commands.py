"""`login`, `logout` and `logins` as people use them: on a terminal, in a script, with a gateway and without."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from auth.issuer import METADATA, open_issuer
from forking import warm_start
from harness import LIMIT, serving, write_config
from login.person import agree, type_code, visit
from login.protected import ProtectedToy, open_protected
from screen import Screen, on_screen
from servers.toy_http import http_toy

_ADDRESS = re.compile(r"^  (http\S+)$", re.MULTILINE)
_WAITS = "Ctrl-C cancels"


def command(config: Path, *words: str) -> list[str]:
    return [*warm_start(), *words, "--config", str(config)]


def run(config: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """A command without a terminal."""
    return subprocess.run(
        command(config, *words), input=text, capture_output=True, text=True, timeout=2 * LIMIT, check=False
    )


def data_of(config: Path, *words: str) -> Any:
    done = run(config, *words, "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)["data"]


def address_on(screen: Screen) -> str:
    """The address that a person is to open."""
    found = _ADDRESS.search(screen.until(_WAITS))
    assert found is not None, screen.text
    return found[1]


@pytest.fixture
def config(tmp_path: Path, protected: ProtectedToy) -> Path:
    return write_config(tmp_path / "pegboard.json", {"guarded": {"url": protected.url}})


@pytest.mark.scenario("login: A pasted address finishes a sign-in")
def test_a_pasted_address_signs_in(config: Path) -> None:
    """Without a gateway: the address is printed, what the browser ended at is pasted, and the server's tools can be
    used; `logins` says so, and `logout` has the tokens revoked."""
    with on_screen(command(config, "login", "guarded")) as screen:
        address = address_on(screen)
        screen.type("nonsense\r")
        screen.until("still waits for its own answer.")
        assert "That is not it: it has no code=… in it." in screen.text
        screen.type("http://127.0.0.1:1/oauth/callback?code=1&state=2\r")
        screen.until("That is not it: this is the answer of no sign-in that was begun here.")
        assert "begin anew" not in screen.text
        screen.type(f"{agree(address)}\r")
        code, text = screen.finish()
    assert code == 0, text
    assert re.search(r"Signed in to guarded: \d+ tools\.", text)
    called = run(config, "call", "guarded__echo", "text=hello")
    assert (called.returncode, "hello" in called.stdout) == (0, True), called
    (row,) = data_of(config, "logins")["logins"]
    assert (row["server"], row["state"], row["scopes"]) == ("guarded", "live", ["mcp"])
    shown = run(config, "logins").stdout
    assert row["renews"] is not None
    assert ("renews by itself" if row["renews"] else "then sign in again") in shown
    out = run(config, "logout", "guarded")
    assert "has confirmed that its tokens are revoked" in out.stdout
    assert "Nobody is signed in." in run(config, "logins").stdout
    (waits,) = data_of(config, "servers")["servers"]
    assert (waits["state"], waits["needsLogin"]) == ("needs_auth", True)
    refused = run(config, "call", "guarded__echo", "text=hello")
    assert refused.returncode == 4
    assert f"login --config {config} guarded" in refused.stderr


def test_a_long_address_can_be_pasted_and_corrected(config: Path) -> None:
    """A terminal cuts lines that it edits itself at 4,096 letters; ours takes more, and Backspace works."""
    with on_screen(command(config, "login", "guarded")) as screen:
        address = agree(address_on(screen))
        screen.type(f"{address}&more={'x' * 6000}!\x7f\r")
        code, text = screen.finish()
    assert code == 0, text


@pytest.mark.scenario("login: A browser finishes a sign-in")
def test_the_browser_is_opened_and_comes_back(config: Path, tmp_path: Path) -> None:
    """What `BROWSER` names is given the address; the command hears of its answer without a gateway."""
    seen = tmp_path / "seen"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part && mv {seen}.part {seen}\n', "utf-8")
    script.chmod(0o700)
    with on_screen(command(config, "login", "guarded"), BROWSER=str(script)) as screen:
        address = address_on(screen)
        assert "It was opened in your browser." in screen.text
        page = visit(agree(address))
        code, text = screen.finish()
    assert code == 0, text
    assert seen.read_text("utf-8") == address
    assert (page.status_code, "Signed in to guarded" in page.text) == (200, True)


def test_a_browser_that_fails_is_not_said_to_be_open(config: Path) -> None:
    """Where what `BROWSER` names ends with an error, the address is to be opened by hand."""
    with on_screen(command(config, "login", "guarded"), BROWSER="/bin/false") as screen:
        address_on(screen)
        assert "The browser could not be opened: open the address by hand." in screen.text
        assert "It was opened" not in screen.text


def test_over_ssh_the_port_is_to_be_forwarded(config: Path) -> None:
    """Where a shell is reached over SSH the command says how the browser's machine gets at the port."""
    with on_screen(command(config, "login", "guarded"), SSH_CONNECTION="192.0.2.1 50000 192.0.2.7 22") as screen:
        address = address_on(screen)
        port = urlsplit(parse_qs(urlsplit(address).query)["redirect_uri"][0]).port
        assert f"ssh -L {port}:127.0.0.1:{port} 192.0.2.7" in screen.text


@pytest.mark.scenario("login: Without a terminal a sign-in never waits")
def test_a_script_is_told_what_finishes(config: Path) -> None:
    """Without a terminal: the address and the command that finishes, at once, with exit code 1; that command works in
    another process. With --json: the sign-in as it is, with exit code 0."""
    begun = run(config, "login", "guarded")
    found = _ADDRESS.search(begun.stderr)
    assert (begun.returncode, begun.stdout) == (1, "")
    assert found is not None
    assert f"login guarded --callback 'ADDRESS' --config {config}" in begun.stderr
    done = run(config, "login", "guarded", "--callback", agree(found[1]))
    assert (done.returncode, "Signed in to guarded" in done.stdout) == (0, True), done
    begun_again = data_of(config, "login", "guarded")
    assert (begun_again["state"], begun_again["url"].startswith("http")) == ("waiting", True)
    again = run(config, "login", "guarded", "--callback", "http://127.0.0.1/oauth/callback?code=x&state=forged")
    assert again.returncode != 0
    assert "begin anew" in again.stderr


@pytest.mark.scenario("grants: A sign-in that is asked for in another way replaces the one before, and both hear of it")
def test_a_sign_in_that_was_ended_for_this_one_is_told_of(config: Path) -> None:
    """Whoever asks with another client while a sign-in is under way reads that the other one is over."""
    first = data_of(config, "login", "guarded")
    assert "note" not in first
    again = run(config, "login", "guarded", "--client-id", "native")
    assert again.returncode == 1
    said = " ".join(again.stderr.split())
    assert "The sign-in that was under way has been ended, since it was by another client." in said
    found = _ADDRESS.search(again.stderr)
    assert found is not None
    assert parse_qs(urlsplit(found[1]).query)["client_id"] == ["native"]


@pytest.mark.scenario("login: A device code signs in")
def test_a_device_code_signs_in(config: Path) -> None:
    """The code and where to type it in are shown, with or without a terminal; then it is waited for."""
    words = command(config, "login", "guarded", "--device")
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        shown = ""
        while _WAITS not in shown:
            line = process.stderr.readline()
            assert line, shown
            shown += line
        address = _ADDRESS.search(shown)
        assert address is not None
        type_code(address[1], shown.partition("code: ")[2].splitlines()[0].strip())
        out, err = process.communicate(timeout=2 * LIMIT)
    assert process.returncode == 0, err
    assert "Signed in to guarded" in out


def test_where_there_are_no_device_codes_the_other_way_is_named(tmp_path: Path) -> None:
    """Before a client is registered for what cannot be."""
    with open_issuer() as issuer:
        document = {
            "issuer": issuer.url,
            "authorization_endpoint": f"{issuer.url}/authorize",
            "token_endpoint": f"{issuer.url}/token",
            "code_challenge_methods_supported": ["S256"],
        }
        issuer.answers[METADATA] = (200, json.dumps(document).encode(), {"content-type": "application/json"})
        with open_protected(issuer.url) as protected:
            config = write_config(tmp_path / "pegboard.json", {"guarded": {"url": protected.url}})
            refused = run(config, "login", "guarded", "--device")
    assert refused.returncode != 0
    assert "has no sign-in by device code" in refused.stderr
    assert "Sign in with a browser, which may be on any machine: " in refused.stderr
    assert f"login guarded --config {config}" in refused.stderr


def test_a_refusal_is_told(config: Path, protected: ProtectedToy) -> None:
    """Whoever does not agree ends the command with exit code 1 and the reason; the page says it without markup."""
    entry = {"url": protected.url, "oauth": {"params": {"login_hint": "refuses"}}}
    write_config(config, {"guarded": entry})
    with on_screen(command(config, "login", "guarded")) as screen:
        page = visit(agree(address_on(screen)))
        code, text = screen.finish()
    assert code == 1
    assert "not signed in to guarded: " in text
    assert page.status_code == 400
    assert "<b>no</b>" not in page.text


def test_ctrl_c_cancels_quietly(config: Path) -> None:
    """Ctrl-C ends it with exit code 1, without a trace; nothing waits for the answer any more."""
    with on_screen(command(config, "login", "guarded")) as screen:
        address = address_on(screen)
        screen.process.send_signal(signal.SIGINT)
        code, text = screen.finish()
    assert code == 1
    assert "Cancelled: nothing has changed at guarded." in text
    assert "Traceback" not in text
    late = run(config, "login", "guarded", "--callback", agree(address))
    assert late.returncode != 0


def test_whoever_leaves_a_sign_in_that_goes_on_is_told_so(config: Path) -> None:
    """Ctrl-C of one of two commands that wait for the same sign-in leaves it to the other."""
    with serving(config), on_screen(command(config, "login", "guarded")) as one:
        address = address_on(one)
        with on_screen(command(config, "login", "guarded")) as two:
            assert address_on(two) == address
            # By then the gateway knows that it waits.
            two.type("nonsense\r")
            two.until("still waits for its own answer.")
            two.process.send_signal(signal.SIGINT)
            code, text = two.finish()
        assert (code, "The sign-in to guarded goes on" in text) == (1, True), text
        assert "nothing has changed" not in text
        assert visit(agree(address)).status_code == 200
        assert one.finish()[0] == 0


@pytest.mark.scenario("login: Several sign-ins at once are one")
def test_several_logins_are_one(config: Path) -> None:
    """Commands that begin together show one address; the answer ends all of them."""
    with on_screen(command(config, "login", "guarded")) as one, on_screen(command(config, "login", "guarded")) as two:
        with ThreadPoolExecutor(2) as pool:
            addresses = set(pool.map(address_on, (one, two)))
        (address,) = addresses
        assert visit(agree(address)).status_code == 200
        assert [each.finish()[0] for each in (one, two)] == [0, 0]


@pytest.mark.scenario("login: A gateway takes the answer on its own port")
def test_a_gateway_that_runs_takes_the_answer(config: Path) -> None:
    """The redirect is the gateway's own port; before, `servers` and `status` name the command, and after, they do
    not."""
    with serving(config) as (_, url):
        refused = run(config, "refresh", "guarded")
        assert refused.returncode == 4
        named = f"login --config {config} guarded"
        login = f"login guarded --config {config}"
        assert named in refused.stderr or login in refused.stderr
        assert "needs sign-in" in run(config, "servers").stdout
        assert login in run(config, "servers").stdout
        assert login in run(config, "status").stdout
        with on_screen(command(config, "login", "guarded")) as screen:
            address = address_on(screen)
            redirect = parse_qs(urlsplit(address).query)["redirect_uri"][0]
            assert redirect.rpartition("/")[0] == url.replace("/mcp", "/oauth/callback")
            assert visit(agree(address)).status_code == 200
            code, text = screen.finish()
        assert code == 0, text
        assert login not in run(config, "servers").stdout
        (row,) = data_of(config, "servers")["servers"]
        assert row["state"] == "connected"
        assert "needsLogin" not in row


def test_add_offers_to_sign_in(tmp_path: Path, protected: ProtectedToy) -> None:
    """A server that answers 401 is added; at a terminal the sign-in is offered, elsewhere the command is named."""
    config = tmp_path / "new.json"
    added = run(config, "add", "first", protected.url)
    assert added.returncode == 0, added
    assert "It wants a sign-in." in added.stdout
    assert f"login first --config {config}" in added.stdout
    assert json.loads(run(config, "add", "json", protected.url, "--json").stdout)["data"]["needsLogin"] is True
    with on_screen(command(config, "add", "second", protected.url)) as screen:
        screen.until("Sign in now?")
        screen.type("\r")
        assert visit(agree(address_on(screen))).status_code == 200
        code, text = screen.finish()
    assert code == 0, text
    assert "Signed in to second" in text


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": sys.executable}, "is a command"),
        ({"url": "http://127.0.0.1:9/mcp", "oauth": False}, '"oauth": false'),
        ({"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer x"}}, "credentials of its own"),
        (
            {
                "url": "http://127.0.0.1:9/mcp",
                "oauth": {"flow": "client_credentials", "clientId": "a", "clientSecret": "b"},
            },
            "without a person",
        ),
    ],
)
def test_servers_without_a_sign_in_say_so(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    """A sign-in that cannot be is a wrong call, and the message says why."""
    config = write_config(tmp_path / "pegboard.json", {"other": entry})
    refused = run(config, "login", "other")
    assert refused.returncode == 2, refused
    assert said in refused.stderr


def test_a_server_that_works_without_a_sign_in_says_so(tmp_path: Path) -> None:
    """Nobody can sign in to a server that lets everybody in."""
    with http_toy() as open_to_all:
        config = write_config(tmp_path / "pegboard.json", {"other": {"url": open_to_all.url}})
        refused = run(config, "login", "other")
    assert refused.returncode == 2, refused
    assert "other wants no sign-in: it works without one" in refused.stderr


def test_an_answer_that_is_none_has_its_exit_code(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no address is a wrong call, the answer of another sign-in is refused, and a key that is none is a fault
    of the settings: no server was away."""
    assert run(config, "login", "guarded", "--callback", "garbage").returncode == 2
    assert run(config, "login", "guarded", "--callback", "code=x&state=forged").returncode == 1
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", "no key at all")
    assert run(config, "login", "guarded").returncode == 3
    assert run(config, "secrets").returncode == 1


def test_a_server_that_is_away_is_not_signed_in_to(tmp_path: Path) -> None:
    """Exit code 4: the server could not be reached."""
    config = write_config(tmp_path / "pegboard.json", {"gone": {"url": "http://127.0.0.1:9/mcp"}})
    assert run(config, "login", "gone").returncode == 4


def test_over_stdio_without_a_gateway_the_command_works_when_it_is_pasted(config: Path) -> None:
    """A client starts `pegboard stdio` with a config of its own: the command names it."""
    initialize = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "guarded__echo"}},
    ]
    lines = "".join(f"{json.dumps(message)}\n" for message in messages)
    done = subprocess.run(
        command(config, "stdio"), input=lines, capture_output=True, text=True, timeout=LIMIT, check=True
    )
    (answer,) = [found for line in done.stdout.splitlines() if (found := json.loads(line)).get("id") == 2]
    assert answer["result"]["isError"] is True
    assert f"login guarded --config {config}" in answer["result"]["content"][0]["text"]


def test_a_command_to_copy_is_not_broken(config: Path) -> None:
    """However narrow the terminal: what is pasted from it works."""
    with on_screen(command(config, "call", "guarded__echo"), columns=60) as screen:
        code, text = screen.finish()
    assert code == 4
    assert any(f"login --config {config} guarded" in line for line in text.splitlines()), text
