"""Grants are renewed once, used after a restart, and lost for no other reason than that they were ended."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from auth.provider import open_provider
from harness import LIMIT
from oauth.grant_stage import (
    KEY,
    Desk,
    TokenProxy,
    let_expire,
    make_spec,
    open_desk,
    protected_toy,
    refused,
    send_through,
    sign_in,
    token_proxy,
    usable,
    wait_for,
)
from pegboard.result import ToolFailure
from pegboard.servers.authorization import Authorization
from servers.toy_http import HttpToy

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage on PostgreSQL wants one."""
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", KEY)


@pytest.fixture(scope="module")
def issuer() -> Generator[str]:
    """An authorization server that takes a refresh token which comes twice for stolen."""
    with open_provider() as issuer:
        yield issuer


@pytest.fixture
def server(issuer: str) -> Generator[HttpToy]:
    """A server that wants its tokens."""
    with protected_toy(issuer) as toy:
        yield toy


@pytest.fixture
def proxy(issuer: str) -> Generator[TokenProxy]:
    """What stands before the token endpoint."""
    with token_proxy(f"{issuer}/token") as proxy:
        yield proxy


@pytest.fixture
async def desk(place: str, server: HttpToy, proxy: TokenProxy) -> AsyncGenerator[Desk]:
    """A gateway that is signed in, on each database in turn."""
    async with open_desk(place, make_spec(server.url)) as desk:
        await sign_in(desk)
        await send_through(desk, proxy)
        yield desk


@pytest.fixture
async def local(tmp_path: Path, server: HttpToy, proxy: TokenProxy) -> AsyncGenerator[Desk]:
    """The same, on SQLite."""
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", make_spec(server.url)) as desk:
        await sign_in(desk)
        await send_through(desk, proxy)
        yield desk


async def prepare_in_time(token: Authorization) -> None:
    """As a caller does who waits for as long as they are told."""
    with anyio.fail_after(LIMIT):
        while True:
            try:
                await token.prepare()
            except ToolFailure as exc:
                await asyncio.sleep(exc.error.retry_after + 0.01)
            else:
                return


@pytest.mark.scenario("grants: A grant is renewed once for all who wait")
async def test_all_who_wait_for_a_token_wait_for_one_request(desk: Desk, proxy: TokenProxy) -> None:
    """Sixty-four calls find their token expired: the authorization server is asked once."""
    await let_expire(desk)
    await desk.oauth.logins()
    tokens = [desk.token() for _ in range(64)]
    with anyio.fail_after(LIMIT):
        await asyncio.gather(*(token.prepare() for token in tokens))
    assert (proxy.asked, proxy.errors) == (1, [])
    assert len({token.header for token in tokens}) == 1
    assert usable(await desk.kept()).header == tokens[0].header
    assert desk.metrics.oauth_refreshes == {("notes", "ok"): 1}


@pytest.mark.scenario("grants: A grant is renewed once for all who wait")
async def test_all_who_were_refused_wait_for_one_request(local: Desk, proxy: TokenProxy) -> None:
    """Sixty-four calls are refused with the same token: one renewal, and each is worth sending again."""
    token = local.token()
    await token.prepare()
    used = token.header
    await local.oauth.logins()
    answers = await asyncio.gather(*(token.renew(refused(), used) for _ in range(64)))
    assert (all(answers), proxy.asked) == (True, 1)
    assert token.header != used


async def test_a_server_that_refuses_every_token_is_not_given_one_after_another(local: Desk, proxy: TokenProxy) -> None:
    """A token that was given a moment ago is not renewed because it is refused, too."""
    token = local.token()
    await token.prepare()
    assert await token.renew(refused(), token.header)
    for _ in range(20):
        assert not await token.renew(refused(), token.header)
    assert proxy.asked == 1
    need = token.needs_sign_in()
    assert need is not None
    assert need.reason == "revoked"


