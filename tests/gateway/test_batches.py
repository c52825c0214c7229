"""Batches of messages, and messages that are none: alike over HTTP, over a pipe and over the bridge."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from forking import warm_start
from harness import HANDSHAKE_VERSIONS, LIMIT, eventually, open_gateway, serving, toy, write_config
from pegboard.sdk.sessions import HttpSession

pytestmark = pytest.mark.anyio

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
BAD_IDS = ("null", "1.5", "true", "{}", "[1]", "1e400", "9" * 5000, r'"\ud800"')
BAD_METHODS = ("1e400", "0.1000000000000000055511151231257827", r'"\ud800x"', "9" * 5000, "1", "null")


def call(number: int, name: str = "one__echo", **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class OverHttp:
    """A session over HTTP that is sent texts."""

    def __init__(self, http: httpx2.AsyncClient, session: str) -> None:
        self._http, self._session = http, session
        self.status = 0

    async def ask(self, text: str) -> Any:
        """What a text is answered with: the last message, or nothing."""
        answer = await self._http.post("/mcp", content=text, headers={**ACCEPT, "mcp-session-id": self._session})
        self.status = answer.status_code
        events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
        text = events[-1] if events else answer.text
        return json.loads(text) if text else None

    tell = ask


class OverLines:
    """A process that is sent lines."""

    status = None

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def tell(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")

    async def ask(self, text: str) -> Any:
        """The next answer."""
        await self.tell(text)
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            while "method" in (said := json.loads(await self._process.stdout.readline())):
                pass
        return said


Way = OverHttp | OverLines


def greeting(version: str) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    return {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}


@contextlib.asynccontextmanager
async def over_http(tmp_path: Path, version: str) -> AsyncGenerator[Way]:
    async with (
        open_gateway(tmp_path, {"one": toy()}) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        await gateway.board.refresh()
        answer = await http.post("/mcp", json=greeting(version), headers=ACCEPT)
        way = OverHttp(http, answer.headers["mcp-session-id"])
        await way.tell(json.dumps(note("notifications/initialized")))
        yield way


@contextlib.asynccontextmanager
async def over_lines(tmp_path: Path, version: str, *, bridge: bool = False) -> AsyncGenerator[Way]:
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) if bridge else contextlib.nullcontext():
        command = (*warm_start(), "stdio", "--config", str(config))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        try:
            way = OverLines(process)
            await way.ask(json.dumps(greeting(version)))
            await way.tell(json.dumps(note("notifications/initialized")))
            yield way
        finally:
            assert process.stdin is not None
            process.stdin.close()
            async with asyncio.timeout(20):
                await process.wait()


def over_the_bridge(tmp_path: Path, version: str) -> contextlib.AbstractAsyncContextManager[Way]:
    return over_lines(tmp_path, version, bridge=True)


WAYS: dict[str, Callable[[Path, str], contextlib.AbstractAsyncContextManager[Way]]] = {
    "http": over_http,
    "stdio": over_lines,
    "bridge": over_the_bridge,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_batch_is_answered_as_one_where_batches_are_part_of_the_protocol(tmp_path: Path, way: str) -> None:
    """In 2025-03-26: all answers in one list, whatever else was in it, and nothing for notifications alone."""
    async with WAYS[way](tmp_path, "2025-03-26") as client:
        progress = call(3, "one__progress", steps=2)
        progress["params"]["_meta"] = {"progressToken": "p"}
        batch = [call(1, text="a"), note("notifications/toy/x"), {**call(2), "id": "two"}, progress]
        answers = await client.ask(json.dumps(batch))
        assert sorted(str(answer["id"]) for answer in answers) == ["1", "3", "two"]
        assert all("content" in answer["result"] for answer in answers)
        assert client.status in {None, 200}
        if client.status is not None:
            assert await client.ask(json.dumps([note("notifications/toy/x")])) is None
            assert client.status == 202
        else:
            await client.tell(json.dumps([note("notifications/toy/x")]))
        faulty = ["x", {**call(4), "id": None}, {**greeting("2025-03-26"), "id": 5}, call(6), call(6)]
        answers = await client.ask(json.dumps(faulty))
        assert sorted(str(answer["id"]) for answer in answers) == ["5", "6", "None", "None", "None"]
        assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32600}
        for empty in ("[]", " [ ] "):
            answer = await client.ask(empty)
            assert (answer["id"], answer["error"]["code"], client.status in {None, 400}) == (None, -32600, True)
            assert "empty" in answer["error"]["message"]
        answer = await client.ask(json.dumps([note("notifications/toy/x")] * 101))
        assert "100" in answer["error"]["message"]
        assert "result" in await client.ask(json.dumps(call(9)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", [version for version in HANDSHAKE_VERSIONS if version != "2025-03-26"])
async def test_a_batch_is_refused_in_words_where_there_are_none(tmp_path: Path, way: str, version: str) -> None:
    """One error that says why, and the client goes on."""
    if version == "2024-11-05" and way != "http":
        pytest.skip("one version is enough where a process has to start")
    async with WAYS[way](tmp_path, version) as client:
        answer = await client.ask(json.dumps([call(1), call(2)]))
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "2025-03-26" in answer["error"]["message"]
        assert client.status in {None, 400}
        assert "result" in await client.ask(json.dumps(call(3)))


@pytest.mark.parametrize("way", WAYS)
async def test_a_request_whose_id_is_none_is_refused(tmp_path: Path, way: str) -> None:
    """Whoever sent it waits for an answer, so it is no notification."""
    async with WAYS[way](tmp_path, "2025-11-25") as client:
        for number in BAD_IDS:
            answer = await client.ask(f'{{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}')
            assert (answer["id"], answer["error"]["code"]) == (None, -32600), number
            assert "id" in answer["error"]["message"]
            assert client.status in {None, 400}
        for text in ('{"jsonrpc":"1.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1}', "7"):
            answer = await client.ask(text)
            assert answer["error"]["code"] == -32600
            assert "validation" not in answer["error"]["message"]
        assert "result" in await client.ask(json.dumps(call(3)))


@pytest.mark.parametrize("way", WAYS)
async def test_a_method_that_is_no_text_is_refused(tmp_path: Path, way: str) -> None:
    """A number of any size, and half of a surrogate pair, which no server is asked for and nobody is told about."""
    async with WAYS[way](tmp_path, "2025-11-25") as client:
        for method in BAD_METHODS:
            for number in ("", '"id":1,'):
                answer = await client.ask(f'{{"jsonrpc":"2.0",{number}"method":{method}}}')
                assert (answer["id"], answer["error"]["code"]) == (None, -32600), method
                assert "method must be" in answer["error"]["message"]
                assert "pegboard." not in json.dumps(answer)
                assert client.status in {None, 400}
        assert "result" in await client.ask(json.dumps(call(3)))


async def test_the_modern_era_refuses_an_odd_method_or_id_too(tmp_path: Path) -> None:
    """With status 400, and without a word that the client has not said."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
        for method, number in [*((method, "1") for method in BAD_METHODS), *(('"ping"', number) for number in BAD_IDS)]:
            body = f'{{"jsonrpc":"2.0","id":{number},"method":{method},"params":{{}}}}'
            head = {**ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "ping"}
            answer = await http.post("/mcp", content=body, headers=head)
            assert (answer.status_code, answer.json()["error"]["code"]) in {(400, -32600), (400, -32700)}, body[:100]
            assert "pegboard." not in answer.text


