"""A call that is put on the wire as it is: what its answer may look like, and what becomes of it when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pegboard.config import ServerSpec
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.errors import RpcError
from pegboard.servers.http import call_response
from pegboard.servers.http.client import SessionExpired, Unreachable, WrongStatus, is_unacted
from pegboard.servers.http.refusal import NeedsAuth, RequestForbidden
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Params
from pegboard.servers.transports import streamable_http
from pegboard.servers.transports.streamable_http import StreamableHttpTransport
from servers.listening import Asked, Listener, Script, in_turn, listening, ok, until

pytestmark = pytest.mark.anyio

JSON, EVENTS = "content-type: application/json", "content-type: text/event-stream; charset=utf-8"
ANSWER = b'{"jsonrpc":"2.0","id":1,"result": {"b":1e400, "a":18446744073709551617,"t":"\\u00e9"}}'
RESULT = b'{"b":1e400, "a":18446744073709551617,"t":"\\u00e9"}'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
NEWS = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"news"}}'


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(text), text)


LAST = b"0\r\n\r\n"


def event(data: bytes, *fields: bytes) -> bytes:
    return b"".join(field + b"\n" for field in fields) + b"data: " + data + b"\n\n"


@dataclass
class Stage:
    """A link to a server that a script plays."""

    listener: Listener
    link: JsonRpcPeer
    wire: StreamableHttpTransport
    heard: list[str]

    async def put(self, timeout: float = 20) -> Any:
        """A plain call; its result, or what went wrong."""
        number, pending = self.link.open(timeout, verbatim=True)
        self.wire.send_raw(number, b'{"jsonrpc":"2.0","id":%d,"method":"tools/call"}' % number, None)
        return await self.link.outcome(number, pending, "tools/call", timeout)

    async def fully(self) -> Any:
        """A call on the full path."""
        return await self.link.request("tools/call", {}, timeout=20)


@asynccontextmanager
async def staged(script: Script | bytes, **settings: Any) -> AsyncGenerator[Stage]:
    """A stage on which nothing is left behind."""
    async with listening(script) as listener:
        spec = ServerSpec(name="toy", given_name="toy", transport="http", url=listener.url, **settings)
        wire, heard = StreamableHttpTransport(spec), list[str]()

        def hear(method: str, params: Params, origin: int | None) -> None:
            heard.append(f"{params['data']} of {origin}")

        link = JsonRpcPeer(wire, label="toy", on_notification=hear)
        await wire.start(link)
        yield Stage(listener, link, wire, heard)
        async with asyncio.timeout(20):
            await link.close()
        assert not link._pending
        assert not link._verbatim
        assert not wire._responses
        assert not wire._resuming
        assert not wire._tasks


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable_http, "_RESUME_PAUSE", 0.0)
    monkeypatch.setattr(streamable_http, "_SHORTEST_PAUSE", 0.0)
    # On a busy machine a stream may take a while to end.
    monkeypatch.setattr(call_response, "_LAST_WORDS", 20.0)


WAYS = {
    "json": ok(ANSWER, JSON),
    "one event": STREAM + chunk(event(ANSWER)) + LAST,
    "event in pieces": STREAM + b"".join(chunk(bytes([each])) for each in event(ANSWER)) + LAST,
    "crlf": STREAM + chunk(b"event: message\r\ndata: " + ANSWER + b"\r\n\r\n") + LAST,
    "cr": STREAM + chunk(b"data: " + ANSWER + b"\r\r: and no more\r") + LAST,
    "several lines": STREAM + chunk(b"data: " + ANSWER.replace(b',"id"', b',\ndata:"id"') + b"\n\n") + LAST,
    "bom and comments": STREAM + chunk(b"\xef\xbb\xbf: hello\n\n: \n" + event(ANSWER)) + LAST,
    "other events": STREAM + chunk(event(b"x", b"event: ping") + event(b"", b"id: 1") + event(ANSWER)) + LAST,
    "with a length": ok(event(ANSWER), EVENTS),
}


@pytest.mark.parametrize("answer", WAYS.values(), ids=WAYS)
async def test_a_result_comes_out_as_the_bytes_it_was(answer: bytes) -> None:
    """As JSON or as an event, however that is written; and the connection serves the next call."""
    second = answer.replace(b'"id":1', b'"id":2')
    if second == answer:
        second = ok(ANSWER.replace(b'"id":1', b'"id":2'), JSON)
    async with staged(in_turn(answer, second)) as stage:
        assert [await stage.put(), await stage.put()] == [RESULT, RESULT]
        assert stage.listener.connections == 1


async def test_what_is_said_before_the_answer_is_heard_with_its_call() -> None:
    """In the order in which it was said."""
    said = event(NEWS) + event(NEWS.replace(b"news", b"more")) + event(ANSWER)
    async with staged(STREAM + chunk(said) + LAST) as stage:
        assert await stage.put() == RESULT
        assert stage.heard == ["news of 1", "more of 1"]


async def test_a_batch_brings_its_answer() -> None:
    """As servers of 2025-03-26 may send it; it was read in full, and stays so."""
    batch = b'[%b,{"jsonrpc":"2.0","id":1,"result":{"a":1}}]' % NEWS
    async with staged(ok(batch, JSON)) as stage:
        assert await stage.put() == {"a": 1}
        assert stage.heard == ["news of 1"]


async def test_an_error_is_passed_on() -> None:
    """With its code, words and data."""
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":[1]}}'
    async with staged(ok(error, JSON)) as stage:
        with pytest.raises(RpcError) as caught:
            await stage.put()
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32602, "no", [1])


@pytest.mark.parametrize("way", ["put", "fully"])
@pytest.mark.parametrize("size", [1_000, 70_000])
async def test_the_error_in_a_refusal_is_read_if_it_is_short(way: str, size: int) -> None:
    """A long one is not even parsed: the status says enough."""
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"%b"}}' % (b"x" * size)
    head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(error)
    async with staged(head + error) as stage:
        with pytest.raises(RpcError if size < 65_536 else WrongStatus):
            await getattr(stage, way)()


async def test_a_long_batch_brings_its_answer() -> None:
    """Message by message; what is no message in it is left out."""
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
    batch = b"[%b,[1],%b%b]" % (NEWS, b"{}," * 30_000, answer)
    async with staged(ok(batch, JSON)) as stage:
        assert await stage.put() in ({"a": 1}, b'{"a":1}')
        assert stage.heard == ["news of 1"]


USELESS = {
    "nothing": ok(b"", JSON),
    "no json": ok(b"{", JSON),
    "no utf-8": ok(ANSWER.replace(b"\\u00e9", b"\xe9"), JSON),
    "another call's": ok(ANSWER.replace(b'"id":1', b'"id":7'), JSON),
    "no object": ok(b"[]", JSON),
    "no result": ok(b'{"jsonrpc":"2.0","id":1,"result":[]}', JSON),
    "html": ok(b"<html>", "content-type: text/html"),
    "accepted": b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
    "event without json": STREAM + chunk(event(b'{"jsonrpc":"2.0","id":1,')) + LAST,
}


@pytest.mark.parametrize("answer", USELESS.values(), ids=USELESS)
async def test_an_answer_that_cannot_be_used_costs_its_own_call(answer: bytes) -> None:
    """And is not worth another try."""
    async with staged(answer) as stage:
        with pytest.raises(ToolFailure) as caught:
            await stage.put()
        assert caught.value.error.code is ToolErrorCode.EXECUTION_FAILED
        assert not caught.value.error.retryable


async def test_the_answer_to_another_call_is_not_ours() -> None:
    """That one has it then, and ours is told that it has none."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len(stage.listener.asked) == 2:
            writer.write(ok(ANSWER, JSON))
        else:
            await asyncio.Event().wait()

    async with staged(script) as stage:
        first = asyncio.create_task(stage.put())
        await until(lambda: len(stage.listener.asked) == 1)
        with pytest.raises(ToolFailure, match="no answer to the request"):
            await stage.put()
        assert await first == RESULT
        # As whoever waits for it no longer would have it.
        stage.wire.cancel(1, "over")


