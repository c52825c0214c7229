"""A gateway in front of guarded servers, and people who sign in to them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from harness import LIMIT, Entry, Gateway, open_gateway
from oauth.person import Person


@dataclass
class SignedIn:
    """A running gateway, and a browser."""

    gateway: Gateway
    http: httpx2.AsyncClient

    def person(self, server: str, headers: Mapping[str, str] | None = None) -> Person:
        return Person(self.http, self.gateway.url, server, headers)


@contextlib.asynccontextmanager
async def open_signed_in(tmp_path: Path, servers: Mapping[str, Entry], **own: Any) -> AsyncGenerator[SignedIn]:
    """A gateway whose servers somebody has signed in to."""
    async with open_gateway(tmp_path, servers, **own) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        opened = SignedIn(gateway, http)
        for server in servers:
            await opened.person(server).sign_in()
        yield opened
