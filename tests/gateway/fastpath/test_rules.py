"""The fast path of plain requests: bytes to bytes, and over to the full path as soon as there is more to it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, Gateway, eventually, open_gateway, stdio_client, toy, write_config
from pegboard.gateway.fastpath import rules
from pegboard.protocol.eras import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    VERSION_KEY,
)
from pegboard.protocol.portions import PORTION
from servers.toy import Settings
from servers.toy_http import Manners, http_toy

pytestmark = pytest.mark.anyio

# Legal JSON that does not survive being read and written again: numbers beyond every type, blanks, escapes, order.
ODD_ARGUMENTS = rb'{"z" : 18446744073709551616,  "a":[1e400, -0.0, 1.50],"\u0061b":"\u00e9\/","n":-1E+2}'
ODD_RESULT = (
    rb'{"content":[{"type" : "text","text":"\u0041\/"}],"structuredContent":'
    rb'{"big":340282366920938463463374607431768211456,"huge":1e999,"b":1.0,"a":2}, "own":"kept"}'
)


@dataclass
class Verbatim:
    """A server that keeps what it was sent and answers with bytes of the test's own."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list[bytes])
    result: bytes = ODD_RESULT

    def answer(self, body: bytes) -> bytes | None:
        message = json.loads(body)
        if "id" not in message:
            return None
        results: dict[str, bytes] = {
            "initialize": json.dumps(
                {
                    "protocolVersion": LATEST_HANDSHAKE,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "v", "version": "1"},
                }
            ).encode(),
            "tools/list": b'{"tools":[{"name":"odd","inputSchema":{"type":"object"}}]}',
            "tools/call": self.result,
        }
        number = json.dumps(message["id"]).encode()
        if message["method"] not in results:
            return b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"no"}}' % number
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (number, results[message["method"]])


@contextlib.asynccontextmanager
async def verbatim_server() -> AsyncGenerator[Verbatim]:
    here = Verbatim()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                body = await reader.readexactly(length)
                if not head.startswith(b"POST"):
                    writer.write(b"HTTP/1.1 405 Not Allowed\r\ncontent-length: 0\r\n\r\n")
                    continue
                here.bodies.append(body)
                answer = here.answer(body)
                if answer is None:
                    writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                else:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                        % (len(answer), answer)
                    )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield here
    finally:
        server.close()


@dataclass
class Caller:
    """A client of either era that sends bytes and shows what came back."""

    http: httpx2.AsyncClient
    url: str
    version: str
    session: str | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(100))

    async def open(self) -> None:
        if self.version == LATEST_MODERN:
            return
        greeting = {
            "protocolVersion": self.version,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "0"},
        }
        opened = await self.send(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}' % dumped(greeting))
        self.session = opened.headers["mcp-session-id"]
        await self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def send(self, body: bytes, **headers: str) -> httpx2.Response:
        sent = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
        if self.session is not None:
            sent |= {"mcp-session-id": self.session, "mcp-protocol-version": self.version}
        return await self.http.post(self.url, content=body, headers=sent)

    async def request(self, method: str, params: bytes = b"", number: bytes | None = None) -> httpx2.Response:
        """A request whose params are these members."""
        number = number or b"%d" % next(self.numbers)
        if self.version != LATEST_MODERN:
            return await self.send(
                b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{%b}}' % (number, method.encode(), params)
            )
        meta = {
            VERSION_KEY: LATEST_MODERN,
            CLIENT_CAPABILITIES_KEY: {},
            CLIENT_INFO_KEY: {"name": "raw", "version": "0"},
        }
        members = params + (b"," if params else b"") + b'"_meta":' + dumped(meta)
        named = {"mcp-name": json.loads(b"{%b}" % params)["name"]} if b'"name"' in params else {}
        headers = {"mcp-protocol-version": LATEST_MODERN, "mcp-method": method, **named}
        body = b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{%b}}' % (number, method.encode(), members)
        return await self.send(body, **headers)

    async def call(
        self, tool: str, arguments: bytes = b"{}", more: bytes = b"", number: bytes | None = None
    ) -> httpx2.Response:
        params = b'"name":"%b","arguments":%b%b' % (tool.encode(), arguments, more)
        return await self.request("tools/call", params, number)


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def is_short(response: httpx2.Response) -> bool:
    """In the handshake era the full path answers with a stream, the short one with JSON."""
    return response.headers["content-type"] == "application/json"


