"""What requests get while the gateway stops."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from harness import LIMIT, write_config
from pegboard.board import Board
from pegboard.config import read_settings
from pegboard.gateway.http import HttpGateway
from pegboard.gateway.shutdown import Shutdown
from pegboard.tool import Tool

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]


async def test_nothing_new_is_taken_as_soon_as_it_is_told_to_finish() -> None:
    """Also where nothing is under way that would have to be waited for."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("it was let through")

    shutdown = Shutdown(app)
    await shutdown.finish(LIMIT)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(shutdown), base_url="http://localhost", timeout=LIMIT
    ) as http:
        assert (await http.get("/health")).status_code == 503


async def test_requests_end_in_words_while_the_gateway_stops(tmp_path: Path) -> None:
    """What is under way when it is cut off, and what still comes, is refused with 503; no fault is logged."""
    begun = asyncio.Event()

    class Wait(Tool):
        name = "wait"
        description = "Never answers."

        async def call(self, arguments: Any) -> Any:
            begun.set()
            await asyncio.Event().wait()

    # What comes over no socket is nobody's.
    config = write_config(tmp_path / "pegboard.json", {}, auth={"required": False})
    front = HttpGateway(Board(read_settings(config, os.environ)), config, "127.0.0.1")
    front.board.register(Wait())
    transport = httpx2.ASGITransport(front.app)
    with capture_logs() as logs:
        async with (
            httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=LIMIT) as http,
            front.board,
        ):
            async with front.running():
                late = asyncio.create_task(http.post("/api/tools/wait/call", json={}))
                async with asyncio.timeout(LIMIT):
                    await begun.wait()
            # As uvicorn does with what takes longer than its grace.
            late.cancel()
            answers = [await late]
            answers += [await http.post(path, json={}) for path in ("/mcp", "/api/tools/wait/call")]
            answers.append(await http.get("/health"))
    for answer in answers:
        assert answer.status_code == 503
        assert answer.json()["error"] == {
            "code": "TOOL_UNAVAILABLE",
            "message": "the gateway is stopping",
            "retryable": True,
        }
        assert answer.headers["connection"] == "close"
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
