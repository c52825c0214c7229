"""What a server shows to one person alone stays theirs, whoever signs out and however often the gateway starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from oauth.authority import open_authority
from oauth.personal_server import open_personal
from oauth.test_scenarios_own_lists import Street, furnish, open_town, own, settle

pytestmark = pytest.mark.anyio


async def assert_nothing_private(town: Street, *names: str) -> None:
    for name in names:
        async with town.client(name) as client, town.http(name) as http:
            assert not own(await client.names(), "azure", "brown", "visit"), name
            text = (await http.get("/api/tools")).text + (await http.get("/api/tools/search?q=azure+brown")).text
            assert "azure_" not in text
            assert "brown_" not in text


@pytest.mark.scenario("sign-in: Everybody is shown what their own sign-in shows")
@pytest.mark.parametrize("leaving", [["bob"], ["ada"], ["ada", "bob"]], ids="-".join)
async def test_what_was_ones_own_becomes_nobody_elses(tmp_path: Path, leaving: list[str]) -> None:
    """Neither when the others sign out nor after a restart, though there is nothing left to compare it with."""
    with open_authority() as authority, open_personal(authority) as server:
        furnish(server)
        async with open_town(tmp_path, authority, server) as town:
            await settle(town)
            people = town.people
            await assert_nothing_private(town, "cyd")
            for name in leaving:
                await town.sign_out(name)
            await town.opened.gateway.board.refresh(["one"])
            await assert_nothing_private(town, "cyd", *leaving)
        async with open_town(tmp_path, authority, server) as town:
            town.people = people
            await assert_nothing_private(town, "cyd", *leaving)
            await town.opened.gateway.board.refresh(["one"])
            await assert_nothing_private(town, "cyd", *leaving)
