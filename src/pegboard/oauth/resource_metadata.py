"""Protected resource metadata (RFC 9728): what a server says of itself, and of who signs in to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pegboard.oauth.authorization_server import read_words
from pegboard.servers.http.origin import Origin

_WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class ServerResource:
    """The part of the metadata that a sign-in needs."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...] | None

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> ServerResource | None:
        """The metadata of a document; `None` if it is something else."""
        resource = members.get("resource")
        if not isinstance(resource, str) or not resource:
            return None
        servers = read_words(members.get("authorization_servers")) or ()
        return cls(resource, servers, read_words(members.get("scopes_supported")))


def resource_metadata_addresses(server_url: str, said: str | None) -> list[str]:
    """Where the metadata of a server may be, in the order in which they are asked for: where the server said, then the
    well-known addresses of its path and of its origin."""
    parts = urlsplit(server_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    known = [*([said] if said else []), *([f"{origin}{_WELL_KNOWN}{parts.path}"] if parts.path.strip("/") else [])]
    return list(dict.fromkeys([*known, f"{origin}{_WELL_KNOWN}"]))


def covers(resource: str, server_url: str) -> bool:
    """Whether a token for this resource is one for the server: of the same origin, and its path or one above."""
    if not Origin.of(server_url).holds(resource):
        return False
    path, inner = (urlsplit(each).path.rstrip("/") + "/" for each in (resource, server_url))
    return inner.startswith(path)