@pytest.mark.parametrize("kind", [JSON, EVENTS])
async def test_an_answer_that_is_too_large_is_refused_before_it_is_read(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON and as an event: nobody can fill the memory with one."""
    monkeypatch.setattr(call_response, "MAX_MESSAGE_BYTES", 1000)
    answer = f"HTTP/1.1 200 OK\r\n{kind}\r\n\r\n".encode() + b"data: " + b"x" * 5000
    async with staged(answer) as stage:
        with pytest.raises(ToolFailure, match="larger than"):
            await stage.put()
        await until(lambda: stage.listener.ended == 1)


RPC_ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"not today"}}'


@pytest.mark.parametrize("way", ["put", "fully"])
@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, b"", WrongStatus, False),
        (400, RPC_ERROR, RpcError, None),
        (401, b"", NeedsAuth, False),
        (401, RPC_ERROR, NeedsAuth, False),
        (403, b"<html>", RequestForbidden, False),
        (403, RPC_ERROR, RequestForbidden, False),
        (404, b"", WrongStatus, False),
        (404, RPC_ERROR, RpcError, None),
        (429, b"slower", WrongStatus, True),
        (500, b"\xff\xfe", WrongStatus, True),
        (500, RPC_ERROR, RpcError, None),
        (503, b'{"error":"no code"}', WrongStatus, True),
    ],
)
async def test_a_refusal_is_told_alike_on_both_paths(
    way: str, status: int, body: bytes, kind: type[Exception], *, retryable: bool | None
) -> None:
    """The server's own error if it has one, else what the status means; the connection stays."""
    async with staged(ok(body, JSON, status=f"{status} No")) as stage:
        for _ in range(2):
            with pytest.raises(kind) as caught:
                await (stage.put() if way == "put" else stage.fully())
            if isinstance(caught.value, ToolFailure):
                assert caught.value.error.retryable is retryable
                assert (caught.value.error.code is ToolErrorCode.RATE_LIMITED) is (status == 429)
        assert stage.listener.connections == 1


@pytest.mark.parametrize("way", ["put", "fully"])
@pytest.mark.parametrize(
    ("said", "least", "most"),
    [("30", 30, 30), ("Fri, 31 Dec 2100 23:59:59 GMT", 3600, 3600), ("soon", 0, 0), ("0", 0, 0)],
)
async def test_how_long_a_pause_a_server_asks_for_is_said(way: str, said: str, least: float, most: float) -> None:
    """`Retry-After` in seconds or as a date, an hour at most; what is neither does not count."""
    async with staged(ok(b"slower", JSON, f"retry-after: {said}", status="429 Too Many")) as stage:
        with pytest.raises(WrongStatus) as caught:
            await (stage.put() if way == "put" else stage.fully())
    assert least <= caught.value.error.retry_after <= most
    assert ("and asks for a pause of" in str(caught.value)) is (most > 0)


async def test_a_session_that_is_gone_is_told_apart() -> None:
    """The server has not acted on it, and a new session will do."""
    answers = (ok(ANSWER, JSON, "mcp-session-id: s1"), ok(b"", status="404 Not Found"), ok(b""))
    async with staged(in_turn(*answers)) as stage:
        await stage.put()
        with pytest.raises(SessionExpired) as caught:
            await stage.put()
        assert is_unacted(caught.value)
        assert [each.headers.get("mcp-session-id") for each in stage.listener.asked] == [None, "s1"]


async def test_a_stream_that_goes_on_after_its_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is over at once, and a moment later nothing of it is left on either side."""
    monkeypatch.setattr(call_response, "_LAST_WORDS", 0.01)
    async with staged(STREAM + chunk(event(ANSWER) + b": and on")) as stage:
        assert await stage.put() == RESULT
        await until(lambda: stage.listener.ended == 1)
        assert not stage.wire._responses


async def test_a_stream_that_breaks_before_its_answer_is_a_broken_connection() -> None:
    """Nobody can say whether the server acted: it is not sent again."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(event(NEWS)) + (LAST if asked.connection == 1 else b""))
        await writer.drain()
        writer.close()

    async with staged(script) as stage:
        for _ in range(2):
            with pytest.raises(Unreachable) as caught:
                await stage.put()
            assert not is_unacted(caught.value)


@pytest.mark.parametrize("ended", [True, False])
async def test_a_stream_with_ids_is_taken_up_where_it_broke_off(*, ended: bool) -> None:
    """By a GET that names the last event, as often as it gets further."""
    following = [event(NEWS, b"id: e2"), event(NEWS.replace(b"news", b"more"), b"id: e3"), event(ANSWER, b"id: e4")]

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        text = event(b"", b"id: e1") if asked.method == "POST" else following.pop(0)
        writer.write(STREAM + chunk(text) + (LAST if ended else b""))
        await writer.drain()
        if not ended:
            writer.close()

    async with staged(script) as stage:
        assert await stage.put() == RESULT
        assert [each.method for each in stage.listener.asked] == ["POST", "GET", "GET", "GET"]
        assert [each.headers.get("last-event-id") for each in stage.listener.asked] == [None, "e1", "e2", "e3"]
        assert stage.heard == ["news of 1", "more of 1"]


async def test_a_stream_that_gets_no_further_is_given_up() -> None:
    """After a few tries the call is told."""
    answers = (STREAM + chunk(event(b"", b"id: e1")) + LAST, ok(b"", status="405 No"))
    async with staged(in_turn(*answers)) as stage:
        with pytest.raises(Unreachable):
            await stage.put()


async def test_giving_up_a_call_ends_what_takes_up_its_stream() -> None:
    """The server sees that nobody listens, and nothing is left here."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + (chunk(event(b"", b"id: e1")) + LAST if asked.method == "POST" else chunk(b": wait\n\n")))

    async with staged(script) as stage:
        stage.wire.on_negotiated("modern", "2026-07-28")
        task = asyncio.create_task(stage.put())
        await until(lambda: len(stage.listener.asked) == 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: not stage.wire._tasks and stage.listener.ended > 0)


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("answer", [b"", STREAM + chunk(event(NEWS))])
async def test_giving_up_a_call_ends_its_connection(answer: bytes, *, modern: bool) -> None:
    """The server sees that nobody listens; one of the handshake era is told in words, too."""
    async with staged(in_turn(answer, b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")) as stage:
        stage.wire.on_negotiated("modern" if modern else "handshake", "2025-11-25")
        call = asyncio.create_task(stage.put())
        await until(lambda: len(stage.listener.asked) == 1 and (not answer or bool(stage.heard)))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: stage.listener.ended >= 1 and len(stage.listener.asked) == (1 if modern else 2))
        assert modern or b"notifications/cancelled" in stage.listener.asked[1].body
        await until(lambda: not stage.wire._tasks)


async def test_a_call_that_takes_too_long_is_told_so() -> None:
    """Whether or not it has got as far as the server by then."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with staged(script) as stage:
        with pytest.raises(ToolFailure, match="timed out"):
            await stage.put(timeout=0.01)
        assert not stage.wire._responses


async def test_a_connection_that_breaks_or_is_none_is_told() -> None:
    """Only where nothing was sent may it be sent again."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with staged(script) as stage:
        with pytest.raises(Unreachable) as caught:
            await stage.put()
        assert not is_unacted(caught.value)
        stage.wire._direct._pool._port = 1  # pyright: ignore[reportOptionalMemberAccess]
        with pytest.raises(Unreachable) as caught:
            await stage.put()
        assert is_unacted(caught.value)


async def test_closing_ends_calls_on_both_paths_at_once() -> None:
    """Nobody waits for its time limit to hear that Pegboard itself has gone."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with staged(script) as stage:
        calls = [asyncio.create_task(stage.put()), asyncio.create_task(stage.fully())]
        await until(lambda: len(stage.listener.asked) == 2)
        await stage.link.close()
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, ToolFailure) for each in outcomes)
        with pytest.raises(ToolFailure):
            await stage.put()


