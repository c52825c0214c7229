"""Guests: who is here, who hears what, and who can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pegboard.listing.view import EVERYTHING, Filter
from pegboard.protocol.eras import LOG_LEVELS
from pegboard.relay.caller import OnProgress
from pegboard.relay.client_sessions import ClientSession, ClientSessions
from pegboard.servers.jsonrpc import Message, Params, RpcError

pytestmark = pytest.mark.anyio


def guest(
    session: str, wanted: Filter = EVERYTHING, capabilities: Mapping[str, Any] | None = None, level: str | None = None
) -> ClientSession:
    """A client that echoes what it is asked."""

    async def ask(method: str, params: Params, on_progress: OnProgress | None) -> Message:
        del on_progress
        return {"asked": method, **params}

    return ClientSession(session, wanted, lambda *_: None, ask, capabilities or {}, level)


def of(*guests: ClientSession) -> ClientSessions:
    everyone = ClientSessions()
    for each in guests:
        everyone.enter(each)
    return everyone


def test_who_entered_is_here_until_it_leaves() -> None:
    """Leaving twice, or without having been here, is harmless; no session is nobody."""
    a = guest("a")
    guests = of(a, guest("b"))
    assert guests.get("a") is a
    assert (guests.get(None), guests.get("c"), guests.get("")) == (None, None, None)
    for session in ("a", "a", "never"):
        guests.leave(session)
    assert guests.get("a") is None
    assert guests.get("b") is not None


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
    guests = of(*(guest(str(number), level=level) for number, level in enumerate(levels)))
    assert guests.lowest_level() == lowest


async def test_a_guest_is_asked_as_the_caller_it_would_be() -> None:
    """With its own session, filter, capabilities and level, in its own era."""
    wanted = Filter.of("git")
    caller = guest("a", wanted, {"elicitation": {}}, "error").caller()
    assert (caller.era, caller.session, caller.client_key, caller.filter) == ("handshake", "a", "a", wanted)
    assert caller.effective_log_level == "error"
    assert await caller.on_request("elicitation/create", {"x": 1}, None) == {"asked": "elicitation/create", "x": 1}
    with pytest.raises(RpcError):
        await caller.on_request("sampling/createMessage", {}, None)
