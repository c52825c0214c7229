"""Network zones: how far inside an address is, so that whoever is outside cannot lead us in (SSRF)."""

from __future__ import annotations

import asyncio
import socket
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_IPv4 = IPv4Network
_IPv6 = IPv6Network
_PRIVATE = (_IPv4("10.0.0.0/8"), _IPv4("172.16.0.0/12"), _IPv4("192.168.0.0/16"), _IPv4("100.64.0.0/10"))
_PRIVATE_6 = (_IPv6("fc00::/7"), _IPv6("fec0::/10"))
# An address of all zeros is this machine, too.
_LOOPBACK = (_IPv4("127.0.0.0/8"), _IPv4("0.0.0.0/8"))
_NOWHERE = (_IPv4("224.0.0.0/4"), _IPv4("240.0.0.0/4"))
# Where clouds tell a machine its secrets, beside 169.254.169.254.
_METADATA = frozenset(map(ip_address, ("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254")))
# Addresses of IPv6 whose last 32 bits are one of IPv4 that is meant: mapped, compatible, translated, NAT64. A NAT64
# prefix of a network's own (64:ff9b:1::/48) is nowhere: what is meant cannot be told.
_EMBEDDING = (_IPv6("::ffff:0:0/96"), _IPv6("::/96"), _IPv6("::ffff:0:0:0/96"), _IPv6("64:ff9b::/96"))
_TEREDO = _IPv6("2001::/32")
_UNICAST = _IPv6("2000::/3")


class Zone(IntEnum):
    """From the outermost to the innermost."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    # Of one wire: nobody leads there who is not there.
    LINK_LOCAL = 3
    # Multicast, reserved: no server is there.
    NOWHERE = 4

    def may_lead_to(self, other: Zone) -> bool:
        """Whether somebody in this zone may send us to another: its own, or one further outside."""
        if Zone.NOWHERE in {self, other}:
            return False
        # A machine's own wire is no closer to the machine than its other networks.
        reach = Zone.PRIVATE if self is Zone.LINK_LOCAL else self
        return self is other or (other is not Zone.LINK_LOCAL and other <= reach)


def zone_of(address: str) -> Zone:
    """The zone of an address as the system writes it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return Zone.NOWHERE
    if parsed in _METADATA:
        return Zone.LINK_LOCAL
    return _zone_of_4(parsed) if isinstance(parsed, IPv4Address) else _zone_of_6(parsed)


async def resolve_zones(host: str, port: int) -> list[Zone]:
    """The zones of all addresses of a host. Raises `OSError` if it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [zone_of(str(address[0])) for *_, address in found]


def _zone_of_4(address: IPv4Address) -> Zone:
    if any(address in net for net in _LOOPBACK):
        return Zone.LOOPBACK
    if address.is_link_local:
        return Zone.LINK_LOCAL
    if any(address in net for net in _NOWHERE):
        return Zone.NOWHERE
    is_private = address.is_private or any(address in net for net in _PRIVATE)
    return Zone.PRIVATE if is_private else Zone.PUBLIC


def _zone_of_6(address: IPv6Address) -> Zone:
    if address.is_loopback or address.is_unspecified:
        return Zone.LOOPBACK
    if (embedded := _inner_address(address)) is not None:
        return zone_of(str(embedded))
    if address.is_link_local:
        return Zone.LINK_LOCAL
    if any(address in net for net in _PRIVATE_6):
        return Zone.PRIVATE
    if address not in _UNICAST or address in _TEREDO:
        return Zone.NOWHERE
    return Zone.PRIVATE if address.is_private else Zone.PUBLIC


def _inner_address(address: IPv6Address) -> IPv4Address | None:
    """The address of IPv4 that is meant by one of IPv6."""
    if any(address in net for net in _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour
