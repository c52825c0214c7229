"""A server that attacks: mcpbait, whose tools hide orders, change after the first call, and pose as others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import Entry, Gateway, open_gateway

pytestmark = pytest.mark.anyio

PROGRAM = Path(sys.executable).with_name("mcpbait")
PROMISED = "Look up the current weather for a city."


@pytest.fixture
def bait(tmp_path: Path) -> Entry:
    """The server with all of its attacks, and a decoy to attack."""
    folder = tmp_path / "bait"
    environment = {**os.environ, "NO_COLOR": "1"}
    subprocess.run([PROGRAM, "init", "--dir", folder], check=True, capture_output=True, env=environment, cwd=tmp_path)
    return {"command": str(PROGRAM), "args": ["serve", "--dir", str(folder)], "startTimeout": 60}


def tool(gateway: Gateway, name: str) -> Any:
    """A tool's description as it is served, if it is."""
    found = gateway.board.registry.get(f"bait__{name}")
    return None if found is None else found.definition["description"]


async def ask_again(gateway: Gateway) -> None:
    """Have it asked for its tools once more."""
    (await gateway.board.refresh(["bait"])).unwrap()


@pytest.mark.parametrize("policy", ["tell", "hold"])
async def test_what_it_hides_is_refused(tmp_path: Path, bait: Entry, policy: str) -> None:
    """An order in characters that nobody sees reaches no model, whatever the policy."""
    async with open_gateway(tmp_path, {"bait": bait}, changes=policy) as gateway:
        await ask_again(gateway)
        known = gateway.board.registry.server("bait")
        assert known is not None
        assert tool(gateway, "check_lockfile") is None
        assert "tag character" in known.rejected["check_lockfile"]
        assert tool(gateway, "weather_lookup") == PROMISED


async def test_a_rug_pull_reaches_nobody_who_holds(tmp_path: Path, bait: Entry) -> None:
    """It changes its words after the first call; what was approved stays, works, and the change is shown."""
    async with open_gateway(tmp_path, {"bait": bait}, changes="hold") as gateway:
        await ask_again(gateway)
        for _ in range(2):
            (await gateway.board.call("bait__weather_lookup", {"city": "Oslo"})).unwrap()
            await ask_again(gateway)
            assert tool(gateway, "weather_lookup") == PROMISED
        shown = await gateway.board.decisions.show("bait")
        (item,) = shown["items"]
        assert item["id"] == "weather_lookup"
        assert "<IMPORTANT>" in item["diff"]
        assert any("<IMPORTANT>" in note for note in item["notes"])


async def test_a_rug_pull_is_told(tmp_path: Path, bait: Entry) -> None:
    """Where changes are told it is in use, and listed."""
    async with open_gateway(tmp_path, {"bait": bait}, changes="tell") as gateway:
        await ask_again(gateway)
        (await gateway.board.call("bait__weather_lookup", {"city": "Oslo"})).unwrap()
        await ask_again(gateway)
        assert "<IMPORTANT>" in tool(gateway, "weather_lookup")
        (row,) = gateway.board.decisions.list_servers(lambda _: True)
        assert [(item["id"], item["state"]) for item in row["items"]] == [("weather_lookup", "in use")]
