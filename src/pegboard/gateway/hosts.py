"""The host names of this gateway: a request for any other is refused, which is what stops DNS rebinding.

A page of `http://evil.example:7420` can let its own name point to this machine. The browser then takes the gateway for
that page's own server, and lets the page read its answers. It still says in `Host` which name it believes in.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

from pegboard.host_names import host_name, is_loopback, is_loopback_name

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  it is told apart, not bound


class AllowedHosts:
    """Loopback, the address we listen on, what was configured, and beyond loopback this machine's own names."""

    def __init__(self, bind: str, configured: Iterable[str] = (), *, has_localhost: bool = True) -> None:
        # Whether `localhost` is us at each of its addresses.
        self._has_localhost = has_localhost
        # Nobody needs the machine's names to reach a loopback address, and on a local network anybody can answer for
        # them (mDNS, LLMNR, NetBIOS): a page that lives under one of them would be let in.
        own = () if is_loopback_name(host_name(bind)) else machine_names()
        names = {host_name(name) for name in (bind, *own, *configured)}
        self._names = names - {""}
        self._domains = tuple(name.removeprefix("*") for name in self._names if name.startswith("*."))

    @property
    def own_names(self) -> frozenset[str]:
        """The names that are this gateway's and no other's: neither a whole domain, nor what every machine has."""
        named = self._names - _EVERY_ADDRESS
        return frozenset(name for name in named if not (name.startswith("*.") or is_loopback_name(name)))

    def admits(self, name: str, address: str | None) -> bool:
        """Whether a name, in its one spelling, is ours; `address` is ours that the connection came in on."""
        if is_loopback_name(name):
            return self._has_localhost or is_loopback(name)
        if name in self._names:
            return True
        if address is not None and name == host_name(address):
            return True
        return bool(self._domains) and name.endswith(self._domains)


def machine_names() -> set[str]:
    """What the machine calls itself, also as mDNS makes it known. No DNS is asked: that can take seconds."""
    name = socket.gethostname()
    short = name.partition(".")[0]
    return {name, short, f"{short}.local"} if short else set()
