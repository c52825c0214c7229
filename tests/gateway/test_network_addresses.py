"""Where other machines reach a gateway."""

from __future__ import annotations

import socket

import pytest

from pegboard.gateway.hosts import AllowedHosts
from pegboard.gateway.network_addresses import network_urls
from pegboard.host_names import split_host


def test_what_the_config_or_the_command_says_goes_first() -> None:
    """Nothing is guessed where somebody said it."""
    assert network_urls("0.0.0.0", 1, "https://tools.example.com") == ["https://tools.example.com"]
    assert network_urls("192.0.2.7", 7420) == ["http://192.0.2.7:7420"]
    assert network_urls("2001:db8::7", 7420) == ["http://[2001:db8::7]:7420"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_of_all_addresses_those_are_named_that_others_can_use(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard lets them in, and loopback is none of them."""
    monkeypatch.setattr(socket, "gethostname", lambda: "desk.example.com")
    urls = network_urls(host, 7420)
    assert urls[-1] == "http://desk:7420"
    for url in urls:
        parts = split_host(url.removeprefix("http://"))
        assert parts is not None
        assert not parts[0].startswith(("127.", "0.0.0.0", "::1"))
        assert AllowedHosts(host).admits(parts[0], parts[0] if url != urls[-1] else None)


def test_a_machine_that_nobody_can_name_has_a_place_for_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network and a name."""
    monkeypatch.setattr(socket, "gethostname", lambda: "")
    monkeypatch.setattr(socket.socket, "connect", lambda *_: (_ for _ in ()).throw(OSError("no network")))
    assert network_urls("0.0.0.0", 7420) == ["http://HOST:7420"]
