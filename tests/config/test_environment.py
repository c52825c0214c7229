"""Servers and switches that environment variables bring, with a config file and without one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard.config import ServerSpec, Settings, read_settings
from pegboard.config.environment import apply_environment

_MISSING = 'Invalid MCP server config for "rube": missing url'


def alone(**environment: str) -> Mapping[str, ServerSpec]:
    """The servers of an environment without any file."""
    return read_settings(None, environment).servers


def together(folder: Path, entries: Mapping[str, Any], **environment: str) -> Mapping[str, ServerSpec]:
    """The servers of a file and an environment."""
    path = folder / "pegboard.json"
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return read_settings(path, environment).servers


# Defining a server


@pytest.mark.parametrize(
    ("variable", "name"),
    [("RUBE", "rube"), ("GITHUB_DOCS", "github_docs"), ("S3", "s3"), ("A__B", "a_b"), ("_X", "x")],
)
def test_a_url_defines_a_server(variable: str, name: str) -> None:
    """`<NAME>_MCP_URL` alone is a whole server over HTTP, with its key if there is one."""
    assert alone(**{f"{variable}_MCP_URL": " https://r.example/mcp "}) == {
        name: ServerSpec(
            name=name, given_name=name, transport="http", transport_guessed=True, url="https://r.example/mcp"
        )
    }
    spec = alone(**{f"{variable}_MCP_URL": "https://r.example/mcp", f"{variable}_API_KEY": "tulip-42"})[name]
    assert spec.headers == {"Authorization": "Bearer tulip-42"}
    assert spec.problem is None


def test_no_variables_no_servers() -> None:
    """Keys and unrelated or empty variables bring no server."""
    environment = {"RUBE_API_KEY": "tulip", "RUBE_MCP_URL": "", "RUBE_MCP_ENABLED": " ", "MCP_URL": "https://x.example"}
    environment |= {"rube_mcp_url": "https://x.example", "RUBE_MCP_URLS": "https://x.example", "X_URL": "y"}
    assert alone(**environment) == {}


def test_servers_of_the_environment_are_sorted_behind_those_of_the_file(tmp_path: Path) -> None:
    """The order of servers does not depend on the order of variables."""
    servers = together(
        tmp_path, {"zoo": {"command": "z"}}, B_MCP_URL="https://b.example", A_MCP_URL="https://a.example"
    )
    assert list(servers) == ["zoo", "a", "b"]


@pytest.mark.parametrize("url", ["r.example", "ftp://r.example", "https://", "http://[::1", "https://r.example:port"])
def test_a_bad_url_is_the_problem_of_its_server(url: str) -> None:
    """An address that is none is told with the variable's name, and the other servers go on."""
    servers = alone(RUBE_MCP_URL=url, DOCS_MCP_URL="https://d.example")
    problem = servers["rube"].problem
    assert problem is not None
    assert problem.startswith("RUBE_MCP_URL ")
    assert servers["docs"].problem is None


def test_a_bad_url_is_not_repeated() -> None:
    """The problem of an address does not show it: it can hold a password."""
    spec = alone(RUBE_MCP_URL="https://ada:tulip/42@r.example")["rube"]
    assert spec.problem is not None
    assert "tulip" not in spec.problem


# Overriding one of the file


def test_a_url_overrides_the_files_address(tmp_path: Path) -> None:
    """`<NAME>_MCP_URL` moves a server of the file; how it is treated and its headers stay."""
    entry = {"url": "https://old.example", "headers": {"X-Team": "blue"}, "ttl": 7, "tools": {"deny": ["x"]}}
    spec = together(tmp_path, {"Docs": entry}, DOCS_MCP_URL="https://new.example")["docs"]
    assert (spec.url, spec.headers, spec.ttl, spec.deny) == ("https://new.example", {"X-Team": "blue"}, 7, ("x",))
    assert (spec.name, spec.given_name, spec.problem) == ("docs", "Docs", None)


def test_a_url_overrides_a_command(tmp_path: Path) -> None:
    """A server that the file starts as a command is reached over HTTP once a URL is given."""
    spec = together(tmp_path, {"docs": {"command": "uvx", "args": ["x"]}}, DOCS_MCP_URL="https://new.example")["docs"]
    assert (spec.transport, spec.url, spec.command, spec.args) == ("http", "https://new.example", None, ())


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"type": "http"},
        {"url": "https://${NONE}"},
        {"command": "${NONE}"},
        {"command": "x", "env": {"A": "${NONE}"}},
    ],
)
def test_a_url_mends_an_address_that_cannot_be_used(tmp_path: Path, entry: dict[str, Any]) -> None:
    """What was wrong with the file's own address no longer matters once it is overridden."""
    spec = together(tmp_path, {"docs": entry}, DOCS_MCP_URL="https://new.example")["docs"]
    assert (spec.url, spec.problem) == ("https://new.example", None)


