"""Plain calls leave nothing to the garbage collector: at thousands a second it would take a tenth of the time."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, Entry, open_gateway, toy
from servers.toy import Settings
from servers.toy_http import http_toy

pytestmark = pytest.mark.anyio

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plain", "version": "0"}}
CALLS = 20


async def cyclic_garbage(folder: Path, server: Entry) -> Counter[str]:
    """What calls leave behind that only the collector finds, by type; what another one leaves by chance is less."""
    async with open_gateway(folder, {"one": server}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        headers = {"accept": "application/json, text/event-stream"}

        async def post(method: str, params: dict[str, Any], **more: Any) -> httpx2.Response:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
            return (await http.post(gateway.mcp, json=message, headers=headers)).raise_for_status()

        headers["mcp-session-id"] = (await post("initialize", HELLO, id=0)).headers["mcp-session-id"]
        await post("notifications/initialized", {})
        for _ in range(5):
            await post("tools/call", {"name": "one__echo", "arguments": {}}, id=1)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            declined = sum(gateway.board.metrics.declined.values())
            for _ in range(CALLS):
                await post("tools/call", {"name": "one__echo", "arguments": {}}, id=1)
            assert sum(gateway.board.metrics.declined.values()) == declined
            gc.collect()
            found = Counter(type(each).__qualname__ for each in gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    return Counter({name: count for name, count in found.items() if count >= CALLS})


async def test_a_call_over_a_pipe_leaves_no_cycle(tmp_path: Path) -> None:
    """Its parts refer to each other while it is under way, and not after it."""
    assert await cyclic_garbage(tmp_path, toy()) == {}


async def test_a_call_over_http_leaves_no_cycle(tmp_path: Path) -> None:
    """Nor do its request and its response."""
    with http_toy(Settings()) as server:
        assert await cyclic_garbage(tmp_path, {"url": server.url}) == {}
