"""What the tests of storage keep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from pegboard.storage import CatalogRecord, open_storage

RECORD = CatalogRecord(
    server="git",
    fingerprint="f1",
    era="modern",
    version="2026-07-28",
    capabilities={"tools": {"listChanged": True}},
    server_info={"name": "git", "version": "1"},
    instructions="Be gentle.",
    tools=[{"name": "log", "inputSchema": {"type": "object"}}],
    discovered_at=1_700_000_000.125,
    ttl=900.0,
)


async def kept(place: str) -> list[CatalogRecord]:
    """What a new process finds there."""
    storage = open_storage(place)
    await storage.open()
    try:
        return await storage.catalog.load()
    finally:
        await storage.close()


def at_once(script: str, place: str, names: Sequence[str]) -> list[str]:
    """What processes print that run a script with a place and a name, all let go at one moment."""
    command = [sys.executable, "-c", script, place]
    processes = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in names
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(names)
    return said
