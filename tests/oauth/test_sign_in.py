"""Sign-ins: one at a time for each server and principal, good for one answer, and for whoever began it."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from auth.provider import browse, open_provider
from harness import LIMIT
from oauth.grant_stage import (
    KEY,
    REDIRECT,
    Desk,
    make_spec,
    open_desk,
    protected_toy,
    sign_in,
    token_proxy,
    usable,
    wait_for,
)
from oauth.test_provider import agree
from pegboard.oauth.authorization_response import AuthorizationRefused, read_query
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.grant import OAuthGrant
from pegboard.oauth.sign_in import Flow
from pegboard.oauth.sign_in_flow import FlowSecrets
from pegboard.oauth.token_answer import GrantRefused
from pegboard.oauth.token_request import refresh
from pegboard.result import Forbidden, ToolFailure
from servers.toy_http import HttpToy

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage on PostgreSQL wants one."""
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", KEY)


@pytest.fixture(scope="module")
def issuer() -> Generator[str]:
    """A real authorization server, whose user agrees to all."""
    with open_provider() as issuer:
        yield issuer


@pytest.fixture
def server(issuer: str) -> Generator[HttpToy]:
    """A server that wants its tokens."""
    with protected_toy(issuer) as toy:
        yield toy


@pytest.fixture
async def desk(tmp_path: Path, server: HttpToy) -> AsyncGenerator[Desk]:
    """A gateway that nobody has signed in with; at the second server everybody signs in for themselves."""
    specs = make_spec(server.url), make_spec(server.url, "mine", per="user")
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", *specs) as desk:
        yield desk


def move(server: HttpToy, other: HttpToy) -> None:
    """A server names the authorization server of another one from now on."""
    handler = other.server.RequestHandlerClass
    server.server.RequestHandlerClass = handler
    setattr(handler, "toy", server)  # noqa: B010  the library has a wider type


def client_in(flow: Flow) -> str:
    return parse_qs(urlsplit(flow.url or "").query)["client_id"][0]


async def begin_url(desk: Desk, name: str = "notes", principal: str = "", redirect: str = REDIRECT) -> str:
    flow = await desk.oauth.sign_ins.begin(desk.specs[name], principal, redirect_uri=redirect)
    assert flow.url is not None
    return flow.url


async def test_a_sign_in_gives_a_token_for_the_server(desk: Desk, issuer: str) -> None:
    """The grant has all that its renewal takes; whoever waits hears of it."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert flow.url is not None
    waits = asyncio.create_task(desk.oauth.sign_ins.watch(flow.id, LIMIT))
    done = await desk.oauth.sign_ins.finish(await browse(flow.url), principal_id=None)
    assert (done.id, done.server, done.state, done.reason) == (flow.id, "notes", "done", "")
    assert (await waits).state == "done"
    token = desk.token()
    await token.prepare()
    assert (token.header or "").startswith("Bearer ey")
    grant = usable(await desk.kept())
    assert (grant.issuer, grant.resource) == (issuer, desk.specs["notes"].url)
    assert (grant.refresh_token, grant.lifetime) != (None, None)
    (login,) = await desk.oauth.logins()
    assert (login.server, login.principal, login.state, "mcp" in login.scopes) == ("notes", "", "live", True)
    assert desk.changes == [("notes", "", "signed_in")]
    assert [note[:3] for note in desk.notes] == [("signin.begun", "ok", "notes"), ("signin.done", "ok", "notes")]


@pytest.mark.scenario("grants: Several sign-ins at once are one")
async def test_several_at_once_are_one(place: str, server: HttpToy) -> None:
    """Four sign-ins in two gateways with different ports: one address, one registration, and all hear of its end."""
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(open_desk(place, make_spec(server.url))) for _ in range(2)]
        redirects = [REDIRECT, REDIRECT.replace("7420", "7421")]
        begun = (
            desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=redirect)
            for desk, redirect in zip(desks, redirects, strict=True)
            for _ in range(2)
        )
        with anyio.fail_after(LIMIT):
            flows = await asyncio.gather(*begun)
        assert len({flow.url for flow in flows}) == len({flow.id for flow in flows}) == 1
        counted = "SELECT count(*) FROM oauth_clients"
        assert await desks[0].storage.database.read(lambda connection: connection.row(counted)) == (1,)
        # Any process may take the answer.
        assert (
            await desks[1].oauth.sign_ins.finish(await browse(flows[0].url or ""), principal_id=None)
        ).state == "done"
        assert (await desks[0].oauth.sign_ins.watch(flows[0].id, LIMIT)).state == "done"
        for desk in desks:
            token = desk.token()
            await token.prepare()
            assert token.header is not None


async def test_a_sign_in_that_waits_is_joined_and_a_new_one_follows_its_end(desk: Desk) -> None:
    """Whoever asks again gets the same address; after it was cancelled, another."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert await begin_url(desk) == flow.url
    await desk.oauth.sign_ins.cancel(flow.id)
    ended = await desk.oauth.sign_ins.watch(flow.id, LIMIT)
    assert (ended.state, ended.reason, ended.url) == ("failed", "it was cancelled", None)
    query = await browse(flow.url or "")
    with pytest.raises(AuthorizationRefused, match="over"):
        await desk.oauth.sign_ins.finish(query, principal_id=None)
    assert await begin_url(desk) != flow.url


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "a client": ({"client_id": "native"}, "was by another client"),
    "scopes": ({"scopes": ["x.write"]}, "did not ask for all of these scopes"),
    "a device code": ({"client_id": "native", "device": True}, "was in a browser"),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.scenario("grants: A sign-in that is asked for in another way replaces the one before, and both hear of it")
