"""The HTTP/1.1 client: what comes over a connection, when one is used again, and who is told when it breaks."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import pytest

from pegboard.servers.http import pool as pool_module
from pegboard.servers.http.happy_eyeballs import describe_failure
from pegboard.servers.http.pool import ConnectionFailed, ConnectionPool, Exchange
from pegboard.servers.http.response import Response
from servers.listening import Asked, in_turn, listening, ok, until

pytestmark = pytest.mark.anyio

ASK = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """On both loops that Pegboard runs on."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@asynccontextmanager
async def pooled(port: int, *, connect_timeout: float | None = 20) -> AsyncGenerator[ConnectionPool]:
    """A pool that must leave nothing behind, whatever was done with it."""
    before = asyncio.all_tasks()
    pool = ConnectionPool("127.0.0.1", port, tls=None, connect_timeout=connect_timeout)
    try:
        yield pool
    finally:
        async with asyncio.timeout(20):
            await pool.close()
    assert not pool._connections
    assert not pool._connecting
    assert not pool._waiting
    assert not pool._idle
    assert pool._sweep is None or pool._sweep.cancelled()
    left = {task for task in asyncio.all_tasks() - before if "Listener.serve" not in repr(task)}
    assert not left


def sent(pool: ConnectionPool, data: bytes = ASK) -> Response:
    response = Response()
    response.exchange = pool.send(data, response)
    return response


async def whole(response: Response) -> bytes:
    async with asyncio.timeout(20):
        await response.wait_for_head()
        return b"".join([part async for part in response.aiter_bytes()])


async def asked(pool: ConnectionPool, data: bytes = ASK) -> bytes:
    return await whole(sent(pool, data))


def begun(response: Response) -> Exchange:
    assert response.exchange is not None
    return response.exchange


