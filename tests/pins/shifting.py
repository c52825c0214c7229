"""A gateway before a server whose definitions shift, and what tests do with both."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from harness import HERE, Entry, Gateway, open_gateway

SHIFTING = HERE / "servers" / "shifting.py"
# How long an answer of REST is waited for.
PATIENCE = 30.0


def tool(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    """A definition with these parameters."""
    return {
        "name": name,
        "description": description or f"Does {name}.",
        "inputSchema": {"type": "object", "properties": properties},
    }


@dataclass
class ShiftingServer:
    """What the server says, in a file that it reads with each request."""

    file: Path
    said: dict[str, Any] = field(default_factory=dict[str, Any])

    def say(self, *tools: Any, **more: Any) -> None:
        """Say this from now on."""
        self.said = {"tools": list(tools), **more}
        self.file.write_text(json.dumps(self.said), "utf-8")

    @property
    def entry(self) -> Entry:
        return {"command": sys.executable, "args": ["-I", "-S", str(SHIFTING), str(self.file)]}


@dataclass
class ShiftingGateway:
    """A gateway with that server, by the name `shop`."""

    gateway: Gateway
    server: ShiftingServer
    http: httpx2.AsyncClient

    async def get(self, path: str) -> Any:
        answer = (await self.http.get(path)).json()
        assert answer["success"], answer
        return answer["data"]

    async def post(self, path: str, **body: Any) -> Any:
        answer = (await self.http.post(path, json=body)).json()
        assert answer["success"], answer
        return answer["data"]

    async def refuse(self, path: str, status: int, **body: Any) -> str:
        """What a POST that is refused says."""
        answer = await self.http.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()["error"]["message"]

    async def refresh(self) -> None:
        """Have the server asked again."""
        await self.gateway.board.refresh(["shop"])
        await settle(self.gateway)

    async def release(self, *tools: Any, **more: Any) -> None:
        """Say something else, as after an update: the server is started anew."""
        self.server.say(*tools, **more)
        await self.post("/api/servers/shop/restart")
        await self.refresh()

    async def call(self, name: str, **arguments: Any) -> Any:
        """The whole answer of a call over REST."""
        return (await self.http.post(f"/api/tools/{name}/call", json={"arguments": arguments})).json()

    def served(self) -> dict[str, Any]:
        """Descriptions of the tools that are served, by their own names."""
        known = self.gateway.board.registry.server("shop")
        assert known is not None
        return {each.original_name: each.definition["description"] for each in known.tools.values()}

    async def waiting(self) -> list[str]:
        """Ids of what differs, with what is done about it."""
        rows = (await self.get("/api/changes"))["servers"]
        return [f"{item['id']} {item['change']} {item['state']}" for row in rows for item in row["items"]]


async def settle(gateway: Gateway) -> None:
    """Wait until prompts and templates are known as well."""
    await gateway.board.discovery.discover_resources(PATIENCE)
    while asking := list(gateway.board.discovery._asking):
        for task in asking:
            await task


@contextlib.asynccontextmanager
async def open_shop(tmp_path: Path, *tools: Any, **own: Any) -> AsyncGenerator[ShiftingGateway]:
    """A gateway whose server says these things at first; keyword arguments are settings of ours."""
    more = own.pop("more", {})
    server = ShiftingServer(tmp_path / "said.json")
    server.say(*tools, **more)
    entry = {**server.entry, **own.pop("entry", {})}
    async with open_gateway(tmp_path, {"shop": entry}, **own) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=PATIENCE) as http:
            shop = ShiftingGateway(gateway, server, http)
            await shop.refresh()
            yield shop
