"""`pegboard stdio` beside a gateway: what becomes of its client when the gateway goes away."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from forking import warm_start
from harness import eventually, open_gateway, serving, toy, write_config
from pegboard.access.principal import LOCAL
from pegboard.gateway.bridge import bridgehead
from pegboard.gateway.proof import prove

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "0"},
}
LIMIT = 60


class Bridge:
    """A client of `pegboard stdio` that says what it likes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def say(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}, **more})

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next answer, or the answers to a batch; notifications come when they come."""
        assert self.process.stdout is not None
        messages = map(json.loads, self.process.stdout)
        return next(message for message in messages if isinstance(message, list) or "id" in message)

    def greet(self, version: str = HELLO["protocolVersion"]) -> None:
        self.say("initialize", {**HELLO, "protocolVersion": version}, id=0)
        assert self.hear()["id"] == 0
        self.say("notifications/initialized")


def bridge(config: Path) -> subprocess.Popen[str]:
    command = [*warm_start(), "stdio", "--config", str(config)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_what_is_under_way_fails_when_the_gateway_dies(tmp_path: Path) -> None:
    """Each request without an answer gets an error, those with one get nothing more; then an exit code and a word."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (gateway, _), bridge(config) as process:
        client = Bridge(process)
        client.greet()
        client.say("tools/call", {"name": "one__echo", "arguments": {}}, id=1)
        client.say("ping", id="two")
        answered = {client.hear()["id"], client.hear()["id"]}
        assert answered == {1, "two"}
        client.say("tools/call", {"name": "one__sleep", "arguments": {"seconds": 60}}, id=3)
        client.say("tools/call", {"name": "one__sleep", "arguments": {"seconds": 60}}, id="four")
        client.say("ping", id=5)
        assert client.hear()["id"] == 5
        gateway.send_signal(signal.SIGKILL)
        last = [client.hear(), client.hear()]
        assert [(message["id"], message["error"]["code"]) for message in last] == [(3, -32000), ("four", -32000)]
        assert process.wait(LIMIT) == 1
        assert process.stdout is not None
        assert process.stdout.read() == ""
        assert process.stderr is not None
        assert "gateway" in process.stderr.read()


def asked(request_id: object, method: str = "ping", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


async def test_what_is_under_way_in_a_batch_fails_when_the_gateway_dies(tmp_path: Path) -> None:
    """Each request of a batch without answers gets an error; one that was answered, also behind refusals, gets none."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (gateway, _), bridge(config) as process:
        client = Bridge(process)
        client.greet("2025-03-26")
        client.send([asked(1), asked(1), {"jsonrpc": "2.0"}, asked("two", "tools/call", name="one__echo")])
        assert {each["id"] for each in client.hear()} == {1, "two", None}
        sleep = {"name": "one__sleep", "arguments": {"seconds": 60}}
        client.send([asked(3, "tools/call", **sleep), asked("four"), {"jsonrpc": "2.0", "method": "notifications/x"}])
        client.send(asked(5))
        assert client.hear()["id"] == 5
        gateway.send_signal(signal.SIGKILL)
        last = client.hear()
        assert [(each["id"], each["error"]["code"]) for each in last] == [(3, -32000), ("four", -32000)]
        assert process.wait(LIMIT) == 1
        assert process.stdout is not None
        assert process.stdout.read() == ""


@pytest.mark.parametrize("said", [b"[" * 20_000, b"oops", b"[]", b'{"board": {}}'], ids=["deep", "text", "list", "odd"])
async def test_whatever_a_bridge_says_of_itself_the_gateway_goes_on(tmp_path: Path, said: bytes) -> None:
    """A greeting that is none ends the connection, and is no fault of the gateway."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    async with open_gateway(tmp_path, {}) as gateway:
        front = gateway.front
        reader, writer = await asyncio.open_connection("127.0.0.1", front.bridge)
        writer.write(b"challenge\n")
        async with asyncio.timeout(LIMIT):
            proof, _, theirs = (await reader.readline()).strip().partition(b" ")
            assert proof == prove(front.token, "gateway", b"challenge")
            writer.write(prove(front.token, "bridge", theirs) + b"\n" + said + b"\n")
            writer.write_eof()
            assert await reader.read() == b""
        writer.close()
        gc.collect()
    assert faults == []


async def test_a_client_that_leaves_is_no_failure(tmp_path: Path) -> None:
    """Input closed by the client: what was asked is answered, nothing is said, and the exit code is 0."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config), bridge(config) as process:
        client = Bridge(process)
        client.greet()
        client.say("ping", id=1)
        assert process.stdin is not None
        process.stdin.close()
        assert client.hear()["id"] == 1
        await eventually(lambda: process.poll() is not None, LIMIT)
        assert process.returncode == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


async def test_the_bridgehead_leaves_no_client_behind() -> None:
    """When it closes, what it served has ended."""
    before = asyncio.all_tasks()
    async with bridgehead(cast("Any", None), lambda _: None, "token", set(), lambda: LOCAL) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await eventually(lambda: len(asyncio.all_tasks() - before) > 0)
    assert asyncio.all_tasks() - before == set()
    writer.close()