@pytest.mark.scenario("grants: A token is renewed ahead while it is used")
async def test_a_token_is_renewed_ahead_while_it_is_used(local: Desk, proxy: TokenProxy) -> None:
    """A token that is in use is never over, and each renewal is one request."""
    # Renewed a second and more before it is over: a busy machine needs some of that.
    proxy.change = lambda members: {**members, "expires_in": 6}
    await let_expire(local)
    await local.oauth.logins()
    token = local.token()
    await token.prepare()
    first = token.version
    with anyio.fail_after(LIMIT):
        while token.version < first + 2:
            assert token.is_fresh
            await asyncio.sleep(0.02)
    assert (proxy.asked, proxy.errors) == (token.version - first + 1, [])


async def test_a_token_that_nobody_uses_is_not_renewed(local: Desk, proxy: TokenProxy) -> None:
    """Time alone asks nobody; the next call has it renewed first."""
    proxy.change = lambda members: {**members, "expires_in": 1}
    await let_expire(local)
    await local.oauth.logins()
    token = local.token()
    await token.prepare()
    over_at = usable(await local.kept()).expires_at or 0.0
    await wait_for(lambda: time.time() > over_at)
    assert proxy.asked == 1
    await token.prepare()
    assert proxy.asked == 2


async def test_a_token_without_an_end_is_renewed_when_it_is_refused(local: Desk, proxy: TokenProxy) -> None:
    """Without expires_in a token counts as good until the server says otherwise."""
    proxy.change = lambda members: {name: value for name, value in members.items() if name != "expires_in"}
    await let_expire(local)
    await local.oauth.logins()
    token = local.token()
    await token.prepare()
    assert usable(await local.kept()).expires_at is None
    assert token.is_fresh
    with anyio.fail_after(LIMIT):
        # One that was given a moment ago is not replaced at once.
        while not await token.renew(refused(), token.header):
            await asyncio.sleep(0.05)
    assert proxy.asked == 2


TROUBLE = {
    "too many": (429, {"retry-after": "1"}, b'{"error": "slow_down"}'),
    "broken": (503, {}, b""),
    "garbage": (200, {"content-type": "text/html"}, b"<html>Welcome!</html>"),
    "an error without a name": (400, {}, b"no"),
    "another error": (400, {"content-type": "application/json"}, b'{"error": "invalid_scope"}'),
}


@pytest.mark.parametrize("kind", TROUBLE)
@pytest.mark.scenario("grants: Trouble of an authorization server keeps the grant")
async def test_trouble_keeps_the_grant(local: Desk, proxy: TokenProxy, kind: str) -> None:
    """Whatever is no end of the grant keeps it: the call is told so, and later ones work."""
    await let_expire(local)
    await local.oauth.logins()
    token = local.token()
    proxy.answers = [TROUBLE[kind]]
    with pytest.raises(ToolFailure, match="cannot be renewed now") as failed:
        await token.prepare()
    assert failed.value.error.retryable
    # Nobody is asked again before it is time.
    with pytest.raises(ToolFailure):
        await token.prepare()
    assert proxy.asked == 1
    assert (await local.kept()).is_live
    assert token.needs_sign_in() is None
    await prepare_in_time(token)
    assert token.header == usable(await local.kept()).header
    assert proxy.errors == []


@pytest.mark.scenario("grants: Trouble of an authorization server keeps the grant")
async def test_trouble_while_a_token_is_good_is_no_concern_of_calls(local: Desk, proxy: TokenProxy) -> None:
    """A renewal ahead that fails is tried again later; meanwhile the token of before is used."""
    grant = usable(await local.kept())
    await local.change(expires_at=time.time() + 10, lifetime=60.0)
    await local.oauth.logins()
    proxy.answers = [TROUBLE["broken"]]
    token = local.token()
    await token.prepare()
    await wait_for(lambda: token.is_fresh and proxy.asked == 2)
    await wait_for(lambda: token.header != grant.header)
    assert proxy.errors == []


@pytest.mark.scenario("grants: Trouble of an authorization server keeps the grant")
async def test_the_pause_that_is_asked_for_is_made(local: Desk, proxy: TokenProxy) -> None:
    """Retry-After counts where it is longer than our own pause."""
    await let_expire(local)
    await local.oauth.logins()
    proxy.answers = [(429, {"retry-after": "100"}, b"")]
    with pytest.raises(ToolFailure) as failed:
        await local.token().prepare()
    assert 90 < failed.value.error.retry_after <= 100


@pytest.mark.scenario("grants: A grant that was ended needs a sign-in, and says why")
async def test_a_grant_that_was_ended_needs_a_sign_in(desk: Desk, proxy: TokenProxy) -> None:
    """invalid_grant ends it, with a reason for people, and nobody is asked again."""
    await let_expire(desk)
    await desk.oauth.logins()
    proxy.answers = [(400, {"content-type": "application/json"}, b'{"error": "invalid_grant"}')]
    token = desk.token()
    await token.prepare()
    assert token.header is None
    need = token.needs_sign_in()
    assert need is not None
    assert need.reason == "revoked"
    (login,) = await desk.oauth.logins()
    assert (login.state, "invalid_grant" in login.reason) == ("revoked", True)
    for _ in range(3):
        await token.prepare()
        assert not await token.renew(refused(), None)
    assert proxy.asked == 1
    assert desk.metrics.oauth_refreshes == {("notes", "ended"): 1}
    assert desk.metrics.oauth_grants == {"revoked": 1}
    assert [note[0] for note in desk.notes] == ["signin.begun", "signin.done", "signin.lost"]
    assert desk.changes[-1] == ("notes", "", "ended")


@pytest.mark.scenario("grants: A grant that was ended needs a sign-in, and says why")
async def test_an_answer_that_was_lost_ends_in_a_sign_in(local: Desk, proxy: TokenProxy) -> None:
    """The authorization server has rotated the token, and nobody has the new one: no loop, but a reason."""
    await let_expire(local)
    await local.oauth.logins()
    token = local.token()
    proxy.answers = [None]
    with pytest.raises(ToolFailure):
        await token.prepare()
    assert (await local.kept()).is_live
    await prepare_in_time(token)
    assert (proxy.asked, proxy.errors) == (2, ["invalid_grant"])
    (login,) = await local.oauth.logins()
    assert "a renewal was interrupted" in login.reason
    await token.prepare()
    assert proxy.asked == 2


@pytest.mark.scenario("grants: A restart uses the refresh token that is kept")
async def test_a_restart_uses_what_is_kept(place: str) -> None:
    """With an expired token there is one request, by the metadata that are kept: the authorization server is under a
    path, and the server that names it is away."""
    with open_provider(path="/tenant/one") as issuer, token_proxy(f"{issuer}/token") as proxy:
        with protected_toy(issuer) as server:
            spec = make_spec(server.url)
            async with open_desk(place, spec) as before:
                await sign_in(before)
                await send_through(before, proxy)
                await let_expire(before)
        async with open_desk(place, spec) as after:
            token = after.token()
            await token.prepare()
            assert token.header == usable(await after.kept()).header
            assert (proxy.asked, proxy.errors) == (1, [])
            assert after.changes == []


async def test_a_good_token_is_used_after_a_restart_without_asking(local: Desk, tmp_path: Path) -> None:
    """What is not expired needs nobody."""
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", local.specs["notes"]) as after:
        token = after.token()
        assert token.header is None
        await token.prepare()
        assert token.header == usable(await local.kept()).header
        assert after.metrics.oauth_refreshes == {}


@pytest.mark.parametrize(
    "other",
    [{"issuer": "https://other.example"}, {"resource": "https://other.example"}, {"client_id": "another"}],
    ids=lambda other: next(iter(other)),
)
@pytest.mark.scenario("grants: A token goes to the server that it was given for alone")
async def test_a_grant_of_another_config_is_not_used(local: Desk, tmp_path: Path, other: dict[str, str]) -> None:
    """Another issuer, resource or client than the grant was given for: its token goes nowhere."""
    spec = make_spec(local.specs["notes"].url or "", **other)
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as after:
        await after.token().prepare()
        assert after.token().header is None