async def test_another_sign_in_replaces_the_one_before(desk: Desk, other: str) -> None:
    """Neither what is asked for is forgotten, nor does the one before end without a word."""
    asked, difference = OTHERS[other]
    first = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert first.note == ""
    second = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT, **asked)
    assert second.id != first.id
    assert second.note == f"the sign-in that was under way has been ended, since it {difference}"
    ended = await desk.oauth.sign_ins.watch(first.id, 0)
    assert (ended.state, ended.reason) == ("failed", f"another sign-in was begun, since this one {difference}")
    again = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT, **asked)
    assert (again.id, again.note) == (second.id, "")


@pytest.mark.parametrize(
    ("asked", "difference"),
    [({"client_id": "native"}, "was by another client"), ({"scopes": ["x.write"]}, "asked for further scopes")],
)
@pytest.mark.scenario("grants: A sign-in that is asked for in another way replaces the one before, and both hear of it")
async def test_whoever_asks_for_nothing_special_is_not_given_the_wish_of_another(
    desk: Desk, asked: dict[str, Any], difference: str
) -> None:
    """One that was begun with a client or scopes of its own is not joined by one that names none."""
    special = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT, **asked)
    plain = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert plain.id != special.id
    assert plain.note == f"the sign-in that was under way has been ended, since it {difference}"
    assert "x.write" not in (plain.url or "")
    assert (await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)).id == plain.id


@pytest.mark.scenario("grants: A sign-in that is asked for in another way replaces the one before, and both hear of it")
async def test_another_secret_is_another_client(desk: Desk) -> None:
    """The id alone does not make a client the same."""
    flows = [
        await desk.oauth.sign_ins.begin(
            desk.specs["notes"], "", redirect_uri=REDIRECT, client_id="machine", client_secret=secret
        )
        for secret in ("wrong-secret-of-the-tests", "a-secret-of-the-tests", "a-secret-of-the-tests")
    ]
    assert flows[0].id != flows[1].id == flows[2].id
    assert "another client" in flows[1].note


