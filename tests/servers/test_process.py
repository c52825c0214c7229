"""Processes of servers are started one at a time, and what they write is read to its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from harness import eventually
from pegboard.config import ServerSpec
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.process import Process
from pegboard.servers.transports.stdio import StdioTransport

pytestmark = pytest.mark.anyio


async def test_others_get_a_turn_between_two_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """To start a process holds the loop for a while; ten of them at once do not add up."""
    loop = asyncio.get_running_loop()
    started, turns = list[int](), 0
    begin = loop.subprocess_exec

    async def noted(*args: Any, **options: Any) -> Any:
        started.append(turns)
        return await begin(*args, **options)

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def nothing(_: bytes) -> Iterator[None]:
        return iter(())

    monkeypatch.setattr(loop, "subprocess_exec", noted)
    keeper = OrphanReaper()
    processes = [Process(keeper, out=nothing, err=nothing, ended=lambda _: None) for _ in range(5)]
    turning = asyncio.create_task(take_turns())
    try:
        command = (sys.executable, ("-I", "-S", "-c", "input()"), {}, None)
        await asyncio.gather(*(process.start(*command) for process in processes))
    finally:
        turning.cancel()
        await asyncio.gather(*(process.stop() for process in processes))
        keeper.close()
    assert len(set(started)) == len(processes)


async def test_a_pipe_is_drained_when_no_message_has_begun() -> None:
    """Of a line that has begun to arrive the rest is to be waited for."""
    script = """for part in ('{"method":', '"x"}\\n'): input(); print(part, end="", flush=True)"""
    keeper, heard = OrphanReaper(), list[str]()
    spec = ServerSpec(name="slow", given_name="slow", command=sys.executable, args=("-I", "-S", "-c", script))
    wire = StdioTransport(spec, keeper)
    link = JsonRpcPeer(wire, label="slow", on_notification=lambda method, _params, _origin: heard.append(method))
    try:
        await wire.start(link)
        assert wire.is_drained
        await wire.send({}, None)
        await eventually(lambda: not wire.is_drained)
        await wire.send({}, None)
        await eventually(lambda: wire.is_drained)
        assert heard == ["x"]
    finally:
        await link.close()
        keeper.close()
