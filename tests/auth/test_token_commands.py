"""`pegboard token …`, with a gateway and without, in a pipe and on a terminal."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from forking import warm_start
from harness import LIMIT, serving, toy, without_config, write_config
from screen import on_screen

TOKEN = re.compile(r"pgb_[0-9a-z]{12}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config that wants a token of everybody, this machine's user included."""
    return write_config(tmp_path / "pegboard.json", {}, auth={"required": True}, toolsets=["memory"])


def pegboard(*words: str, config: Path) -> subprocess.CompletedProcess[str]:
    """A command as its own process, in a pipe."""
    command = [*warm_start(), *words, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


def listed(config: Path) -> list[dict[str, Any]]:
    """What `token list --json` says."""
    return json.loads(pegboard("token", "list", "--json", config=config).stdout)["data"]["tokens"]


def status(url: str, token: str) -> int:
    """Of a request with this token."""
    return httpx2.get(f"{url.removesuffix('/mcp')}/api/tools", headers={"Authorization": f"Bearer {token}"}).status_code


def test_in_a_pipe_the_token_is_all_that_is_on_stdout(config: Path) -> None:
    """So that a script can take it; nothing is on stderr."""
    done = pegboard("token", "add", "ci", config=config)
    assert (done.returncode, done.stderr) == (0, "")
    assert TOKEN.fullmatch(done.stdout.removesuffix("\n"))
    again = pegboard("token", "rotate", "ci", config=config)
    assert (again.returncode, again.stderr) == (0, "")
    assert TOKEN.fullmatch(again.stdout.removesuffix("\n"))
    assert again.stdout != done.stdout


def test_on_a_terminal_it_says_what_to_do_with_it(config: Path) -> None:
    """The header, and how a client is connected; the token stands on a line of its own."""
    with on_screen([*warm_start(), "token", "add", "laptop", "--expires", "30d", "--config", str(config)]) as screen:
        code, text = screen.finish()
    assert code == 0
    assert len([line for line in text.splitlines() if TOKEN.fullmatch(line)]) == 1
    assert len(TOKEN.findall(text)) == 1
    assert "It is shown this once" in text
    assert "Authorization: Bearer TOKEN" in text
    assert re.search(r"It may use: everything\. Now that gives (\d+) of \1 tools", " ".join(text.split()))
    assert "claude mcp add --transport http pegboard" in text


def test_what_a_token_may_use_is_kept(config: Path) -> None:
    """Each option is a part of its rule."""
    options = (
        *("--server", "git*", "--server", "docs", "--tool", "*__get_*", "--deny", "*__delete", "--toolset", "memory"),
        *("--read-only", "--rate", "60/m", "--in-flight", "3", "--board", "team", "--namespace", "work", "--admin"),
    )
    assert pegboard("token", "add", "ci", *options, config=config).returncode == 0
    assert pegboard("token", "add", "all", config=config).returncode == 0
    ci, everything = listed(config)
    assert ci["rule"] == {
        "servers": ["git*", "docs"],
        "toolsets": ["memory"],
        "tools": {"allow": ["*__get_*"], "deny": ["*__delete"]},
        "readOnly": True,
        "boards": ["team"],
        "namespaces": ["work"],
        "rate": "60/m",
        "inFlight": 3,
        "admin": True,
    }
    assert everything["rule"] == {}
    table = pegboard("token", "list", config=config).stdout
    assert re.search(r"^all +active +never +never +everything$", table, re.MULTILINE)
    assert "servers git* docs; toolsets memory; tools *__get_*; not *__delete" in table
    assert not TOKEN.search(table)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "there"), "there is a token 'there' already; `pegboard token change there` changes it"),
        (("add", "a b"), "a token's name has letters"),
        (("add", "Local"), "a token cannot be called 'Local': rules and the audit mean this machine's own user by it"),
        (("change", "there", "--name", "anonymous"), "mean whoever comes without a credential by it"),
        (("add", "x", "--rate", "fast"), "rate must be a rate"),
        (("add", "x", "--in-flight", "0"), "inFlight must be a whole number"),
        (("add", "x", "--toolset", "memroy"), "is not a toolset"),
        (("add", "x", "--expires", "tomorrow"), "expires must be a time"),
        (("rotate", "their"), "did you mean there?"),
        (("remove", "nobody"), "there is no token 'nobody'"),
        (("show", "their"), "did you mean there?"),
        (("change", "their", "--rate", "1/s"), "did you mean there?"),
        (("change", "there"), "there is nothing to change: give an option"),
        (("change", "there", "--clear", "colour"), "--clear takes one of server, tool, deny,"),
        (("change", "there", "--rate", "1/s", "--clear", "rates"), "--rate and --clear rate contradict each other"),
        (("change", "there", "--rate", "fast"), "rate must be a rate"),
    ],
)
def test_what_is_wrong_is_the_callers_mistake(config: Path, words: tuple[str, ...], message: str) -> None:
    """Exit code 2, the reason on stderr, and nothing on stdout that a script could take for a token."""
    pegboard("token", "add", "there", config=config)
    done = pegboard("token", *words, config=config)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in without_config(done.stderr.replace("\n", " "))
    assert [row["name"] for row in listed(config)] == ["there"]


