"""Whose a connection from this machine is: on Linux the system tells the user of a socket (`/proc/net/tcp`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _UID = 1, 2, 7


def is_own_user(scope: Mapping[str, Any]) -> bool:
    """Whether the other end of a request's connection belongs to the user that the gateway runs as. Where the system
    does not tell, it does. It reads a table of all connections: not for the event loop."""
    peer, server = scope.get("client"), scope.get("server")
    if not sys.platform.startswith("linux") or peer is None or server is None:
        return True
    return _find_uid(_spellings(*peer), _spellings(*server)) == os.geteuid()


def _find_uid(peer: frozenset[str], server: frozenset[str]) -> int | None:
    """The user of the socket that is connected from `peer` to `server`; `None` if no such socket is on this machine."""
    for fields in _rows():
        if fields[_LOCAL] in peer and fields[_REMOTE] in server:
            return int(fields[_UID])
    return None


def _rows() -> Iterator[list[str]]:
    for table in _TABLES:
        try:
            lines = table.read_text("ascii").splitlines()
        except OSError:
            continue
        yield from (fields for line in lines[1:] if len(fields := line.split()) > _UID)


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