def answer_in(response: httpx2.Response) -> dict[str, Any]:
    """The answer, however it came."""
    if is_short(response):
        return json.loads(response.content)
    events = [line.partition(":")[2] for line in response.text.split("\r\n") if line.startswith("data:")]
    return next(message for event in reversed(events) if event.strip() and "id" in (message := json.loads(event)))


@contextlib.asynccontextmanager
async def caller(gateway: Gateway, version: str = LATEST_HANDSHAKE) -> AsyncGenerator[Caller]:
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        client = Caller(http, gateway.mcp, version)
        await client.open()
        if client.session is not None:
            # It says 202 before it looks at a notification.
            await eventually(lambda: gateway.board.relay.sessions.get(client.session or "") is not None)
        await client.request("tools/list")
        yield client


@pytest.mark.parametrize("version", [LATEST_HANDSHAKE, LATEST_MODERN])
async def test_arguments_and_results_are_carried_byte_for_byte(tmp_path: Path, version: str) -> None:
    """Numbers of any size, blanks, escapes and the order of keys come out as they went in, on both sides."""
    async with verbatim_server() as server, open_gateway(tmp_path, {"v": {"url": server.url}}) as gateway:
        async with caller(gateway, version) as client:
            await client.call("v__odd")
            response = await client.call("v__odd", ODD_ARGUMENTS, number=b"7")
            assert b'"arguments":' + ODD_ARGUMENTS in server.bodies[-1]
            if version == LATEST_HANDSHAKE:
                assert response.content == b'{"jsonrpc":"2.0","id":7,"result":' + ODD_RESULT + b"}"
            for piece in (
                b'{"big":340282366920938463463374607431768211456,"huge":1e999,"b":1.0,"a":2}',
                b'"\\u0041\\/"',
            ):
                assert piece in response.content
            assert response.json()["result"]["own"] == "kept"


