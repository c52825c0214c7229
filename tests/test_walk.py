"""The walk of a call, as docs/architecture.md shows it: traced here, so that it cannot go stale.

`WRITE_WALK=1 python -m pytest tests/test_walk.py` writes it anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2
import pytest

import pegboard
from harness import LIMIT, open_gateway, toy

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parent.parent / "docs" / "architecture.md"
SOURCE = str(Path(pegboard.__file__).parent)
BEGIN, END = "<!-- the walk of a call: written by tests/test_walk.py -->\n```\n", "```\n<!-- end of the walk -->"
WIDTH = 120
# What a plain call passes through, at most: this may become less, and has to have a reason to become more. The last was
# that a call which names a kept result is no plain one. Before it came the door: whether the call's principal is still
# let in, and whether the call is recorded.
MAX_MODULES, MAX_FUNCTIONS = 29, 107
ENTRANCE = ("gateway/bounds", "data_received")

Walk = list[tuple[str, str]]


async def trace(work: Callable[[], Awaitable[Any]]) -> Walk:
    """The functions of ours that something calls, in the order in which each is called first."""
    walk: dict[tuple[str, str], None] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and not code.co_qualname.endswith(">"):
            module = code.co_filename[len(SOURCE) + 1 : -3]
            step = (module, code.co_qualname.rpartition(".")[2] or code.co_qualname)
            # Not what is still done for the call before.
            if walk or step == ENTRANCE:
                walk.setdefault(step)

    sys.setprofile(profile)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return list(walk)


async def walk_of_a_call(folder: Path, arguments: dict[str, Any]) -> Walk:
    """The walk of a plain call over HTTP to a server over stdio; what one of six calls does not do is by chance."""
    async with open_gateway(folder, {"one": toy()}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        call = await _open_session(http, gateway.mcp, arguments)
        for _ in range(3):
            await call()
        walks = [await trace(call) for _ in range(6)]
    return [step for step in walks[0] if all(step in walk for walk in walks)]


async def _open_session(
    http: httpx2.AsyncClient, url: str, arguments: dict[str, Any]
) -> Callable[[], Awaitable[httpx2.Response]]:
    """Something that calls a tool, of a client with nothing of ours in it."""
    headers = {"accept": "application/json, text/event-stream"}

    async def post(method: str, params: dict[str, Any], **more: Any) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        return (await http.post(url, json=message, headers=headers)).raise_for_status()

    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "walker", "version": "0"}}
    headers["mcp-session-id"] = (await post("initialize", client, id=0)).headers["mcp-session-id"]
    await post("notifications/initialized", {})
    return lambda: post("tools/call", {"name": "one__echo", "arguments": arguments}, id=1)


def written(walk: Walk) -> str:
    """The walk as the docs show it: a line for each stay in a module."""
    lines: list[str] = []
    for module, steps in groupby(walk, key=lambda step: step[0]):
        line = f"{module}:"
        for _, function in steps:
            if len(line) + len(function) + 3 > WIDTH:
                lines.append(line)
                line = "   "
            line += f" {function},"
        lines.append(line.rstrip(","))
    return "\n".join(lines) + "\n"


async def test_the_walk_of_a_plain_call_is_what_the_docs_show(tmp_path: Path) -> None:
    """Which functions of which modules it passes through, in order."""
    shown = written(await walk_of_a_call(tmp_path, {"x": 1}))
    text = DOCS.read_text("utf-8")
    before, found, rest = text.partition(BEGIN)
    assert found, "docs/architecture.md has no place for the walk"
    documented, _, after = rest.partition(END)
    if os.environ.get("WRITE_WALK"):
        DOCS.write_text(before + BEGIN + shown + END + after, "utf-8")
        documented = shown
    assert documented == shown, "WRITE_WALK=1 python -m pytest tests/test_walk.py writes it anew"


async def test_a_plain_call_passes_through_few_functions(tmp_path: Path) -> None:
    """Each is a place where somebody has to look."""
    walk = await walk_of_a_call(tmp_path, {"x": 1})
    assert len({module for module, _ in walk}) <= MAX_MODULES
    assert len(walk) <= MAX_FUNCTIONS
