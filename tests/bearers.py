"""Static tokens for tests, and clients that bring one."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx2

from harness import LIMIT, Gateway, ListeningTransport, connect
from pegboard.access.principal import Principal
from pegboard.access.rule_json import read_rule
from pegboard.auth.token import StaticToken, digest_of, new_token_text
from pegboard.config import ServerSpec
from pegboard.toolsets.installed import TOOLSETS


async def give_tokens(gateway: Gateway, **rules: dict[str, Any]) -> dict[str, str]:
    """New tokens by their name, each with its rule; these are all that there are."""
    texts: dict[str, str] = {}
    tokens: list[StaticToken] = []
    for name, rule in rules.items():
        token_id, texts[name] = new_token_text()
        digest = digest_of(texts[name])
        await gateway.board.storage.tokens.add(token_id, name, digest, json.dumps(rule), time.time(), None)
        tokens.append(StaticToken(token_id, name, digest, read_rule(rule, toolsets=tuple(TOOLSETS))))
    gateway.front.authenticator.tokens.replace(tokens)
    return texts


def principal_of(gateway: Gateway, token: str) -> Principal:
    """Who a token stands for."""
    principal = gateway.front.authenticator.tokens.find(token)
    assert principal is not None
    return principal


def bearer_client(gateway: Gateway, token: str, version: str = "2025-11-25", **options: Any) -> Any:
    """A raw client over HTTP that brings a token."""
    headers = {"Authorization": f"Bearer {token}"}
    spec = ServerSpec(name="gateway", given_name="gateway", transport="http", url=gateway.mcp, headers=headers)
    return connect(ListeningTransport(spec), version, **options)


def bearer_http(gateway: Gateway, token: str) -> httpx2.AsyncClient:
    """Plain requests that bring a token."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(base_url=gateway.url, headers=headers, timeout=LIMIT)