@pytest.mark.scenario("grants: A sign-in that is asked for in another way replaces the one before, and both hear of it")
async def test_a_sign_in_that_cannot_be_replaced_goes_on(desk: Desk) -> None:
    """Where the one that is asked for cannot even begin, the one before stays as it is."""
    first = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    with pytest.raises(ToolFailure):
        await desk.oauth.sign_ins.begin(
            desk.specs["notes"], "", redirect_uri=REDIRECT, client_id="nobody-knows-this-one", device=True
        )
    assert (await desk.oauth.sign_ins.watch(first.id, 0)).state == "waiting"
    assert (await desk.oauth.sign_ins.finish(await browse(first.url or ""), principal_id=None)).state == "done"


async def test_another_redirect_registers_anew(desk: Desk) -> None:
    """A registration is for one address; the same one is used again."""
    await sign_in(desk)
    first = usable(await desk.kept()).client
    await sign_in(desk)
    assert usable(await desk.kept()).client == first
    await sign_in(desk, redirect="http://127.0.0.1:7499/other/callback")
    assert usable(await desk.kept()).client.client_id != first.client_id


async def test_a_registration_that_nobody_can_use_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An authorization server that has forgotten a client tells the browser alone: later on, another is registered."""
    first = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    await desk.oauth.sign_ins.cancel(first.id)
    again = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert client_in(again) == client_in(first)
    await desk.oauth.sign_ins.cancel(again.id)
    monkeypatch.setattr("pegboard.oauth.client_choice._TRIAL", 0.0)
    third = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert client_in(third) != client_in(first)
    assert (await desk.oauth.sign_ins.finish(await browse(third.url or ""), principal_id=None)).state == "done"
    # One that somebody signed in with stays.
    fourth = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert client_in(fourth) == client_in(third)


@pytest.mark.scenario("grants: The answer of a sign-in is good once, and for whoever began it")
async def test_an_answer_is_good_once(desk: Desk) -> None:
    """The second one is refused, and changes nothing; of two at once one is taken."""
    query = await browse(await begin_url(desk))
    answers = await asyncio.gather(
        *(desk.oauth.sign_ins.finish(query, principal_id=None) for _ in range(4)), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["AuthorizationRefused"] * 3 + ["Flow"]
    version = (await desk.kept()).version
    with pytest.raises(AuthorizationRefused, match="begin anew"):
        await desk.oauth.sign_ins.finish(query, principal_id=None)
    assert (await desk.kept()).version == version


@pytest.mark.parametrize("query", [{}, {"code": "1"}, {"code": "1", "state": ""}, {"code": "1", "state": "forged"}])
async def test_an_answer_to_nothing_is_refused(desk: Desk, query: dict[str, str]) -> None:
    """Without a state that was given out there is nothing to finish."""
    await begin_url(desk)
    with pytest.raises(AuthorizationRefused, match="begin anew"):
        await desk.oauth.sign_ins.finish(query, principal_id=None)


async def test_an_answer_that_comes_too_late_is_refused(desk: Desk) -> None:
    """After ten minutes a sign-in takes no answer."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    assert 590 < flow.expires_at - time.time() <= 600
    query = await browse(flow.url or "")
    row = await desk.storage.oauth.load_flow_by_id(flow.id)
    assert row is not None
    await desk.storage.oauth.save_flow(replace(row, expires_at=time.time() - 1))
    with pytest.raises(AuthorizationRefused, match="over"):
        await desk.oauth.sign_ins.finish(query, principal_id=None)
    ended = await desk.oauth.sign_ins.watch(flow.id, 0)
    assert (ended.state, ended.reason) == ("failed", "nobody answered in time")


@pytest.mark.scenario("grants: The answer of a sign-in is good once, and for whoever began it")
async def test_nobody_finishes_for_somebody_else(desk: Desk) -> None:
    """What alice began bob cannot finish, and it stays good for alice."""
    query = await browse(await begin_url(desk, "mine", "jwt:alice"))
    with pytest.raises(Forbidden, match="somebody else"):
        await desk.oauth.sign_ins.finish(query, principal_id="jwt:bob")
    done = await desk.oauth.sign_ins.finish(query, principal_id="jwt:alice")
    assert (done.state, done.principal) == ("done", "jwt:alice")


@pytest.mark.scenario("grants: Everybody has their own grant")
async def test_everybody_has_their_own(desk: Desk) -> None:
    """Two people, two grants; who has none gets none, and lists are asked for with the first."""
    await sign_in(desk, "mine", "jwt:alice")
    await sign_in(desk, "mine", "jwt:bob")
    tokens = [desk.token("mine", who) for who in ("jwt:alice", "jwt:bob", "jwt:carol")]
    for token in tokens:
        await token.prepare()
    alice, bob, carol = (token.header for token in tokens)
    assert (carol, alice != bob, None in {alice, bob}) == (None, True, False)
    lists = desk.token("mine", None)
    assert (lists.header, lists.is_fresh) == (None, False)
    await lists.prepare()
    assert (lists.header, lists.is_fresh) == (alice, True)
    await desk.oauth.logout("mine", "jwt:alice")
    assert tokens[0].header is None
    assert tokens[1].header == bob
    assert desk.changes[-1] == ("mine", "jwt:alice", "signed_out")


async def test_lists_are_not_asked_for_in_the_name_of_somebody_who_is_gone(desk: Desk) -> None:
    """The grant of somebody whose token was removed is passed over, though it is there yet."""
    await sign_in(desk, "mine", "token:1")
    await sign_in(desk, "mine", "token:2")
    desk.principals.removed.add("token:1")
    second, lists = desk.token("mine", "token:2"), desk.token("mine", None)
    await second.prepare()
    await lists.prepare()
    assert (lists.header, lists.header is None) == (second.header, False)


async def test_a_refusal_is_told(desk: Desk, issuer: str) -> None:
    """Somebody who says no, in the words of the authorization server."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    state = (await browse(flow.url or ""))["state"]
    said = {"error": "access_denied", "error_description": "not today", "state": state, "iss": issuer}
    done = await desk.oauth.sign_ins.finish(said, principal_id=None)
    assert (done.state, done.reason) == ("failed", "the sign-in was declined (access_denied: not today)")
    assert (await desk.oauth.sign_ins.watch(flow.id, 0)).reason == done.reason
    assert await desk.oauth.logins() == []
    assert [note[0] for note in desk.notes] == ["signin.begun", "signin.failed"]


async def test_the_words_of_a_stranger_are_not_told(desk: Desk) -> None:
    """An answer in the name of another issuer: neither its error nor its code counts."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    state = (await browse(flow.url or ""))["state"]
    said = {"error": "visit evil.example", "state": state, "iss": "https://evil.example"}
    done = await desk.oauth.sign_ins.finish(said, principal_id=None)
    assert done.state == "failed"
    assert "evil" not in done.reason


PASTED = {
    "an address": "{redirect}?{query}",
    "blanks around it": "  {redirect}?{query} \r\n",
    "quotes": '"{redirect}?{query}"',
    "other quotes": "'{query}'",
    "angle brackets": "<{redirect}?{query}>",
    "a fragment": "{redirect}?{query}#_=_",
    "a question mark alone": "?{query}",
    "lines of a terminal": "{redirect}?\n  {query}",
}


@pytest.mark.parametrize("way", PASTED)
def test_what_is_pasted_is_read(way: str) -> None:
    """Whole addresses and what stands behind their question mark, as they come out of windows and mails."""
    query = {"code": "a b+c/d", "state": "x_-1", "iss": "http://127.0.0.1:1"}
    text = PASTED[way].format(redirect=REDIRECT, query="code=a+b%2Bc%2Fd&state=x_-1&iss=http%3A%2F%2F127.0.0.1%3A1")
    assert read_query(text) == query


