"""What an import would do with each server, beside what the config has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.client_configs.import_plan import ImportPlan, UnknownNameError, choose, plan_import
from pegboard.client_configs.reader import read_text
from pegboard.client_configs.reading import ConfigReading, TextOrigin


def reading(label: str, servers: dict[str, Any]) -> ConfigReading:
    return read_text(json.dumps({"mcpServers": servers}), TextOrigin(label, label))


def plan(*servers: dict[str, Any], known: dict[str, Any] | None = None, **options: Any) -> ImportPlan:
    whole = ConfigReading()
    for number, each in enumerate(servers):
        whole += reading(f"c{number}", each)
    return plan_import(whole, known or {}, **options)


def outcomes(found: ImportPlan) -> list[tuple[str, str]]:
    return [(each.server.name, each.outcome_text) for each in found.servers]


@pytest.mark.scenario("first hour: A server is imported once")
def test_a_server_is_taken_once() -> None:
    """Equal command, arguments and variables, or an equal address with its headers, are the same under any name."""
    one = {"a": {"command": "x", "args": ["1"], "env": {"K": "1"}}, "d": {"url": "https://d.example/mcp/"}}
    two = {"b": {"command": "x", "args": ["1"], "env": {"K": 1}}, "d": {"serverUrl": "https://d.example/mcp"}}
    assert outcomes(plan(one, two)) == [("a", "new"), ("d", "new"), ("b", "same as a"), ("d", "same as d")]
    known = {"mine": {"cmd": "x", "arguments": ["1"], "env": {"K": "1"}}}
    assert outcomes(plan(one, known=known))[0] == ("a", "same as mine")
    other = {"c": {"command": "x", "args": ["1"], "env": {"K": "1"}, "cwd": "/elsewhere"}}
    assert outcomes(plan(one, other))[2] == ("c", "new")


@pytest.mark.scenario("first hour: A server is imported once")
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"command": "x", "env": {"DATABASE_URL": "postgres://prod/x"}}, {"DATABASE_URL": "postgres://test/x"}),
        ({"command": "x", "env": {"A": "1"}}, {"A": "1", "B": "2"}),
        ({"command": "x", "env": {"A": "${ONE}"}}, {"A": "${TWO}"}),
        ({"command": "x"}, {"A": "1"}),
        ({"url": "https://d.example/mcp", "headers": {"Authorization": "Bearer work"}}, {"Authorization": "Bearer me"}),
        ({"url": "https://d.example/mcp", "headers": {"Authorization": "Bearer work"}}, {}),
    ],
)
def test_other_values_are_another_server(one: dict[str, Any], two: dict[str, str]) -> None:
    """Two databases behind one command, two accounts at one address: both are taken over, and it is said."""
    values = "headers" if "url" in one else "env"
    found = plan({"prod": one}, {"test": {**one, values: two}}, {"prod": {**one, values: two}})
    assert outcomes(found) == [("prod", "new"), ("test", "new"), ("prod", "same as test")]
    assert [*found.entries] == ["prod", "test"]
    said = "the same address or command as prod, with other values: it is added beside it"
    assert [each.server.notes for each in found.servers] == [(), (said,), ()]
    assert outcomes(plan({"prod": {**one, values: two}}, known={"prod": one})) == [("prod", "new, as prod_2")]


def test_a_value_in_a_variable_is_that_value() -> None:
    """Who puts a secret of the config into the environment does not get the server a second time."""
    literal = {"a": {"url": "https://d.example/mcp", "headers": {"authorization": "Bearer tulip"}}}
    known = {"mine": {"url": "https://d.example/mcp", "headers": {"Authorization": "Bearer ${TULIP}"}}}
    assert outcomes(plan(literal, known=known, environment={"TULIP": "tulip"})) == [("a", "same as mine")]
    assert outcomes(plan(literal, known=known, environment={"TULIP": "rose"})) == [("a", "new")]
    assert outcomes(plan(literal, known=known, environment={})) == [("a", "new")]
    spelt = {"a": {"url": "https://d.example/mcp", "headers": {"Authorization": "Bearer ${env:TULIP}"}}}
    assert outcomes(plan(spelt, known=known, environment={})) == [("a", "same as mine")]


def test_a_bridge_to_an_address_is_that_address() -> None:
    """`npx mcp-remote URL` in the config is what the import reads as an address."""
    bridge = {"command": "npx", "args": ["-y", "mcp-remote", "https://d.example/mcp", "--header", "X: ${K}"]}
    known = {"mine": {**bridge, "env": {"K": "1"}}}
    assert outcomes(plan({"a": {"url": "https://d.example/mcp", "headers": {"X": "1"}}}, known=known)) == [
        ("a", "same as mine")
    ]


def test_another_server_of_the_same_name_is_renamed() -> None:
    """Names count as they are in snake_case; the next free number is taken."""
    found = plan({"Git-Hub": {"command": "x"}}, {"git_hub": {"command": "y"}}, known={"git_hub_2": {"command": "z"}})
    assert outcomes(found) == [("Git-Hub", "new"), ("git_hub", "new, as git_hub_3")]
    assert {name: entry["command"] for name, entry in found.entries.items()} == {"Git-Hub": "x", "git_hub_3": "y"}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "pegboard", "args": ["stdio", "--board", "cursor"]},
        {"command": "/home/me/.venv/bin/pegboard", "args": ["stdio"]},
        {"command": "C:\\tools\\pegboard.exe", "args": ["stdio"]},
        {"command": "uvx", "args": ["pegboard", "stdio"]},
        {"command": "python3.12", "args": ["-m", "pegboard", "stdio"]},
        {"url": "http://127.0.0.1:7420/mcp/cursor"},
        {"url": "http://localhost:7420/mcp"},
        {"url": "http://[::1]:9999/mcp/x?expose=all"},
    ],
)
def test_pegboard_itself_is_no_server_of_its_own(entry: dict[str, Any]) -> None:
    """By its program, by its address, and behind a bridge."""
    assert outcomes(plan({"p": entry}, ports=[9999])) == [("p", "skipped: Pegboard itself")]
    if "url" in entry:
        bridge = {"command": "npx", "args": ["-y", "mcp-remote", entry["url"], "--allow-http"]}
        assert outcomes(plan({"p": bridge}, ports=[9999])) == [("p", "skipped: Pegboard itself")]


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "http://127.0.0.1:7421/mcp"},
        {"url": "http://127.0.0.1:7420/other"},
        {"url": "https://d.example:7420/mcp"},
        {"command": "uvx", "args": ["pegboard-plugin", "stdio"]},
        {"command": "uvx", "args": ["other", "--name", "pegboard"]},
        {"command": "mypegboard"},
    ],
)
def test_what_only_looks_like_pegboard_is_a_server(entry: dict[str, Any]) -> None:
    """Another port, another path, another program."""
    assert plan({"p": entry}).servers[0].outcome == "new"


def test_what_the_config_would_refuse_is_unreadable() -> None:
    """With its place; the others go on."""
    found = plan({"bad": {"url": "ftp://d.example"}, "good": {"command": "x"}, "odd": {"command": "x", "ttl": "soon"}})
    assert [each.server.name for each in found.servers] == ["good"]
    assert [(each.name, each.place) for each in found.unreadable] == [("bad", "c0:1"), ("odd", "c0:1")]
    assert "must be an http:// or https:// address" in found.unreadable[0].reason


def test_servers_can_come_switched_off() -> None:
    """All of them, and those that are switched off in their client."""
    found = plan({"a": {"command": "x"}, "b": {"command": "y", "disabled": True}})
    assert [entry.get("enabled") for entry in found.entries.values()] == [None, False]
    assert [entry["enabled"] for entry in plan({"a": {"command": "x"}}, is_off=True).entries.values()] == [False]


def test_some_servers_can_be_chosen() -> None:
    """By their names; one that none has is refused with the nearest."""
    found = reading("c", {"time": {"command": "x"}, "Git-Hub": {"command": "y"}, "bad": {}})
    assert [each.name for each in choose(found, ["git_hub"]).servers] == ["Git-Hub"]
    assert [each.name for each in choose(found, ["bad"]).unreadable] == ["bad"]
    with pytest.raises(UnknownNameError, match="did you mean time"):
        choose(found, ["tiem"])


def test_nothing_secret_is_in_what_programs_are_shown() -> None:
    """Values of headers and variables, options, and parts of addresses; where they stand is named."""
    secret = "tulip-tulip-tulip"
    found = plan(
        {
            "a": {"command": "x", "args": ["--token", secret, "plain"], "env": {"MY_TOKEN": secret, "TZ": "UTC"}},
            "b": {"url": f"https://u:{secret}@d.example/mcp?key={secret}", "headers": {"Authorization": secret}},
            "c": {"command": "x", "args": ["--token=${T}"], "env": {"MY_TOKEN": "${T}"}},
        }
    )
    shown = json.dumps(found.to_dict())
    assert secret not in shown
    rows = {row["name"]: row for row in found.to_dict()["servers"]}
    assert rows["a"]["secrets"] == ["env MY_TOKEN", "args"]
    assert rows["a"]["entry"]["env"] == {"MY_TOKEN": "[redacted]", "TZ": "UTC"}
    assert rows["a"]["entry"]["args"] == ["--token", "[redacted]", "plain"]
    assert rows["b"]["secrets"] == ["header Authorization", "url"]
    assert rows["c"]["secrets"] == []
    assert rows["c"]["entry"]["env"] == {"MY_TOKEN": "${T}"}
    assert found.entries["a"]["env"]["MY_TOKEN"] == secret
