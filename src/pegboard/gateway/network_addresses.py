"""Network addresses: where other machines reach a gateway that listens beyond loopback."""

from __future__ import annotations

import contextlib
import socket

from pegboard.gateway.hosts import machine_names
from pegboard.gateway.listen import bracket, reachable

# An address that is kept for documentation: nothing is sent to it.
_FAR = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def network_urls(host: str, port: int, public_url: str = "") -> list[str]:
    """What colleagues can type, the best first: what the config calls the gateway, else the address that it listens on,
    or those of this machine, and its name."""
    if public_url:
        return [public_url]
    # What is bound to every address is reached at others.
    hosts = [host] if reachable(host) == host else [*_own_addresses(host), *sorted(machine_names(), key=len)[:1]]
    return [f"http://{bracket(each)}:{port}" for each in hosts or ["HOST"]]


def _own_addresses(host: str) -> list[str]:
    """The addresses that this machine would use towards others, without asking anybody."""
    families = tuple(_FAR) if ":" in host else (socket.AF_INET,)
    found: list[str] = []
    for family in families:
        # A machine without a network of this kind has no way there.
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_FAR[family], 9))
            found.append(str(probe.getsockname()[0]))
    return [address for address in found if not address.startswith(("127.", "fe80:")) and address != "::1"]
