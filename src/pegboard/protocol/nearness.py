"""Whether a request comes from this machine."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any

# A proxy on this machine passes on what comes from others, and says so in one of these.
_PASSED_ON = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"cf-connecting-ip"}
)


def is_remote(scope: Mapping[str, Any]) -> bool:
    """Whether the request of an ASGI scope comes from another machine, or may have come from one."""
    peer = scope.get("client")
    if peer is not None and not _is_loopback(str(peer[0])):
        return True
    return any(name in _PASSED_ON for name, _ in scope.get("headers", ()))


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        # What has no address came in through a socket in the file system.
        return not host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback
