"""What only the owner of the gateway may do: change what runs on this machine, and read what its programs write."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, open_gateway, toy
from pegboard.clients import peer_user
from pegboard.clients.peer_user import Peer
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.table import route_table

OWNERS = [route for route in route_table() if isinstance(route, ApiRoute) and route.owner_only]
ADMINS = [route for route in route_table() if isinstance(route, ApiRoute) and route.admin_only]


def test_routes_that_write_the_files_of_this_machine_are_the_owners() -> None:
    """Those that read and change the config files of clients, and take over the servers in them."""
    assert {(route.method, route.path) for route in OWNERS} == {
        ("GET", "/api/clients"),
        ("POST", "/api/clients/{id}/preview"),
        ("POST", "/api/clients/{id}/install"),
        ("POST", "/api/clients/{id}/uninstall"),
        ("GET", "/api/import"),
        ("POST", "/api/import"),
    }


@pytest.mark.scenario("access: What is for admins is refused to others")
def test_routes_that_change_the_gateway_are_the_admins() -> None:
    """All that change its config, restart programs, or show what they wrote."""
    assert {(route.method, route.path) for route in ADMINS} >= {
        ("POST", "/api/servers"),
        ("POST", "/api/servers/check"),
        ("PATCH", "/api/servers/{name}"),
        ("DELETE", "/api/servers/{name}"),
        ("POST", "/api/servers/{name}/enable"),
        ("POST", "/api/servers/{name}/disable"),
        ("POST", "/api/servers/{name}/restart"),
        ("GET", "/api/servers/{name}/log"),
    }


@pytest.mark.scenario("access: Another user of the machine is not its owner")
@pytest.mark.anyio
@pytest.mark.parametrize("who", ["another machine", "another user"])
@pytest.mark.parametrize("required", ["remote", False])
async def test_others_are_refused(tmp_path: Path, who: str, required: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy on this machine speaks for others; a socket of this machine belongs to a user. Also where nobody has to
    say who they are."""
    headers = {"x-forwarded-for": "8.8.8.8"} if who == "another machine" else {}
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": required}) as gateway:
        if who == "another user":
            # The gateway is somebody else's: the connection is real, and so is what the system says of it.
            theirs = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: theirs)
        before = (tmp_path / "pegboard.json").read_bytes()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=headers) as http:
            for route in (*OWNERS, *ADMINS):
                path = route.path.replace("{name}", "one").replace("{id}", "cursor")
                body: dict[str, Any] = {} if route.method in {"GET", "DELETE"} else {"json": {"enabled": False}}
                answer = await http.request(route.method, path, **body)
                assert answer.status_code == (401 if required else 403), (route.path, answer.text)
                assert ("who asks" if required else "this is only for") in answer.json()["error"]["message"]
        assert (tmp_path / "pegboard.json").read_bytes() == before


@pytest.mark.anyio
async def test_the_owner_is_let_in(tmp_path: Path) -> None:
    """Over a real connection of this process's user."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            assert (await http.post("/api/servers/one/disable")).status_code == 200


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell whose a socket is")
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("answers", [True, False], ids=["kernel", "table"])
def test_the_system_tells_whose_a_connection_is(
    family: socket.AddressFamily, host: str, dual: bool, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over IPv4, IPv6, and IPv4 to a socket of IPv6; one that is not on this machine is nobody's. Where the kernel does
    not answer for one socket, the table of all is read."""
    if not answers:
        monkeypatch.setattr(peer_user, "_ask_kernel", lambda *_: None)
    listening = socket.socket(socket.AF_INET6 if dual else family)
    with listening, socket.socket(family) as client:
        if dual:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("::" if dual else host, 0))
        listening.listen()
        client.connect((host, listening.getsockname()[1]))
        accepted, peer = listening.accept()
        with accepted:
            here = accepted.getsockname()[:2]
            assert Peer(peer[:2], here).look_up()
            assert not Peer((peer[0], 1), here).look_up()
            theirs = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: theirs)
            assert not Peer(peer[:2], here).look_up()