def moving(status: str, location: str) -> Script:
    """A server whose address has moved."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.line.startswith("POST /mcp/ "):
            number = asked.body.partition(b'"id":')[2].partition(b",")[0]
            writer.write(ok(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % number, JSON))
        else:
            writer.write(ok(b"moved", f"location: {location}", status=status))

    return script


@pytest.mark.parametrize("status", ["307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("location", ["/mcp/", "mcp/", "http://127.0.0.1:{port}/mcp/"])
async def test_a_redirect_within_the_origin_is_followed_on_the_full_path(status: str, location: str) -> None:
    """A plain call that meets one has not been acted on, and the next ones take the full path at once."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await moving(status, location.format(port=stage.listener.port))(asked, writer)

    async with staged(script) as stage:
        assert stage.wire.is_ready
        with pytest.raises(ToolFailure) as caught:
            await stage.put()
        assert is_unacted(caught.value)
        assert not stage.wire.is_ready
        assert await stage.fully() == {}
        assert stage.listener.asked[-1].body == stage.listener.asked[-2].body


@pytest.mark.parametrize(
    ("status", "location"),
    [
        ("302 Found", "/mcp/"),
        ("303 See Other", "/mcp/"),
        ("307 Temporary", "http://127.0.0.2/mcp/"),
        ("307 Temporary", "https://127.0.0.1/mcp/"),
        ("308 Permanent", "http://["),
        ("308 Permanent", "/mcp"),
    ],
)
async def test_any_other_redirect_is_refused(status: str, location: str) -> None:
    """It would change the request, or carry credentials to somebody else, or go round in a circle."""
    async with staged(moving(status, location), headers={"authorization": "Bearer x"}) as stage:
        with pytest.raises(ToolFailure, match="redirects") as caught:
            await stage.fully()
        assert not caught.value.error.retryable
        assert {each.line for each in stage.listener.asked} == {"POST /mcp HTTP/1.1"}


