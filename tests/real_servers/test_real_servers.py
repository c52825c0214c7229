"""Servers that other people wrote, behind the gateway."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from forking import warm_start
from harness import Entry, http_client, open_gateway, stdio_client, write_config
from node import node, package

pytestmark = pytest.mark.anyio

EVERYTHING = ("@modelcontextprotocol/server-everything", "dist/index.js")


def npm(name: str, entry: str = "dist/index.js", *args: str) -> Entry:
    """A config entry for an npm package."""
    command, *rest = package(name, entry)
    return {"command": command, "args": [*rest, *args]}


def pypi(program: str, *args: str) -> Entry:
    """A config entry for a program of a PyPI package."""
    path = Path(sys.executable).parent / program
    assert path.exists(), f"{program} is missing: run `make test`, or `.venv/bin/pip install --group dev`"
    return {"command": str(path), "args": list(args)}


def repository(folder: Path) -> Path:
    """A git repository with one commit."""
    folder.mkdir()
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def real_servers(tmp_path: Path) -> dict[str, Entry]:
    """Six servers from npm and PyPI, none of which needs a network to start."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "hello.txt").write_text("grüße", "utf-8")
    memory = npm("@modelcontextprotocol/server-memory")
    return {
        "everything": npm(*EVERYTHING),
        "filesystem": npm("@modelcontextprotocol/server-filesystem", "dist/index.js", str(files)),
        "memory": {**memory, "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}},
        "time": pypi("mcp-server-time"),
        "git": pypi("mcp-server-git", "--repository", str(repository(tmp_path / "repository"))),
        "fetch": pypi("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
    }


# server-everything has six more for a client that can be asked things, which the gateway is.
COUNTS = {"everything": 19, "filesystem": 14, "memory": 9, "time": 2, "git": 12, "fetch": 1}


async def use_each(call: Any, tmp_path: Path) -> None:
    """One real thing with each server."""
    assert "Echo: hi" in await call("everything__echo", {"message": "hi"})
    assert "grüße" in await call("filesystem__read_text_file", {"path": str(tmp_path / "files" / "hello.txt")})
    entity = {"name": "peg", "entityType": "thing", "observations": ["round"]}
    assert "round" in await call("memory__create_entities", {"entities": [entity]})
    assert "UTC" in await call("time__get_current_time", {"timezone": "UTC"})
    assert "first" in await call("git__git_log", {"repo_path": str(tmp_path / "repository")})


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_six_real_servers_over_http(tmp_path: Path, version: str) -> None:
    """All of their tools are listed, and one of each does what it should, in both eras."""
    async with open_gateway(tmp_path, real_servers(tmp_path)) as gateway, http_client(gateway.mcp, version) as client:
        names = await client.until_listed(lambda names: len(names) == sum(COUNTS.values()))
        for server, count in COUNTS.items():
            assert sum(name.startswith(f"{server}__") for name in names) == count
        await use_each(client.text, tmp_path)
        page = f"{gateway.url}/health"
        assert '"status":"ok"' in await client.text("fetch__fetch", {"url": page, "raw": True})


async def test_six_real_servers_over_stdio(tmp_path: Path) -> None:
    """The same through `pegboard stdio`."""
    config = write_config(tmp_path / "pegboard.json", real_servers(tmp_path))
    async with stdio_client(config) as client:
        await client.until_listed(lambda names: len(names) == sum(COUNTS.values()))
        await use_each(client.text, tmp_path)


async def test_real_tools_are_listed_exactly_as_their_servers_list_them(tmp_path: Path) -> None:
    """Every field of every tool is the server's own; only the name carries the server's."""
    entry = npm(*EVERYTHING)
    direct: dict[str, Any] = {}
    from harness import connect
    from pegboard.config import ServerSpec
    from pegboard.servers.connector import EVERYTHING_ASKABLE
    from pegboard.servers.orphan_reaper import OrphanReaper
    from pegboard.servers.transports.stdio import StdioTransport

    keeper = OrphanReaper()
    spec = ServerSpec(name="x", given_name="x", command=entry["command"], args=tuple(entry["args"]))
    async with connect(StdioTransport(spec, keeper), "2025-11-25", capabilities=EVERYTHING_ASKABLE) as alone:
        await alone.until_listed(lambda names: len(names) == COUNTS["everything"])
        direct = {tool["name"]: tool for tool in await alone.tools()}
    keeper.close()
    async with open_gateway(tmp_path, {"everything": entry}) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: len(names) == len(direct))
        listed = await client.tools()
        assert {tool["name"] for tool in listed} == {f"everything__{name}" for name in direct}
        for tool in listed:
            own_name = tool["name"].removeprefix("everything__")
            assert tool == {**direct[own_name], "name": tool["name"]}


@asynccontextmanager
async def everything_over(transport: str) -> AsyncGenerator[str]:
    """server-everything as a process that listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [*package(*EVERYTHING), transport]
    environment = {**os.environ, "PORT": str(port), "HOST": "127.0.0.1"}
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("transport", ["streamableHttp", "sse"])
async def test_server_everything_over_its_http_transports(tmp_path: Path, transport: str) -> None:
    """Tools, structured content, images and progress through streamable HTTP and HTTP+SSE."""
    async with everything_over(transport) as url:
        entry = {"type": "sse" if transport == "sse" else "http", "url": url}
        async with open_gateway(tmp_path, {"every": entry}) as gateway, http_client(gateway.mcp) as client:
            assert len(await client.until_listed(lambda names: len(names) == 19)) == 19
            assert "Echo: hi" in await client.text("every__echo", {"message": "hi"})
            assert "5" in await client.text("every__get-sum", {"a": 2, "b": 3})
            image = await client.call("every__get-tiny-image", {})
            assert any(part["type"] == "image" and part["mimeType"] == "image/png" for part in image["content"])
            seen: list[Any] = []
            await client.call(
                "every__trigger-long-running-operation", {"duration": 0.4, "steps": 4}, on_progress=seen.append
            )
            assert [said["progress"] for said in seen] == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
@pytest.mark.parametrize("front", ["http", "stdio"])
async def test_the_official_client_works_with_the_gateway(tmp_path: Path, front: str, mode: str) -> None:
    """The SDK's own client lists and calls in every mode, over both fronts."""
    servers = {"time": pypi("mcp-server-time")}

    async def check(client: Client) -> None:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == {"time__get_current_time", "time__convert_time"}
        result = await client.call_tool("time__get_current_time", {"timezone": "UTC"})
        assert not result.is_error
        assert client.server_info is None or client.server_info.name == "pegboard"

    if front == "http":
        async with open_gateway(tmp_path, servers) as gateway:
            await gateway.board.refresh()
            async with Client(gateway.mcp, mode=mode) as client:
                await check(client)
        return
    config = write_config(tmp_path / "pegboard.json", servers)
    own = {key: value for key, value in os.environ.items() if key.startswith("PEGBOARD_")}
    program, *first = warm_start()
    refresh = [program, *first, "refresh", "--config", str(config)]
    await asyncio.to_thread(subprocess.run, refresh, check=True, capture_output=True)
    parameters = StdioServerParameters(command=program, args=[*first, "stdio", "--config", str(config)], env=own)
    async with Client(parameters, mode=mode) as client:
        await check(client)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_works_with_the_gateway(tmp_path: Path, era: str) -> None:
    """`mcp-inspector --cli` lists and calls in both eras."""
    async with open_gateway(tmp_path, {"time": pypi("mcp-server-time")}) as gateway:
        await gateway.board.refresh()

        async def inspect(*args: str) -> dict[str, Any]:
            command = [
                *package("@modelcontextprotocol/inspector", "clients/launcher/build/index.js"),
                "--cli",
                gateway.mcp,
            ]
            process = await asyncio.create_subprocess_exec(
                *command, "--transport", "http", "--protocol-era", era, *args,
                env={**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)},
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, err = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0, err.decode()
            return json.loads(out)

        listed = await inspect("--method", "tools/list")
        assert {tool["name"] for tool in listed["tools"]} == {"time__get_current_time", "time__convert_time"}
        called = await inspect(
            "--method", "tools/call", "--tool-name", "time__get_current_time", "--tool-arg", "timezone=UTC"
        )
        assert "UTC" in called["content"][0]["text"]
