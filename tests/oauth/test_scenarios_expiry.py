"""Tokens that expire under way: no call fails, and there is one token request for each."""

from __future__ import annotations

import asyncio
import math
import os
import time
from pathlib import Path

import pytest

from conformance.eras import Era
from harness import LIMIT, MODERN, http_client, open_gateway
from oauth.authority import Authority, open_authority
from oauth.guarded_server import open_guarded
from oauth.person import Person
from oauth.signed_in import open_signed_in

pytestmark = pytest.mark.anyio

LONG = "PEGBOARD_LONG_TESTS" in os.environ
LIFETIME, EXPIRIES, AT_ONCE = (5, 20, 64) if LONG else (2, 2, 8)
# A token is renewed when a fifth of its life is left.
SHARE = 0.8


@pytest.mark.scenario("sign-in: No call fails while tokens expire")
@pytest.mark.both_paths
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("era", "version"), [(Era.HANDSHAKE, "2025-11-25"), (Era.MODERN, MODERN)])
async def test_no_call_fails_while_tokens_expire(tmp_path: Path, era: Era, version: str) -> None:
    """Calls go on through expiries with a stream open, and each expiry costs one token request."""
    with open_authority() as authority, open_guarded(authority, era) as guarded:
        authority.lifetime = LIFETIME
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp, version) as client,
        ):
            began = time.monotonic()

            async def call_on(number: int) -> int:
                calls = 0
                while authority.asked["refresh_token"] < EXPIRIES:
                    # Some are under way for long enough to see the token's end.
                    tool, arguments = ("one__wait", {"seconds": 0.3}) if number % 2 else ("one__whoami", {})
                    assert (await client.call(tool, arguments))["content"][0]["text"] == "alice"
                    calls += 1
                return calls

            calls = await asyncio.gather(*(call_on(number) for number in range(AT_ONCE)))
            most = math.ceil((time.monotonic() - began) / (LIFETIME * SHARE)) + 1
    assert min(calls) > 0
    assert EXPIRIES <= authority.asked["refresh_token"] <= most
    assert authority.asked["reused"] == authority.asked["invalid_grant"] == 0
    assert authority.asked["authorize"] == authority.asked["authorization_code"] == authority.asked["register"] == 1
    if era is Era.HANDSHAKE:
        assert guarded.streams


@pytest.mark.scenario("sign-in: No call fails while tokens expire")
@pytest.mark.both_paths
async def test_many_calls_at_expiry_make_one_token_request(tmp_path: Path) -> None:
    """All that come with an expired token wait for the same renewal."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp) as client,
        ):
            assert await client.text("one__whoami") == "alice"
            # The server takes it back before its time, so that nobody could renew it ahead. One that is refused as
            # soon as it was given would not be renewed at all.
            await asyncio.sleep(0.6)
            expire_all(authority)
            said = await asyncio.gather(*(client.text("one__whoami") for _ in range(64)))
    assert set(said) == {"alice"}
    assert authority.asked["refresh_token"] == 1


@pytest.mark.scenario("sign-in: A restart needs no browser")
@pytest.mark.parametrize("path", ["", "/tenant"])
async def test_a_restart_with_an_expired_token_needs_no_browser(tmp_path: Path, path: str) -> None:
    """The grant of the last run is renewed once, even though nothing can be discovered any more."""
    with open_authority(path) as authority, open_guarded(authority) as guarded:
        async with open_signed_in(tmp_path, {"one": guarded.entry}) as opened:
            await opened.gateway.board.refresh(["one"])
        expire_all(authority)
        authority.metadata = dict
        async with open_gateway(tmp_path, {"one": guarded.entry}) as gateway, http_client(gateway.mcp) as client:
            assert await client.text("one__whoami") == "alice"
    assert authority.asked["refresh_token"] == authority.asked["authorize"] == 1


@pytest.mark.scenario("sign-in: Only a refusal of the grant ends it")
@pytest.mark.parametrize("away", [(429, b"{}"), (503, b"down"), (200, b"<html>"), (500, b'{"error": "server_error"}')])
async def test_a_grant_outlives_a_token_endpoint_that_is_away(tmp_path: Path, away: tuple[int, bytes]) -> None:
    """What is not a refusal of the grant does not end it: it works again once the endpoint does."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp) as client,
        ):
            assert await client.text("one__whoami") == "alice"
            authority.away = away
            expire_all(authority)
            assert (await client.call("one__whoami"))["isError"]
            authority.away = None
            async with asyncio.timeout(LIMIT * 2):
                while (result := await client.call("one__whoami")).get("isError"):
                    await asyncio.sleep(0.2)
    assert result["content"][0]["text"] == "alice"
    assert authority.asked["authorize"] == 1


@pytest.mark.scenario("sign-in: Only a refusal of the grant ends it")
async def test_a_grant_that_was_revoked_wants_a_sign_in(tmp_path: Path) -> None:
    """The tools stay listed, a call says the command, and a new sign-in mends it."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp) as client,
        ):
            assert await client.text("one__whoami") == "alice"
            for family in authority.families:
                family.ended = True
            refused = await client.call("one__whoami")
            assert refused["isError"]
            assert "pegboard login one" in refused["content"][0]["text"]
            assert "one__whoami" in await client.names()
            await Person(opened.http, opened.gateway.url, "one").sign_in()
            assert await client.text("one__whoami") == "alice"
    assert authority.asked["reused"] == 0


def expire_all(authority: Authority) -> None:
    """Let every access token end now."""
    authority.tokens.clear()
