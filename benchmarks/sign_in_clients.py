"""Programs that sign in to a protected server and call its tool: ours, FastMCP's client and mcp-remote."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any, ClassVar

import httpx2
from tests.node import package

from harness import LIMIT, http_client, process_client, serving, write_config
from oauth.person import Person
from pegboard.config import ServerSpec

TOOL = "whoami"
VERSION = "2025-11-25"
ADDRESS = re.compile(r"http://\S+/authorize\?\S+")


class SignInClient:
    """One run of a program, on a folder that outlives it; with a token, that stands in a header and nobody signs in."""

    name: ClassVar[str]

    def __init__(self, url: str, folder: Path, token: str | None = None) -> None:
        self.url = url
        self.folder = folder
        self.token = token
        self.stack = contextlib.AsyncExitStack()

    async def open(self) -> None:
        """Start, and sign in if there is need."""
        raise NotImplementedError

    async def call(self) -> str:
        """Call the tool; what it says."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the run; what it kept stays."""
        await self.stack.aclose()


class PegboardClient(SignInClient):
    """`pegboard serve` as a process, and a client of it."""

    name = "Pegboard"

    async def open(self) -> None:
        entry: dict[str, Any] = {"url": self.url}
        if self.token is not None:
            entry["headers"] = {"Authorization": f"Bearer {self.token}"}
        config = write_config(self.folder / "pegboard.json", {"one": entry})
        environment = {"PEGBOARD_STATE_DIR": str(self.folder / "state"), "HOME": str(self.folder)}
        command = (sys.executable, "-m", "pegboard")
        running = serving(config, 0, command=command, **environment)
        _, url = await asyncio.to_thread(running.__enter__)
        self.stack.push_async_callback(asyncio.to_thread, running.__exit__, None, None, None)
        gateway = url.removesuffix("/mcp")
        self._client = await self.stack.enter_async_context(http_client(f"{gateway}/mcp", VERSION))
        http = await self.stack.enter_async_context(httpx2.AsyncClient(timeout=LIMIT))
        refreshed = await http.post(f"{gateway}/api/servers/one/refresh")
        person = Person(http, gateway, "one")
        if not refreshed.is_success or await person.is_wanted():
            begun = await person.begin()
            await open_once(begun["url"])
            await person.check_done(begun)
            # As a person does who comes back to the gateway's page; others may have been asked to wait for this one.
            await http.post(f"{gateway}/api/servers/one/refresh")

    async def call(self) -> str:
        result = await self._client.call(f"one__{TOOL}", {})
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result["content"][0]["text"]


class FastMcpClient(SignInClient):
    """FastMCP's client with its OAuth; what it keeps outlives the run, as with a store on disk."""

    name = "FastMCP client"
    stores: ClassVar[dict[Path, Any]] = {}

    async def open(self) -> None:
        from fastmcp import Client
        from fastmcp.client.auth import OAuth
        from fastmcp.client.transports import StreamableHttpTransport
        from key_value.aio.stores.memory import MemoryStore

        class Browserless(OAuth):
            """Has the page visited by a browser that agrees."""

            async def redirect_handler(self, authorization_url: str) -> None:
                visits.append(asyncio.create_task(open_once(authorization_url)))

        visits: list[asyncio.Task[None]] = []
        if self.token is not None:
            transport = StreamableHttpTransport(self.url, headers={"Authorization": f"Bearer {self.token}"})
        else:
            store = self.stores.setdefault(self.folder, MemoryStore())
            with warnings.catch_warnings(action="ignore"):
                auth = Browserless(self.url, token_storage=store, callback_host="127.0.0.1")
            transport = StreamableHttpTransport(self.url, auth=auth)
        self._client = await self.stack.enter_async_context(Client(transport))

    async def call(self) -> str:
        return str((await self._client.call_tool(TOOL, {})).data)


class McpRemoteClient(SignInClient):
    """mcp-remote as a process over stdio; whoever reads what it prints opens the address in it."""

    name = "mcp-remote"

    async def open(self) -> None:
        said = self.folder / f"said-{time.monotonic_ns()}"
        command = [*package("mcp-remote", "dist/proxy.js"), self.url, "--transport", "http-only"]
        if self.token is not None:
            command += ["--header", f"Authorization: Bearer {self.token}"]
        environment = {
            "HOME": str(self.folder),
            "MCP_REMOTE_CONFIG_DIR": str(self.folder / "mcp-auth"),
            # No browser of this machine.
            "PATH": "/nowhere",
        }
        args = ("-c", 'exec "$@" 2>"$0"', str(said), *command)
        spec = ServerSpec(name="remote", given_name="remote", command="/bin/sh", args=args, env=environment)
        reader = asyncio.create_task(open_addresses(said))
        self.stack.callback(reader.cancel)
        self._client = await self.stack.enter_async_context(process_client(spec, VERSION))

    async def call(self) -> str:
        result = await self._client.call(TOOL, {})
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result["content"][0]["text"]


CLIENTS: tuple[type[SignInClient], ...] = (PegboardClient, FastMcpClient, McpRemoteClient)


async def visit(url: str) -> None:
    """Follow an address to wherever it leads, as quick as a very quick person."""
    await asyncio.sleep(1.0)
    async with httpx2.AsyncClient(follow_redirects=True, timeout=LIMIT) as http:
        await http.get(url)


async def open_once(url: str) -> None:
    """Have a browser open an address; if it is open already, wait for that."""
    if url not in _open:
        _open[url] = asyncio.create_task(visit(url))
    await _open[url]


_open: dict[str, asyncio.Task[None]] = {}


async def open_addresses(said: Path) -> None:
    """Open every address of an authorization that a program prints, once."""
    while True:
        text = said.read_text("utf-8", "replace") if said.exists() else ""
        for url in ADDRESS.findall(text):
            await open_once(url)
        await asyncio.sleep(0.05)


def as_json(numbers: Any) -> str:
    """Numbers as a file has them."""
    return json.dumps(numbers, indent=1) + "\n"
