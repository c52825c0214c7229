"""A call that goes on the full path leaves nothing behind in its session."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from harness import eventually, http_client, open_gateway, toy
from pegboard.gateway.fastpath import rules
from pegboard.servers.raw_call import RawCall

pytestmark = pytest.mark.anyio


def calls() -> int:
    """How many calls are in memory, with the results they have."""
    gc.collect()
    return sum(isinstance(each, RawCall) for each in gc.get_objects())


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_session_does_not_keep_the_result_of_its_last_long_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The session goes on, idle, and the result is gone with its request."""
    monkeypatch.setattr(rules, "PATIENCE", 0.05)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("tools", "one__sleep")
        # The first use of a tool over a pipe is never plain.
        await client.call("one__sleep", {"seconds": 0})
        await client.call("one__sleep", {"seconds": 0.3})
        # Its answer is out before the request is over.
        await eventually(lambda: calls() == 0)
