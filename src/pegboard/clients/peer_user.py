"""Whose a connection from this machine is: on Linux the system tells the user of a socket.

It is asked for one socket (`sock_diag`), which takes some microseconds however many there are; where that is not
possible, a table of all connections is read (`/proc/net/tcp`), which is not for the event loop.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from collections.abc import Iterator, MutableMapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from pegboard.host_names import is_loopback

# Where a request's scope has the peer of its connection.
PEER_KEY = "pegboard.peer"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9
# A request of `sock_diag` for one TCP socket: two headers, ports, addresses, any interface, any cookie.
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1
_REQUEST = struct.Struct("=IHHII BBBBI 2s2s16s16sIII")
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
# Of its answer: a header, then family, state, timer and retransmits, the socket's id, times and queues, uid, inode.
_ANSWER = struct.Struct("=IHHII 4s2s2s16s16s12s12sII")

_Address = tuple[str, int]


class Peer:
    """The other end of one connection. Whose it is cannot change while it lasts."""

    __slots__ = ("client", "is_own", "server")

    def __init__(self, client: _Address | None, server: _Address | None) -> None:
        self.client, self.server = client, server
        # Whether it belongs to the user that the gateway runs as; `None` while nobody knows.
        self.is_own: bool | None = None
        if client is None:
            # It is gone by now, and nobody can tell any more whose it was.
            self.is_own = False
        elif server is None or not sys.platform.startswith("linux"):
            # Where the system does not tell, whoever is on this machine is its user.
            self.is_own = is_loopback(client[0])
        elif not is_loopback(client[0]):
            self.is_own = False
        elif (uid := _ask_kernel(client, server)) is not None:
            self.is_own = uid == os.geteuid()

    def look_up(self) -> bool:
        """Whose it is, for whoever may wait for a table to be read."""
        if self.is_own is None and self.client is not None and self.server is not None:
            # An address that is none belongs to no connection of this machine.
            with contextlib.suppress(ValueError, TypeError):
                self.is_own = _find_uid(_spellings(*self.client), _spellings(*self.server)) == os.geteuid()
        self.is_own = bool(self.is_own)
        return self.is_own


def peer_of(scope: MutableMapping[str, Any]) -> Peer:
    """The peer of a request's connection."""
    known = scope.get(PEER_KEY)
    if known is None:
        known = scope[PEER_KEY] = Peer(scope.get("client"), scope.get("server"))
    return known


def _ask_kernel(client: _Address, server: _Address) -> int | None:
    """The user of the client's socket; `None` if the kernel cannot be asked, or knows none that is still somebody's."""
    with contextlib.suppress(OSError, ValueError, struct.error):
        source, target = _pack(client[0]), _pack(server[0])
        family = socket.AF_INET if len(source) == 4 else socket.AF_INET6
        if len(source) != len(target):
            return None
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            # The kernel answers before `send` is back.
            kernel.setblocking(False)
            kernel.sendto(_question(family, source, client[1], target, server[1]), (0, 0))
            answer = kernel.recv(4096)
        return _read_uid(answer, source, client[1])
    return None


def _question(family: int, source: bytes, port: int, target: bytes, target_port: int) -> bytes:
    head = (_REQUEST.size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0, family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    ports = (port.to_bytes(2, "big"), target_port.to_bytes(2, "big"))
    return _REQUEST.pack(*head, *ports, source, target, 0, _NO_COOKIE, _NO_COOKIE)


def _read_uid(answer: bytes, source: bytes, port: int) -> int | None:
    if len(answer) < _ANSWER.size:
        return None
    _, kind, _, _, _, _, sport, _, src, *_, uid, inode = _ANSWER.unpack_from(answer)
    is_asked = sport == port.to_bytes(2, "big") and src.startswith(source)
    # A socket that its program has closed is nobody's any more, and counts as root's.
    return uid if kind == _SOCK_DIAG_BY_FAMILY and is_asked and inode else None


def _pack(host: str) -> bytes:
    address = ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).packed


def _find_uid(peer: frozenset[str], server: frozenset[str]) -> int | None:
    """The user of the socket that is connected from `peer` to `server`; `None` if no such socket is on this machine, or
    its program has closed it."""
    for fields in _rows():
        if fields[_LOCAL] in peer and fields[_REMOTE] in server:
            return int(fields[_UID]) if fields[_INODE] != "0" else None
    return None


def _rows() -> Iterator[list[str]]:
    for table in _TABLES:
        try:
            lines = table.read_text("ascii").splitlines()
        except OSError:
            continue
        yield from (fields for line in lines[1:] if len(fields := line.split()) > _INODE)


def _spellings(host: str, port: int) -> frozenset[str]:
    """How the tables write an address; one of IPv4 stands in that of IPv6 where the socket is of that kind."""
    address = ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    known: list[IPv4Address | IPv6Address] = [address, *([mapped] if mapped else [])]
    if isinstance(address, IPv4Address):
        known.append(IPv6Address(f"::ffff:{address}"))
    return frozenset(f"{_in_words(each.packed)}:{port:04X}" for each in known)


def _in_words(packed: bytes) -> str:
    """An address as the kernel prints it: each word of four bytes in the order of this machine."""
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
