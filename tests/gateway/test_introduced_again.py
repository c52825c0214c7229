"""A session whose client sends `initialize` once more stays what it was when it was opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, open_gateway, toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "again", "version": "0"}}
ELSEWHERE = {"x-forwarded-for": "203.0.113.7"}
CHATS = "copilot_chat_secretary_list_sessions"


class Session:
    """One session over HTTP, whose requests may come from anywhere."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._headers = {"accept": "application/json"}

    async def post(self, path: str, method: str, params: Any, headers: dict[str, str] | None = None) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        own = {**self._headers, "accept": "application/json, text/event-stream", **(headers or {})}
        answer = await self._http.post(path, json=message, headers=own)
        if "mcp-session-id" in answer.headers:
            self._headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        return answer.text

    async def ready(self) -> None:
        headers = {**self._headers, "accept": "application/json, text/event-stream"}
        await self._http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)


async def test_it_keeps_its_filter(tmp_path: Path) -> None:
    """Also where the second address has another one."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            await gateway.board.refresh()
            session = Session(http)
            await session.post("/mcp?server=other", "initialize", HELLO)
            await session.post("/mcp", "initialize", HELLO)
            await session.ready()
            assert "one__echo" not in await session.post("/mcp", "tools/list", {})
            assert "Unknown tool" in await session.post("/mcp", "tools/call", {"name": "one__echo", "arguments": {}})


async def test_one_of_another_machine_stays_one(tmp_path: Path) -> None:
    """A request from this machine, with the session's id, does not open this machine's tools to it."""
    async with open_gateway(tmp_path, {}, toolsets=["chats"]) as gateway:
        headers = await gateway.token()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=headers) as http:
            session = Session(http)
            await session.post("/mcp", "initialize", HELLO, ELSEWHERE)
            await session.post("/mcp", "initialize", HELLO)
            await session.ready()
            refused = await session.post("/mcp", "tools/call", {"name": CHATS, "arguments": {}}, ELSEWHERE)
            assert "only for clients on the machine" in refused
