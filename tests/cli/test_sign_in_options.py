"""The options of `add` that say how to sign in: what goes into the file, and which calls are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness import write_config
from pegboard.cli.app import app
from servers.toy_http import HttpToy, http_toy


@pytest.fixture(scope="module")
def server() -> Any:
    """One that needs no sign-in: what the entry says is not tried."""
    with http_toy() as toy:
        yield toy


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "pegboard.json", {})


def add(config: Path, server: HttpToy, *options: str) -> Result:
    return CliRunner().invoke(app, ["add", "--config", str(config), "t", server.url, *options])


def oauth_in(config: Path) -> Any:
    return json.loads(config.read_text("utf-8"))["mcpServers"]["t"].get("oauth")


OPTIONS: dict[str, tuple[list[str], dict[str, Any] | None]] = {
    "none": ([], None),
    "an id": (["--client-id", "me"], {"clientId": "me"}),
    "a secret": (
        ["--client-id", "me", "--client-secret", "TULIP"],
        {"clientId": "me", "clientSecret": "${TULIP}"},
    ),
    "a secret as a variable": (
        ["--client-id=me", "--client-secret=${env:TULIP}"],
        {"clientId": "me", "clientSecret": "${TULIP}"},
    ),
    "a port": (["--client-id", "me", "--callback-port", "8090"], {"clientId": "me", "callbackPort": 8090}),
    "scopes": (["--scope", "a b", "--scope", "c"], {"scopes": ["a", "b", "c"]}),
}


@pytest.mark.parametrize("given", OPTIONS)
def test_the_options_are_the_section(
    config: Path, server: HttpToy, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stands in the entry; a secret as the name of its variable alone."""
    monkeypatch.setenv("TULIP", "secret-of-the-tests")
    options, meant = OPTIONS[given]
    done = add(config, server, *options)
    assert done.exit_code == 0, done.output
    assert oauth_in(config) == meant
    assert "secret-of-the-tests" not in config.read_text("utf-8")


WRONG = {
    "a secret without an id": (["--client-secret", "TULIP"], "--client-secret needs --client-id"),
    "a secret as it is": (
        ["--client-id", "me", "--client-secret", "s3cr3t-0f!"],
        "--client-secret needs the name of an environment variable",
    ),
    "no port": (["--callback-port", "70000"], "65535"),
}


@pytest.mark.parametrize("given", WRONG)
def test_wrong_options_change_nothing(config: Path, server: HttpToy, given: str) -> None:
    """The message says what is needed, without the secret, and the file stays as it was."""
    options, said = WRONG[given]
    before = config.read_bytes()
    done = add(config, server, *options)
    assert (done.exit_code, config.read_bytes()) == (2, before)
    assert said in " ".join(done.output.split())
    assert "s3cr3t" not in done.output
