"""Why a request does not take the fast path: a closed set, documented and counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, eventually, open_gateway, toy
from pegboard.gateway.fastpath.decline import Decline

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[3] / "docs" / "performance.md"
SOURCE = Path(__file__).parents[3] / "src" / "pegboard" / "gateway" / "fastpath"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plain", "version": "0"}}


def test_every_reason_is_documented_in_its_own_words() -> None:
    """The table of docs/performance.md has each reason and nothing else."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", DOCS.read_text("utf-8"), re.MULTILINE))
    said = dict(re.findall(r'= "(\w+)"\n    """(.+)"""', (SOURCE / "decline.py").read_text("utf-8")))
    assert set(said) == {reason.value for reason in Decline}
    assert rows == said


def test_every_reason_is_given_somewhere() -> None:
    """None of them is there in vain."""
    code = "".join(path.read_text("utf-8") for path in SOURCE.glob("*.py") if path.stem != "decline")
    assert {reason for reason in Decline if f"Decline.{reason.name}" not in code} == set()


@pytest.mark.parametrize(
    ("reason", "message", "headers"),
    [
        (Decline.METHOD, {"id": 1, "method": "prompts/list", "params": {}}, {}),
        (Decline.PARAMS, {"id": 1, "method": "tools/list", "params": {"cursor": "x"}}, {}),
        (Decline.META, {"id": 1, "method": "tools/list", "params": {"_meta": {"pegboard/server": "one"}}}, {}),
        (Decline.TOOL, {"id": 1, "method": "tools/call", "params": {"name": "none__x"}}, {}),
        (
            Decline.OWN_TOOL,
            {"id": 1, "method": "tools/call", "params": {"name": "tool_call", "arguments": {"name": "one__echo"}}},
            {},
        ),
        (Decline.BODY, {"method": "notifications/other"}, {}),
        (Decline.SERVER, {"id": 1, "method": "tools/call", "params": {"name": "one__echo"}}, {}),
        (Decline.SESSION, {"id": 1, "method": "ping"}, {"mcp-session-id": "nobody's"}),
        (Decline.HEADERS, {"id": 1, "method": "ping"}, {"accept": "text/html"}),
        (Decline.CLIENT, {"id": 1, "method": "ping"}, {"mcp-protocol-version": "2026-07-28"}),
    ],
    ids=lambda value: value if isinstance(value, Decline) else "",
)
async def test_what_is_declined_is_counted_by_its_reason(
    tmp_path: Path, reason: Decline, message: dict[str, Any], headers: dict[str, str]
) -> None:
    """In `/metrics`, once for each request."""
    async with (
        open_gateway(tmp_path, {"one": toy()}, toolsets=["discovery"]) as gateway,
        httpx2.AsyncClient(timeout=LIMIT) as http,
    ):
        own = {"accept": "application/json, text/event-stream"}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
        session = (await http.post(gateway.mcp, json=hello, headers=own)).headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        own |= {"mcp-session-id": session}
        await http.post(gateway.mcp, json=ready, headers=own)
        await eventually(lambda: gateway.board.relay.sessions.get(session) is not None)
        if reason is Decline.SERVER:
            await gateway.board.refresh()
            await gateway.board.servers["one"].close()
        if reason is Decline.CLIENT:
            del own["mcp-session-id"]
        declined = gateway.board.metrics.declined
        before = declined[reason]
        await http.post(gateway.mcp, json={"jsonrpc": "2.0", **message}, headers={**own, **headers})
        assert declined[reason] == before + 1
        shown = (await http.get(f"{gateway.url}/metrics")).text
        assert f'pegboard_fast_path_declined_total{{reason="{reason}"}} {before + 1}' in shown