@contextmanager
def only(connections: int, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """As if no more connections were allowed."""
    with monkeypatch.context() as patched:
        patched.setattr(pool_module, "MAX_CONNECTIONS", connections)
        yield


async def hanging(asked: Asked, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


KEPT = {
    "length": ok(b"hello"),
    "empty": ok(b""),
    "chunks": CHUNKED + b"2\r\nhe\r\n3;note=1\r\nllo\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 1\r\nset-cookie: a=1\r\n\r\n",
    "go on": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + ok(b"hello"),
    "gzip": ok(gzip.compress(b"hello"), "content-encoding: gzip"),
    "zlib": ok(zlib.compress(b"hello"), "content-encoding: deflate"),
    "bare deflate": ok(zlib.compress(b"hello", wbits=-15), "content-encoding: Deflate"),
    "gzip twice": ok(gzip.compress(b"hel") + gzip.compress(b"lo"), "content-encoding: x-gzip"),
    "old but kept": b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello",
    "no words": b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
}
CLOSED = {
    "old": b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "said so": ok(b"hello", "connection: close"),
}


@pytest.mark.parametrize("answer", KEPT.values(), ids=KEPT)
async def test_an_answer_is_read_however_it_is_cut_and_its_connection_used_again(answer: bytes) -> None:
    """Lengths, chunks, trailers, interim answers and compression, whole and byte by byte, on one connection."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        for number in range(len(answer)) if asked.body == b"by" else ():
            writer.write(answer[number : number + 1])
            await asyncio.sleep(0)
        if asked.body != b"by":
            writer.write(answer)

    expected = b"" if answer in {KEPT["empty"], KEPT["no content"]} else b"hello"
    async with listening(script) as listener, pooled(listener.port) as pool:
        assert await asked(pool) == expected
        assert await asked(pool, ASK[:-2] + b"by") == expected
        assert await asked(pool) == expected
        assert listener.connections == 1


@pytest.mark.parametrize("answer", CLOSED.values(), ids=CLOSED)
async def test_a_connection_that_is_not_kept_is_not_used_again(answer: bytes) -> None:
    """HTTP/1.0, and whoever says `Connection: close`."""
    async with listening(answer) as listener, pooled(listener.port) as pool:
        assert [await asked(pool), await asked(pool)] == [b"hello", b"hello"]
        assert listener.connections == 2


@pytest.mark.parametrize("coded", [False, True])
async def test_an_answer_without_a_length_ends_with_its_connection(*, coded: bool) -> None:
    """As HTTP/1.0 servers do it, compressed or not."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\n" + (b"content-encoding: gzip\r\n" if coded else b"") + b"\r\n"
        writer.write(head + (gzip.compress(b"hello") if coded else b"hello"))
        writer.close()

    async with listening(script) as listener, pooled(listener.port) as pool:
        assert await asked(pool) == b"hello"


CUT_SHORT = {
    "nothing": b"",
    "in its head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "before its length": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
    "between chunks": CHUNKED + b"5\r\nhello\r\n",
    "between Chunks": CHUNKED.replace(b"chunked", b"Chunked") + b"5\r\nhello\r\n",
    "packed with a length": ok(gzip.compress(b"hello")[:-4], "content-encoding: gzip"),
    "packed": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"hello")[:-9],
    "after go on": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("answer", CUT_SHORT.values(), ids=CUT_SHORT)
async def test_an_answer_that_breaks_off_is_no_answer(answer: bytes) -> None:
    """Half an answer is never taken for a whole one, and the next request goes out on a new connection."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer if asked.connection == 1 else ok(b"hello"))
        if asked.connection == 1:
            writer.close()

    async with listening(script) as listener, pooled(listener.port) as pool:
        with pytest.raises(ConnectionFailed) as caught:
            await asked(pool)
        assert not caught.value.refused
        assert await asked(pool) == b"hello"


UNUSABLE = {
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "http/2": b"HTTP/2 200\r\ncontent-length: 0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
    "folded header": b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 5\r\n\r\nhello",
    "control character": b"HTTP/1.1 200 OK\r\nx: a\x01b\r\ncontent-length: 5\r\n\r\nhello",
    "other protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello",
    "not packed": ok(b"hello, this is not packed", "content-encoding: gzip"),
    "packed wrongly": ok(gzip.compress(b"hello")[:-8] + b"12345678", "content-encoding: gzip"),
    "endless header": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 400_000,
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"x: a\r\n" * 80_000,
    "endless go on": b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
    "endless trailer": CHUNKED + b"0\r\nx: " + b"a" * 400_000,
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
async def test_what_is_no_answer_costs_its_own_request_and_connection_alone(answer: bytes) -> None:
    """Garbage, contradictions about the length, and heads without an end are refused, and never held for long."""
    async with listening(in_turn(answer, ok(b"hello"))) as listener, pooled(listener.port) as pool:
        with pytest.raises(ConnectionFailed):
            await asked(pool)
        assert await asked(pool) == b"hello"
        assert listener.connections == 2


async def test_trailers_have_no_say() -> None:
    """What stands behind a body sets no cookie and no session."""
    answer = (
        CHUNKED.replace(b"\r\n\r\n", b"\r\nx: 1\r\nx: 2\r\n\r\n") + b"0\r\nset-cookie: a=1\r\nmcp-session-id: 9\r\n\r\n"
    )
    async with listening(answer) as listener, pooled(listener.port) as pool:
        response = sent(pool)
        await whole(response)
        assert response.headers == {"transfer-encoding": "chunked", "x": "1"}


@pytest.mark.parametrize("more", [ok(b"forged"), b"HTTP/1.1 2", b"rubbish"])
async def test_an_answer_that_nobody_asked_for_is_never_the_next_ones(
    more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a connection gets a clean one, not what else came over that of somebody else."""
    with only(1, monkeypatch):
        async with listening(in_turn(ok(b"first") + more, ok(b"second"))) as listener, pooled(listener.port) as pool:
            first, second = sent(pool), sent(pool)
            assert [await whole(first), await whole(second)] == [b"first", b"second"]
            assert [each.connection for each in listener.asked] == [1, 2]


async def test_what_comes_over_an_idle_connection_ends_it() -> None:
    """A server that speaks without being asked (a 408, mostly) does not get the next request."""
    said = asyncio.Event()

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(b"hello"))
        await writer.drain()
        if asked.connection == 1:
            await said.wait()
            writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")

    async with listening(script) as listener, pooled(listener.port) as pool:
        assert await asked(pool) == b"hello"
        said.set()
        await until(lambda: listener.ended == 1)
        assert await asked(pool) == b"hello"
        assert listener.connections == 2


def _closing_after_one(server: socket.socket, answered: threading.Event, closed: threading.Event) -> None:
    for number in range(2):
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(ok(b"hello"))
            if not number:
                answered.wait(20)
        closed.set()


async def test_a_kept_connection_that_was_closed_just_now_is_not_used() -> None:
    """Even where the loop had no time yet to see the end of it, since nobody knows whether such a request arrived."""
    answered, closed = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_closing_after_one, args=(server, answered, closed))
        thread.start()
        async with pooled(server.getsockname()[1]) as pool:
            assert await asked(pool) == b"hello"
            answered.set()
            # The loop stands still meanwhile, and that is the point.
            assert closed.wait(20)
            assert await asked(pool) == b"hello"
        thread.join()


