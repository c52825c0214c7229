"""Happy eyeballs (RFC 8305): while one address of a host keeps silent the next is tried; the first to answer is used.

Of a name with addresses of both families, one is often of no use: on a network without working IPv6 nobody should have
to wait for it. asyncio could do this, but uvloop cannot.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

_NEXT_AFTER = 0.25
# Whether an address may be connected to.
Admit = Callable[[str], bool]


async def connect(host: str, port: int, admit: Admit | None = None) -> socket.socket:
    """A connected socket; raises the `OSError` of the address that was tried first.

    Only addresses that `admit` lets through are tried: it is asked about the very address that is connected to, so that
    a name cannot mean another one by then (DNS rebinding).
    """
    loop = asyncio.get_running_loop()
    left = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if admit is not None:
        left = [each for each in left if admit(str(each[4][0]))]
        if not left:
            raise OSError("none of its addresses may be connected to")
    tries: list[asyncio.Task[socket.socket]] = []
    try:
        while True:
            if left:
                family, _, proto, _, address = left.pop(0)
                tries.append(loop.create_task(_connect_to(family, proto, address)))
            pending = [each for each in tries if not each.done()]
            if pending:
                timeout = _NEXT_AFTER if left else None
                await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for each in tries:
                if each.done() and each.exception() is None:
                    tries.remove(each)
                    return each.result()
            if not left and all(each.done() for each in tries):
                return tries[0].result()
    finally:
        for each in tries:
            # Nothing is awaited here: whoever is cancelled meanwhile would lose the socket that it was to get.
            each.add_done_callback(_close_late)
            each.cancel()


async def _connect_to(family: int, proto: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM, proto)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _close_late(attempt: asyncio.Task[socket.socket]) -> None:
    """What came second, or too late, is of no use."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def describe_failure(exc: Exception) -> str:
    """Why there is no connection, for people."""
    if isinstance(exc, TimeoutError):
        return "no connection in time"
    if isinstance(exc, socket.gaierror):
        return f"the name of its host cannot be resolved ({exc.strerror})"
    return str(exc) or repr(exc)