@pytest.mark.scenario("grants: A token goes to the server that it was given for alone")
async def test_a_token_goes_to_no_other_address(local: Desk) -> None:
    """A server that moved has to be signed in to anew, also while the gateway runs."""
    token = local.token()
    await token.prepare()
    assert token.header is not None
    local.specs["notes"] = replace(local.specs["notes"], url="http://127.0.0.1:1/mcp")
    assert local.token() is token
    assert token.header is None


@pytest.mark.scenario("grants: A token goes to the server that it was given for alone")
async def test_a_grant_cannot_be_pointed_elsewhere_in_the_database(local: Desk, tmp_path: Path) -> None:
    """For which server, issuer and resource it is, is sealed: what stands beside the seal gets nobody the token."""
    elsewhere = "http://127.0.0.1:1/mcp"
    with sqlite3.connect(tmp_path / "pegboard.db") as connection:
        connection.execute("UPDATE oauth_grants SET url = ?, issuer = ?, resource = ?", (elsewhere,) * 3)
    connection.close()
    for settings in ({}, {"issuer": elsewhere}, {"resource": elsewhere}):
        spec = make_spec(local.specs["notes"].url or "" if settings else elsewhere, **settings)
        async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as after:
            await after.token().prepare()
            assert after.token().header is None


async def test_a_token_that_cannot_be_renewed_is_used_until_it_is_refused(local: Desk) -> None:
    """Without a refresh token the server is the judge; then somebody has to sign in."""
    await local.change(refresh_token=None)
    token = local.token()
    await token.prepare()
    used = token.header
    assert used is not None
    assert not await token.renew(refused(scope="mcp"), used)
    need = token.needs_sign_in()
    assert need is not None
    assert (need.reason, need.scopes[:1]) == ("expired", ("mcp",))
    assert token.header is None
    assert [login.state for login in await local.oauth.logins()] == ["expired"]


async def test_a_client_that_is_refused_keeps_its_grant(local: Desk, proxy: TokenProxy) -> None:
    """invalid_client says nothing of the grant; the next sign-in registers anew."""
    client = usable(await local.kept()).client
    await let_expire(local)
    await local.oauth.logins()
    proxy.answers = [(401, {"content-type": "application/json"}, b'{"error": "invalid_client"}')]
    token = local.token()
    with pytest.raises(ToolFailure):
        await token.prepare()
    need = token.needs_sign_in()
    assert need is not None
    assert need.reason == "client"
    assert (await local.kept()).is_live
    await sign_in(local)
    assert usable(await local.kept()).client.client_id != client.client_id
    assert token.needs_sign_in() is None


@pytest.mark.scenario("grants: Step-up asks for all scopes together, and once")
async def test_step_up_is_offered_once(local: Desk) -> None:
    """A 403 that wants more asks for all of it together; what was asked for in vain is not asked for again."""
    token = local.token()
    await token.prepare()
    used = token.header
    wants = refused(403, error="insufficient_scope", scope="x.write")
    assert not await token.renew(wants, used)
    need = token.needs_sign_in()
    assert need is not None
    assert need.reason == "scope"
    assert {"mcp", "x.write"} <= set(need.scopes)
    # Other calls go on.
    assert (token.is_fresh, token.header) == (True, used)
    await sign_in(local)
    assert {"mcp", "x.write"} <= set(usable(await local.kept()).requested)
    assert token.needs_sign_in() is None
    assert token.header != used
    assert await token.renew(wants, used)
    assert not await token.renew(wants, token.header)
    assert token.needs_sign_in() is None


@pytest.mark.scenario("grants: What other processes do to a grant is noticed")
async def test_what_others_do_is_noticed(desk: Desk, place: str) -> None:
    """A sign-out and a sign-in in another process are in force here within moments."""
    token = desk.token()
    await token.prepare()
    assert token.header is not None
    async with open_desk(place, desk.specs["notes"]) as other:
        assert await other.oauth.logout("notes", "")
        await wait_for(lambda: token.header is None)
        assert desk.changes[-1] == ("notes", "", "signed_out")
        assert not await token.renew(refused(), None)
        await sign_in(other)
        await wait_for(lambda: token.header is not None)
        assert desk.changes[-1] == ("notes", "", "signed_in")


