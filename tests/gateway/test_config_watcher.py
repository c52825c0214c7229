"""A running gateway takes over a changed config file; a bad one changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from harness import LIMIT, eventually, http_client, open_gateway, toy, write_config
from pegboard.board import Board
from pegboard.config import ConfigError, UnknownServerError, read_settings
from pegboard.config.locate import trust_store
from pegboard.gateway.config_watcher import ConfigFile

pytestmark = pytest.mark.anyio


async def test_a_changed_file_is_taken_over_without_dropping_clients(tmp_path: Path) -> None:
    """The same session goes on, the unchanged server keeps its process, the new one is there."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        pid = await client.text("one__pid")
        write_config(gateway.config, {"one": toy(), "two": toy(tools=["x"])})
        await client.until_listed(lambda names: "two__x" in names)
        assert await client.text("one__pid") == pid


async def test_a_file_that_was_not_there_at_the_start_is_taken_over(tmp_path: Path) -> None:
    """The usual place may be empty for now."""
    path = tmp_path / "pegboard.json"
    async with Board(read_settings(None, {"PEGBOARD_STORAGE": f"sqlite:{tmp_path / 'own.db'}"})) as board:
        config = ConfigFile(board, path)
        assert await config.reload()
        assert not board.servers
        write_config(path, {"one": toy()})
        assert await config.reload()
        assert list(board.servers) == ["one"]
        path.unlink()
        assert not await config.reload()
        assert list(board.servers) == ["one"]


async def test_treatment_changes_without_a_new_connection(tmp_path: Path) -> None:
    """Another time limit or filter applies at once, and the process stays."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        pid = await client.text("one__pid")
        await gateway.configure({"one": toy({"timeout": 1.5, "tools": {"deny": ["rich"]}})})
        assert "one__rich" not in await client.names()
        assert await client.text("one__pid") == pid
        assert "timed out" in await client.text("one__sleep", {"seconds": 5})


@pytest.mark.scenario("secrets: Values of the config come from files, .env and the keyring")
async def test_a_changed_value_is_taken_over_and_concerns_its_server_alone(tmp_path: Path) -> None:
    """Of a file, of `.env`, even if that was not there, and of an `envFile`; the others keep their processes."""
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "own.env").write_text("OWN=first\n")
    env = {"FILE": "${file:token}", "DOTENV": "${DOTENV:-first}"}
    servers = {"one": toy({"env": env, "envFile": "own.env"}), "two": toy()}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:

        async def until(**wanted: str) -> None:
            async with asyncio.timeout(LIMIT):
                while not wanted.items() <= json.loads(await client.text("one__environment")).items():
                    await asyncio.sleep(0.05)

        await until(FILE="first", DOTENV="first", OWN="first")
        pid = await client.text("two__pid")
        (tmp_path / "token").write_text("second value\n")
        await until(FILE="second value", DOTENV="first", OWN="first")
        (tmp_path / ".env").write_text("DOTENV=second value\n")
        await until(FILE="second value", DOTENV="second value", OWN="first")
        (tmp_path / "own.env").write_text("OWN=second value\n")
        await until(FILE="second value", DOTENV="second value", OWN="second value")
        assert await client.text("two__pid") == pid


async def test_a_moved_server_is_a_new_one(tmp_path: Path) -> None:
    """Another command line means another server: its old list is not kept."""
    async with open_gateway(tmp_path, {"one": toy(tools=["old"])}) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: "one__old" in names)
        await gateway.configure({"one": toy(tools=["new"])})
        names = await client.until_listed(lambda names: "one__new" in names)
        assert "one__old" not in names


@pytest.mark.parametrize("text", ["{", '{"pegboard": {"expose": "odd"}}', "", "[]"])
async def test_a_bad_file_keeps_the_old_config_and_says_why(tmp_path: Path, text: str) -> None:
    """The reason is logged with file and place; everything goes on as before, and a mended file is taken over."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        pid = await client.text("one__pid")
        with capture_logs() as logs:
            gateway.config.write_text(text)
            await eventually(lambda: any(entry["event"] == "config.reload.refused" for entry in logs))
        reason = next(entry["reason"] for entry in logs if entry["event"] == "config.reload.refused")
        assert reason.startswith(f"{gateway.config}:")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            assert (await http.get("/api/servers")).json()["data"]["configProblem"] == reason
        assert await client.text("one__pid") == pid
        write_config(gateway.config, {"one": toy(), "two": toy()})
        await client.until_listed(lambda names: "two__echo" in names)
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            assert "configProblem" not in (await http.get("/api/servers")).json()["data"]


async def test_a_file_found_in_a_folder_is_taken_over_once_it_is_trusted(tmp_path: Path) -> None:
    """A change from outside waits for trust; one through the gateway itself is taken over at once."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy(tools=["x"])})
    store = trust_store()
    store.add(path, path.read_bytes())
    settings = read_settings(path, os.environ, needs_trust=True)
    async with Board(settings) as board:
        config = ConfigFile(board, path)
        await config.switch("one", enabled=False)
        assert not board.servers["one"].spec.enabled
        watching = asyncio.create_task(config.watch())
        with capture_logs() as logs:
            write_config(path, {"evil": toy()})
            await eventually(lambda: any(entry["event"] == "config.reload.refused" for entry in logs))
        assert list(board.servers) == ["one"]
        store.add(path, path.read_bytes())
        await eventually(lambda: list(board.servers) == ["evil"])
        watching.cancel()


@pytest.mark.parametrize("outside", [{"one": toy(), "evil": toy()}, None, "{"])
async def test_a_switch_does_not_write_into_a_file_that_changed_untrusted(tmp_path: Path, outside: object) -> None:
    """It is refused before it writes: the file, what is trusted, and the running servers stay as they are."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy(tools=["x"])})
    store = trust_store()
    store.add(path, path.read_bytes())
    trusted = store.text(path)
    async with Board(read_settings(path, os.environ, needs_trust=True)) as board:
        config = ConfigFile(board, path)
        if isinstance(outside, dict):
            write_config(path, outside)
        elif outside is None:
            path.unlink()
        else:
            path.write_text(str(outside))
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(ConfigError, match=r"changed since it was trusted|is missing"):
            await config.switch("one", enabled=False)
        assert (path.read_bytes() if path.exists() else None) == before
        assert store.text(path) == trusted
        assert list(board.servers) == ["one"]
        assert board.servers["one"].spec.enabled


async def test_a_switch_takes_a_change_from_outside_over_first(tmp_path: Path) -> None:
    """A server that was just taken out of the file gets no half entry, and a deleted file does not come back."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy(tools=["x"]), "two": toy(tools=["x"])})
    async with Board(read_settings(path, os.environ)) as board:
        config = ConfigFile(board, path)
        write_config(path, {"two": toy(tools=["x"])})
        before = path.read_bytes()
        with pytest.raises(UnknownServerError, match='no server "one"'):
            await config.switch("one", enabled=False)
        assert path.read_bytes() == before
        path.unlink()
        with pytest.raises(ConfigError, match="is missing"):
            await config.switch("two", enabled=False)
        assert not path.exists()


async def test_a_hundred_rewrites_end_with_the_last(tmp_path: Path) -> None:
    """Editors write in bursts; whatever the order of looks, the last content counts."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        for number in range(100):
            gateway.config.write_text(json.dumps({"mcpServers": {f"s{number}": toy()}}))
            if number % 10 == 0:
                await asyncio.sleep(0.02)
        await client.until_listed(lambda names: {name.split("__")[0] for name in names if "__" in name} == {"s99"})