@pytest.mark.parametrize("version", [LATEST_HANDSHAKE, LATEST_MODERN])
@pytest.mark.parametrize("patience", [60.0, 0.0])
async def test_a_large_result_arrives_whole_on_both_paths(
    tmp_path: Path, version: str, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read, looked at and written in portions; a number in it keeps its digits, wherever a cut is."""
    monkeypatch.setattr(rules, "PATIENCE", patience)
    text = "é\\u0041 " * 1_200_000
    async with verbatim_server() as server, open_gateway(tmp_path, {"v": {"url": server.url}}) as gateway:
        async with caller(gateway, version) as client:
            await client.call("v__odd")
            server.result = b'{"content":[{"type":"text","text":"%b"}],"own":1e999}' % text.encode()
            response = await client.call("v__odd", number=b"7")
            assert version == LATEST_MODERN or is_short(response) is (patience > 0)
            assert answer_in(response)["result"]["content"][0]["text"] == text.replace("\\u0041", "A")
            assert b'"own":1e999' in response.content


async def test_a_resource_in_a_large_result_has_our_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the word that tells of it stands on both sides of a cut."""
    monkeypatch.setattr(rules, "PATIENCE", 60.0)
    link = b'{"type":"resource_link","uri":"x://a","name":"a"}'
    async with verbatim_server() as server, open_gateway(tmp_path, {"v": {"url": server.url}}) as gateway:
        async with caller(gateway) as client:
            await client.call("v__odd")
            begin = b'{"content":[{"type":"text","text":"'
            filling = b"x" * (5 * PORTION - len(begin) - len(b'"},{"type":') - 4)
            server.result = begin + filling + b'"},' + link + b"]}"
            content = answer_in(await client.call("v__odd"))["result"]["content"]
            server.result = b'{"content":[%b]}' % link
            assert answer_in(await client.call("v__odd"))["result"]["content"] == content[1:]


async def test_nothing_that_goes_to_a_pipe_breaks_its_lines(tmp_path: Path) -> None:
    """A client may write its arguments over several lines; a server over stdio gets them in one."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        response = await client.call("one__echo", b'{\r\n  "text":\n "a\\nb"\n}')
        assert is_short(response)
        assert json.loads(answer_in(response)["result"]["content"][0]["text"]) == {"text": "a\nb"}


@pytest.mark.parametrize("identity", [b"0", b"-3", b'"x\\u0041"', b"123456789012345678901234567890"])
async def test_a_request_gets_its_own_id_back(tmp_path: Path, identity: bytes) -> None:
    """As it was written, be it a text or a number of any size."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        response = await client.request("tools/call", b'"name":"one__echo"', identity)
        assert is_short(response)
        assert b'"id":' + identity + b"," in response.content


@pytest.mark.parametrize("version", [LATEST_HANDSHAKE, LATEST_MODERN])
async def test_a_list_is_written_once_for_each_change(tmp_path: Path, version: str) -> None:
    """Every client of an era is given the same bytes, until the list is another one."""
    async with open_gateway(tmp_path, {"one": toy(tools=["x"])}) as gateway, caller(gateway, version) as client:
        first, second = [await client.request("tools/list", number=b"1") for _ in range(2)]
        assert first.content == second.content
        view = await gateway.board.list_tools()
        assert view.handshake_pieces is view.handshake_pieces
        assert view.definition_pieces is view.definition_pieces
        await gateway.configure({"one": toy(tools=["y"])})
        async with asyncio.timeout(LIMIT):
            while b"one__y" not in (await client.request("tools/list")).content:
                await asyncio.sleep(0.05)


async def test_both_paths_give_the_same_list_and_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client sees does not tell which way its request took."""
    seen: dict[str, list[Any]] = {}
    for way in ("on", "off"):
        monkeypatch.setenv("PEGBOARD_FAST_PATH", way)
        async with open_gateway(tmp_path / way, {"one": toy()}) as gateway:
            for version in (LATEST_HANDSHAKE, LATEST_MODERN):
                async with caller(gateway, version) as client:
                    await client.call("one__echo")
                    answers = [
                        await client.request("tools/list"),
                        await client.call("one__rich"),
                        await client.call("one__fails"),
                        await client.call("one__refuses"),
                        await client.call("one__nothing_of_the_kind"),
                    ]
                    told = [(each.status_code, answer_in(each)) for each in answers]
                    seen.setdefault(version, []).append(told)
    for version, (short, full) in seen.items():
        assert short == full, version


async def test_what_is_not_plain_takes_the_full_path(tmp_path: Path) -> None:
    """Progress, a cursor, a filter in `_meta`: each has the outcome it always had."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        assert is_short(await client.call("one__echo")) or is_short(await client.call("one__echo"))
        with_progress = await client.call("one__progress", b'{"steps":2}', b',"_meta":{"progressToken":"t"}')
        assert not is_short(with_progress)
        assert with_progress.text.count("notifications/progress") == 2
        assert answer_in(await client.request("tools/list", b'"cursor":"x"'))["error"]["code"] == -32602
        filtered = answer_in(await client.request("tools/list", b'"_meta":{"pegboard/prefix":"one__e"}'))
        assert {tool["name"][:6] for tool in filtered["result"]["tools"]} == {"one__e"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_talks_is_handed_over_and_remembered(tmp_path: Path, stream: bool) -> None:
    """What a server says before its answer reaches the client before the answer, and its tool is not taken for plain
    again; a server that answers with a stream of one event is as plain as one that answers with JSON."""
    settings = Settings(features=["tools", "logging"], era="handshake")
    with http_toy(settings, Manners(stream=stream)) as served:
        async with open_gateway(tmp_path, {"one": {"url": served.url}}) as gateway, caller(gateway) as client:
            await client.call("one__echo")
            assert is_short(await client.call("one__echo"))
            for _ in range(2):
                talked = await client.call("one__log", b'{"level":"warning","data":"mind the gap"}')
                if stream:
                    assert "notifications/message" in talked.text
                    assert talked.text.index("notifications/message") < talked.text.index('"result"')
                assert answer_in(talked)["result"]["content"][0]["text"] == "logged"
            [server] = gateway.board.servers.values()
            [held] = server._connections.values()
            assert held._talkative == {"tools/call log"}


@pytest.mark.parametrize("server_era", ["handshake", "modern"])
async def test_what_a_server_logs_reaches_a_client_that_set_no_level(tmp_path: Path, server_era: str) -> None:
    """From `info` on, as if there were nothing in between; a modern server is told so with the call."""
    server = toy(features=["tools", "logging"], era=server_era)
    async with open_gateway(tmp_path, {"one": server}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        assert is_short(await client.call("one__echo"))
        heard = await client.call("one__log", b'{"level":"info","data":"mind the gap"}')
        assert "mind the gap" in heard.text
        assert answer_in(heard)["result"]["content"][0]["text"] == "logged"


async def test_a_call_that_takes_its_time_is_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent once, and its client gets the place to read on from that every long call has."""
    monkeypatch.setattr(rules, "PATIENCE", 0.05)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        slow = await client.call("one__sleep", b'{"seconds":0.4}')
        assert not is_short(slow)
        assert slow.text.startswith("id: ")
        assert answer_in(slow)["result"]["content"][0]["text"] == "awake"
        seen = json.loads(answer_in(await client.call("one__seen"))["result"]["content"][0]["text"])
        assert seen["calls"] == 3


async def test_a_call_can_be_taken_back_before_it_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's call ends with the error of the era, and the server hears that nobody waits."""
    monkeypatch.setattr(rules, "PATIENCE", 30.0)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        hanging = asyncio.create_task(client.call("one__sleep", b'{"seconds":30}', number=b"7"))
        await eventually(lambda: bool(gateway.front._fast_path._calls))
        taken = await client.send(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"never mind"}}'
        )
        assert taken.status_code == 202
        assert answer_in(await hanging)["error"]["code"] == -32800
        seen = json.loads(answer_in(await client.call("one__seen"))["result"]["content"][0]["text"])
        assert len(seen["cancelled"]) == 1
        assert not gateway.front._fast_path._calls


async def test_another_session_cannot_take_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are each session's own."""
    monkeypatch.setattr(rules, "PATIENCE", 30.0)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with caller(gateway) as mine, caller(gateway) as other:
            await mine.call("one__echo")
            hanging = asyncio.create_task(mine.call("one__sleep", b'{"seconds":0.5}', number=b"7"))
            await eventually(lambda: bool(gateway.front._fast_path._calls))
            await other.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}')
            assert answer_in(await hanging)["result"]["content"][0]["text"] == "awake"


