"""Where everybody signs in for themselves, each one's definitions are compared with what that one was shown before."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from oauth.authority import open_authority
from oauth.personal_server import open_personal
from oauth.signed_in import open_signed_in
from oauth.test_scenarios_own_lists import Street, furnish, same_tool, settle
from pegboard.servers import connection
from servers.toy import Toy

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def open_holding_street(
    tmp_path: Path, *, silent: tuple[str, ...] = ()
) -> AsyncGenerator[tuple[Street, dict[str, Toy]]]:
    """Ada and bob, who have signed in to one server; what changes is held. Some requests of ada's are not answered."""
    settings: dict[str, Any] = {
        "auth": {"required": True},
        "audit": {},
        "expose": "all",
        "toolsets": ["discovery"],
        "changes": "hold",
    }
    with open_authority() as authority, open_personal(authority, "both") as server:
        toys = furnish(server)
        toys["ada"].settings.hang_on = silent
        async with open_signed_in(tmp_path, {}, **settings) as opened:
            await opened.gateway.configure({"one": server.entry}, **settings)
            town = Street(opened, authority, server, {})
            await settle(town)
            yield town, toys


async def visit_of(town: Street, name: str) -> str:
    """The description of the tool that all have, as one of them is shown it."""
    async with town.client(name) as client:
        return (await client.listed("tools"))["one__visit"]["description"]


async def shift(town: Street, toys: dict[str, Toy], name: str, *tools: Any) -> None:
    """The server shows somebody something else, and says so."""
    board, holder = town.opened.gateway.board, town.holder(name)
    spec = board.servers["one"].spec
    before = board.pins.state(spec, holder).reviews
    toys[name].settings.raw_tools[:] = tools
    board.discovery.own._ask_again("one", holder)
    await eventually(lambda: board.pins.state(spec, holder).reviews >= before + 3)
    await eventually(lambda: board.discovery.own._holder("one", holder).asking is None)


@pytest.mark.scenario("changes: The approved definition stays in use while calls by it are taken")
async def test_a_change_of_ones_own_definition_is_held(tmp_path: Path) -> None:
    """Nobody else is shown another one by that, and everybody keeps the words of their own."""
    async with open_holding_street(tmp_path) as (town, toys):
        board = town.opened.gateway.board
        await shift(town, toys, "ada", same_tool("Visit poisoned places.", choices=["azure_bay"]))
        assert await visit_of(town, "ada") == "Visit azure places."
        assert await visit_of(town, "bob") == "Visit brown places."
        await board.decisions.decide("one", ["visit"], None, accept=True)
        assert await visit_of(town, "ada") == "Visit poisoned places."
        assert await visit_of(town, "bob") == "Visit brown places."


async def test_what_is_new_to_one_is_withheld_from_that_one(tmp_path: Path) -> None:
    """The call says how to go on, and to others there is no such tool."""
    async with open_holding_street(tmp_path) as (town, toys):
        new = {"name": "azure_new", "inputSchema": {"type": "object"}}
        await shift(town, toys, "ada", same_tool("Visit azure places.", choices=["azure_bay"]), new)
        async with town.client("ada") as client:
            assert "one__azure_new" not in await client.listed("tools")
            answer = await client.call("one__azure_new", {})
            assert "pegboard changes show one" in answer["content"][0]["text"]
        async with town.client("bob") as client:
            with pytest.raises(Exception, match="Unknown tool"):
                await client.call("one__azure_new", {})


async def test_what_could_not_be_had_for_one_is_not_new_to_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server did not answer in time when it was asked for prompts first, with the sign-in of one."""
    monkeypatch.setattr(connection, "_PAGE_LIMIT", 0.5)
    async with open_holding_street(tmp_path, silent=("prompts/list",)) as (town, toys):
        monkeypatch.setattr(connection, "_PAGE_LIMIT", 30.0)
        toys["ada"].settings.hang_on = ()
        own, holder = town.opened.gateway.board.discovery.own, town.holder("ada")
        before = own.find("one", holder)
        own._ask_again("one", holder)
        await eventually(lambda: own.find("one", holder) is not before)
        async with town.client("ada") as client:
            assert "one__azure_prompt" in await client.listed("prompts")