async def test_a_connection_is_not_used_longer_than_its_server_keeps_it() -> None:
    """`Keep-Alive: timeout` counts, less a second for the way there; what it cannot mean is passed over."""
    answers = [ok(b"", "keep-alive: timeout=1, max=100"), ok(b"", "keep-alive: timeout=nan"), ok(b"")]
    async with listening(in_turn(*answers)) as listener, pooled(listener.port) as pool:
        for _ in answers:
            await asked(pool)
        assert [each.connection for each in listener.asked] == [1, 2, 2]


async def test_a_request_that_was_answered_before_it_was_sent_ends_its_connection() -> None:
    """Its rest may never be read, or be read as a request of its own."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(100)
        writer.write(ok(b"too much"))
        await writer.drain()
        reader._transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        await over.wait()
        writer.transport.abort()

    connections, over = 0, asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with pooled(server.sockets[0].getsockname()[1]) as pool:
        assert await asked(pool, ASK[:-2] + b"x" * 30_000_000) == b"too much"
        assert await asked(pool) == b"too much"
        assert connections == 2
        over.set()
    server.close()


async def test_a_bomb_is_unpacked_no_faster_than_it_is_read() -> None:
    """A few bytes that would fill the memory are held back until somebody takes what came of them so far."""
    size = 40_000_000
    answer = ok(gzip.compress(b"0" * size), "content-encoding: gzip")
    async with listening(answer) as listener, pooled(listener.port) as pool:
        response = sent(pool)
        await response.wait_for_head()
        line = begun(response).connection
        assert line is not None
        await until(lambda: line._backlog._paused)
        assert sum(len(part) for part in response._parts) < size / 10
        assert len(await whole(response)) == size


async def test_a_large_packed_answer_is_whole() -> None:
    """Unpacking piece by piece loses nothing at the seams."""
    text = b"".join(b"%d," % number for number in range(300_000))
    for packed in (gzip.compress(text, 1), zlib.compress(text, 1, wbits=-15)):
        async with listening(ok(packed, "content-encoding: deflate")) as listener, pooled(listener.port) as pool:
            assert await asked(pool) == text


async def test_who_waits_for_a_connection_is_served_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """First come, first served; who gave up is passed over, and its request never sent."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(asked.body))

    with only(1, monkeypatch):
        async with listening(script) as listener, pooled(listener.port) as pool:
            responses = [sent(pool, ASK[:-2] + b"%02d" % number) for number in range(20)]
            for given_up in responses[3:6]:
                begun(given_up).abandon()
            answers = [await whole(response) for response in (*responses[:3], *responses[6:])]
            assert answers == [b"%02d" % number for number in (0, 1, 2, *range(6, 20))]
            assert [each.body for each in listener.asked] == answers
            assert listener.connections == 1


async def test_all_who_wait_hear_that_nothing_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last connection breaks and no other can be made, nobody is left waiting for one."""
    with only(1, monkeypatch):
        asked_once = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            server.close()
            writer.transport.abort()
            asked_once.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with pooled(server.sockets[0].getsockname()[1]) as pool:
            outcomes = await asyncio.gather(*(asked(pool) for _ in range(5)), return_exceptions=True)
            assert asked_once.is_set()
            assert [isinstance(each, ConnectionFailed) and each.refused for each in outcomes] == [
                False,
                True,
                True,
                True,
                True,
            ]


async def test_no_connection_is_a_refusal() -> None:
    """Then nothing was sent, and it can be sent again without harm."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with pooled(port) as pool:
        with pytest.raises(ConnectionFailed) as caught:
            await asked(pool)
        assert caught.value.refused


async def test_whatever_fails_in_connecting_is_told() -> None:
    """A host that cannot even be looked up leaves nobody waiting."""
    pool = ConnectionPool("a" * 70, 80, tls=None, connect_timeout=20)
    with pytest.raises(ConnectionFailed) as caught:
        await asked(pool)
    assert caught.value.refused
    await pool.close()


async def test_a_connection_that_takes_too_long_is_a_refusal() -> None:
    """The time limit covers TLS, which a server may never begin."""
    async with listening(hanging) as listener:
        pool = ConnectionPool("127.0.0.1", listener.port, tls=ssl.create_default_context, connect_timeout=0.05)
        with pytest.raises(ConnectionFailed, match="no connection in time") as caught:
            await asked(pool)
        assert caught.value.refused
        await pool.close()


