"""What `deny` hides, however its author spells a tool; and who is told of a pattern that hides nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bearers import bearer_client, bearer_http
from harness import Gateway, open_gateway, toy
from pegboard.names import public_name
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

LONG = f"wipe_{'very_' * 12}slowly"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("Delete-Repo", LONG, "look")]
DELETE = (
    *("github_docs__Delete-Repo", "GitHub-Docs__delete_repo", "delete_repo", "Delete-*", "GitHub-Docs.delete-repo"),
    *("github_docs/Delete_Repo", "GITHUB_DOCS:DELETE-REPO", "*__delete?repo", "github_docs__[Dd]elete-*"),
)
WIPE = (public_name(f"github_docs__{LONG}", 48), public_name(f"github_docs__{LONG}", 64), LONG, f"github_docs__{LONG}")


async def names_for(http: httpx2.AsyncClient) -> set[str]:
    """The tools that are listed over REST."""
    answer = await http.get("/api/tools", params={"status": "available"})
    return {row["name"] for row in answer.json()["data"]["tools"]}


@pytest.mark.scenario("access: A deny hides a tool however it is spelt")
@pytest.mark.parametrize("prefix", [True, False])
async def test_a_rule_hides_a_tool_however_it_is_spelt(tmp_path: Path, prefix: bool) -> None:
    """In any case, with `-` or `_`, with the server's name as the config has it, cut or not, with a dot or a slash."""
    entry = toy(raw_tools=TOOLS) | {"prefix": prefix}
    async with open_gateway(tmp_path, {"GitHub-Docs": entry}, toolsets=["discovery"], expose="all") as gateway:
        await gateway.board.refresh()
        every = {tool.original_name: tool.name for tool in gateway.board.all_tools() if tool.server_name}
        for number, pattern in enumerate((*DELETE, *WIPE)):
            hidden = every["Delete-Repo" if pattern in DELETE else LONG]
            token = await gateway.token(f"t{number}", tools={"deny": [pattern]})
            async with bearer_http(gateway, token) as http:
                listed = await names_for(http)
                assert every["look"] in listed, pattern
                assert hidden not in listed, pattern
        async with bearer_client(gateway, await gateway.token("caller", tools={"deny": [DELETE[1]]})) as client:
            with pytest.raises(RpcError, match="Unknown tool"):
                await client.call(every["Delete-Repo"], {})


@pytest.mark.scenario("access: A deny hides a tool however it is spelt")
async def test_a_servers_entry_hides_its_tool_however_it_is_spelt(tmp_path: Path) -> None:
    """`tools.deny` of a server is about its own names; its full names are meant as well."""
    spelt = ("delete_repo", "S-1__Delete-Repo", "s_2__delete-repo", "S-3.Delete-Repo", "DELETE*")
    servers = {f"S-{at}": toy(raw_tools=TOOLS) | {"tools": {"deny": [deny]}} for at, deny in enumerate(spelt)}
    async with open_gateway(tmp_path, servers, toolsets=[]) as gateway:
        await gateway.board.refresh()
        shown = {(tool.server_name, tool.original_name) for tool in gateway.board.all_tools()}
    assert "Delete-Repo" not in {name for _, name in shown}
    assert {server for server, name in shown if name == "look"} == {f"s_{at}" for at in range(len(spelt))}


async def test_a_scope_is_asked_for_however_its_tool_is_spelt(tmp_path: Path) -> None:
    """A pattern that fits nothing would ask for nothing."""
    rules = [{"who": ["*"], "scopes": {pattern: ["more"]}} for pattern in DELETE]
    async with open_gateway(tmp_path, {"GitHub-Docs": toy(raw_tools=TOOLS)}, auth={"rules": rules}) as gateway:
        await gateway.board.refresh()
        tool = next(tool for tool in gateway.board.all_tools() if tool.original_name == "Delete-Repo")
        other = next(tool for tool in gateway.board.all_tools() if tool.original_name == "look")
        for rule in gateway.board.settings.auth.rules:
            access = gateway.front.authenticator.rules._access("somebody", rule)  # pyright: ignore[reportPrivateUsage]
            assert access.missing_scopes(tool, frozenset()) == {"more"}, rule.scopes
            assert access.missing_scopes(other, frozenset()) == frozenset(), rule.scopes


async def test_a_pattern_that_fits_nothing_is_named(tmp_path: Path) -> None:
    """In a server's entry as in a rule, with the nearest name."""
    tools = {"deny": ["delete_rpo", "look"], "readOnly": ["zzz"]}
    servers = {"one": toy(raw_tools=TOOLS) | {"tools": tools}}
    rules = [{"who": ["local"], "tools": {"deny": ["one", "one__qqqq"]}, "admin": True}]
    async with open_gateway(tmp_path, servers, auth={"rules": rules}) as gateway:
        await gateway.board.refresh()
        data = await rules_of(gateway)
    assert data["servers"] == [
        {
            "server": "one",
            "remarks": [
                'tools.deny: there is no tool "delete_rpo"; did you mean Delete-Repo?',
                'tools.readOnly: there is no tool "zzz"',
            ],
        }
    ]
    assert data["rules"][0]["remarks"] == [
        'tools.deny: "one" is a server and no tool; "one__*" is all of its tools',
        'tools.deny: there is no tool "one__qqqq"',
    ]


async def rules_of(gateway: Gateway) -> dict[str, Any]:
    """What an admin is told of the rules."""
    async with httpx2.AsyncClient() as http:
        answer = await http.get(f"{gateway.url}/api/rules")
    return json.loads(answer.text)["data"]