def test_a_url_does_not_mend_a_missing_header(tmp_path: Path) -> None:
    """A header whose variable has no value is still a problem: nothing is sent without it."""
    entry = {"url": "https://old.example", "headers": {"X-Key": "${NONE}"}}
    problem = together(tmp_path, {"docs": entry}, DOCS_MCP_URL="https://new.example")["docs"].problem
    assert problem == "${NONE} has no value: set NONE in the environment"


def test_other_servers_of_the_file_are_left_alone(tmp_path: Path) -> None:
    """A variable touches the server it names and no other."""
    entries = {"docs": {"url": "https://d.example"}, "docs2": {"url": "https://d2.example"}}
    plain = together(tmp_path, entries)
    changed = together(tmp_path, entries, DOCS_MCP_URL="https://new.example", DOCS_MCP_ENABLED="no")
    assert changed["docs2"] == plain["docs2"]
    assert changed["docs"] != plain["docs"]


# Keys


def test_a_key_goes_with_the_url_of_the_environment(tmp_path: Path) -> None:
    """Where the environment gives the address, it gives the key too."""
    environment = {"DOCS_MCP_URL": "https://new.example", "DOCS_API_KEY": "tulip-42"}
    spec = together(tmp_path, {"docs": {"url": "https://old.example"}}, **environment)["docs"]
    assert spec.headers == {"Authorization": "Bearer tulip-42"}


@pytest.mark.parametrize(
    ("entry", "headers"),
    [
        ({}, {}),
        ({"apiKeyFromEnv": False}, {}),
        ({"apiKeyFromEnv": None}, {}),
        ({"apiKeyFromEnv": True}, {"Authorization": "Bearer tulip-42"}),
        ({"apiKeyFromEnv": True, "headers": {"X": "1"}}, {"X": "1", "Authorization": "Bearer tulip-42"}),
        ({"apiKeyFromEnv": True, "headers": {"authorization": "Basic x"}}, {"authorization": "Basic x"}),
    ],
)
@pytest.mark.parametrize("enabled", ["", "true"])
def test_a_server_of_the_file_gets_a_key_only_if_it_asks(
    tmp_path: Path, entry: dict[str, Any], headers: dict[str, str], enabled: str
) -> None:
    """A key is never sent where nobody asked for it, and never in place of the file's own header."""
    environment = {"GITHUB_DOCS_API_KEY": "tulip-42", "GITHUB_DOCS_MCP_ENABLED": enabled}
    servers = together(tmp_path, {"GitHub-Docs": {"url": "https://d.example", **entry}}, **environment)
    assert servers["github_docs"].headers == headers


def test_the_files_own_header_beats_the_key(tmp_path: Path) -> None:
    """An Authorization header of the file, however it is spelt, is kept when the URL is overridden."""
    entry = {"url": "https://old.example", "headers": {"AUTHORIZATION": "Basic x"}}
    environment = {"DOCS_MCP_URL": "https://new.example", "DOCS_API_KEY": "tulip-42"}
    assert together(tmp_path, {"docs": entry}, **environment)["docs"].headers == {"AUTHORIZATION": "Basic x"}


@pytest.mark.parametrize(("key", "header"), [(" tulip-42\r\n", "Bearer tulip-42"), ("  ", None), ("", None)])
def test_keys_are_trimmed(tmp_path: Path, key: str, header: str | None) -> None:
    """A key from a file with Windows line endings is usable, and a blank one is none."""
    headers = {} if header is None else {"Authorization": header}
    assert alone(RUBE_MCP_URL="https://r.example", RUBE_API_KEY=key)["rube"].headers == headers
    entry = {"url": "https://r.example", "apiKeyFromEnv": True}
    assert together(tmp_path, {"rube": entry}, RUBE_API_KEY=key)["rube"].headers == headers


def test_one_servers_key_is_not_anothers() -> None:
    """Each key goes to the server of its own name."""
    servers = alone(A_MCP_URL="https://a.example", B_MCP_URL="https://b.example", A_API_KEY="tulip-42")
    assert servers["a"].headers == {"Authorization": "Bearer tulip-42"}
    assert servers["b"].headers == {}


# Switches

_YES = ["true", "1", "yes", "on", "TRUE", "YES", "ON", "True", " yEs "]
_NO = ["false", "0", "no", "off", "FALSE", "NO", "OFF", "False", "oFF\n"]