@pytest.mark.parametrize("way", WAYS)
async def test_every_message_of_a_batch_is_answered_once(tmp_path: Path, way: str) -> None:
    """Ids that only look different are the same, an answer that is none is refused, and values are exact."""
    ping = {"jsonrpc": "2.0", "method": "ping"}
    odd = r'{"text":"\ud83d"}'
    async with WAYS[way](tmp_path, "2025-03-26") as client:
        for first, second in (("1", '"1"'), ('"a"', r'"\u0061"'), ("5", "5")):
            pair = [json.dumps(ping)[:-1] + f', "id": {number}}}' for number in (first, second)]
            answers = await client.ask(f"[{','.join(pair)}]")
            assert sorted("error" in answer for answer in answers) == [False, True]
            assert json.dumps(json.loads(first)) in [json.dumps(answer["id"]) for answer in answers]
        for wrong in ('"result":5', '"error":5', '"error":{"code":"x"}'):
            answers = await client.ask(f'[{{"jsonrpc":"2.0","id":1,{wrong}}},{json.dumps({**ping, "id": 3})}]')
            assert sorted(str(answer["id"]) for answer in answers) == ["3", "None"]
            assert "pydantic" not in json.dumps(answers)
        again = json.dumps({**greeting("2025-06-18"), "id": 5}).replace("initialize", r"init\u0069alize")
        (refused,) = await client.ask(f"[{again}]")
        assert (refused["id"], refused["error"]["code"]) == (5, -32600)
        text = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"one__echo","arguments":{odd}}}}}'
        (answer,) = await client.ask(f"[{text}]")
        assert answer["id"] == 7
        assert json.loads(answer["result"]["content"][0]["text"])["text"] == "\ud83d"
        # It is a session of 2025-03-26 still.
        assert [answer["id"] for answer in await client.ask(json.dumps([{**ping, "id": 8}]))] == [8]


