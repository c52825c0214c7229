"""`localhost` is two addresses: whoever has the gateway's port at the other one has pages of the gateway's origin."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx2
import pytest

from harness import LIMIT, serving, write_config

pytestmark = pytest.mark.anyio


def listen_on_ipv6() -> socket.socket:
    """A program at ::1, at a port that nobody has at 127.0.0.1."""
    program = socket.create_server(("::1", 0), family=socket.AF_INET6)
    with socket.create_server(("127.0.0.1", program.getsockname()[1])):
        return program


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_the_port_is_had_at_both_addresses(tmp_path: Path, host: str) -> None:
    """And whoever comes in at the other one is the user of this machine all the same."""
    config = write_config(tmp_path / "pegboard.json", {})
    with serving(config, options=["--host", host]) as (_, url):
        port = httpx2.URL(url).port
        async with httpx2.AsyncClient(timeout=LIMIT) as http:
            for address in (f"http://127.0.0.1:{port}", f"http://[::1]:{port}"):
                for name in ("localhost", "127.0.0.1"):
                    answer = await http.get(f"{address}/api/whoami", headers={"host": f"{name}:{port}"})
                    assert answer.json()["data"]["kind"] == "local"


async def test_without_the_other_address_the_name_is_refused(tmp_path: Path) -> None:
    """The gateway goes on at the address that it has, and says where that is."""
    config = write_config(tmp_path / "pegboard.json", {})
    with listen_on_ipv6() as other:
        port = other.getsockname()[1]
        with serving(config, port) as (_, url):
            assert url == f"http://127.0.0.1:{port}/mcp"
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT) as http:
                assert (await http.get("/api/whoami")).status_code == 200
                refused = await http.get("/api/whoami", headers={"host": f"localhost:{port}"})
                assert refused.status_code == 421
                assert "other address of localhost" in refused.json()["error"]["message"]
