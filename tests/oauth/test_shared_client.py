"""One client for all servers of an authorization server, and what becomes of one that was registered before."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit

import anyio
import pytest

from harness import LIMIT
from oauth.authority import Authority, open_authority
from oauth.grant_stage import KEY, REDIRECT, Desk, let_expire, make_spec, open_desk, usable
from oauth.guarded_server import GuardedServer, open_guarded
from pegboard.oauth.issuer_addresses import redirect_for

pytestmark = pytest.mark.anyio
NAMES = ("one", "two", "three")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage on PostgreSQL wants one."""
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", KEY)


@pytest.fixture
def authority() -> Generator[Authority]:
    """An authorization server whose user agrees to all."""
    with open_authority() as authority:
        yield authority


@pytest.fixture
def servers(authority: Authority) -> Generator[list[GuardedServer]]:
    """Three servers that want its tokens."""
    with ExitStack() as stack:
        yield [stack.enter_context(open_guarded(authority)) for _ in NAMES]


async def agree(desk: Desk, name: str, authority: Authority) -> str:
    """Sign in to a server; the id of the client."""
    flow = await desk.oauth.sign_ins.begin(desk.specs[name], "", redirect_uri=REDIRECT)
    asked = {key: values[0] for key, values in parse_qs(urlsplit(flow.url or "").query).items()}
    address, _, query = authority.authorize(asked).partition("?")
    done = await desk.oauth.sign_ins.finish(dict(parse_qsl(query)), principal_id=None, came_to=address)
    assert done.state == "done", done.reason
    return asked["client_id"]


@pytest.mark.scenario("sign-in: One client is registered for all servers of an authorization server")
async def test_one_registration_for_all_servers_of_an_issuer(
    place: str, authority: Authority, servers: list[GuardedServer]
) -> None:
    """Three sign-ins at three servers at once, by two gateways: one registration, and each has a grant of its own."""
    specs = [make_spec(server.url, name) for name, server in zip(NAMES, servers, strict=True)]
    async with open_desk(place, *specs) as desk, open_desk(place, *specs) as other:
        with anyio.fail_after(LIMIT):
            clients = await asyncio.gather(
                *(agree(each, name, authority) for each, name in zip((desk, other, desk), NAMES, strict=True))
            )
        assert (authority.asked["register"], len(set(clients))) == (1, 1)
        assert len({usable(await desk.kept(name)).access_token for name in NAMES}) == 3
        # Later on, too.
        assert await agree(desk, "one", authority) == clients[0]
        assert authority.asked["register"] == 1


@pytest.mark.scenario("sign-in: A client that was registered for another address is replaced unnoticed")
async def test_a_client_that_was_registered_before_is_replaced(
    tmp_path: Path, authority: Authority, servers: list[GuardedServer]
) -> None:
    """A grant of a client whose redirect was the same for all is renewed with it; the next sign-in has another."""
    place, url = f"sqlite:{tmp_path / 'pegboard.db'}", servers[0].url
    async with open_desk(place, make_spec(url, redirect_uri=REDIRECT)) as before:
        first = await agree(before, "notes", authority)
        assert authority.clients[first] == [REDIRECT]
        await let_expire(before)
    async with open_desk(place, make_spec(url)) as desk:
        token = desk.token()
        await token.prepare()
        assert token.header is not None
        assert authority.asked["refresh_token"] == 1
        second = await agree(desk, "notes", authority)
        assert authority.clients[second] == [redirect_for(REDIRECT, authority.url)]
        assert first != second
