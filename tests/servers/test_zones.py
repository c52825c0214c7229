"""How far inside an address is."""

from __future__ import annotations

import contextlib
import socket
from ipaddress import ip_address

import pytest

from pegboard.servers.http.zones import Zone, resolve_zones, zone_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("address", "zone"),
    [
        ("93.184.216.34", Zone.PUBLIC),
        ("2606:2800:220:1::1", Zone.PUBLIC),
        ("10.99.88.77", Zone.PRIVATE),
        ("172.16.88.77", Zone.PRIVATE),
        ("172.32.0.1", Zone.PUBLIC),
        ("192.168.88.77", Zone.PRIVATE),
        ("100.64.88.77", Zone.PRIVATE),
        ("192.0.0.1", Zone.PRIVATE),
        ("192.0.0.10", Zone.PRIVATE),
        ("192.0.1.1", Zone.PUBLIC),
        ("192.0.2.77", Zone.PRIVATE),
        ("192.31.196.77", Zone.PRIVATE),
        ("192.52.193.77", Zone.PRIVATE),
        ("192.88.99.77", Zone.PRIVATE),
        ("192.175.48.77", Zone.PRIVATE),
        ("198.17.255.255", Zone.PUBLIC),
        ("198.18.88.77", Zone.PRIVATE),
        ("198.19.88.77", Zone.PRIVATE),
        ("198.20.0.1", Zone.PUBLIC),
        ("198.51.100.77", Zone.PRIVATE),
        ("203.0.113.77", Zone.PRIVATE),
        ("100.128.0.1", Zone.PUBLIC),
        ("fd12:3456::1", Zone.PRIVATE),
        ("fec0::1", Zone.PRIVATE),
        ("2001:db8::77", Zone.PRIVATE),
        ("2001:2::77", Zone.PRIVATE),
        ("2001:1::1", Zone.PRIVATE),
        ("2001:20::77", Zone.PRIVATE),
        ("2001:1ff::77", Zone.PRIVATE),
        ("2001:200::77", Zone.PUBLIC),
        ("2620:4f:8000::77", Zone.PRIVATE),
        ("3fff::77", Zone.PRIVATE),
        ("3fff:fff::77", Zone.PRIVATE),
        ("3fff:1000::77", Zone.PUBLIC),
        ("127.0.0.1", Zone.LOOPBACK),
        ("127.8.8.8", Zone.LOOPBACK),
        ("0.0.0.0", Zone.LOOPBACK),
        ("::", Zone.LOOPBACK),
        ("::1", Zone.LOOPBACK),
        ("169.254.169.254", Zone.LINK_LOCAL),
        ("fe80::1%eth0", Zone.LINK_LOCAL),
        ("fd00:ec2::254", Zone.LINK_LOCAL),
        ("fd00:ec2::23", Zone.LINK_LOCAL),
        ("fd20:ce::254", Zone.LINK_LOCAL),
        ("fd00:42::42", Zone.LINK_LOCAL),
        ("192.0.0.192", Zone.LINK_LOCAL),
        ("::ffff:192.0.0.192", Zone.LINK_LOCAL),
        ("100.100.100.200", Zone.LINK_LOCAL),
        ("168.63.129.16", Zone.LINK_LOCAL),
        ("224.0.0.1", Zone.NOWHERE),
        ("255.255.255.255", Zone.NOWHERE),
        ("ff02::1", Zone.NOWHERE),
        ("240.0.0.1", Zone.NOWHERE),
        ("4000::1", Zone.NOWHERE),
        ("100::1", Zone.NOWHERE),
        ("5f00::1", Zone.NOWHERE),
        ("no address", Zone.NOWHERE),
        # An address of IPv4 inside of one of IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo.
        ("::ffff:127.0.0.1", Zone.LOOPBACK),
        ("::ffff:10.99.88.77", Zone.PRIVATE),
        ("::ffff:93.184.216.34", Zone.PUBLIC),
        ("::127.0.0.1", Zone.LOOPBACK),
        ("::ffff:0:127.0.0.1", Zone.LOOPBACK),
        ("64:ff9b::7f00:1", Zone.LOOPBACK),
        ("64:ff9b::a9fe:a9fe", Zone.LINK_LOCAL),
        ("64:ff9b::5db8:d822", Zone.PUBLIC),
        ("64:ff9b:1::7f00:1", Zone.NOWHERE),
        ("2002:7f00:1::", Zone.LOOPBACK),
        ("2002:0a63:584d::1", Zone.PRIVATE),
        ("2001:0:4136:e378::1", Zone.NOWHERE),
    ],
)
def test_each_address_has_a_zone(address: str, zone: Zone) -> None:
    """Whatever it is written as."""
    assert zone_of(address) is zone


def test_an_address_of_this_machine_is_as_its_loopback() -> None:
    """What listens on all interfaces is behind each of them, also where the address looks like one of a network."""
    own = own_addresses()
    if not own:
        pytest.skip("this machine has no address but its loopback")
    assert {address: zone_of(address) for address in own} == dict.fromkeys(own, Zone.LOOPBACK)
    mapped = [f"::ffff:{address}" for address in own if ":" not in address]
    assert {zone_of(address) for address in mapped} <= {Zone.LOOPBACK}


def own_addresses() -> list[str]:
    """Those that packets to others would be from; none is sent."""
    found: list[str] = []
    for family, other in ((socket.AF_INET, "93.184.216.34"), (socket.AF_INET6, "2606:2800:220:1::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.connect((other, 9))
            found.append(sender.getsockname()[0])
    # Those of a wire stay what they are.
    return [address for address in found if not ip_address(address).is_link_local]


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"])
async def test_a_number_in_any_form_is_its_address(host: str) -> None:
    """As the system reads them: decimal, octal and hexadecimal ones are this machine, too."""
    assert set(await resolve_zones(host, 80)) == {Zone.LOOPBACK}


def test_nobody_leads_further_inside() -> None:
    """Outwards everybody may; to the local link only who is there, and to no address that nobody has."""
    leads = {zone: {other for other in Zone if zone.may_lead_to(other)} for zone in Zone}
    assert leads == {
        Zone.PUBLIC: {Zone.PUBLIC},
        Zone.PRIVATE: {Zone.PUBLIC, Zone.PRIVATE},
        Zone.LOOPBACK: {Zone.PUBLIC, Zone.PRIVATE, Zone.LOOPBACK},
        Zone.LINK_LOCAL: {Zone.PUBLIC, Zone.PRIVATE, Zone.LINK_LOCAL},
        Zone.NOWHERE: set(),
    }
