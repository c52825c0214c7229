"""How many sessions there are: nobody locks others out, and what was never used goes soon."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext

from harness import LIMIT, Gateway, eventually, open_gateway
from pegboard.clients.client import Client
from pegboard.clients.sessions import ClientSessions
from pegboard.protocol.eras import LOG_LEVELS, severity
from pegboard.sdk.sessions import IDLE_LIMIT, OPENING_LIMIT, HttpSession

pytestmark = pytest.mark.anyio

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
GREETING = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


class Somebody:
    """A client with credentials of its own, and any number of sessions."""

    def __init__(self, http: httpx2.AsyncClient, headers: dict[str, str]) -> None:
        self._http, self._headers = http, {**ACCEPT, **headers}

    async def open(self) -> str:
        answer = await self._http.post("/mcp", json=GREETING, headers=self._headers)
        assert answer.status_code == 200
        return str(answer.headers["mcp-session-id"])

    async def send(self, session: str, message: dict[str, Any]) -> int:
        headers = {**self._headers, "mcp-session-id": session}
        return (await self._http.post("/mcp", json=message, headers=headers)).status_code


def remaining(gateway: Gateway, session: str) -> float:
    """How long an idle session still lives."""
    scope = gateway.front._manager._server_instances[session].idle_scope
    assert scope is not None
    return scope.deadline - asyncio.get_running_loop().time()


async def test_whoever_has_the_most_sessions_makes_room(tmp_path: Path) -> None:
    """With the one that was unused the longest; the sessions of others, and those in use, stay."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
        gateway.front._manager.max_sessions = 5
        greedy, modest, newcomer = [
            Somebody(http, await gateway.token(name)) for name in ("greedy", "modest", "newcomer")
        ]
        own = await modest.open()
        sessions = [await greedy.open() for _ in range(4)]
        assert await greedy.send(sessions[0], PING) == 200, "it was used just now"
        first = await newcomer.open()
        states = [await greedy.send(session, PING) for session in sessions]
        assert states == [200, 404, 200, 200]
        assert await modest.send(own, PING) == 200
        assert await newcomer.send(first, PING) == 200
        # What is no greeting opens nothing, so nobody has to go for it.
        assert (await http.post("/mcp", json=PING, headers=ACCEPT)).status_code >= 400
        assert len(gateway.front._manager._server_instances) == 5
        for _ in range(20):
            await greedy.open()
        assert await modest.send(own, PING) == 200
        assert await newcomer.send(first, PING) == 200
        assert len(gateway.front._manager._server_instances) == 5
        assert sum(map(len, gateway.front._manager._held.values())) == 5


async def test_made_up_credentials_open_nothing_and_drive_nobody_out(tmp_path: Path) -> None:
    """Whoever is not known is refused before there is a session to make room for."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
        gateway.front._manager.max_sessions = 2
        honest = Somebody(http, await gateway.token("honest"))
        own = await honest.open()
        for number in range(5):
            headers = {**ACCEPT, "authorization": f"Bearer made-up-{number}"}
            assert (await http.post("/mcp", json=GREETING, headers=headers)).status_code == 401
        assert await honest.send(own, PING) == 200
        assert len(gateway.front._manager._server_instances) == 1


@dataclass
class Held:
    """As much of a session as counts here."""

    ends_at: float
    is_busy: bool = False


@pytest.mark.parametrize(
    ("counts", "opener", "giver"),
    [
        # A network counts as one, under however many names; within it whoever has the most.
        ({("a", "x"): 9, ("b", "1"): 12, ("b", "2"): 4}, ("a", "x"), ("b", "1")),
        # The one that is to be opened counts, so that it pays itself for being one too many.
        ({("a", "x"): 6, ("a", "y"): 6, ("a", "z"): 1}, ("a", "y"), ("a", "y")),
        ({("a", "x"): 9, ("b", "1"): 9}, ("b", "1"), ("b", "1")),
        ({("a", "x"): 9, ("b", "1"): 9}, ("a", "x"), ("a", "x")),
        # Where nobody has more than a share, it is the session that would end first, never one of a smaller network.
        ({("a", "x"): 5, ("a", "y"): 2, ("b", "1"): 1}, ("b", "2"), ("a", "x")),
        ({("a", "y"): 2, ("a", "x"): 5, ("b", "1"): 1}, ("c", "3"), ("a", "y")),
    ],
)
async def test_who_makes_room(
    tmp_path: Path, counts: dict[tuple[str, str], int], opener: tuple[str, str], giver: tuple[str, str]
) -> None:
    """Whoever has the most, by network first, and then by credentials if that is more than a share."""
    async with open_gateway(tmp_path, {}) as gateway:
        manager, number = gateway.front._manager, count()
        held = {
            (network, name): OrderedDict((str(key), Held(next(number))) for key in range(many))
            for (network, name), many in counts.items()
        }
        manager._held = held  # type: ignore[assignment]
        chosen = manager._next_to_end(opener, 6)
        assert chosen is next(iter(held[giver].values()))
        manager._held = {}


async def test_a_session_that_was_opened_and_never_used_ends_soon(tmp_path: Path) -> None:
    """From the first message behind the greeting on it has the whole time."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
        client = Somebody(http, {})
        session = await client.open()
        await eventually(lambda: remaining(gateway, session) <= OPENING_LIMIT)
        assert await client.send(session, READY) == 202
        await eventually(lambda: OPENING_LIMIT < remaining(gateway, session) <= IDLE_LIMIT)


def test_the_lowest_level_is_known_without_asking_everybody() -> None:
    """After any coming, going and changing of minds it is the one that asking each would give."""
    guests, here, dice = ClientSessions(), dict[str, Client](), random.Random(7)
    for _ in range(2000):
        name = f"session-{dice.randrange(8)}"
        match dice.randrange(3):
            case 0:
                here[name] = Client(session=name)
                guests.enter(here[name])
            case 1:
                here.pop(name, None)
                guests.leave(name)
            case _:
                if (guest := guests.get(name)) is not None:
                    guests.set_level(guest, dice.choice(LOG_LEVELS))
        levels = [guest.log_level for guest in here.values()]
        expected = min((severity(level or "info") for level in levels), default=0)
        assert guests.lowest_level() == (LOG_LEVELS[expected] if any(levels) else None)


async def test_a_session_is_put_off_once_a_second_at_most(tmp_path: Path) -> None:
    """Thousands of calls a second do not move its end each time."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
        session = await Somebody(http, {}).open()
        used = gateway.front._manager._server_instances[session]
        assert isinstance(used, HttpSession)
        await eventually(lambda: not used.is_busy)
        used._touched = 0.0
        used.touch()
        first = used.ends_at
        used.touch()
        assert used.ends_at == first


async def test_a_session_belongs_to_whom_the_sdk_says(tmp_path: Path) -> None:
    """Where somebody is authenticated, the SDK lets nobody else use the session; else there is nobody to compare."""
    async with open_gateway(tmp_path, {}) as gateway:
        manager = gateway.front._manager
        owner = AuthorizationContext(client_id="me", issuer=None, subject=None)
        owned, free = manager._admit_session(owner), manager._admit_session(None)
        assert owned is not None
        assert free is not None
        assert manager._session_owners == {owned.mcp_session_id: owner}
