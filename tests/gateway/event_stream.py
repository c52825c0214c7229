"""A reader of the stream of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from harness import LIMIT, Gateway


class Events:
    """A stream of events, read one by one."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()
        self.last_id = ""
        self.comments = 0

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The next event and its data; an end of the stream is `EOFError`."""
        kind = ""
        async with asyncio.timeout(LIMIT):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                self.comments += line.startswith(":")
                if name == "id":
                    self.last_id = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    return kind, json.loads(value)
        raise EOFError

    async def take(self, kinds: set[str]) -> dict[str, dict[str, Any]]:
        """The last of each kind, once there was one of each."""
        told: dict[str, dict[str, Any]] = {}
        while kinds - told.keys():
            kind, data = await self.next()
            told[kind] = data
        return told

    async def wait_for(self, kind: str) -> dict[str, Any]:
        """The data of the next event of this kind."""
        while True:
            found, data = await self.next()
            if found == kind:
                return data


@asynccontextmanager
async def watching(
    gateway: Gateway, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[tuple[httpx2.AsyncClient, Events]]:
    """A client, and its stream behind the greeting."""
    async with (
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=headers) as http,
        http.stream("GET", "/api/events") as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        events = Events(response)
        assert (await events.next())[0] == "hello"
        yield http, events