async def test_the_clock_of_another_machine_does_not_matter(desk: Desk, place: str) -> None:
    """A token that another process had a moment ago is a new one, though it is over by our clock."""
    token = desk.token()
    await token.prepare()
    async with open_desk(place, desk.specs["notes"]) as other:
        access = f"{usable(await other.kept()).access_token}.other"
        await other.change(access_token=access, expires_at=time.time() - 1000, lifetime=600.0)
        await wait_for(lambda: token.header == f"Bearer {access}")
    assert token.is_fresh


@pytest.mark.scenario("grants: Tokens that cannot be kept are not lost")
async def test_tokens_that_cannot_be_kept_are_not_lost(local: Desk, proxy: TokenProxy, tmp_path: Path) -> None:
    """Where the storage does not take them they are used at once, and kept as soon as it does."""
    await let_expire(local)
    await local.oauth.logins()
    with sqlite3.connect(tmp_path / "pegboard.db") as raw:
        raw.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF sealed ON oauth_grants BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    token = local.token()
    await token.prepare()
    assert token.header is not None
    assert usable(await local.kept()).header != token.header
    with sqlite3.connect(tmp_path / "pegboard.db") as raw:
        raw.execute("DROP TRIGGER full")
    with anyio.fail_after(LIMIT):
        while usable(await local.kept()).header != token.header:
            await asyncio.sleep(0.05)
    assert (proxy.asked, proxy.errors) == (1, [])


@pytest.mark.scenario("grants: A process that is killed while it renews keeps nobody waiting")
async def test_a_lease_of_one_who_died_is_waited_for(desk: Desk, proxy: TokenProxy) -> None:
    """While somebody else renews nobody asks; once their time is over, one does."""
    await let_expire(desk)
    await desk.oauth.logins()
    version = (await desk.kept()).version
    assert await desk.storage.oauth.take_lease("notes", "", version, "the dead", 1.5)
    began = time.monotonic()
    with anyio.fail_after(LIMIT):
        await desk.token().prepare()
    assert time.monotonic() - began > 1.0
    assert (proxy.asked, proxy.errors) == (1, [])


async def test_a_machine_needs_nobody(place: str, server: HttpToy) -> None:
    """With client credentials the first 401 has a token fetched, and so has each that is over."""
    spec = make_spec(server.url, flow="client_credentials", client_id="machine", client_secret="a-secret-of-the-tests")
    async with open_desk(place, spec) as desk, open_desk(place, spec) as other:
        tokens = [desk.token(), other.token()]
        for token in tokens:
            await token.prepare()
            assert token.header is None
        assert await asyncio.gather(*(token.renew(refused(scope="mcp"), None) for token in tokens)) == [True, True]
        assert tokens[0].header == tokens[1].header
        total = desk.metrics.oauth_refreshes + other.metrics.oauth_refreshes
        assert total == {("notes", "ok"): 1}
        used = tokens[0].header
        await let_expire(desk)
        await desk.oauth.logins()
        await tokens[0].prepare()
        assert tokens[0].header not in {None, used}


async def test_nothing_secret_is_shown(local: Desk, proxy: TokenProxy, capsys: pytest.CaptureFixture[str]) -> None:
    """No repr, failure or login has a token in it."""
    grant = usable(await local.kept())
    token = local.token()
    await token.prepare()
    await let_expire(local)
    await local.oauth.logins()
    said = json.dumps({"error": "x", "error_description": f"no {grant.refresh_token}"}).encode()
    proxy.answers = [(400, {"content-type": "application/json"}, said)]
    with pytest.raises(ToolFailure) as failed:
        await token.prepare()
    shown = [repr(each) for each in (token, grant, await local.kept(), local.oauth, await local.oauth.logins())]
    shown += [str(failed.value), repr(failed.value), local.metrics.text([], 0, 0), *capsys.readouterr()]
    for secret in (grant.access_token, grant.refresh_token or ""):
        assert len(secret) > 10
        assert not [text for text in shown if secret in text]
