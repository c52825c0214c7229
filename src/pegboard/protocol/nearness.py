"""Whether a request comes from this machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
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
    name = host.decode("latin-1").strip().lower()
    if name.startswith("["):
        name, bracket, port = name[1:].partition("]")
        return bool(bracket) and _is_port(port) and _is_loopback(name) and bool(name)
    name, colon, port = name.partition(":")
    name = name.removesuffix(".")
    if not _is_port(colon + port):
        return False
    return name == "localhost" or name.endswith(".localhost") or (bool(name) and _is_loopback(name))


def _is_port(rest: str) -> bool:
    return not rest or (rest.startswith(":") and (rest == ":" or rest[1:].isdigit()))


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
