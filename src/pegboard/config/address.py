"""What every address has in common, wherever it was written down: is it one, and the key that goes with it."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from pegboard.config.secrets import secrets_of
from pegboard.config.settings import ServerSpec


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