async def test_a_code_is_typed_in_on_another_machine(tmp_path: Path, server: HttpToy) -> None:
    """The gateway asks in the background until somebody has agreed; whoever asks again gets the same code."""
    spec = make_spec(server.url, client_id="native", scopes=("mcp",))
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as desk:
        flow = await desk.oauth.sign_ins.begin(spec, "", redirect_uri=REDIRECT, device=True)
        assert (flow.url, flow.state) == (None, "waiting")
        assert flow.user_code
        again = await desk.oauth.sign_ins.begin(spec, "", redirect_uri=REDIRECT, device=True)
        assert (again.id, again.user_code) == (flow.id, flow.user_code)
        await agree(flow.verification_uri_complete or "")
        done = await desk.oauth.sign_ins.watch(flow.id, LIMIT)
        assert (done.state, done.reason) == ("done", "")
        assert usable(await desk.kept()).flow == "device"
        assert desk.changes == [("notes", "", "signed_in")]


async def test_a_code_that_was_cancelled_is_asked_for_no_longer(tmp_path: Path, server: HttpToy) -> None:
    """Nobody is signed in by a code that nobody wants any more."""
    spec = make_spec(server.url, client_id="native", scopes=("mcp",), flow="device")
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as desk:
        flow = await desk.oauth.sign_ins.begin(spec, "", redirect_uri=REDIRECT)
        await desk.oauth.sign_ins.cancel(flow.id)
        await agree(flow.verification_uri_complete or "")
        await wait_for(lambda: not desk.oauth.sign_ins._tasks)
        assert await desk.oauth.logins() == []


async def test_a_code_of_somebody_who_is_let_in_no_longer_signs_nobody_in(tmp_path: Path, server: HttpToy) -> None:
    """Whoever types it in afterwards is too late, for the gateway asks no more."""
    spec = make_spec(server.url, client_id="native", scopes=("mcp",), flow="device")
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as desk:
        flow = await desk.oauth.sign_ins.begin(spec, "token:1", redirect_uri=REDIRECT)
        desk.principals.removed.add("token:1")
        await desk.oauth.review()
        await agree(flow.verification_uri_complete or "")
        await wait_for(lambda: not desk.oauth.sign_ins._tasks)
        assert await desk.oauth.logins() == []
        assert (await desk.oauth.sign_ins.watch(flow.id, 0)).state == "failed"


