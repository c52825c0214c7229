"""Clients that bring a static token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from harness import LIMIT, Gateway, ListeningTransport, connect
from pegboard.access.principal import Principal
from pegboard.config import ServerSpec

Headers = Mapping[str, str]


def principal_of(gateway: Gateway, headers: Headers) -> Principal:
    """Who the token of these headers stands for."""
    principal = gateway.front.authenticator.tokens.find(headers["authorization"].removeprefix("Bearer "))
    assert principal is not None
    return principal


def bearer_client(gateway: Gateway, headers: Headers, version: str = "2025-11-25", **options: Any) -> Any:
    """A raw client over HTTP that brings a token."""
    spec = ServerSpec(name="gateway", given_name="gateway", transport="http", url=gateway.mcp, headers=dict(headers))
    return connect(ListeningTransport(spec), version, **options)


def bearer_http(gateway: Gateway, headers: Headers) -> httpx2.AsyncClient:
    """Plain requests that bring a token."""
    return httpx2.AsyncClient(base_url=gateway.url, headers=dict(headers), timeout=LIMIT)
