"""What every address has in common, wherever it was written down: is it one, and what in it is secret."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from pegboard.config.settings import ServerSpec

_SECRET_NAME = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_MIN_SECRET_LENGTH = 4


def url_problem(url: str) -> str | None:
    """Why an address cannot be a server's, or `None`."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as exc:
        return f"is not an address: {exc}"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return "must be an http:// or https:// address"
    return None


def with_bearer(spec: ServerSpec, key: str) -> ServerSpec:
    """The server with `key` as its bearer token; a header of the file's own wins."""
    if any(name.lower() == "authorization" for name in spec.headers):
        return spec
    headers = {**spec.headers, "Authorization": f"Bearer {key}"}
    return replace(spec, headers=headers, secrets=spec.secrets | {key})


def secrets_of(spec: ServerSpec, used: Collection[str]) -> frozenset[str]:
    """Every text of this server that no log, error or reply may show."""
    found = set(used) | set(spec.headers.values())
    found |= {value.partition(" ")[2] for value in spec.headers.values()}
    found |= {value for name, value in spec.env.items() if _SECRET_NAME.search(name)}
    if spec.url:
        parts = urlsplit(spec.url)
        found |= {parts.password or ""} | {value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)}
    return frozenset(secret for secret in found if len(secret) >= _MIN_SECRET_LENGTH)
