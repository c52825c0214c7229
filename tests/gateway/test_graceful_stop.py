"""`pegboard serve` is told to stop: what is under way finishes, and what comes now is turned away."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import MODERN, eventually, http_client, serving, stdio_client, toy, write_config

pytestmark = pytest.mark.anyio

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
CALL = {"name": "one__sleep", "arguments": {"seconds": 2}}


async def greet(http: httpx2.AsyncClient) -> dict[str, str]:
    """The headers of a new handshake session."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    session = (await http.post("/mcp", json=hello, headers=ACCEPT)).headers["mcp-session-id"]
    headers = {**ACCEPT, "mcp-session-id": session}
    await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return headers


async def test_a_call_under_way_finishes_and_new_requests_are_turned_away(tmp_path: Path) -> None:
    """Its answer comes whole, streams end as they should, and the process ends with 0."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (process, url):
        async with httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=20) as http:
            headers = await greet(http)
            call: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALL}
            async with (
                http.stream("GET", "/mcp", headers=headers) as standing,
                http.stream("POST", "/mcp", json=call, headers=headers) as answer,
            ):
                # Its head is there, so the call goes on the full path by now.
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(10):
                    while (turned_away := await http.get("/health")).status_code == 200:
                        pass
                ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
                for refused in (turned_away, await http.post("/mcp", json=ping, headers=headers)):
                    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "TOOL_UNAVAILABLE")
                    assert int(refused.headers["retry-after"]) > 0
                assert "awake" in (await answer.aread()).decode()
                await standing.aread()
        assert await asyncio.to_thread(process.wait, 20) == 0


@pytest.mark.parametrize("way", ["modern", "bridge"])
async def test_calls_by_other_ways_finish_too(tmp_path: Path, way: str) -> None:
    """In the modern era and over the bridge."""
    log = tmp_path / "toy.log"
    config = write_config(tmp_path / "pegboard.json", {"one": toy(log=str(log))})
    with serving(config) as (process, url):
        opened = stdio_client(config) if way == "bridge" else http_client(url, MODERN, listen=False)
        async with opened as client:
            await client.until_in("tools", "one__sleep")
            call = asyncio.create_task(client.call("one__sleep", {"seconds": 2}))
            await eventually(lambda: "tools/call" in log.read_text("utf-8"))
            process.send_signal(signal.SIGTERM)
            assert (await call)["content"][0]["text"] == "awake"
        assert await asyncio.to_thread(process.wait, 20) == 0


async def test_a_second_signal_waits_for_nothing(tmp_path: Path) -> None:
    """Whoever is in a hurry says it twice."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (process, url):
        async with httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=20) as http:
            headers = await greet(http)
            params = {"name": "one__sleep", "arguments": {"seconds": 60}}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            async with http.stream("POST", "/mcp", json=call, headers=headers):
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(10):
                    while (await http.get("/health")).status_code == 200:
                        pass
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, 20) == 0
