"""Whoever is let in no longer leaves nothing behind: no sign-in under way, and no grant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from auth.issuer import open_issuer
from harness import LIMIT
from oauth.authority import Authority, open_authority
from oauth.guarded_server import GuardedServer, open_guarded
from oauth.signed_in import SignedIn, open_signed_in
from pegboard.audit.query import AuditQuery

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def authority() -> Generator[Authority]:
    """Whoever asks is granted everything."""
    with open_authority() as authority:
        yield authority


@pytest.fixture(scope="module")
def guarded(authority: Authority) -> Generator[GuardedServer]:
    """A server that wants its tokens."""
    with open_guarded(authority) as guarded:
        yield guarded


@pytest.fixture
async def opened(tmp_path: Path, guarded: GuardedServer) -> AsyncGenerator[SignedIn]:
    """A gateway with a server for which one signs in for all, and one where each does."""
    async with open_signed_in(tmp_path, {}, audit={}) as opened:
        servers = {"shared": guarded.entry, "mine": {**guarded.entry, "oauth": {"per": "user"}}}
        await opened.gateway.configure(servers, audit={})
        yield opened


async def change_token(opened: SignedIn, method: str, **body: Any) -> None:
    answer = await opened.http.request(method, f"{opened.gateway.url}/api/tokens/boss", json=body or None)
    assert answer.is_success, answer.text


async def look(opened: SignedIn, flow: str) -> tuple[str, str]:
    found = await opened.gateway.board.oauth.sign_ins.watch(flow, 0.0)
    return found.state, found.reason


async def logins(opened: SignedIn) -> list[tuple[str, str]]:
    return [(each.server, each.principal) for each in await opened.gateway.board.oauth.logins()]


@pytest.mark.parametrize("how", ["removed", "demoted"])
async def test_a_sign_in_for_all_ends_with_the_admin_who_began_it(opened: SignedIn, how: str) -> None:
    """Without the token, or the right, the answer that comes later is not taken, and nobody is signed in."""
    boss = await opened.gateway.token("boss", admin=True)
    person = opened.person("shared", boss)
    begun = await person.begin()
    if how == "removed":
        await change_token(opened, "DELETE")
    else:
        await change_token(opened, "PATCH", rule={"admin": False})
    page = await person.browse(begun["url"])
    assert page.status_code == 400
    assert await logins(opened) == []
    state, reason = await look(opened, begun["flow"])
    assert (state, "no admin any more" in reason) == ("failed", True)


async def test_a_sign_in_that_is_at_its_last_step_is_refused_too(opened: SignedIn) -> None:
    """Where the flow itself could not be ended before its answer was taken, whoever began it is asked about."""
    boss = await opened.gateway.token("boss", admin=True)
    person = opened.person("shared", boss)
    begun = await person.begin()
    # As if it were removed by another process, a moment ago.
    assert await opened.gateway.board.storage.tokens.remove("boss")
    page = await person.browse(begun["url"])
    assert page.status_code == 400
    assert await logins(opened) == []


@pytest.mark.parametrize("server", ["shared", "mine"])
async def test_a_sign_in_ends_with_its_token(opened: SignedIn, server: str) -> None:
    """Whoever waits for it hears so at once, without any answer."""
    boss = await opened.gateway.token("boss", admin=True)
    begun = await opened.person(server, boss).begin()
    await change_token(opened, "DELETE")
    oauth = opened.gateway.board.oauth
    ended = await oauth.sign_ins.watch(begun["flow"], 20.0)
    assert (ended.state, "not let in any more" in ended.reason) == ("failed", True)


async def test_a_sign_in_for_all_is_finished_by_admins_alone(opened: SignedIn) -> None:
    """Its answer is not taken from somebody else who pastes it at a server of their own; it stays good."""
    eve = await opened.gateway.token("eve")
    local = opened.person("shared")
    begun = await local.begin()
    gone = await opened.http.get(begun["url"])
    answer = await opened.http.post(
        f"{opened.gateway.url}/api/servers/mine/login", json={"callback": gone.headers["location"]}, headers=eve
    )
    assert answer.status_code == 403
    assert await logins(opened) == []
    assert (await local.browse(gone.headers["location"])).status_code == 200
    assert await logins(opened) == [("shared", "")]


@pytest.mark.parametrize(("way", "state"), [("browser", "failed"), ("pasted", "done")])
async def test_an_admin_with_a_jwt_finishes_where_it_is_known(
    opened: SignedIn, guarded: GuardedServer, way: str, state: str
) -> None:
    """A gateway that does not know the JWT takes the answer of a sign-in for all only together with it."""
    with open_issuer() as issuer:
        rule = {"who": ["*"], "admin": True}
        issuers = [{"issuer": issuer.url}]
        await opened.gateway.configure({"shared": guarded.entry}, auth={"issuers": issuers, "rules": [rule]})
        boss = {"authorization": f"Bearer {issuer.sign(aud=opened.gateway.mcp)}"}
        begun = await opened.person("shared", boss).begin()
        address = (await opened.http.get(begun["url"])).headers["location"]
        # Whom its JWTs stand for is found out anew with another config, as in another gateway.
        rules = [rule, {"who": ["local"], "admin": True}]
        await opened.gateway.configure({"shared": guarded.entry}, auth={"issuers": issuers, "rules": rules})
        if way == "browser":
            await opened.http.get(address)
        else:
            url = f"{opened.gateway.url}/api/servers/shared/login"
            await opened.http.post(url, json={"callback": address}, headers=boss)
        assert (await look(opened, begun["flow"]))[0] == state


async def test_a_token_that_is_removed_takes_its_grants_along(opened: SignedIn, authority: Authority) -> None:
    """They are revoked at the authorization server and deleted here; those of others and the gateway's stay."""
    boss, other = await opened.gateway.token("boss", admin=True), await opened.gateway.token("other")
    await opened.person("mine", boss).sign_in()
    theirs = authority.families[-1]
    await opened.person("mine", other).sign_in()
    await opened.person("shared", boss).sign_in()
    before = set(await logins(opened))
    await change_token(opened, "DELETE")
    with anyio.fail_after(LIMIT):
        while not theirs.ended:
            await asyncio.sleep(0.02)
    left = set(await logins(opened))
    assert ("shared", "") in left
    assert [server for server, _ in before - left] == ["mine"]
    assert not any(family.ended for family in authority.families[authority.families.index(theirs) + 1 :])


async def test_records_say_who_signed_in(opened: SignedIn) -> None:
    """A browser finishes it, and the records have whoever began it; what came to nothing too."""
    boss = await opened.gateway.token("boss", admin=True)
    await opened.person("shared", boss).sign_in()
    await opened.person("mine", boss).sign_in()
    begun = await opened.person("shared", boss).begin()
    state = parse_qs(urlsplit(begun["url"]).query)["state"][0]
    page = await opened.http.get(begun["redirect"], params={"error": "access_denied", "state": state})
    assert page.status_code == 400
    found, _ = await opened.gateway.board.audit.find(AuditQuery(limit=50))
    said = [(each.kind, each.server, each.principal) for each in reversed(found) if each.kind.startswith("signin.")]
    assert said == [
        ("signin.begun", "shared", "boss"),
        ("signin.done", "shared", "boss"),
        ("signin.begun", "mine", "boss"),
        ("signin.done", "mine", "boss"),
        ("signin.begun", "shared", "boss"),
        ("signin.failed", "shared", "boss"),
    ]