async def test_a_batch_ends_with_the_client_that_waits_for_it(tmp_path: Path) -> None:
    """Nothing of it is left, and the same ids can be used again."""
    async with (
        open_gateway(tmp_path, {"one": toy()}) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        await gateway.board.refresh()
        answer = await http.post("/mcp", json=greeting("2025-03-26"), headers=ACCEPT)
        session = answer.headers["mcp-session-id"]
        way = OverHttp(http, session)
        await way.tell(json.dumps(note("notifications/initialized")))
        transport = gateway.front._manager._server_instances[session]
        assert isinstance(transport, HttpSession)
        waiting = asyncio.create_task(way.ask(json.dumps([call(1, "one__sleep", seconds=600), call(2)])))
        await eventually(lambda: "1" in transport._request_streams and "2" not in transport._request_streams)
        (refused,) = await OverHttp(http, session).ask(json.dumps([call(1)]))
        assert "same id" in refused["error"]["message"]
        waiting.cancel()
        await eventually(lambda: not {"1", "2"} & transport._request_streams.keys())
        assert not transport.is_busy
        assert "result" in await OverHttp(http, session).ask(json.dumps(call(2)))


async def test_a_greeting_whose_id_is_none_opens_no_session(tmp_path: Path) -> None:
    """Nor does a batch with a greeting in it; the modern era refuses both as well."""
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
        hello = greeting("2025-03-26")
        for body in ({**hello, "id": None}, [hello], [hello, note("notifications/initialized")]):
            for version in ({}, {"mcp-protocol-version": "2026-07-28"}):
                answer = await http.post("/mcp", json=body, headers={**ACCEPT, **version})
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
                assert "mcp-session-id" not in answer.headers
        assert gateway.front._manager._server_instances == {}


@pytest.mark.parametrize("way", WAYS)
async def test_half_of_a_surrogate_pair_in_one_message_keeps_no_other_from_its_answer(tmp_path: Path, way: str) -> None:
    """The one that names something so is refused, and the server's words with one are carried."""
    async with WAYS[way](tmp_path, "2025-03-26") as client:
        batch = [
            call(1, "one__x\ud83d"),
            call(2, text="cut \ud83d"),
            {**call(3), "method": "prompts/list", "params": {}},
        ]
        answers = {answer["id"]: answer for answer in await client.ask(json.dumps(batch))}
        assert "name must be valid Unicode" in answers[1]["error"]["message"]
        assert answers[2]["result"]["content"][0]["text"] == r'{"text": "cut \ud83d"}'
        assert "prompts" in answers[3]["result"]
        assert "result" in await client.ask(json.dumps(call(4)))
