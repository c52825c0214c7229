"""Host names and addresses: taken apart, in one spelling, and whether they are always this machine."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

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


def is_loopback_name(name: str) -> bool:
    """Whether this name or address, in its one spelling, is always the machine it is used on."""
    return name == "localhost" or name.endswith(".localhost") or (bool(name) and is_loopback(name))


def is_ip_address(host: str) -> bool:
    """Whether this is an address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def host_problem(text: str) -> str | None:
    """Why a text cannot be an allowed host, or `None`."""
    parts = split_host(text.removeprefix("*."))
    if parts is None or "*" in parts[0]:
        return f"{text!r} is not a host name: write it without scheme and path, as in pegboard.example or *.example"
    if parts[1] is not None:
        return f"{text!r} has a port: a host is allowed on any port"
    return None


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether this address is of this machine alone."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        # What has no address came in through a socket in the file system.
        return not host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback
