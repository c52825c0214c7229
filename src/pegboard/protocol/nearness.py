"""Whether a request comes from this machine, and what the host it names is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

# A proxy on this machine passes on what comes from others, and says so in one of these, or in one that begins so.
_PASSED_ON = frozenset(
    {
        b"via",
        b"true-client-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-envoy-external-address",
        b"x-original-forwarded-for",
        b"x-real-ip",
    }
)
_PASSED_ON_SO = (b"forwarded", b"x-forwarded", b"tailscale-", b"cf-")


def is_remote(scope: Mapping[str, Any]) -> bool:
    """Whether the request of an ASGI scope comes from another machine, or may have come from one."""
    peer = scope.get("client")
    if peer is not None and not _is_loopback(str(peer[0])):
        return True
    for name, value in scope.get("headers", ()):
        if name == b"host":
            if not _is_own_name(value):
                return True
        # Some proxies write one for the other.
        elif (plain := name.replace(b"_", b"-")) in _PASSED_ON or plain.startswith(_PASSED_ON_SO):
            return True
    return False


@lru_cache(maxsize=64)
def _is_own_name(host: bytes) -> bool:
    """Whether this is what this machine calls itself. Any other name may be one that a web page has led here."""
    parts = split_host(host.decode("latin-1"))
    return parts is not None and is_loopback_name(parts[0])


_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)(?:%[^\]]*)?\]|([^][\s:/?#@\\%,;\"<>]+))(?::([0-9]{0,5}))?")


def split_host(text: str) -> tuple[str, int | None] | None:
    """The name and the port of a `Host` header, the name in its one spelling; `None` if it is no host at all."""
    match = _HOST.fullmatch(text.strip())
    if match is None:
        return None
    name = host_name(match[1] or match[2])
    return (name, int(match[3]) if match[3] else None) if name else None


def host_name(text: str) -> str:
    """One spelling for each name and each address."""
    name = text.lower().partition("%")[0].removesuffix(".")
    try:
        address = ip_address(name)
    except ValueError:
        return name
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def share_holder(address: str) -> str:
    """Who has one share of what is limited: an address, of IPv6 its network; for all of this machine it is empty."""
    name = host_name(address)
    if not name or _is_loopback(name):
        return ""
    try:
        parsed = ip_address(name)
    except ValueError:
        return name
    return str(ip_network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else name


def is_loopback_name(name: str) -> bool:
    """Whether this name or address, in its one spelling, is always the machine it is used on."""
    return name == "localhost" or name.endswith(".localhost") or (bool(name) and _is_loopback(name))


def host_problem(text: str) -> str | None:
    """Why a text cannot be an allowed host, or `None`."""
    parts = split_host(text.removeprefix("*."))
    if parts is None or "*" in parts[0]:
        return f"{text!r} is not a host name: write it without scheme and path, as in pegboard.example or *.example"
    if parts[1] is not None:
        return f"{text!r} has a port: a host is allowed on any port"
    return None


@lru_cache(maxsize=256)
def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        # What has no address came in through a socket in the file system.
        return not host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback
