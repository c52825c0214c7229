"""A server that each user signs in to: everybody's calls go over connections of their own, with their own tokens."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bearers import Headers, bearer_client, principal_of
from harness import Gateway, RawClient, eventually, open_gateway
from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.servers import connections
from pegboard.servers.server import Server
from pegboard.servers.server_state import ServerState
from servers.protected import Door, Grant
from servers.toy import Settings
from servers.toy_http import HttpToy, Manners, http_toy

pytestmark = pytest.mark.anyio

VERSIONS = ("2025-11-25", "2026-07-28")
ERAS = ("handshake", "modern")
CALLS = 120
RESOURCE = "toy://toy/text"


@dataclass
class Users:
    """A gateway before a protected server, and who is signed in to it."""

    gateway: Gateway
    toy: HttpToy
    door: Door
    # By the principal's id.
    grants: dict[str, Grant] = field(default_factory=dict[str, Grant])
    # Whether lists can be had with nobody's token.
    names: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def server(self) -> Server:
        return self.gateway.board.servers["safe"]

    def authorize(self, _spec: ServerSpec, principal_id: str | None) -> Grant:
        """Lists are had with the token of anybody who has one."""
        if principal_id is None:
            return next((grant for grant in self.grants.values() if grant.token), Grant(lambda: None))
        return self.grants.setdefault(principal_id, Grant(lambda: None))

    async def add(self, name: str, *, signed_in: bool = True) -> Headers:
        """A user with a token for the gateway, and perhaps one for the server."""
        headers = await self.gateway.token(name)
        self.names[name] = principal_of(self.gateway, headers).id
        if signed_in:
            await self.sign_in(name)
        return headers

    async def sign_in(self, name: str) -> None:
        self.grants[self.names[name]] = Grant(lambda: self.door.current(name), self.door.issue(name))
        await self.server.on_signed_in(self.names[name])

    async def sign_out(self, name: str) -> None:
        self.grants[self.names[name]] = Grant(lambda: None)
        await self.server.on_signed_out(self.names[name])


@contextlib.asynccontextmanager
async def protected_server(tmp_path: Path, era: str, **settings: Any) -> AsyncGenerator[Users]:
    """A server that each user signs in to."""
    door = Door()
    with http_toy(Settings(era=era, **settings), Manners(door=door)) as toy:
        async with open_gateway(tmp_path, {"safe": {"type": "http", "url": toy.url}}) as gateway:
            users = Users(gateway, toy, door)
            board = gateway.board
            board.configured.authorize = users.authorize
            spec = replace(board.settings.servers["safe"], oauth=OAuthSettings(per="user"))
            await board.apply(replace(board.settings, servers={"safe": spec}))
            yield users


async def call(client: RawClient, *, full: bool = False, **arguments: Any) -> Any:
    on_progress = {"on_progress": lambda _: None} if full else {}
    result = await client.call("safe__echo", arguments, **on_progress)
    return json.loads(result["content"][0]["text"])


async def test_each_session_of_each_user_has_a_connection(tmp_path: Path) -> None:
    """With `instance: session` the sessions of one user share no connection, and each brings that user's token."""
    async with protected_server(tmp_path, "handshake") as users, contextlib.AsyncExitStack() as stack:
        board = users.gateway.board
        own = replace(board.settings.servers["safe"], instance="session")
        await board.apply(replace(board.settings, servers={"safe": own}))
        names = ("ada", "ada", "bob")
        headers = {name: await users.add(name) for name in ("ada", "bob")}
        clients = [
            await stack.enter_async_context(bearer_client(users.gateway, headers[name], VERSIONS[0])) for name in names
        ]
        for client in clients:
            await client.until_in("tools", "safe__echo")
        before = users.door.admitted["initialize"]
        for turn in range(2):
            for name, client in zip(names, clients, strict=True):
                assert await call(client, n=turn, who=name) == {"n": turn, "who": name}
        assert users.door.admitted["initialize"] - before == len(clients)
        assert all(users.door.tokens[token] == arguments["who"] for arguments, token in users.door.calls)


@pytest.mark.parametrize("era", ERAS)
async def test_each_call_brings_its_callers_token(tmp_path: Path, era: str) -> None:
    """Mixed calls of two users by both paths and in both eras: the server never sees one with the other's token, though
    tokens change meanwhile."""
    async with protected_server(tmp_path, era) as users, contextlib.AsyncExitStack() as stack:
        clients: list[tuple[str, RawClient]] = []
        for name in ("ada", "bob"):
            headers = await users.add(name)
            clients += [
                (name, await stack.enter_async_context(bearer_client(users.gateway, headers, version)))
                for version in VERSIONS
            ]
        await clients[0][1].until_in("tools", "safe__echo")

        async def work(name: str, client: RawClient, *, full: bool) -> None:
            for number in range(CALLS // 8):
                asked = {"who": name, "n": number}
                assert await call(client, full=full, **asked) == asked

        async with asyncio.TaskGroup() as group:
            for name, client in clients:
                for full in (False, True):
                    group.create_task(work(name, client, full=full))
            await eventually(lambda: len(users.door.calls) > CALLS // 4)
            users.door.issue("ada")
        assert all(token.endswith(f"-of-{arguments['who']}") for arguments, token in users.door.calls)
        assert len(users.door.calls) == CALLS // 8 * 8


@pytest.mark.parametrize("era", ERAS)
async def test_who_is_not_signed_in_is_told_so_alone(tmp_path: Path, era: str) -> None:
    """A user without a token is told where to sign in, and nobody's token is used for them; others go on."""
    async with protected_server(tmp_path, era) as users:
        ada, bob = await users.add("ada"), await users.add("bob", signed_in=False)
        async with bearer_client(users.gateway, ada) as first, bearer_client(users.gateway, bob) as second:
            await second.until_in("tools", "safe__echo")
            assert await call(first, n=1) == {"n": 1}
            for full in (False, True):
                answer = await call(second, full=full, n=2)
                assert answer["error"]["message"].startswith("safe wants a sign-in: sign in at http://")
                assert users.server.state is ServerState.CONNECTED
                assert users.server.last_error is None
            assert await call(first, n=3) == {"n": 3}
            assert [arguments["n"] for arguments, _ in users.door.calls] == [1, 3]
            await users.sign_in("bob")
            assert await call(second, n=4) == {"n": 4}
            # Who signs out ends nobody else's.
            await users.sign_out("bob")
            assert users.server.state is ServerState.CONNECTED
            assert await call(first, n=5) == {"n": 5}
            assert "error" in await call(second, n=6)


async def test_server_that_nobody_is_signed_in_to_needs_a_sign_in(tmp_path: Path) -> None:
    """Without any token the state says so; with one it is discovered, and when that is gone the tools stay listed."""
    async with protected_server(tmp_path, "handshake") as users:
        ada = await users.add("ada", signed_in=False)
        async with bearer_client(users.gateway, ada) as client:
            assert "error" in await call(client, n=1)
            await eventually(lambda: users.server.state is ServerState.NEEDS_AUTH)
            await users.sign_in("ada")
            await client.until_in("tools", "safe__echo")
            assert await call(client, n=2) == {"n": 2}
            await users.sign_out("ada")
            assert (users.server.state, users.server.is_connected) == (ServerState.NEEDS_AUTH, False)
            assert "safe__echo" in await client.names()


async def test_update_reaches_its_user_alone(tmp_path: Path) -> None:
    """What a server says on one user's connection is for that user, also where both subscribed to the same."""
    features = ["tools", "resources"]
    async with protected_server(tmp_path, "handshake", features=features) as users:
        ada, bob = await users.add("ada"), await users.add("bob")
        async with bearer_client(users.gateway, ada) as first, bearer_client(users.gateway, bob) as second:
            for client in (first, second):
                await client.until_in("resources", RESOURCE)
                await client.request("resources/subscribe", {"uri": RESOURCE})
            # Theirs, and the one of the list for all.
            await eventually(lambda: len(users.toy.standing) == 3)
            for stream in users.toy.standing:
                params = {"uri": RESOURCE}
                stream.put({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
            for client in (first, second):
                await client.until_heard("notifications/resources/updated")
            assert [len(each.said("notifications/resources/updated")) for each in (first, second)] == [1, 1]


@pytest.mark.parametrize("era", ERAS)
async def test_what_one_has_is_in_no_list_of_others(tmp_path: Path, era: str) -> None:
    """Resources, templates and prompts are listed for whoever has signed in; tools for all, as long as they are the
    same."""
    features = ["tools", "resources", "prompts", "templates"]
    async with protected_server(tmp_path, era, features=features) as users:
        ada, bob = await users.add("ada"), await users.add("bob", signed_in=False)
        async with bearer_client(users.gateway, ada) as first, bearer_client(users.gateway, bob) as second:
            await second.until_in("tools", "safe__echo")
            await first.until_in("resources", RESOURCE)
            assert (await first.request("resources/templates/list"))["resourceTemplates"]
            assert (await first.request("prompts/list"))["prompts"]
            assert (await second.request("resources/list"))["resources"] == []
            assert (await second.request("resources/templates/list"))["resourceTemplates"] == []
            assert (await second.request("prompts/list"))["prompts"] == []


async def test_what_one_has_read_is_nobody_elses(tmp_path: Path) -> None:
    """A resource of such a server is never marked as public, whatever the server says."""
    async with protected_server(tmp_path, "modern", features=["tools", "resources"]) as users:
        users.door.resource = {
            "resultType": "complete", "cacheScope": "public", "ttlMs": 60_000,
            "contents": [{"uri": RESOURCE, "text": "mine"}],
        }  # fmt: skip
        ada = await users.add("ada")
        async with bearer_client(users.gateway, ada, "2026-07-28") as client:
            await client.until_in("resources", RESOURCE)
            read = await client.request("resources/read", {"uri": RESOURCE})
            assert (read["contents"][0]["text"], read["cacheScope"]) == ("mine", "private")
            assert (await client.request("tools/list"))["cacheScope"] == "private"


async def test_longest_unused_connection_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More users than there may be connections share them by turns; nobody is turned away."""
    monkeypatch.setattr(connections, "MOST_SESSIONS", 2)
    async with protected_server(tmp_path, "handshake") as users, contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(bearer_client(users.gateway, await users.add(name)))
            for name in ("ada", "bob", "cyd")
        ]
        for number in range(6):
            assert await call(clients[number % 3], n=number) == {"n": number}
        await eventually(lambda: len(users.toy.sessions) <= 3)
