"""Servers that want a sign-in: requests carry a token, a refused one is renewed once, and who has none is told so."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import Gateway, RawClient, eventually, http_client, open_gateway
from pegboard.config import ServerSpec
from pegboard.gateway.fastpath.decline import Decline
from pegboard.servers.errors import RpcError
from pegboard.servers.server import Server
from pegboard.servers.server_state import ServerState
from servers.protected import METADATA, Door, Grant
from servers.toy import Settings
from servers.toy_http import Handler, HttpToy, Manners, http_toy

pytestmark = pytest.mark.anyio

ERAS = ("handshake", "modern")
PATHS = ("fast", "full")
AT_ONCE = 64
ROTATIONS = 20


def is_long() -> bool:
    """Whether tests may take their time."""
    return bool(os.environ.get("PEGBOARD_LONG_TESTS"))


@dataclass
class Stage:
    """A gateway before a protected server, with a client."""

    gateway: Gateway
    client: RawClient
    toy: HttpToy
    door: Door
    grant: Grant

    @property
    def server(self) -> Server:
        return self.gateway.board.servers["safe"]

    async def call(self, path: str, tool: str = "echo", **arguments: Any) -> dict[str, Any]:
        """A call by one of the paths; progress is for the full one."""
        on_progress = {"on_progress": lambda _: None} if path == "full" else {}
        return await self.client.call(f"safe__{tool}", arguments, **on_progress)

    async def good(self, path: str, **arguments: Any) -> None:
        result = await self.call(path, **arguments)
        assert json.loads(result["content"][0]["text"]) == arguments

    async def failure(self, path: str, tool: str = "echo") -> dict[str, Any]:
        result = await self.call(path, tool)
        assert result["isError"] is True
        return json.loads(result["content"][0]["text"])["error"]


@contextlib.asynccontextmanager
async def staged(
    tmp_path: Path, era: str, *, kind: str = "http", door: Door | None = None, **settings: Any
) -> AsyncGenerator[Stage]:
    """Whoever signs in for the gateway has been let in once."""
    door = door or Door()
    grant = Grant(door.current, door.issue())
    manners = Manners(door=door)
    with http_toy(Settings(era=era, tools=["other"], **settings), manners) as toy:
        entry = {"type": kind, "url": toy.sse_url if kind == "sse" else toy.url}
        async with open_gateway(tmp_path, {"safe": entry}) as gateway:
            gateway.board.configured.authorize = lambda _spec, _principal: grant
            await gateway.board.servers["safe"].restart()
            assert (await gateway.board.refresh(["safe"])).success
            async with http_client(gateway.mcp, "2026-07-28" if era == "modern" else "2025-11-25") as client:
                yield Stage(gateway, client, toy, door, grant)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_expired_token_is_renewed_and_the_call_repeated(tmp_path: Path, era: str, path: str) -> None:
    """A 401 in mid-session costs one renewal and one repetition, on each path; the server acts once."""
    async with staged(tmp_path, era) as stage:
        await stage.good(path, n=1)
        declined = stage.gateway.board.metrics.declined.copy()
        stage.door.issue()
        await stage.good(path, n=2)
        assert (stage.door.refused["tools/call"], stage.grant.fetched) == (1, 1)
        assert [arguments["n"] for arguments, _ in stage.door.calls] == [1, 2]
        await stage.good(path, n=3)
        assert stage.server.state is ServerState.CONNECTED
        if path == "fast":
            # None but the one that was refused had to leave the fast path.
            assert stage.gateway.board.metrics.declined - declined == {Decline.HANDED_OVER: 1}
        assert stage.grant.challenges[0].resource_metadata == METADATA


class _ChangingDoor(Door):
    """Whoever has introduced themselves needs another token from then on."""

    is_changing = False

    def __call__(self, handler: Handler, body: bytes) -> bool:
        done = super().__call__(handler, body)
        if self.is_changing and b'"initialize"' in body:
            self.is_changing = False
            self.issue()
        return done


async def test_refused_notification_is_sent_once_more(tmp_path: Path) -> None:
    """A 401 on a notification costs one renewal and one repetition, and nothing of the handshake before it."""
    door = _ChangingDoor()
    async with staged(tmp_path, "handshake", door=door) as stage:
        before, fetched = door.admitted.copy(), stage.grant.fetched
        door.is_changing = True
        await stage.server.restart()
        await stage.good("fast", n=1)
        assert door.refused == {"notifications/initialized": 1}
        new = door.admitted - before
        assert (new["initialize"], new["notifications/initialized"]) == (1, 1)
        assert stage.grant.fetched - fetched == 1


@pytest.mark.parametrize("era", ERAS)
async def test_token_that_is_not_fresh_is_renewed_before_the_call(tmp_path: Path, era: str) -> None:
    """A call whose token is known to have expired waits for the new one and is never refused."""
    async with staged(tmp_path, era) as stage:
        await stage.good("fast", n=1)
        stage.door.issue()
        stage.grant.is_fresh = False
        await stage.good("fast", n=2)
        assert (stage.door.refused["tools/call"], stage.grant.fetched) == (0, 1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_no_call_fails_while_tokens_change(tmp_path: Path, era: str, path: str) -> None:
    """64 calls in flight at each change of the token, with a stream open: none fails, and none is made twice."""
    async with staged(tmp_path, era, capabilities={"tools": {"listChanged": True}}) as stage:
        numbers = itertools.count()
        await stage.good(path, n=next(numbers))
        streams = "GET" if era == "handshake" else "subscriptions/listen"
        await eventually(lambda: stage.door.admitted[streams])
        changes = ROTATIONS if is_long() else 6 if path == "fast" else 3
        for _ in range(changes):
            made = len(stage.door.calls)
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(stage.good(path, n=next(numbers)))
                await eventually(lambda m=made: len(stage.door.calls) > m)
                stage.door.issue()
            # All may have been answered before the change, and none may meet two.
            await stage.good(path, n=next(numbers))
        assert sorted(arguments["n"] for arguments, _ in stage.door.calls) == list(range(next(numbers)))
        assert stage.grant.fetched == changes
        assert (stage.server.state, stage.door.refused[streams]) == (ServerState.CONNECTED, 0)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_who_has_no_other_token_is_told_to_sign_in(tmp_path: Path, era: str, path: str) -> None:
    """The call fails with the command, the state says so, the tools stay listed, and no breaker opens; after a sign-in
    the server is connected at once and discovered."""
    async with staged(tmp_path, era) as stage:
        await stage.good(path, n=1)
        stage.door.close()
        for _ in range(4):
            error = await stage.failure(path)
            assert error["code"] == "TOOL_UNAVAILABLE"
            assert error["message"] == "safe wants a sign-in: pegboard login safe"
            assert stage.server.state is ServerState.NEEDS_AUTH
        assert stage.door.refused["tools/call"] == 1
        assert stage.server.breaker.failures == 0
        assert "safe__echo" in await stage.client.names()
        stage.toy.toy.extra_tools.append("secret")
        stage.door.issue()
        await stage.server.on_signed_in()
        await eventually(lambda: stage.server.state is ServerState.CONNECTED)
        await stage.client.until_in("tools", "safe__secret")
        await stage.good(path, n=2)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_call_is_repeated_once_and_no_more(tmp_path: Path, era: str, path: str) -> None:
    """A server that refuses one new token after another sees each call twice."""
    async with staged(tmp_path, era) as stage:
        await stage.good(path, n=1)
        stage.door.close()
        stage.grant.fetch = lambda: f"useless-{stage.grant.fetched}"
        assert "pegboard login safe" in (await stage.failure(path))["message"]
        assert (stage.door.refused["tools/call"], stage.grant.fetched) == (2, 1)
        assert stage.server.state is ServerState.NEEDS_AUTH


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_missing_scope_is_the_failure_of_that_call(tmp_path: Path, era: str, path: str) -> None:
    """403 insufficient_scope names the scopes and the command; the server stays connected, and other tools go on."""
    async with staged(tmp_path, era) as stage:
        stage.door.scopes["other"] = "write admin"
        await stage.good(path, n=1)
        error = await stage.failure(path, "other")
        assert error["code"] == "TOOL_UNAVAILABLE"
        assert error["message"] == "safe wants more rights for this (scopes: write, admin): pegboard login safe"
        assert stage.grant.challenges[-1].scopes == ("write", "admin")
        assert stage.server.state is ServerState.CONNECTED
        await stage.good(path, n=2)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_forbidden_tool_is_the_failure_of_that_call(tmp_path: Path, era: str, path: str) -> None:
    """403 without a scope is no matter of credentials: nothing is renewed, and the server stays connected."""
    async with staged(tmp_path, era) as stage:
        stage.door.forbidden.add("other")
        await stage.good(path, n=1)
        error = await stage.failure(path, "other")
        assert error["message"] == "safe refused the request (HTTP 403): not for you"
        assert (stage.grant.fetched, stage.grant.challenges) == (0, [])
        assert stage.server.state is ServerState.CONNECTED
        await stage.good(path, n=2)


async def test_standing_stream_is_opened_again_with_another_token(tmp_path: Path) -> None:
    """A stream that ends when its token has expired is refused, renewed and opened; a call is not held up by it."""
    async with staged(tmp_path, "handshake") as stage:
        await eventually(lambda: stage.toy.standing)
        stage.door.issue()
        stage.toy.end_streams()
        await eventually(lambda: stage.door.admitted["GET"] == 2 and stage.toy.standing)
        assert (stage.door.refused["GET"], stage.grant.fetched) == (1, 1)
        await stage.good("fast", n=1)
        stage.toy.toy.extra_tools.append("late")
        stage.toy.toy.broadcast({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await stage.client.until_in("tools", "safe__late")


async def test_interrupted_stream_of_a_call_is_taken_up_with_another_token(tmp_path: Path) -> None:
    """The answer of a call that is fetched piece by piece comes, though its token expires on the way."""
    async with staged(tmp_path, "handshake") as stage:
        stage.toy.manners.polls = 2
        stage.toy.manners.get_stream = False
        calling = asyncio.create_task(stage.good("full", n=1))
        await eventually(lambda: stage.toy.parked)
        stage.door.issue()
        await calling
        assert stage.door.refused["GET"] == 1


@pytest.mark.parametrize("era", ERAS)
async def test_every_request_carries_the_token_from_the_first_to_the_last(tmp_path: Path, era: str) -> None:
    """The handshake, notifications, lists, streams and the end of the session are let in."""
    async with staged(tmp_path, era) as stage:
        await stage.good("full", n=1)
        await stage.server.restart()
        admitted, refused = set(stage.door.admitted), stage.door.refused
        expected = {"server/discover"} if era == "modern" else {"initialize", "notifications/initialized", "DELETE"}
        assert admitted >= {"tools/list", "tools/call"} | expected
        # Before the gateway had any authorization it was refused once.
        assert set(refused) <= {"server/discover", "initialize"}


async def test_handshake_is_repeated_with_another_token(tmp_path: Path) -> None:
    """A server that is connected anew with an expired token is connected all the same."""
    async with staged(tmp_path, "handshake") as stage:
        await stage.server.restart()
        stage.door.issue()
        await stage.good("full", n=1)
        assert stage.grant.fetched == 1
        stage.door.issue()
        # Its end is refused first, and then accepted.
        await stage.server.restart()
        assert (stage.door.refused["DELETE"], stage.toy.sessions) == (1, set())


async def test_older_transport_is_signed_too(tmp_path: Path) -> None:
    """Over HTTP+SSE the stream and the messages carry the token, and one that expired is renewed."""
    async with staged(tmp_path, "handshake", kind="sse") as stage:
        await stage.good("full", n=1)
        stage.door.issue()
        await stage.good("full", n=2)
        assert (stage.door.refused["tools/call"], stage.grant.fetched) == (1, 1)


async def test_sign_out_ends_the_connection(tmp_path: Path) -> None:
    """After a sign-out nothing is open, the state says so, and the tools stay listed."""
    async with staged(tmp_path, "handshake") as stage:
        await stage.good("fast", n=1)
        stage.grant.token, stage.grant.fetch = None, lambda: None
        stage.grant.version += 1
        await stage.server.on_signed_out()
        assert (stage.server.state, stage.server.is_connected) == (ServerState.NEEDS_AUTH, False)
        assert stage.server.last_error == "wants a sign-in: pegboard login safe"
        assert "safe__echo" in await stage.client.names()
        assert "pegboard login safe" in (await stage.failure("fast"))["message"]


@pytest.mark.parametrize("path", PATHS)
async def test_call_under_way_outlives_the_sign_in_of_others(tmp_path: Path, path: str) -> None:
    """A connection that is replaced after a sign-in is closed only when its calls are answered."""
    async with staged(tmp_path, "handshake") as stage:
        stage.toy.toy.settings.tools.append("sleep")
        slow = asyncio.create_task(stage.client.call("safe__sleep", {"seconds": 1}))
        await eventually(lambda: stage.door.admitted["tools/call"] == 1)
        await stage.server.on_signed_in()
        await stage.good(path, n=1)
        assert not (await slow).get("isError")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ERAS)
async def test_token_is_in_no_message(tmp_path: Path, era: str, path: str, caplog: pytest.LogCaptureFixture) -> None:
    """A server that repeats the header in its errors does not get it to anybody."""
    caplog.set_level("DEBUG")
    async with staged(tmp_path, era) as stage:
        await stage.good(path, n=1)
        token = stage.grant.token
        assert token is not None
        stage.door.echoing.add("other")
        with pytest.raises(RpcError) as caught:
            await stage.call(path, "other")
        assert caught.value.message == "I was sent Bearer [redacted]"
        assert caught.value.data == {"sent": ["Bearer [redacted]"]}
        stage.door.close()
        stage.door.headers_of_refusal = {"www-authenticate": f'Bearer error="{token}", scope="{token}"'}
        assert token not in (await stage.failure(path))["message"]
        assert token not in json.dumps([line.text for line in stage.server.log.read(1000)])
        assert token not in caplog.text


async def test_token_stays_with_the_origin(tmp_path: Path) -> None:
    """A redirect to another origin is not followed, whatever the server says."""
    async with staged(tmp_path, "handshake") as stage:
        await stage.good("full", n=1)
        with http_toy(Settings(era="handshake")) as elsewhere:
            stage.toy.manners.redirect = elsewhere.url
            assert "redirects to" in (await stage.failure("full"))["message"]
            assert "redirects to" in (await stage.failure("fast"))["message"]
            assert elsewhere.headers == []


async def test_own_header_is_all_that_is_sent(tmp_path: Path) -> None:
    """A server with an Authorization in its entry is signed by that, and says so when it is refused."""
    asked: list[ServerSpec] = []
    with http_toy(manners=Manners(token="right")) as toy:
        entry = {"type": "http", "url": toy.url, "headers": {"authorization": "Bearer wrong"}}
        async with open_gateway(tmp_path, {"safe": entry}) as gateway, http_client(gateway.mcp) as client:
            gateway.board.configured.authorize = lambda spec, _: asked.append(spec)
            result = await client.call("safe__echo")
            assert 'set \\"headers\\"' in result["content"][0]["text"]
            assert asked == []
