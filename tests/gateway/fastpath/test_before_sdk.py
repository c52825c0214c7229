"""A client over a pipe is greeted and given its list before the SDK is loaded, which then takes over unnoticed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness import LIMIT, Entry, eventually, open_board, toy
from pegboard.access.principal import LOCAL
from pegboard.board import Board
from pegboard.clients.cache import ClientCache
from pegboard.clients.endpoint import Endpoint, PipeEndpoint
from pegboard.gateway.entrance import entrance
from pegboard.gateway.fastpath.pipe import PipeFastPath
from pegboard.gateway.fastpath.rules import FastPath
from pegboard.gateway.mcp import McpHandlers
from pegboard.gateway.pipe_client import PipeAnswerer, PipeClient, Stream
from pegboard.sdk.server import GatewayServer

pytestmark = pytest.mark.anyio

INFO = {"name": "someone", "version": "1"}


@dataclass
class Visit:
    """A client at the door, the lines it was answered with, and the SDK, which comes when it is let in."""

    board: Board
    before_sdk: bool
    answers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sdk_may_come: asyncio.Event = field(default_factory=asyncio.Event)
    entered: bool = False

    def __post_init__(self) -> None:
        front = McpHandlers(self.board)
        endpoint = PipeEndpoint(Endpoint(private=True), lambda: LOCAL)
        enter = entrance(GatewayServer(front), endpoint)

        async def write(text: bytes) -> None:
            self.answers.append(json.loads(text))

        async def late(written: Any, fast_path: PipeAnswerer | None) -> Stream:
            await self.sdk_may_come.wait()
            self.entered = True
            return await enter(written, fast_path)

        self.way = FastPath(self.board, front)
        fast_path = PipeFastPath(front, ClientCache(), self.way, endpoint)
        self.client = PipeClient(write, late, fast_path, before_sdk=self.before_sdk)

    async def say(self, method: str, params: dict[str, Any] | None = None, number: int | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        message |= {} if params is None else {"params": params}
        message |= {} if number is None else {"id": number}
        await self.client.line(json.dumps(message).encode())

    async def ask(self, method: str, params: dict[str, Any] | None = None, number: int = 1) -> dict[str, Any]:
        await self.say(method, params, number)
        await eventually(lambda: any(answer.get("id") == number for answer in self.answers))
        return next(answer for answer in self.answers if answer.get("id") == number)

    async def greet(self, version: str = "2025-11-25", **more: Any) -> dict[str, Any]:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": INFO, **more}
        greeted = await self.ask("initialize", params)
        await self.say("notifications/initialized")
        return greeted


@contextlib.asynccontextmanager
async def visit(
    tmp_path: Path, servers: dict[str, Entry], *, before_sdk: bool = True, **own: Any
) -> AsyncGenerator[Visit]:
    async with open_board(tmp_path, servers, **own) as board:
        here = Visit(board, before_sdk)
        serving = asyncio.create_task(here.client.serve())
        try:
            yield here
        finally:
            await here.client.end()
            async with asyncio.timeout(LIMIT):
                await serving


async def test_the_greeting_is_the_one_that_the_sdk_gives(tmp_path: Path) -> None:
    """Word for word, capabilities that are only passed on included."""
    greetings: list[dict[str, Any]] = []
    server = toy(features=["tools", "prompts"], capabilities={"experimental": {"x": {}}}, instructions="Be kind.")
    for before_sdk in (True, False):
        async with visit(tmp_path / str(before_sdk), {"one": server}, before_sdk=before_sdk) as here:
            await here.board.discover_all_tools()
            here.sdk_may_come.set() if not before_sdk else None
            greetings.append(await here.greet())
            assert here.entered is not before_sdk
    assert greetings[0] == greetings[1]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "1999-01-01"])
async def test_whoever_speaks_another_version_is_greeted_by_the_sdk(tmp_path: Path, version: str) -> None:
    """Older versions differ in what they may be told, and only the SDK knows all of that."""
    async with visit(tmp_path, {}) as here:
        here.sdk_may_come.set()
        greeted = await here.greet(version)
        assert here.entered
        assert greeted["result"]["protocolVersion"] == (version if version[0] == "2" else "2025-11-25")


async def test_the_first_list_needs_no_sdk(tmp_path: Path) -> None:
    """Greeted, listed and called, all on the before_sdk; afterwards the SDK has not answered any of it again."""
    async with visit(tmp_path, {"one": toy()}) as here:
        await here.board.discover_all_tools()
        await here.greet()
        listed = await here.ask("tools/list", number=2)
        assert "one__echo" in [tool["name"] for tool in listed["result"]["tools"]]
        called = await here.ask("tools/call", {"name": "one__echo", "arguments": {"n": 1}}, number=3)
        assert called["result"]["content"][0]["text"] == '{"n": 1}'
        assert not here.entered
        here.sdk_may_come.set()
        assert (await here.ask("prompts/list", number=4))["result"] == {"prompts": []}
        assert [answer.get("id") for answer in here.answers] == [1, 2, 3, 4]


async def test_a_change_before_the_sdk_is_there_is_told_once_it_is(tmp_path: Path) -> None:
    """A list that was old before anybody could say so is not left to be taken for the newest."""
    async with visit(tmp_path, {"one": toy(tools=["x"])}) as here:
        await here.board.discover_all_tools()
        await here.greet()
        await here.ask("tools/list", number=2)
        await here.ask("tools/call", {"name": "one__change", "arguments": {"add": ["y"]}}, number=3)
        await eventually(lambda: here.board.registry.get("one__y") is not None)
        assert len(here.answers) == 3
        here.sdk_may_come.set()
        await eventually(lambda: here.answers[-1].get("method") == "notifications/tools/list_changed")


async def test_an_unchanged_list_is_not_told_of(tmp_path: Path) -> None:
    """Nobody has to look again at what they have just been given."""
    async with visit(tmp_path, {"one": toy(tools=["x"])}) as here:
        await here.board.discover_all_tools()
        await here.greet()
        await here.ask("tools/list", number=2)
        here.sdk_may_come.set()
        await here.ask("prompts/list", number=3)
        await asyncio.sleep(0.2)
        assert [answer.get("id") for answer in here.answers] == [1, 2, 3]


async def test_a_call_can_be_taken_back_by_the_very_next_line(tmp_path: Path) -> None:
    """Even if both came in one piece; what was taken back is not answered, and its server hears of it."""
    async with visit(tmp_path, {"one": toy()}) as here:
        await here.board.discover_all_tools()
        await here.greet()
        await here.ask("tools/call", {"name": "one__echo", "arguments": {}}, number=2)
        await here.say("tools/call", {"name": "one__sleep", "arguments": {"seconds": 30}}, number=3)
        await here.say("notifications/cancelled", {"requestId": 3})
        await eventually(lambda: not here.way._calls)
        seen = await here.ask("tools/call", {"name": "one__seen", "arguments": {}}, number=4)
        assert len(json.loads(seen["result"]["content"][0]["text"])["cancelled"]) == 1
        assert [answer.get("id") for answer in here.answers] == [1, 2, 4]


async def test_what_is_loaded_on_the_doorstep_stays_loaded(tmp_path: Path) -> None:
    """The session is the same one before and after."""
    own: dict[str, Any] = {"expose": "search", "toolsets": ["discovery"]}
    async with visit(tmp_path, {"one": toy()}, **own) as here:
        await here.board.discover_all_tools()
        await here.greet()
        await here.ask("tools/call", {"name": "tool_load", "arguments": {"names": ["one__echo"]}}, number=2)
        assert not here.entered
        here.sdk_may_come.set()
        await here.ask("prompts/list", number=3)
        listed = await here.ask("tools/list", number=4)
        assert "one__echo" in [tool["name"] for tool in listed["result"]["tools"]]


async def test_a_client_that_leaves_before_the_sdk_is_there_is_let_go(tmp_path: Path) -> None:
    """Nothing waits for what nobody needs any more."""
    async with visit(tmp_path, {}) as here:
        await here.greet()
    assert not here.entered


@pytest.mark.parametrize(
    "odd",
    [
        b'{"method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":5,"method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}',
    ],
)
async def test_an_odd_word_on_the_doorstep_is_the_sdks_to_judge(tmp_path: Path, odd: bytes) -> None:
    """Whatever it makes of it, the conversation goes on, and nothing is answered twice."""
    async with visit(tmp_path, {}) as here:
        here.sdk_may_come.set()
        await here.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO})
        await here.client.line(odd)
        await here.say("notifications/initialized")
        assert (await here.ask("prompts/list", number=7))["result"] == {"prompts": []}
        assert [answer.get("id") for answer in here.answers].count(1) == 1


@pytest.mark.parametrize("capabilities", [{"sampling": True}, {"roots": 5}])
async def test_a_greeting_that_the_sdk_would_refuse_is_refused(tmp_path: Path, capabilities: dict[str, Any]) -> None:
    """The before_sdk says yes only to what nobody would say no to."""
    async with visit(tmp_path, {}) as here:
        here.sdk_may_come.set()
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": INFO}
        assert (await here.ask("initialize", params))["error"]["code"] == -32602


async def test_a_line_that_is_no_message_is_told_so(tmp_path: Path) -> None:
    """Also as the very first one."""
    async with visit(tmp_path, {}) as here:
        here.sdk_may_come.set()
        await here.client.line(b"oops")
        assert here.answers == [
            {
                "jsonrpc": "2.0",
                "id": None,
                "error": {"code": -32700, "message": "Parse error: a line must be one JSON-RPC message"},
            }
        ]


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("pegboard.gateway.stdio", "mcp mcp_types pydantic numpy structlog starlette uvicorn httpx2 rich"),
        ("pegboard.gateway.bridge", "mcp pydantic pydantic_core numpy structlog starlette msgspec httptools uvloop"),
    ],
)
def test_a_start_loads_only_what_it_needs(module: str, unwanted: str) -> None:
    """What takes long to load is loaded when somebody needs it."""
    program = f"import sys, {module}; print(*sorted(set({unwanted.split()!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.split() == []
