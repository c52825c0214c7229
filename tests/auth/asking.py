"""MCP over HTTP as plain requests, so that a test sees each status."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2

from harness import LIMIT, MODERN, eventually

ACCEPT = {"Accept": "application/json, text/event-stream"}


def modern_request(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of 2026-07-28, and its headers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {**ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}, headers


async def ask_modern(
    http: httpx2.AsyncClient, url: str, credentials: Mapping[str, str], method: str, **params: Any
) -> httpx2.Response:
    """The answer to a request of 2026-07-28 with these credentials."""
    message, headers = modern_request(method, **params)
    return await http.post(url, json=message, headers={**headers, **credentials})


async def open_session(http: httpx2.AsyncClient, url: str, credentials: Mapping[str, str]) -> dict[str, str]:
    """A session of 2025-11-25 that is ready; the headers of its requests, without credentials."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    answer = await http.post(url, json=message, headers={**ACCEPT, **credentials})
    assert answer.status_code == 200, answer.text
    headers = {**ACCEPT, "Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, json=ready, headers={**headers, **credentials})).status_code == 202
    return headers


async def ask_session(
    http: httpx2.AsyncClient, url: str, session: Mapping[str, str], credentials: Mapping[str, str]
) -> int:
    """The status of a call in a session."""
    params = {"name": "one__echo", "arguments": {"text": "hello"}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    return (await http.post(url, json=message, headers={**session, **credentials})).status_code


@contextlib.asynccontextmanager
async def open_stream(
    http: httpx2.AsyncClient, method: str, url: str, headers: Mapping[str, str], **more: Any
) -> AsyncGenerator[asyncio.Task[None]]:
    """A stream that has begun; the task ends with it."""
    begun = asyncio.Event()

    async def follow() -> None:
        async with http.stream(method, url, headers=dict(headers), timeout=600, **more) as answer:
            assert answer.status_code == 200, answer.status_code
            begun.set()
            with contextlib.suppress(httpx2.HTTPError):
                async for _ in answer.aiter_bytes():
                    pass

    task = asyncio.create_task(follow())
    try:
        await eventually(lambda: begun.is_set() or task.done())
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def ends(task: asyncio.Task[None]) -> None:
    """Wait until a stream has ended by itself."""
    await asyncio.wait_for(asyncio.shield(task), LIMIT)