async def test_a_sign_in_that_is_cancelled_while_its_tokens_come_keeps_none(desk: Desk) -> None:
    """Whoever cancels while the token endpoint thinks has nobody signed in: what it gives is revoked there."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    query = await browse(flow.url or "")
    row = await desk.storage.oauth.load_flow_by_id(flow.id)
    assert row is not None
    vault, given = desk.oauth._vault, list[dict[str, str]]()
    kept = await vault.open_flow(row)
    with token_proxy(kept.authorization_server.token_endpoint) as proxy:
        slow = replace(kept.authorization_server, token_endpoint=proxy.url)
        await vault.save_flow(row, replace(kept, authorization_server=slow))
        proxy.hold, proxy.change = threading.Event(), lambda members: given.append(members) or members
        finishing = asyncio.create_task(desk.oauth.sign_ins.finish(query, principal_id=None))
        await wait_for(proxy.waiting.is_set)
        await desk.oauth.sign_ins.cancel(flow.id)
        proxy.hold.set()
        ended = await finishing
    assert (ended.state, ended.reason) == ("failed", "it was cancelled: the tokens that came were revoked")
    assert (await desk.oauth.sign_ins.watch(flow.id, 0)).reason == "it was cancelled"
    assert await desk.oauth.logins() == []
    assert desk.notes[-1][0] == "signin.failed"
    await expect_refusal(desk, kept, given[0]["refresh_token"])


async def expect_refusal(desk: Desk, kept: FlowSecrets | OAuthGrant, token: str) -> None:
    """A refresh token was revoked."""
    spec = desk.specs["notes"]
    server, client, resource = kept.authorization_server, kept.client, kept.resource
    with pytest.raises(GrantRefused, match="invalid_grant"):
        await refresh(Fetcher.of(spec), server, client, refresh_token=token, resource=resource)


@pytest.mark.scenario("grants: Signing out revokes, and deletes in any case")
async def test_signing_out_revokes(desk: Desk) -> None:
    """The authorization server takes the refresh token no longer, and nothing is left here."""
    await sign_in(desk)
    grant = usable(await desk.kept())
    token = desk.token()
    await token.prepare()
    assert await desk.oauth.logout("notes", "")
    assert token.header is None
    assert await desk.oauth.logins() == []
    await expect_refusal(desk, grant, grant.refresh_token or "")
    assert desk.notes[-1][:4] == ("signin.ended", "ok", "notes", "revoked")
    assert not await desk.oauth.logout("notes", "")


@pytest.mark.scenario("grants: Signing out revokes, and deletes in any case")
async def test_signing_out_works_while_the_authorization_server_is_away(desk: Desk) -> None:
    """The grant is deleted here, and that it was not revoked there is said."""
    await sign_in(desk)
    server = usable(await desk.kept()).authorization_server
    await desk.change(authorization_server=replace(server, revocation_endpoint="http://127.0.0.1:9/revoke"))
    assert not await desk.oauth.logout("notes", "")
    assert await desk.oauth.logins() == []
    assert desk.notes[-1][:4] == ("signin.ended", "ok", "notes", "deleted here, not revoked there")


@pytest.mark.scenario("grants: Another authorization server is registered with anew")
async def test_another_authorization_server_is_registered_with(tmp_path: Path, issuer: str) -> None:
    """A server that moves to another one is signed in to there, with a client of its own."""
    with open_provider() as second, protected_toy(issuer) as before, protected_toy(second) as after:
        async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", make_spec(before.url)) as desk:
            await sign_in(desk)
            first = usable(await desk.kept())
            # The same server, as far as anybody can tell.
            move(before, after)
            await sign_in(desk)
            grant = usable(await desk.kept())
            assert (grant.issuer, grant.resource) == (second, before.url)
            assert grant.client.client_id != first.client.client_id


@pytest.mark.scenario("grants: Another authorization server is registered with anew")
async def test_a_client_of_the_config_belongs_to_its_authorization_server(tmp_path: Path, issuer: str) -> None:
    """If the server names another one, that is an error: the client is not known there."""
    with open_provider() as second, protected_toy(issuer) as before, protected_toy(second) as after:
        spec = make_spec(before.url, client_id="native")
        async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as desk:
            await sign_in(desk, redirect="http://127.0.0.1:1/callback")
            move(before, after)
            with pytest.raises(ToolFailure, match=r"another authorization server now.*oauth\.issuer"):
                await begin_url(desk, redirect="http://127.0.0.1:1/callback")


async def test_nothing_of_a_sign_in_is_kept_in_clear(desk: Desk, tmp_path: Path) -> None:
    """Neither state, verifier, code nor token stands in the database, its log, or what is shown."""
    flow = await desk.oauth.sign_ins.begin(desk.specs["notes"], "", redirect_uri=REDIRECT)
    row = await desk.storage.oauth.load_flow_by_id(flow.id)
    assert row is not None
    kept = await desk.oauth._vault.open_flow(row)
    assert row.state_hash == hashlib.sha256(kept.state.encode()).hexdigest()
    query = await browse(flow.url or "")
    await desk.oauth.sign_ins.finish(query, principal_id=None)
    grant = usable(await desk.kept())
    hidden = [kept.state, kept.verifier, query["code"], grant.access_token, grant.refresh_token or ""]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 1
    for secret in hidden:
        assert len(secret) > 20
        assert not any(secret.encode() in content for content in files)
        assert secret not in repr((flow, row, kept, grant))


async def test_a_sign_in_ends_though_nobody_waits_for_it(desk: Desk) -> None:
    """A browser that goes away while the code is exchanged costs nobody the grant."""
    query = await browse(await begin_url(desk))
    answer = asyncio.create_task(desk.oauth.sign_ins.finish(query, principal_id=None))
    with anyio.fail_after(LIMIT):
        while not desk.oauth.sign_ins._tasks:
            await asyncio.sleep(0)
        answer.cancel()
        while not await desk.oauth.logins():
            await asyncio.sleep(0.02)