@pytest.mark.scenario("registry: Config: the environment's servers and switches")
@pytest.mark.parametrize(("word", "enabled"), [*((word, True) for word in _YES), *((word, False) for word in _NO)])
@pytest.mark.parametrize("entry", [{}, {"enabled": True}, {"enabled": False}, {"disabled": True}])
def test_a_switch_beats_the_file(tmp_path: Path, entry: dict[str, Any], word: str, enabled: bool) -> None:
    """`<NAME>_MCP_ENABLED` decides, in every spelling and case, whatever the file says."""
    spec = together(tmp_path, {"docs": {"command": "uvx", **entry}}, DOCS_MCP_ENABLED=word)["docs"]
    assert (spec.enabled, spec.problem) == (enabled, None)


@pytest.mark.parametrize("word", ["maybe", "2", "tru", "enabled", "ja"])
def test_a_wrong_word_is_a_problem_that_names_it(tmp_path: Path, word: str) -> None:
    """A switch in a wrong position is told with variable and word, and the other servers go on."""
    expected = f"DOCS_MCP_ENABLED must be true or false, found '{word}'"
    servers = together(tmp_path, {"docs": {"command": "uvx"}, "git": {"command": "uvx"}}, DOCS_MCP_ENABLED=word)
    assert (servers["docs"].problem, servers["git"].problem) == (expected, None)
    assert alone(DOCS_MCP_ENABLED=word)["docs"].problem == expected
    assert alone(DOCS_MCP_ENABLED=word, DOCS_MCP_URL="https://d.example")["docs"].problem == expected


# Rube, as spec 4 has it


@pytest.mark.scenario("registry: Config: the environment's servers and switches")
@pytest.mark.parametrize("word", ["true", "1", "YES", "on"])
def test_rube_enabled_without_a_url(tmp_path: Path, word: str) -> None:
    """Enabled without a URL is the problem that spec 4 words, and the others go on."""
    assert alone(RUBE_MCP_ENABLED=word)["rube"].problem == _MISSING
    servers = together(tmp_path, {"git": {"command": "uvx"}}, RUBE_MCP_ENABLED=word, RUBE_API_KEY="tulip-42")
    assert servers["rube"].problem == _MISSING
    assert (servers["git"].problem, servers["git"].enabled) == (None, True)


def test_rube_enabled_with_an_entry_that_has_no_url(tmp_path: Path) -> None:
    """An entry that only switches it, as `pegboard disable` writes one, does not change the wording."""
    servers = together(tmp_path, {"rube": {"enabled": False}}, RUBE_MCP_ENABLED="true")
    assert (servers["rube"].problem, servers["rube"].enabled) == (_MISSING, True)


@pytest.mark.scenario("registry: Config: the environment's servers and switches")
@pytest.mark.parametrize("word", ["false", "0", "no", "OFF"])
def test_rube_disabled(word: str) -> None:
    """Switched off it is disabled if there is a URL, and simply not there if there is none."""
    assert alone(RUBE_MCP_ENABLED=word) == {}
    spec = alone(RUBE_MCP_ENABLED=word, RUBE_MCP_URL="https://r.example", RUBE_API_KEY="tulip-42")["rube"]
    assert (spec.enabled, spec.problem, spec.url) == (False, None, "https://r.example")


@pytest.mark.scenario("registry: Config: the environment's servers and switches")
def test_rube_with_all_three() -> None:
    """URL, key and switch together make a server that is on and authenticated."""
    environment = {"RUBE_MCP_URL": "https://r.example/mcp", "RUBE_API_KEY": "tulip-42", "RUBE_MCP_ENABLED": "true"}
    assert alone(**environment) == {
        "rube": ServerSpec(
            name="rube",
            given_name="rube",
            transport="http",
            transport_guessed=True,
            url="https://r.example/mcp",
            headers={"Authorization": "Bearer tulip-42"},
            secrets=frozenset({"tulip-42", "Bearer tulip-42"}),
        )
    }


def test_a_disabling_entry_keeps_a_server_of_the_environment_off(tmp_path: Path) -> None:
    """The entry that `pegboard disable` writes for a server of the environment does switch it off."""
    servers = together(
        tmp_path, {"rube": {"enabled": False}}, RUBE_MCP_URL="https://r.example", RUBE_API_KEY="tulip-42"
    )
    spec = servers["rube"]
    assert (spec.enabled, spec.problem, spec.url) == (False, None, "https://r.example")
    assert spec.headers == {"Authorization": "Bearer tulip-42"}


def test_settings_are_not_changed_in_place() -> None:
    """Applying an environment leaves the settings it was given as they were."""
    settings = Settings(servers={"a": ServerSpec(name="a", given_name="a", command="a")})
    applied = apply_environment(settings, {"A_MCP_ENABLED": "no", "B_MCP_URL": "https://b.example"})
    assert list(settings.servers) == ["a"]
    assert settings.servers["a"].enabled is True
    assert list(applied.servers) == ["a", "b"]
