"""Several users of one server, each with a grant of their own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from harness import eventually, http_client
from oauth.authority import open_authority
from oauth.guarded_server import open_guarded
from oauth.signed_in import SignedIn, open_signed_in

pytestmark = pytest.mark.anyio

CALLS = 5000 if "PEGBOARD_LONG_TESTS" in os.environ else 100
USERS = ("alice", "bob")


@pytest.mark.scenario("sign-in: Everybody calls with their own token")
@pytest.mark.both_paths
@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_everybody_calls_with_their_own_token(tmp_path: Path, version: str) -> None:
    """Whatever is mixed and whatever expires, a call carries the token of whoever made it."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        authority.lifetime = 2
        entry = {**guarded.entry, "oauth": {"per": "user"}}
        async with open_signed_in(tmp_path, {}, auth={"required": True}) as opened:
            await opened.gateway.configure({"one": entry}, auth={"required": True})
            headers = {user: await opened.gateway.token(user) for user in USERS}
            for user in USERS:
                authority.user = user
                await opened.person("one", headers[user]).sign_in()
            said = await asyncio.gather(*(say_who(opened, version, headers[user]) for user in USERS))
    assert dict(zip(USERS, said, strict=True)) == {user: {user} for user in USERS}
    assert authority.asked["reused"] == authority.asked["invalid_grant"] == 0


@pytest.mark.scenario("sign-in: Everybody calls with their own token")
async def test_a_user_without_a_grant_never_gets_somebody_elses(tmp_path: Path) -> None:
    """They are told to sign in, and what others have stays theirs."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        entry = {**guarded.entry, "oauth": {"per": "user"}}
        async with open_signed_in(tmp_path, {}, auth={"required": True}) as opened:
            await opened.gateway.configure({"one": entry}, auth={"required": True})
            alice, eve = [await opened.gateway.token(name) for name in ("alice", "eve")]
            await opened.person("one", alice).sign_in()
            async with (
                http_client(opened.gateway.mcp, headers=alice) as hers,
                http_client(opened.gateway.mcp, headers=eve) as other,
            ):
                assert await hers.text("one__whoami") == "alice"
                refused = await other.call("one__whoami")
                assert refused["isError"]
                assert f"sign in at {opened.gateway.url}/connect/" in refused["content"][0]["text"]
                assert await hers.text("one__whoami") == "alice"


@pytest.mark.scenario("sign-in: A server is said to need a sign-in to whoever has none")
async def test_an_edit_of_its_entry_does_not_sign_in(tmp_path: Path) -> None:
    """A server that everybody was signed out of waits for a sign-in also after its entry was edited, and is there with
    its tools once somebody has signed in."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        async with open_signed_in(tmp_path, {"one": guarded.entry}) as opened:
            person, board = opened.person("one"), opened.gateway.board
            await eventually(lambda: board.registry.server("one"))
            await person.sign_out()
            await eventually(lambda: board.servers["one"].state == "needs_auth")
            await opened.gateway.configure({"one": {**guarded.entry, "oauth": {"params": {"prompt": "login"}}}})
            await board.discovery.settle("one")
            assert await person.is_wanted()
            await person.sign_in()
            await eventually(lambda: board.servers["one"].state == "connected")


async def say_who(opened: SignedIn, version: str, headers: dict[str, str]) -> set[str]:
    """Whom the server takes a caller for, over many calls."""
    async with http_client(opened.gateway.mcp, version, headers=headers) as client:
        said: set[str] = set()
        for _ in range(CALLS // 10):
            said |= set(await asyncio.gather(*(client.text("one__whoami") for _ in range(10))))
        return said
