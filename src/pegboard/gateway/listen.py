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
# What is bound to every address is reached at one of them.
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  it is told apart, not bound


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
        reason = _occupant(host, port, config) if exc.errno == errno.EADDRINUSE else exc.strerror
        raise OSError(exc.errno, f"cannot listen on {bracket(host)}:{port}: {reason}") from None
    listener.setblocking(False)
    return listener


def _sharing(system: str) -> int:
    """The option by which a port can be had again at once. On Windows that one would let two gateways have it."""
    return getattr(socket, "SO_EXCLUSIVEADDRUSE", ~4) if system == "win32" else socket.SO_REUSEADDR


def bracket(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def reachable(host: str) -> str:
    """The address at which a gateway that listens on `host` is reached from this machine."""
    return _WILDCARDS.get(host, host)


def _occupant(host: str, port: int, config: str | None) -> str:
    health = _health(reachable(host), port)
    if health is None:
        return "another program listens there. Choose another port with --port."
    if health.get("config") == config:
        return "Pegboard runs there already, with this config. Use it, or choose another port with --port."
    return "Pegboard runs there already, with another config. Choose another port with --port."


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
