"""What waits for a client that does not read is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pegboard.protocol.weight import MAX_WEIGHT, weight
from pegboard.sdk.channel import ClientChannel

pytestmark = pytest.mark.anyio


class Slow:
    """A channel to a client that does not read until it is told to."""

    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.heard: list[Mapping[str, Any]] = []

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        await self.reads.wait()
        assert params is not None
        self.heard.append(params)

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        raise NotImplementedError


async def test_a_client_that_does_not_read_gets_the_newest() -> None:
    """By bytes as well as by count: a thousand lines of 2 MB are not kept for it."""
    client = Slow()
    outlet = ClientChannel(client)
    for number in range(1000):
        outlet.notify("notifications/message", {"number": number, "data": "x" * 2_000_000})
        await asyncio.sleep(0)
    client.reads.set()
    await outlet.finish()
    numbers = [params["number"] for params in client.heard]
    assert numbers[-1] == 999
    assert len(numbers) <= MAX_WEIGHT // 2_000_000 + 2


def test_the_weight_of_a_message_follows_its_texts() -> None:
    """However they are nested, and with little work for a large one."""
    assert 1_000_000 <= weight({"a": [{"b": "x" * 1_000_000}]}) < 1_010_000
    assert weight([["x" * 1000] * 10_000] * 3) >= 10_000_000
