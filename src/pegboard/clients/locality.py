"""Locality: whether a request comes from this machine, and which network it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from pegboard.host_names import host_name, is_loopback, is_loopback_name, split_host

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
    if peer is not None and not is_loopback(str(peer[0])):
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


def share_holder(address: str) -> str:
    """Who has one share of what is limited: an address, of IPv6 its network; for all of this machine it is empty."""
    name = host_name(address)
    if not name or is_loopback(name):
        return ""
    try:
        parsed = ip_address(name)
    except ValueError:
        return name
    return str(ip_network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else name
