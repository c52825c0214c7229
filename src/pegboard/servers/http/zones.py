"""Network zones: how far inside an address is, so that whoever is outside cannot lead us in (SSRF).

The ranges are those of the special-purpose registries of IANA. They stand here and are not asked of `ipaddress`, whose
`is_private` knows other ranges with each version of Python.
"""

from __future__ import annotations

import asyncio
import socket
from enum import IntEnum
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address


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


def _ranges_4(zone: Zone, *ranges: str) -> list[tuple[IPv4Network, Zone]]:
    return [(IPv4Network(each), zone) for each in ranges]


def _ranges_6(zone: Zone, *ranges: str) -> list[tuple[IPv6Network, Zone]]:
    return [(IPv6Network(each), zone) for each in ranges]


# The first range that an address is in counts; what is in none is public. Where clouds tell a machine its secrets, it
# is as on the local link, where most of them do. Ranges for documentation and benchmarks are used in private networks.
_ZONES_4 = (
    *_ranges_4(Zone.LINK_LOCAL, "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
    # An address that begins with zero is this machine, too.
    *_ranges_4(Zone.LOOPBACK, "127.0.0.0/8", "0.0.0.0/8"),
    *_ranges_4(Zone.PRIVATE, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"),
    *_ranges_4(Zone.PRIVATE, "192.0.0.0/24", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    # Anycast of the network itself: relays of 6to4 and AMT, and AS112.
    *_ranges_4(Zone.PRIVATE, "192.88.99.0/24", "192.52.193.0/24", "192.31.196.0/24", "192.175.48.0/24"),
    *_ranges_4(Zone.NOWHERE, "224.0.0.0/4", "240.0.0.0/4"),
)
_ZONES_6 = (
    *_ranges_6(Zone.LINK_LOCAL, "fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128"),
    *_ranges_6(Zone.PRIVATE, "fc00::/7", "fec0::/10", "2001:db8::/32", "3fff::/20", "2620:4f:8000::/48"),
    # Teredo: the address of IPv4 in it is that of a relay's client, behind whatever network.
    *_ranges_6(Zone.NOWHERE, "2001::/32"),
    # Other assignments to protocols: benchmarks, AMT, AS112, ORCHID, DRIP.
    *_ranges_6(Zone.PRIVATE, "2001::/23"),
    # No servers are in these: a NAT64 prefix of a network's own, whose address of IPv4 cannot be told; a prefix whose
    # packets are thrown away, and a dummy; segment routing; multicast.
    *_ranges_6(Zone.NOWHERE, "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "5f00::/16", "ff00::/8"),
    *_ranges_6(Zone.PUBLIC, "2000::/3"),
    *_ranges_6(Zone.NOWHERE, "::/0"),
)
_THIS_MACHINE_6 = frozenset({IPv6Address("::"), IPv6Address("::1")})
# Addresses of IPv6 whose last 32 bits are one of IPv4 that is meant: mapped, compatible, translated, NAT64; and those
# that have it behind their first 16 bits (6to4).
_EMBEDDING = tuple(map(IPv6Network, ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_6TO4 = IPv6Network("2002::/16")
# No machine has these: reserved, and thrown away.
_NOBODYS = {socket.AF_INET: "240.0.0.1", socket.AF_INET6: "100::1"}


def zone_of(address: str) -> Zone:
    """The zone of an address as the system writes it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return Zone.NOWHERE
    return _zone_of_4(parsed) if isinstance(parsed, IPv4Address) else _zone_of_6(parsed)


async def resolve_zones(host: str, port: int) -> list[Zone]:
    """The zones of all addresses of a host. Raises `OSError` if it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [zone_of(str(address[0])) for *_, address in found]


def _zone_of_4(address: IPv4Address) -> Zone:
    zone = next((zone for net, zone in _ZONES_4 if address in net), Zone.PUBLIC)
    return _consider_own(zone, socket.AF_INET, str(address))


def _zone_of_6(address: IPv6Address) -> Zone:
    if address in _THIS_MACHINE_6:
        return Zone.LOOPBACK
    embedded = _inner_address(address)
    listed = next(zone for net, zone in _ZONES_6 if address in net)
    zone = listed if embedded is None else _zone_of_4(embedded)
    return _consider_own(zone, socket.AF_INET6, str(address))


def _inner_address(address: IPv6Address) -> IPv4Address | None:
    """The address of IPv4 that is meant by one of IPv6."""
    if any(address in net for net in _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return IPv4Address(int(address) >> 80 & 0xFFFFFFFF) if address in _6TO4 else None


def _consider_own(zone: Zone, family: socket.AddressFamily, address: str) -> Zone:
    """The zone of an address that may be one of this machine's network interfaces: behind it is what is behind
    127.0.0.1."""
    if zone not in {Zone.PUBLIC, Zone.PRIVATE}:
        return zone
    return Zone.LOOPBACK if _can_bind(family, address) and not _binds_anything(family) else zone


def _can_bind(family: socket.AddressFamily, address: str) -> bool:
    """Whether an address is this machine's. Asked anew each time, since interfaces come and go; it takes some
    microseconds, and nothing is sent."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


@cache
def _binds_anything(family: socket.AddressFamily) -> bool:
    """Whether the system lets us bind to addresses of others, too (`ip_nonlocal_bind`), so that it says nothing."""
    return _can_bind(family, _NOBODYS[family])
