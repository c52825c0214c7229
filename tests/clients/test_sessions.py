"""Client sessions: who is here, who is notified of what, and who can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pegboard.clients.channel import OnProgress
from pegboard.clients.client import Client
from pegboard.clients.sessions import ClientSessions
from pegboard.listing.view import EVERYTHING, Filter
from pegboard.protocol.eras import LOG_LEVELS
from pegboard.relay.relay import _between_requests
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params

pytestmark = pytest.mark.anyio


@dataclass
class Echo:
    """The channel to a client that echoes what it is asked."""

    def notify(self, method: str, params: Params) -> None:
        """Nobody reads it."""

    async def ask(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
        """The question itself."""
        del on_progress
        return {"asked": method, **params}


def client(
    session: str, wanted: Filter = EVERYTHING, capabilities: Mapping[str, Any] | None = None, level: str | None = None
) -> Client:
    return Client(session=session, filter=wanted, capabilities=capabilities or {}, channel=Echo(), log_level=level)


def of(*clients: Client) -> ClientSessions:
    everyone = ClientSessions()
    for each in clients:
        everyone.enter(each)
    return everyone


def test_who_entered_is_here_until_it_leaves() -> None:
    """Leaving twice, or without having been here, is harmless; no session is nobody."""
    a = client("a")
    sessions = of(a, client("b"))
    assert sessions.get("a") is a
    assert (sessions.get(None), sessions.get("c"), sessions.get("")) == (None, None, None)
    for session in ("a", "a", "never"):
        sessions.leave(session)
    assert sessions.get("a") is None
    assert sessions.get("b") is not None


@pytest.mark.parametrize(
    ("levels", "lowest"),
    [
        ([], None),
        ([None, None], None),
        (["error"], "error"),
        (["error", None, "info"], "info"),
        (["error", None], "info"),
        ([None, "debug"], "debug"),
        (["emergency", None, None], "info"),
        (["emergency", "alert"], "alert"),
        (list(LOG_LEVELS), "debug"),
    ],
)
def test_the_lowest_level_that_anybody_wants(levels: list[str | None], lowest: str | None) -> None:
    """Once anybody set one, those who never did count as info: they are not to hear less because of it."""
    sessions = of(*(client(str(number), level=level) for number, level in enumerate(levels)))
    assert sessions.lowest_level() == lowest


async def test_a_session_is_asked_as_the_caller_it_would_be() -> None:
    """With its own session, filter, capabilities and level, in its own era."""
    wanted = Filter.of("git")
    caller = _between_requests(client("a", wanted, {"elicitation": {}}, "error"))
    known = caller.client
    assert (known.era, known.session, caller.client_key, known.filter) == ("handshake", "a", "a", wanted)
    assert caller.effective_log_level == "error"
    assert await caller.on_request("elicitation/create", {"x": 1}, None) == {"asked": "elicitation/create", "x": 1}
    with pytest.raises(RpcError):
        await caller.on_request("sampling/createMessage", {}, None)
