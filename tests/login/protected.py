"""A toy that wants a token of an authorization server for itself: real JWTs, verified over the server's keys."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import jwt

from servers.toy import Settings
from servers.toy_http import Handler, HttpToy, http_toy

METADATA = "/.well-known/oauth-protected-resource/mcp"


@dataclass
class ProtectedToy:
    """What it lets in, and what it says of itself."""

    toy: HttpToy
    issuer: str
    keys: jwt.PyJWKClient
    # Whether it takes any token at all now.
    is_strict: bool = False

    @property
    def url(self) -> str:
        return self.toy.url

    def admits(self, header: str) -> bool:
        """Whether a token is good: signed by the issuer, for this server, and not over."""
        scheme, _, token = header.partition(" ")
        if scheme != "Bearer" or self.is_strict:
            return False
        try:
            key = self.keys.get_signing_key_from_jwt(token)
            jwt.decode(token, key, algorithms=["RS256"], audience=self.url, issuer=self.issuer)
        except jwt.PyJWTError:
            return False
        return True

    def metadata(self) -> dict[str, Any]:
        return {"resource": self.url, "authorization_servers": [self.issuer], "scopes_supported": ["mcp"]}


def _guard(protected: ProtectedToy, handler: type[Handler]) -> type[Handler]:
    class Guarded(handler):  # type: ignore[valid-type, misc]
        """Asks for a token first."""

        def _is_refused(self) -> bool:
            if protected.admits(self.headers.get("authorization", "")):
                return False
            self.rfile.read(int(self.headers.get("content-length") or 0))
            place = protected.url.removesuffix("/mcp") + METADATA
            self.plain(401, b"", {"www-authenticate": f'Bearer resource_metadata="{place}", scope="mcp"'})
            return True

        def do_POST(self) -> None:  # noqa: N802  as the base class calls it
            if not self._is_refused():
                super().do_POST()

        def do_GET(self) -> None:  # noqa: N802  as the base class calls it
            if self.path == METADATA:
                self.plain(200, json.dumps(protected.metadata()).encode(), {"content-type": "application/json"})
            elif not self._is_refused():
                super().do_GET()

    return Guarded


@contextlib.contextmanager
def open_protected(issuer: str) -> Generator[ProtectedToy]:
    """One that listens, and trusts this issuer."""
    with http_toy(Settings(name="guarded")) as toy:
        protected = ProtectedToy(toy, issuer, jwt.PyJWKClient(f"{issuer}/jwks"))
        toy.server.RequestHandlerClass = _guard(protected, toy.server.RequestHandlerClass)  # type: ignore[arg-type]
        yield protected