def test_names_may_be_given_with_commas(config: Path) -> None:
    """`--server a,b` is two servers, and so with the other options that take names."""
    options = ("--server", "one,two", "--server", "three", "--tool", "one__a, two__b", "--deny", "x,y")
    done = pegboard("token", "add", "ci", *options, "--board", "team,mine", "--namespace", "a,b", config=config)
    assert done.returncode == 0, done.stderr
    (row,) = listed(config)
    assert row["rule"] == {
        "servers": ["one", "two", "three"],
        "tools": {"allow": ["one__a", "two__b"], "deny": ["x", "y"]},
        "boards": ["team", "mine"],
        "namespaces": ["a,b"],
    }


def test_a_token_is_changed_part_by_part(config: Path) -> None:
    """What is not given stays; each limit can be taken off again, by the name of its option."""
    options = ("--server", "one", "--deny", "*__x", "--tool", "*__y", "--rate", "60/m", "--in-flight", "2")
    more = ("--toolset", "memory", "--board", "team", "--namespace", "work", "--expires", "30d", "--admin")
    secret = pegboard("token", "add", "ci", *options, *more, config=config).stdout
    done = pegboard("token", "change", "ci", "--read-only", "--rate", "9/s", "--name", "robot", config=config)
    assert (done.returncode, secret.strip() in done.stdout) == (0, False)
    may_use = r"^  may use: +servers one; toolsets memory; .*; read-only; 9/s; 2 at once; admin$"
    assert re.search(may_use, done.stdout, re.MULTILINE)
    (row,) = listed(config)
    assert (row["name"], row["rule"]["tools"]) == ("robot", {"allow": ["*__y"], "deny": ["*__x"]})
    parts = ("servers", "deny", "--tool", "rate", "in-flight", "in_flight", "toolset", "board", "namespaces", "expires")
    clear = [word for part in parts for word in ("--clear", part)]
    done = pegboard("token", "change", "robot", *clear, "--no-read-only", "--no-admin", "--json", config=config)
    data = json.loads(done.stdout)["data"]
    assert (data["rule"], data["expiresAt"], data["mayUse"]) == ({}, None, "everything")
    shown = pegboard("token", "show", "robot", config=config).stdout
    assert re.search(rf"^  id: +{row['id']}$", shown, re.MULTILINE)
    assert re.search(r"^  gives now: (\d+) of \1 tools; no servers$", shown, re.MULTILINE)


def test_what_the_config_adds_is_shown(tmp_path: Path) -> None:
    """In the list as a mark, and in words where one token is shown."""
    rules = [{"who": ["local"], "admin": True}, {"who": ["token:c*"], "toolsets": ["memory"], "readOnly": True}]
    config = write_config(tmp_path / "pegboard.json", {}, auth={"rules": rules})
    for name in ("ci", "other"):
        pegboard("token", "add", name, config=config)
    table = pegboard("token", "list", config=config).stdout
    assert re.search(r"^ci .* everything; and auth\.rules\[1\] of the config$", table, re.MULTILINE)
    assert re.search(r"^other .* everything$", table, re.MULTILINE)
    shown = pegboard("token", "show", "ci", config=config).stdout
    assert re.search(r"^  and: +auth\.rules\[1\] of the config: toolsets memory; read-only$", shown, re.MULTILINE)
    assert [row.get("configRule", {}).get("number") for row in listed(config)] == [2, None]


def test_what_is_likely_to_be_a_mistake_is_said_and_done(config: Path) -> None:
    """On stderr, so that a script still gets its token."""
    done = pegboard("token", "add", "ci", "--server", "gihtub", config=config)
    assert done.returncode == 0
    assert TOKEN.fullmatch(done.stdout.strip())
    first, second = done.stderr.splitlines()
    assert first == 'note: servers: there is no server "gihtub"'
    assert second.startswith("note: it is given no tools now: no server of the config fits its rule. ")


def test_a_token_that_is_given_no_tools_is_told_why(config: Path) -> None:
    """No tool that it could use says that it only reads, or no server was asked yet."""
    done = pegboard("token", "add", "ci", "--toolset", "discovery", "--tool", "tool_call", "--read-only", config=config)
    assert "it is read-only, and no tool that it could use says that it only reads (readOnlyHint)" in done.stderr
    config.write_text(json.dumps({"mcpServers": {"away": {"url": "http://127.0.0.1:9/mcp"}}}), "utf-8")
    done = pegboard("token", "add", "cd", "--server", "away", "--toolset", "discovery", config=config)
    assert "it is given no tools now: away has not been asked yet. Ask now: " in done.stderr
    assert f"refresh --config {config}" in done.stderr