async def test_the_time_limit_holds(tmp_path: Path) -> None:
    """A call that is not answered in time fails as it does on the full path, and its server is told."""
    async with open_gateway(tmp_path, {"one": toy({"timeout": 1.5})}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        failed = answer_in(await client.call("one__sleep", b'{"seconds":30}', number=b"7"))["result"]
        assert failed["isError"] is True
        assert "within 1.5 s" in failed["content"][0]["text"]
        seen = json.loads(answer_in(await client.call("one__seen"))["result"]["content"][0]["text"])
        assert len(seen["cancelled"]) == 1


async def test_calls_are_counted_on_both_paths(tmp_path: Path) -> None:
    """One call is one call, whatever became of it on its way."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        calls = gateway.board.metrics.calls
        await client.call("one__echo")
        before = calls["one", "ok"]
        await client.call("one__echo")
        await client.call("one__progress", b'{"steps":1}', b',"_meta":{"progressToken":"t"}')
        assert calls["one", "ok"] == before + 2
        await client.call("one__fails")
        assert calls["one", "error"] == 1


async def test_a_client_that_may_not_come_in_does_not(tmp_path: Path) -> None:
    """What was found out about one request's headers is not taken to hold for another's."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        assert is_short(await client.call("one__echo"))
        body = b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}'
        assert (await client.send(body, host="evil.example")).status_code == 421
        assert (await client.send(body, origin="https://evil.example")).status_code == 403
        assert (await client.send(body, authorization="Bearer other")).status_code == 401
        assert (await client.send(body, **await gateway.token())).status_code == 404
        assert (await client.send(body, accept="application/json")).status_code == 406
        assert (await client.send(body, accept="application/jsonx, text/event-streams")).status_code == 406
        assert (await client.send(body, **{"x-forwarded-for": "203.0.113.9"})).status_code == 401
        assert is_short(await client.call("one__echo"))
        await client.http.delete(client.url, headers={"mcp-session-id": client.session or ""})
        assert (await client.send(body)).status_code == 404


