"""What every address has in common, wherever it was written down: is it one, and what in it is secret."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import unquote, unquote_plus, urlsplit

from pegboard.config.settings import ServerSpec

_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|auth|credential|cookie", re.IGNORECASE)
_MIN_SECRET_LENGTH = 4


def url_problem(url: str) -> str | None:
    """Why an address cannot be a server's, or `None`."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # Python's own reason quotes the address, and with it whatever is secret there.
        return "is not an address: check its host and port"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return "must be an http:// or https:// address"
    return None


def with_bearer(spec: ServerSpec, key: str) -> ServerSpec:
    """The server with `key` as its bearer token; a header of the file's own wins."""
    if any(name.lower() == "authorization" for name in spec.headers):
        return spec
    changed = replace(spec, headers={**spec.headers, "Authorization": f"Bearer {key}"})
    return replace(changed, secrets=spec.secrets | secrets_of(changed, {key}))


def secrets_of(spec: ServerSpec, used: Collection[str]) -> frozenset[str]:
    """Every text of this server that no log, error or reply may show."""
    found = set(used) | set(spec.headers.values())
    found |= {value.partition(" ")[2] for value in spec.headers.values()}
    found |= {value for name, value in spec.env.items() if _SECRET_NAME.search(name)}
    found |= _secrets_in_url(spec.url or "")
    return frozenset(secret for secret in found if len(secret) >= _MIN_SECRET_LENGTH)


def _secrets_in_url(url: str) -> set[str]:
    """Each secret as it stands in the address and as it is meant: a message can show either."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return {url}
    password = parts.password or ""
    fields = (field.partition("=") for field in parts.query.split("&"))
    values = {value for name, _, value in fields if _SECRET_NAME.search(unquote_plus(name))}
    return {password, unquote(password), *values, *map(unquote_plus, values)}