async def test_closing_ends_what_connects_what_waits_and_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyone is told at once, and afterwards nothing can be sent."""
    with only(2, monkeypatch):
        async with listening(hanging) as listener:
            stuck = ConnectionPool("127.0.0.1", listener.port, tls=ssl.create_default_context, connect_timeout=20)
            async with pooled(listener.port) as pool:
                tasks = [asyncio.create_task(asked(each)) for each in (pool, pool, pool, stuck)]
                await until(lambda: len(listener.asked) == 2 and listener.connections == 3)
                await pool.close()
                await stuck.close()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                assert [str(each) for each in outcomes] == ["the connection was closed by Pegboard"] * 4
                with pytest.raises(ConnectionFailed):
                    sent(pool)


async def test_closing_in_the_middle_of_a_body_ends_it() -> None:
    """Whoever reads a stream hears that it is over."""
    async with listening(CHUNKED + b"5\r\nhello\r\n") as listener, pooled(listener.port) as pool:
        response = sent(pool)
        await response.wait_for_head()
        parts = response.aiter_bytes()
        assert await anext(parts) == b"hello"
        await pool.close()
        with pytest.raises(ConnectionFailed):
            await anext(parts)


async def test_a_slow_reader_makes_the_server_wait() -> None:
    """What is not read stays with the server, and then comes to the last byte."""
    total, piece = 40, b"x" * 1_000_000
    written = 0

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (total * len(piece)))
        for _ in range(total):
            writer.write(piece)
            await writer.drain()
            written += 1

    async with listening(script) as listener, pooled(listener.port) as pool:
        response = sent(pool)
        await response.wait_for_head()
        for _ in range(2000):
            await asyncio.sleep(0)
        assert written < total / 2
        assert response._size < 4_000_000
        assert len(await whole(response)) == total * len(piece)
        assert await whole(sent(pool))
        assert listener.connections == 1


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nx: ", CHUNKED + b"5\r\nhello\r\n"])
async def test_an_answer_that_nobody_wants_any_more_ends_its_connection(answer: bytes) -> None:
    """Before it, in its head and in its body: the server sees that nobody listens, and the next one is served."""
    async with listening(in_turn(answer, ok(b"hello"))) as listener, pooled(listener.port) as pool:
        response = sent(pool)
        await until(lambda: len(listener.asked) == 1)
        for _ in range(5):
            await asyncio.sleep(0)
        begun(response).abandon()
        begun(response).abandon()
        await until(lambda: listener.ended == 1)
        assert await asked(pool) == b"hello"


async def test_giving_up_while_connecting_sends_nothing() -> None:
    """The connection stays for the next request."""
    async with listening(ok(b"hello")) as listener, pooled(listener.port) as pool:
        begun(sent(pool)).abandon()
        await until(lambda: listener.connections == 1)
        assert await asked(pool) == b"hello"
        assert [each.connection for each in listener.asked] == [1]


async def test_a_finished_answer_has_no_say_over_its_connection() -> None:
    """Whoever reads it late neither holds up nor hurries the next one on the same connection."""
    async with listening(in_turn(ok(b"x" * 10), CHUNKED + b"3\r\nabc\r\n")) as listener, pooled(listener.port) as pool:
        first = sent(pool)
        await whole(first)
        second = sent(pool)
        await second.wait_for_head()
        line = begun(second).connection
        assert line is not None
        assert begun(first).connection is line
        begun(second).pause()
        begun(first).resume()
        begun(first).abandon()
        assert line._backlog._paused
        assert line.is_usable
        assert listener.connections == 1


async def test_a_server_that_hangs_up_at_once_leaves_nobody_waiting() -> None:
    """It is told as a connection that broke, and does not count as one of those that are open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with pooled(server.sockets[0].getsockname()[1]) as pool:
        for _ in range(5):
            with pytest.raises(ConnectionFailed):
                await asked(pool)
        await until(lambda: not pool._connections)
    server.close()


async def test_idle_connections_are_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that keeps them for ever does not make us keep them, too."""
    monkeypatch.setattr(pool_module, "_IDLE_LIMIT", 0.01)
    async with listening(ok(b"hello")) as listener, pooled(listener.port) as pool:
        assert await asked(pool) == b"hello"
        await until(lambda: listener.ended == 1 and not pool._connections)
        assert pool._sweep is None


def test_a_host_that_is_not_known_is_said_in_words() -> None:
    """With what the system says of it, and without a number."""
    said = describe_failure(socket.gaierror(-2, "Name or service not known"))
    assert said == "the name of its host cannot be resolved (Name or service not known)"


async def test_principals_take_turns_when_all_connections_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has twenty requests waiting does not keep another principal's one waiting for all of them."""
    monkeypatch.setattr(pool_module, "MAX_CONNECTIONS", 1)
    order: list[str] = []

    async def ask(pool: ConnectionPool, principal: str) -> None:
        response = Response(principal)
        response.exchange = pool.send(ASK, response)
        await whole(response)
        order.append(principal)

    async with listening(ok(b"yes")) as listener, pooled(listener.port) as pool:
        many = [asyncio.create_task(ask(pool, "many")) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.gather(asyncio.create_task(ask(pool, "one")), *many)
    assert order.index("one") <= 2
    assert len(order) == 21