def test_who_am_i(config: Path) -> None:
    """This machine's user without a token; whoever has the token that is on stdin, from a gateway that runs."""
    own = pegboard("whoami", config=config)
    assert (own.returncode, own.stdout.splitlines()[0]) == (0, "You are this machine's own user (admin).")
    token = pegboard("token", "add", "ci", "--read-only", "--rate", "9/h", "--expires", "30d", config=config).stdout
    command = [*warm_start(), "whoami", "--token-stdin", "--config", str(config)]

    def ask(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=LIMIT, check=False)

    assert ask(token).returncode == 4
    with serving(config):
        answer = ask(token)
        assert (answer.returncode, answer.stdout.splitlines()[0]) == (0, "You are the token ci.")
        assert re.search(r"^  may use: +read-only; 9/h$", answer.stdout, re.MULTILINE)
        assert re.search(r"^  limits: +9/h \(9 left\)$", answer.stdout, re.MULTILINE)
        wrong = ask(token.strip()[:-1])
        assert (wrong.returncode, "not known here" in wrong.stderr) == (1, True)
        assert (ask("").returncode, ask("two words").returncode) == (2, 2)


def test_a_running_gateway_is_asked(config: Path) -> None:
    """What a command does holds there when it is back, although the gateway wants a token of everybody else."""
    with serving(config) as (_, url):
        assert httpx2.get(f"{url.removesuffix('/mcp')}/api/tools").status_code == 401
        token = pegboard("token", "add", "ci", config=config).stdout.strip()
        assert status(url, token) == 200
        other = pegboard("token", "rotate", "ci", config=config).stdout.strip()
        assert (status(url, token), status(url, other)) == (401, 200)
        with on_screen([*warm_start(), "token", "add", "laptop", "--config", str(config)], 200) as screen:
            assert f"pegboard {url} --header" in screen.finish()[1]
        done = pegboard("token", "remove", "ci", config=config)
        assert (done.returncode, done.stdout) == (0, "")
        assert status(url, other) == 401
        assert [row["name"] for row in listed(config)] == ["laptop"]


@pytest.mark.scenario("access: No rule locks the owner out")
def test_no_rule_locks_the_owner_out(tmp_path: Path) -> None:
    """Commands that look after the gateway work whatever the rule for `local` hides; others are told which rule it
    is."""
    rules = [{"who": ["token:x"]}, {"who": ["local"], "servers": ["one"]}]
    servers = {name: toy(name=name, tools=["x"]) for name in ("one", "two")}
    config = write_config(tmp_path / "pegboard.json", servers, auth={"rules": rules}, toolsets=[])
    with serving(config) as (_, url):
        gateway = url.removesuffix("/mcp")
        refused = httpx2.get(f"{gateway}/api/tokens")
        assert refused.status_code == 403
        message = refused.json()["error"]["message"]
        assert f'auth.rules[1] in {config}, which is for "local", does not say "admin": true' in message
        assert "auth.rules[1]" in httpx2.get(f"{gateway}/api/clients").json()["error"]["message"]
        for words in (("token", "add", "ci"), ("token", "list"), ("disable", "two"), ("remove", "two"), ("audit",)):
            done = pegboard(*words, config=config)
            assert done.returncode == 0, (words, done.stderr)
        found = pegboard("doctor", "--json", config=config)
        assert found.returncode == 0, found.stdout
        # What a rule hides from its clients it hides from the command that calls tools.
        assert "two" not in pegboard("tools", config=config).stdout


def test_a_token_that_was_made_without_a_gateway_is_good_when_one_starts(config: Path) -> None:
    """Nobody has to be there when it is made."""
    token = pegboard("token", "add", "ci", config=config).stdout.strip()
    with serving(config) as (_, url):
        assert status(url, token) == 200


def test_json_is_the_whole_answer(config: Path) -> None:
    """With the token in it, once."""
    made = json.loads(pegboard("token", "add", "ci", "--json", config=config).stdout)
    assert made["success"] is True
    assert TOKEN.fullmatch(made["data"]["token"])
    refused = pegboard("token", "add", "ci", "--json", config=config)
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["code"] == "TOOL_INVALID_INPUT"


def test_no_tokens_is_said(config: Path) -> None:
    """With what to do."""
    done = pegboard("token", "list", config=config)
    advice = f"pegboard token add --config {config} NAME"
    assert (done.returncode, done.stdout) == (0, f"There are no tokens. Make one: {advice}\n")
