"""Commands name the page's screen that fits, once, and only where a gateway runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from auth.provider import open_provider
from forking import warm_start
from harness import serving, toy, write_config
from login.protected import open_protected
from pegboard.cli.page_link import page_link
from screen import on_screen

MISSING = {"command": "no-such-command-here"}


def pegboard(config: Path, *words: str) -> str:
    """All that a command says."""
    command = [*warm_start(), words[0], "--config", str(config), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("parts", "query", "address"),
    [
        ((), {}, "http://h:1/#/"),
        (("servers",), {}, "http://h:1/#/servers"),
        (("servers", "git"), {"tab": "log"}, "http://h:1/#/servers/git?tab=log"),
        (("servers", "a/b?c#d\u202e"), {}, "http://h:1/#/servers/a%2Fb%3Fc%23d%E2%80%AE"),
    ],
)
def test_an_address_leads_to_its_screen(parts: tuple[str, ...], query: dict[str, str], address: str) -> None:
    """Whatever a name has in it, it stays one part of the address."""
    assert page_link("http://h:1", *parts, **query) == address


def test_commands_name_the_screen_that_fits(tmp_path: Path) -> None:
    """The overview where the gateway is meant, a server's screen where it was added, and its log where it failed."""
    config = write_config(tmp_path / "p.json", {"gone": MISSING})
    with serving(config) as (_, mcp):
        page = mcp.removesuffix("/mcp") + "/#/"
        start = toy(name="one")
        said = {
            "status": pegboard(config, "status"),
            "doctor": pegboard(config, "doctor"),
            "add": pegboard(config, "add", "one", "--", start["command"], *start["args"]),
            "failed": pegboard(config, "add", "two", "--", "no-such-command-either"),
            "two": pegboard(config, "doctor"),
        }
        with on_screen([*warm_start(), "servers", "--config", str(config)]) as screen:
            said["servers"] = screen.finish()[1]
        piped = pegboard(config, "servers")
        answers = {words: json.loads(pegboard(config, *words.split())) for words in ("status --json", "servers --json")}
    addresses = {name: [word for word in text.split() if word.startswith(page)] for name, text in said.items()}
    assert addresses == {
        "status": [page],
        "doctor": [f"{page}servers/gone?tab=log"],
        "add": [f"{page}servers/one"],
        "failed": [f"{page}servers/two?tab=log"],
        "two": [page],
        "servers": [f"{page}servers"],
    }
    # In a pipe each line is a server.
    assert page not in piped
    assert answers["status --json"]["data"]["gateways"][0]["page"] == page
    assert page not in json.dumps(answers["servers --json"])


def test_a_sign_in_names_where_it_can_be_done(tmp_path: Path) -> None:
    """A server that was added and wants one, and a sign-in that this command does not wait for."""
    with open_provider() as issuer, open_protected(issuer) as protected:
        config = write_config(tmp_path / "p.json", {"guarded": {"url": protected.url}})
        with serving(config) as (_, mcp):
            page = mcp.removesuffix("/mcp") + "/#/"
            added = pegboard(config, "add", "other", protected.url)
            begun = pegboard(config, "login", "guarded")
        alone = pegboard(config, "login", "guarded")
    assert f"  Or in a browser: {page}servers/other\n" in added
    assert f"  In a browser: {page}sign-ins\n" in begun
    assert "#/" not in alone


def test_a_first_start_names_the_page(tmp_path: Path) -> None:
    """It is where to look around, with the rest of what to do next."""
    command = [*warm_start(), "serve", "--port", "0", "--config", str(write_config(tmp_path / "p.json", {}))]
    with on_screen(command) as screen:
        text = screen.until("Calls are shown below.")
    address = text.split()[3].removesuffix("/mcp")
    assert f"in a browser: {address}/#/\n" in text


def test_without_a_gateway_there_is_no_page(tmp_path: Path) -> None:
    """An address at which nobody answers is not named."""
    config = write_config(tmp_path / "p.json", {"gone": MISSING})
    start: dict[str, Any] = toy(name="one")
    said = [
        pegboard(config, "status"),
        pegboard(config, "doctor"),
        pegboard(config, "add", "one", "--", start["command"], *start["args"]),
        pegboard(config, "add", "two", "--", "no-such-command-either"),
        pegboard(config, "add", "three", "--json", "--", "no-such-command-either"),
    ]
    with on_screen([*warm_start(), "servers", "--config", str(config)]) as screen:
        said.append(screen.finish()[1])
    assert "#/" not in "".join(said)