async def test_cookies_keep_a_session_on_its_machine_on_both_paths() -> None:
    """Whichever call it was that set them, and changed them later."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = asked.body.partition(b'"id":')[2].partition(b",")[0]
        cookie = f"set-cookie: node=n{number.decode()}; Path=/; Secure; Partitioned"
        writer.write(ok(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % number, JSON, cookie, "set-cookie: b=1"))

    async with staged(script) as stage:
        for call in (stage.put, stage.fully, stage.put, stage.put):
            await call()
        said = [each.headers.get("cookie") for each in stage.listener.asked]
        assert said == [None, "node=n1; b=1", "node=n2; b=1", "node=n3; b=1"]


async def test_a_head_says_what_every_call_needs() -> None:
    """The configured headers, the era's, the tool's name as a header can carry it, and where the body ends."""
    async with staged(
        in_turn(ok(ANSWER, JSON), ok(ANSWER.replace(b'"id":1', b'"id":2'), JSON)), headers={"X-Key": "k"}
    ) as stage:
        stage.wire.on_negotiated("modern", "2026-07-28")
        for name in ("add", "größer\r\nevil: 1"):
            number, pending = stage.link.open(20, verbatim=True)
            stage.wire.send_raw(number, b"{}", name)
            await stage.link.outcome(number, pending, "tools/call", 20)
        first, second = (each.headers for each in stage.listener.asked)
        assert first["host"] == f"127.0.0.1:{stage.listener.port}"
        assert (first["x-key"], first["mcp-name"], first["mcp-method"]) == ("k", "add", "tools/call")
        assert (first["accept"], first["content-length"]) == ("application/json, text/event-stream", "2")
        assert second.keys() == first.keys()
        assert second["mcp-name"].isascii()