async def test_a_modern_request_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    """The headers that name method and tool have to say what the body says."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway, LATEST_MODERN) as client:
        meta = {VERSION_KEY: LATEST_MODERN, CLIENT_CAPABILITIES_KEY: {}}
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","_meta":%b}}' % dumped(meta)
        fine = {"mcp-protocol-version": LATEST_MODERN, "mcp-method": "tools/call", "mcp-name": "one__echo"}
        assert (await client.send(body, **fine)).status_code == 200
        for wrong in ({"mcp-name": "one__fails"}, {"mcp-method": "tools/list"}):
            response = await client.send(body, **{**fine, **wrong})
            assert response.status_code == 400
            assert response.json()["error"]["code"] == -32020
        # What is compared is what they mean, not how they are written.
        escaped = body.replace(b"one__echo", b"one__ech\\u006f")
        assert (await client.send(escaped, **fine)).status_code == 200
        assert (await client.send(escaped, **{**fine, "mcp-name": "one__ech\\u006f"})).status_code == 400


async def test_a_server_that_forgot_our_session_is_greeted_anew(tmp_path: Path) -> None:
    """A plain call that finds its server restarted is sent again in a new session, once."""
    with http_toy() as served:
        entry = {"url": served.url}
        async with open_gateway(tmp_path, {"one": entry}) as gateway, caller(gateway) as client:
            await client.call("one__echo")
            served.forget_sessions()
            assert answer_in(await client.call("one__echo", b'{"n":1}'))["result"]["content"][0]["text"] == '{"n": 1}'


async def test_nothing_is_left_behind_by_calls(tmp_path: Path) -> None:
    """Neither places among the open requests, nor presences, nor calls to be taken back."""
    with http_toy(manners=Manners(stream=True)) as served:
        servers = {"one": toy(), "two": {"url": served.url}}
        async with open_gateway(tmp_path, servers) as gateway, caller(gateway) as client:
            for name in ("echo", "fails", "refuses", "log"):
                await asyncio.gather(*(client.call(f"{server}__{name}") for server in servers for _ in range(4)))
            for server in gateway.board.servers.values():
                [held] = server._connections.values()
                assert held.active == 0
                assert not held._question_owners._in_flight
                assert held.peer._verbatim == 0
            assert not gateway.front._fast_path._calls


STRAY = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message.get("method") == "tools/list":
        result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    elif message.get("method") == "tools/call":
        print("this is no JSON", flush=True)
        result = {"content": [], "_meta": {"own": 1}}
    else:
        continue
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_stray_output_of_a_server_does_not_harm_its_calls(tmp_path: Path) -> None:
    """A line that is no message is passed over, also between a plain call and its answer."""
    script = tmp_path / "stray.py"
    script.write_text(STRAY, "utf-8")
    async with open_gateway(tmp_path, {"s": {"command": sys.executable, "args": [str(script)]}}) as gateway:
        async with caller(gateway) as client:
            for _ in range(3):
                assert answer_in(await client.call("s__t"))["result"] == {"content": [], "_meta": {"own": 1}}


@pytest.mark.parametrize(
    "arguments", [b'{"a":' * 250 + b"1" + b"}" * 250, rb'{"\ud800":1}'], ids=["deep", "half a pair"]
)
async def test_what_the_full_path_cannot_read_is_not_begun(tmp_path: Path, arguments: bytes) -> None:
    """It could not go on there; so it is refused before anything is done, with its own words."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        refused = await client.call("one__echo", arguments)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == -32700
        seen = json.loads(answer_in(await client.call("one__seen"))["result"]["content"][0]["text"])
        assert seen["calls"] == 2


async def test_a_result_over_several_lines_is_one_line_for_a_client_over_a_pipe(tmp_path: Path) -> None:
    """Each line would be taken for a message of its own, and a server could write one there."""
    async with verbatim_server() as server:
        server.result = (
            b'{\n  "content": [],\r\n  "own":\n{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}\n}'
        )
        config = write_config(tmp_path / "pegboard.json", {"v": {"url": server.url}})
        async with stdio_client(config, LATEST_HANDSHAKE) as client:
            await client.until_listed(lambda names: "v__odd" in names)
            for _ in range(3):
                result = await client.call("v__odd", {})
                assert result["own"] == {"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage"}
            assert client.questions == []


async def test_a_server_that_dies_fails_its_calls_at_once(tmp_path: Path) -> None:
    """The client hears why, and not only when the server has been started again."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, caller(gateway) as client:
        await client.call("one__echo")
        greeted: list[object] = []
        server = gateway.board.servers["one"]
        meet = server.connect

        async def met(*args: Any) -> Any:
            greeted.append(args)
            return await meet(*args)

        server.connect = met  # type: ignore[method-assign]
        died = answer_in(await client.call("one__die", b'{"code":9,"words":"ouch"}'))["result"]
        assert "ouch" in died["content"][0]["text"]
        assert not greeted


async def test_calls_over_a_pipe_take_the_fast_path_too(tmp_path: Path) -> None:
    """A client over stdio has many calls answered at once, each with its own answer."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    for version in (LATEST_HANDSHAKE, LATEST_MODERN):
        async with stdio_client(config, version) as client:
            await client.until_listed(lambda names: "one__echo" in names)
            texts = await asyncio.gather(*(client.text("one__echo", {"n": n}) for n in range(40)))
            assert texts == [f'{{"n": {n}}}' for n in range(40)]
