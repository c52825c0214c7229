"""The memory of a gateway whose clients all fetch something huge at once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx2
import pytest

from harness import MODERN, http_client, serving, write_config
from results.shelf import GET, Shelf, about, text_of, text_result

pytestmark = pytest.mark.anyio

CLIENTS = 20
SIZE = 50 * 1024 * 1024
# What waits for its turn is there once, and one of them is worked on: two copies of each would be two thousand.
MOST_MEGABYTES = 1600


def peak(pid: int) -> int:
    """The most memory that a process ever had, in megabytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
    assert found is not None
    return int(found[1]) // 1024


async def test_twenty_clients_fetch_fifty_megabytes_at_once(tmp_path: Path) -> None:
    """No answer is there twice while it waits, none stays, and everybody can read all that they fetched."""
    shelf = Shelf(tmp_path / "shelf")
    arguments = shelf.put(text_result("0123456789abcdef" * (SIZE // 16)))
    own = {"expose": "search", "toolsets": ["discovery", "results"], "storage": f"sqlite:{tmp_path}/kept.db"}
    config = write_config(tmp_path / "pegboard.json", {"shelf": shelf.entry()}, **own)

    async def fetch(number: int) -> str:
        async with http_client(url, MODERN, name=f"client {number}") as client:
            result = await client.call(GET, arguments, timeout=200)
            assert len(text_of(result)) <= 40_000
            end = {"id": about(result)["id"], "offset": SIZE - 20}
            return (await client.call("result_read", end))["structuredContent"]["data"]["text"]

    with serving(config) as (_, url):
        async with httpx2.AsyncClient() as web:
            # What was started may be what starts it.
            pid = (await web.get(url.replace("/mcp", "/api/status"))).json()["data"]["pid"]
        assert await fetch(-1) == "cdef0123456789abcdef"
        assert await asyncio.gather(*map(fetch, range(CLIENTS))) == ["cdef0123456789abcdef"] * CLIENTS
        assert peak(pid) <= MOST_MEGABYTES
