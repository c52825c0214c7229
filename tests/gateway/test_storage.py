"""A gateway whose storage is PostgreSQL: the same, for several machines at once."""

import asyncio
import io
from pathlib import Path

import httpx2
import pytest

from harness import LIMIT, open_gateway, toy
from pegboard.log import configure
from postgres import PASSWORD, QUOTED, PostgresServer

pytestmark = pytest.mark.anyio

OWN = {"toolsets": ["discovery"], "expose": "search"}


async def test_catalog_and_boards_outlive_a_gateway_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    """After a restart, and on another machine, tools are known with no connection open and boards have theirs."""
    servers = {"one": toy(tools=["send"])}
    async with open_gateway(tmp_path / "a", servers, **OWN, storage=postgres_url) as gateway:
        await gateway.board.refresh()
        await gateway.board.loaded.add("board:red", ["one__send", "one__echo"])
        await gateway.board.loaded.remove("board:red", ["one__echo"])
    for folder in ("a", "b"):
        async with open_gateway(tmp_path / folder, servers, **OWN, storage=postgres_url) as gateway:
            assert gateway.board.loaded.on("board:red") == ("one__send",)
            assert gateway.board.registry.get("one__send") is not None
            assert not gateway.board.servers["one"].is_connected
    assert not (tmp_path / "state" / "pegboard.db").exists()


async def test_a_gateway_goes_on_while_postgresql_is_away(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    """Tools are listed and called; a tool that is loaded meanwhile is there as soon as the server has taken it."""
    async with open_gateway(tmp_path, {"one": toy(tools=["send"])}, **OWN, storage=postgres_url) as gateway:
        await gateway.board.refresh()
        async with postgres.away():
            loading = asyncio.create_task(gateway.board.loaded.add("board:red", ["one__send"]))
            assert (await gateway.board.call("one__echo", {"a": 1})).success
            assert gateway.board.loaded.on("board:red") == ()
        await loading
        assert gateway.board.loaded.on("board:red") == ("one__send",)
        assert await gateway.board.storage.boards.load() == {"red": ["one__send"]}


@pytest.mark.usefixtures("own_logging")
async def test_a_gateway_never_tells_its_storages_password(tmp_path: Path, postgres_url: str) -> None:
    """Neither in what it logs, nor in what it answers, nor when its config changes to another address."""
    said = io.StringIO()
    configure("debug", said)
    async with open_gateway(tmp_path, {"one": toy()}, **OWN, storage=postgres_url) as gateway:
        await gateway.board.refresh()
        await gateway.configure({"one": toy()}, **OWN, storage=f"{postgres_url}?connect_timeout=3")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for page in ("/", "/health", "/metrics", "/api/servers", "/api/tools", "/openapi.json"):
                said.write((await http.get(page)).text)
        said.write(repr(gateway.board.settings))
    assert "next start" in said.getvalue()
    assert PASSWORD not in said.getvalue()
    assert QUOTED not in said.getvalue()
