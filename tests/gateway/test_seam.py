"""The seam around every call: whichever entrance a call comes by, it is accounted for once, in the same way."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog.testing

from harness import LIMIT, Gateway, RawClient, http_client, open_gateway, toy
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.toolsets.chats.tools import GetRequest

pytestmark = pytest.mark.anyio

Entrance = Callable[[Gateway, RawClient, httpx2.AsyncClient], Awaitable[Any]]
ECHO = {"name": "one__echo", "arguments": {}}


async def fast_path(_: Gateway, client: RawClient, __: httpx2.AsyncClient) -> Any:
    return await client.request("tools/call", ECHO)


async def full_path(_: Gateway, client: RawClient, __: httpx2.AsyncClient) -> Any:
    return await client.request("tools/call", {**ECHO, "_meta": {"progressToken": 1}})


async def another_tool(_: Gateway, client: RawClient, __: httpx2.AsyncClient) -> Any:
    return await client.request("tools/call", {"name": "tool_call", "arguments": ECHO})


async def rest(_: Gateway, __: RawClient, http: httpx2.AsyncClient) -> Any:
    return (await http.post("/api/tools/one__echo/call", json={})).raise_for_status()


async def python(gateway: Gateway, _: RawClient, __: httpx2.AsyncClient) -> Any:
    return (await gateway.board.call("one__echo")).unwrap()


async def own_tool(_: Gateway, client: RawClient, __: httpx2.AsyncClient) -> Any:
    return await client.request("tools/call", {"name": "memory_list", "arguments": {}})


@pytest.mark.parametrize(
    ("entrance", "tool", "owner"),
    [
        (fast_path, "one__echo", "one"),
        (full_path, "one__echo", "one"),
        (another_tool, "one__echo", "one"),
        (rest, "one__echo", "one"),
        (python, "one__echo", "one"),
        (own_tool, "memory_list", "pegboard"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_every_call_is_accounted_for_once(tmp_path: Path, entrance: Entrance, tool: str, owner: str) -> None:
    """One count in the metrics, one log event, with a trace id of its own."""
    own: dict[str, Any] = {"toolsets": ["discovery", "memory"]}
    async with open_gateway(tmp_path, {"one": toy()}, **own) as gateway, http_client(gateway.mcp) as client:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            await client.until_in("tools", "one__echo")
            # The first call of a server's tool connects it.
            await client.request("tools/call", ECHO)
            before = gateway.board.metrics.calls.copy()
            with structlog.testing.capture_logs() as logs:
                await entrance(gateway, client, http)
                await entrance(gateway, client, http)
    assert gateway.board.metrics.calls - before == {(owner, "ok"): 2}
    called = [entry for entry in logs if entry["event"] == "tool.called"]
    assert [(entry["tool"], entry["outcome"]) for entry in called] == [(tool, "ok")] * 2
    first, second = (entry["traceId"] for entry in called)
    assert re.fullmatch(r"[0-9a-f]{16}", first)
    assert first != second


async def test_a_program_is_given_the_data_of_our_own_tools_and_what_is_wrong_is_raised(tmp_path: Path) -> None:
    """Where a model reads in the answer that there is nothing, a program gets the failure."""
    async with open_gateway(tmp_path, {}, toolsets=["chats"]) as gateway:
        with pytest.raises(ToolFailure) as failed:
            await gateway.board.run_own("chats", GetRequest.name, {"sessionId": "none", "index": 1})
        assert failed.value.error.code is ToolErrorCode.NOT_FOUND
        assert gateway.board.metrics.calls == {("pegboard", "failed"): 1}
