"""A host with several addresses is reached by whichever of them answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import ExitStack

import pytest

from pegboard.servers.http import happy_eyeballs
from pegboard.servers.http.happy_eyeballs import connect
from servers.listening import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def good() -> Generator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def silent() -> Generator[int]:
    """A port that says neither yes nor no, as a network that drops what it does not know."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@pytest.fixture
def refused() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def known_as(monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
    """Have a name stand for these addresses."""

    async def found(*_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in ports]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
    monkeypatch.setattr(happy_eyeballs, "_NEXT_AFTER", 0.01)


def attempts() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if "_connect_to" in repr(task)]


async def port_of(host: str = "host") -> int:
    async with asyncio.timeout(20):
        with await connect(host, 1) as made:
            return made.getpeername()[1]


async def test_a_silent_address_does_not_keep_the_next_one_waiting(
    monkeypatch: pytest.MonkeyPatch, silent: int, good: int
) -> None:
    """And nothing is left of the attempt."""
    known_as(monkeypatch, silent, silent, good)
    assert await port_of() == good
    await until(lambda: not attempts())


async def test_an_address_that_refuses_is_passed_over(monkeypatch: pytest.MonkeyPatch, refused: int, good: int) -> None:
    """As often as it takes, and at once."""
    known_as(monkeypatch, refused, refused, good)
    monkeypatch.setattr(happy_eyeballs, "_NEXT_AFTER", 1000)
    assert await port_of() == good


async def test_the_first_address_is_the_one_if_it_answers(monkeypatch: pytest.MonkeyPatch, good: int) -> None:
    """The system knows which it would rather have."""
    known_as(monkeypatch, good, 1)
    monkeypatch.setattr(happy_eyeballs, "_NEXT_AFTER", 1000)
    assert await port_of() == good


async def test_a_host_that_refuses_everywhere_is_told_as_one_that_refuses(
    monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """By what its first address had to say."""
    known_as(monkeypatch, refused, refused)
    with pytest.raises(ConnectionRefusedError):
        await port_of()


async def test_whoever_stops_waiting_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, silent: int) -> None:
    """Neither a socket nor a task."""
    known_as(monkeypatch, silent, silent)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connect("host", 1)
    await until(lambda: not attempts())


async def test_of_two_that_answer_one_is_closed(monkeypatch: pytest.MonkeyPatch, good: int) -> None:
    """The server sees the end of the one that nobody uses."""
    known_as(monkeypatch, good, good, good)
    monkeypatch.setattr(happy_eyeballs, "_NEXT_AFTER", 0)
    assert await port_of() == good
    await until(lambda: not attempts())


async def test_a_name_that_means_this_machine_reaches_it(good: int) -> None:
    """Whichever family its server listens on."""
    with await connect("localhost", good) as made:
        assert made.getpeername()[1] == good
