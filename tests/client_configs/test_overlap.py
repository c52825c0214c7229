"""Which servers of a client `install --replace` takes out, and which it keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallContext, InstallOptions
from pegboard.client_configs.install import InstallPlan, plan_install
from pegboard.client_configs.overlap import server_problems
from pegboard.client_configs.table import find_client

TIME = {"command": "uvx", "args": ["mcp-server-time"]}


def context_with(tmp_path: Path, own: dict[str, Any], theirs: dict[str, Any], **variables: str) -> InstallContext:
    """A machine with these servers in Pegboard's config and in Cursor's; all of Pegboard's work."""
    context = context_of(tmp_path, "linux", "http://127.0.0.1:7420", **variables)
    context.config.write_text(json.dumps({"mcpServers": own}))
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": theirs}))
    return with_working_servers(context)


def plan_for(context: InstallContext, client: str = "cursor") -> InstallPlan:
    return plan_install(find_client(client), context, InstallOptions(replace=True))


def test_what_is_taken_out_is_what_pegboard_has(tmp_path: Path) -> None:
    """Same command, same address, a bridge to it, variables in another spelling; nothing else."""
    own = {
        "time": TIME,
        "docs": {"type": "http", "url": "https://example.com/mcp/"},
        "var": {"command": "x", "args": ["${NOWHERE}"]},
    }
    theirs = {
        "a": TIME,
        "b": {"command": "npx", "args": ["-y", "mcp-remote@latest", "https://example.com/mcp"]},
        "c": {"command": "x", "args": ["${env:NOWHERE}"]},
        "d": {"command": "uvx", "args": ["mcp-server-time", "--utc"]},
        "e": {"url": "https://example.com/other"},
        "f": "nonsense",
        "g": {"command": 5},
    }
    plan = plan_for(context_with(tmp_path, own, theirs))
    assert (plan.replaced, plan.kept) == (("a", "b", "c"), {})


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        ({"command": "x", "env": {"DATABASE_URL": "postgres://prod"}}, {"env": {"DATABASE_URL": "postgres://test"}}),
        ({"command": "x"}, {"env": {"X": "1"}}),
        ({"url": "https://e.com/mcp", "headers": {"Authorization": "Bearer a"}}, {"headers": {"Authorization": "b"}}),
        ({"url": "https://e.com/mcp"}, {"headers": {"Authorization": "Bearer b"}}),
    ],
)
def test_other_values_are_another_server(tmp_path: Path, own: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Another database, another account: it is nowhere else, so it stays, and none of the values is shown."""
    plan = plan_for(context_with(tmp_path, {"prod": own}, {"test": {**own, **theirs}, "prod": own}))
    assert plan.replaced == ("prod",)
    assert plan.kept == {"test": "prod of Pegboard has other values"}


def test_a_secret_that_went_into_a_variable_is_the_same(tmp_path: Path) -> None:
    """As it is recommended after an import."""
    own, theirs = ({"x": {"command": "x", "env": {"TOKEN": value}}} for value in ("${MY_TOKEN}", "tulip"))
    context = context_with(tmp_path, own, theirs, MY_TOKEN="tulip")
    assert plan_for(context).replaced == ("x",)
    place = replace(context.place, environment={"MY_TOKEN": "rose"})
    assert plan_for(replace(context, place=place)).replaced == ()


def test_what_does_not_work_in_pegboard_is_kept(tmp_path: Path) -> None:
    """With the reason; the file would lose the only way to the server. Of two that are the same, one will do."""
    own = {
        "Linear-App": {"command": "l"},
        "off": {"command": "o"},
        "time": TIME,
        "time_2": TIME,
        "new": {"url": "https://n"},
    }
    context = context_with(tmp_path, own, {"linear": own["Linear-App"], "o": own["off"], "t": TIME, "n": own["new"]})
    problems = {"linear_app": "not reached", "off": "disabled", "time": "not reached", "time_2": None}
    plan = plan_for(replace(context, own_problems=problems))
    assert plan.replaced == ("t",)
    assert plan.kept == {"linear": "not reached", "o": "disabled", "n": "not asked yet"}


def test_a_project_has_paths_of_its_own(tmp_path: Path) -> None:
    """Compared as an import writes them; the home folder is no project, also where the command is typed there."""
    context = context_with(tmp_path, {"x": {"command": "./run"}}, {"x": {"command": "./run"}})
    home = replace(context, place=replace(context.place, project=context.place.home))
    assert plan_for(home).replaced == ("x",)
    file = context.place.project / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"x": {"command": "./run"}}}))
    options = InstallOptions(scope="project", replace=True)
    assert plan_install(find_client("cursor"), context, options).replaced == ()
    context.config.write_text(json.dumps({"mcpServers": {"x": {"command": str(context.place.project / "run")}}}))
    assert plan_install(find_client("cursor"), context, options).replaced == ("x",)


ROW = {"name": "x", "enabled": True, "state": "idle", "seen": True, "tools": 3, "lastError": None}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"state": "registered"}, None),
        ({"enabled": False, "state": "disabled"}, "disabled"),
        ({"state": "unreachable"}, "not reached"),
        ({"state": "lost"}, "not reached"),
        ({"state": "needs_auth"}, "needs sign-in"),
        ({"state": "invalid"}, "its entry cannot be used"),
        ({"state": "invalid", "lastError": "x: ${X} has no value: set X"}, "a variable has no value"),
        ({"seen": False, "tools": 0}, "not asked yet"),
        ({"seen": False, "tools": 0, "lastError": "timed out"}, "not reached"),
        ({"tools": 0}, "it has no tools"),
    ],
)
def test_a_server_works_if_it_is_enabled_and_its_tools_are_known(changes: dict[str, Any], problem: str | None) -> None:
    """By what REST says of it."""
    assert server_problems([{**ROW, **changes}]) == {"x": problem}
