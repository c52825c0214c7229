"""What tests of the audit share: principals with tokens, and records as they are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness import Gateway, ListeningTransport, connect
from pegboard.access.rule import Rule
from pegboard.audit.query import AuditQuery
from pegboard.audit.record import AuditRecord
from pegboard.auth.token import StaticToken, digest_of, new_token_text
from pegboard.config import ServerSpec

EVERYTHING = AuditQuery(limit=100_000)


def add_tokens(gateway: Gateway, **rules: Rule) -> dict[str, str]:
    """Tokens of these names, with a rule each; their texts."""
    texts: dict[str, str] = {}
    tokens: list[StaticToken] = []
    for name, rule in rules.items():
        token_id, texts[name] = new_token_text()
        tokens.append(StaticToken(token_id, name, digest_of(texts[name]), rule))
    gateway.front.authenticator.tokens.replace(tokens)
    return texts


def token_client(gateway: Gateway, token: str, version: str = "2025-11-25", **options: Any) -> Any:
    """A raw client over HTTP that brings a token."""
    headers = {"Authorization": f"Bearer {token}"}
    spec = ServerSpec(name="gateway", given_name="gateway", transport="http", url=gateway.mcp, headers=headers)
    return connect(ListeningTransport(spec), version, **options)


async def records_of(gateway: Gateway, kind: str | None = "call") -> list[AuditRecord]:
    """The records of a gateway, oldest first."""
    found, _ = await gateway.board.audit.find(EVERYTHING)
    return [record for record in reversed(found) if kind is None or record.kind == kind]


def outcomes(records: Iterable[AuditRecord]) -> list[tuple[str, str]]:
    """Tools and outcomes."""
    return [(record.tool, record.outcome) for record in records]
