"""The socket that clients connect to, and who has the port if we cannot. Nothing but the standard library."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import socket
import sys
from typing import cast

_LIMIT = 2.0
_MOST_TRIED = 50
# What is bound to every address is reached at one of them.
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  it is told apart, not bound
# What else is `localhost`, where we listen here; `::` takes both.
_TWINS = {"127.0.0.1": "::1", "0.0.0.0": "::1", "::1": "127.0.0.1"}  # noqa: S104  as above
# There may be no IPv6 on this machine.
_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class PortInUseError(OSError):
    """Somebody has the port. `other` is the identity of the config of a Pegboard there, if it is one."""

    def __init__(self, where: str, health: dict[str, object] | None, config: str | None) -> None:
        self.other = None if health is None else str(health["config"])
        self.is_same = self.other is not None and self.other == config
        who = "another program listens there" if self.other is None else "Pegboard runs there already"
        super().__init__(errno.EADDRINUSE, f"{where}: {who}")


def listen_on(host: str, port: int, config: str | None = None) -> socket.socket:
    """A socket that clients can connect to; `OSError` says why not. `config` is the identity of our config file."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio does not know it for TCP, and leaves small answers waiting for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, _sharing(sys.platform), 1)
    try:
        listener.bind((host, port))
        # From here on a client can connect, even before uvicorn takes over.
        listener.listen(2048)
    except OSError as exc:
        listener.close()
        where = f"cannot listen on {bracket(host)}:{port}"
        if exc.errno == errno.EADDRINUSE:
            raise PortInUseError(where, _health(reachable(host), port), config) from None
        raise OSError(exc.errno, f"{where}: {exc.strerror}") from None
    listener.setblocking(False)
    return listener


def listen_on_twin(listener: socket.socket, config: str | None = None) -> socket.socket | None:
    """Dual stack: the same port at the other loopback address, if there is one. Browsers take `localhost` for either,
    so whoever has the other one has pages of the same origin as ours. `PortInUseError` if somebody has it."""
    host, port = listener.getsockname()[:2]
    if (twin := _TWINS.get(host)) is None:
        return None
    try:
        return listen_on(twin, port, config)
    except OSError as exc:
        if exc.errno in _NO_SUCH_ADDRESS:
            return None
        raise


def _sharing(system: str) -> int:
    """The option by which a port can be had again at once. On Windows that one would let two gateways have it."""
    return getattr(socket, "SO_EXCLUSIVEADDRUSE", ~4) if system == "win32" else socket.SO_REUSEADDR


def bracket(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def reachable(host: str) -> str:
    """The address at which a gateway that listens on `host` is reached from this machine."""
    return _WILDCARDS.get(host, host)


def local_address(host: str, port: int) -> str:
    """The address of a gateway that listens on `host`, for whoever is on this machine."""
    return f"http://{bracket(reachable(host))}:{port}"


def find_free_port(host: str, port: int) -> int:
    """The next port that can be listened on; 0, which picks any, if none of the next ones can."""
    for candidate in range(port + 1, min(port + _MOST_TRIED, 65536)):
        with contextlib.suppress(OSError):
            listen_on(host, candidate).close()
            return candidate
    return 0


def _health(host: str, port: int) -> dict[str, object] | None:
    """What a Pegboard there says of itself, if it is one."""
    connection = http.client.HTTPConnection(host, port, timeout=_LIMIT)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/health")
            said: object = json.loads(connection.getresponse().read(10_000))
        except (OSError, ValueError, http.client.HTTPException):
            return None
    found = cast("dict[str, object]", said) if isinstance(said, dict) else {}
    return found if {"version", "config"} <= found.keys() else None
