"""A door for the toy over HTTP that wants a current token, and the authorization of somebody who gets such tokens."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.servers.authorization import Challenge, SignInNeed
from servers.toy_http import Handler

METADATA = "https://issuer.example/.well-known/oauth-protected-resource"
CHALLENGE = f'Bearer error="invalid_token", scope="read", resource_metadata="{METADATA}"'
_numbers = itertools.count(1)


class Door:
    """Lets in whoever brings a current token, and keeps a record of all who came."""

    def __init__(self) -> None:
        # Whose each current token is.
        self.tokens: dict[str, str] = {}
        # Tools that want a scope which no token has, and tools that nobody may use.
        self.scopes: dict[str, str] = {}
        self.forbidden: set[str] = set()
        # Tools whose error repeats what came as `Authorization`.
        self.echoing: set[str] = set()
        # What a resource is answered with.
        self.resource: dict[str, Any] | None = None
        # How often each kind of request came in, and was refused: by the HTTP method, or the method of a message.
        self.admitted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        # The arguments of each call that came in, with the token that it brought.
        self.calls: list[tuple[Mapping[str, Any], str]] = []
        self.headers_of_refusal = {"www-authenticate": CHALLENGE}
        self.body_of_refusal: Callable[[str], bytes] = lambda _: b""
        self._lock = threading.Lock()

    def issue(self, user: str = "gateway") -> str:
        """A new token, which makes the user's others worthless."""
        with self._lock:
            token = f"token-{next(_numbers)}-of-{user}"
            self.tokens = {known: whose for known, whose in self.tokens.items() if whose != user}
            self.tokens[token] = user
            return token

    def current(self, user: str = "gateway") -> str | None:
        """The user's token."""
        return next((token for token, whose in self.tokens.items() if whose == user), None)

    def close(self) -> None:
        """No token is good any more."""
        self.tokens = {}

    def __call__(self, handler: Handler, body: bytes) -> bool:
        """Whether it answered a request itself."""
        message = json.loads(body) if body else {}
        kind = message.get("method", handler.command) if isinstance(message, dict) else handler.command
        params = message.get("params") or {}
        scheme, _, token = (handler.headers.get("authorization") or "").partition(" ")
        with self._lock:
            is_known = scheme == "Bearer" and token in self.tokens
            (self.admitted if is_known else self.refused)[kind] += 1
            if is_known and kind == "tools/call":
                self.calls.append((params.get("arguments") or {}, token))
        tool = params.get("name") if kind == "tools/call" else None
        if not is_known:
            handler.plain(401, self.body_of_refusal(token), self.headers_of_refusal)
        elif tool in self.scopes:
            said = f'Bearer error="insufficient_scope", scope="{self.scopes[tool]}"'
            handler.plain(403, b"", {"www-authenticate": said})
        elif tool in self.forbidden:
            error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "not for you"}}
            self._reply(handler, 403, error)
        elif tool in self.echoing:
            sent = f"{scheme} {token}"
            error = {"code": -32000, "message": f"I was sent {sent}", "data": {"sent": [sent]}}
            self._reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif kind == "resources/read" and self.resource is not None:
            self._reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": self.resource})
        else:
            return False
        return True

    @staticmethod
    def _reply(handler: Handler, status: int, message: dict[str, Any]) -> None:
        handler.plain(status, json.dumps(message).encode(), {"content-type": "application/json"})


@dataclass
class Grant:
    """An authorization in memory: `fetch` is its authorization server, which gives a token or nothing."""

    fetch: Callable[[], str | None]
    token: str | None = None
    version: int = 0
    # Whether the token is thought to be good; who does not think so has one fetched before the next request.
    is_fresh: bool = True
    prepared: int = 0
    fetched: int = 0
    challenges: list[Challenge] = field(default_factory=list[Challenge])
    need: SignInNeed | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def header(self) -> str | None:
        return None if self.token is None else f"Bearer {self.token}"

    async def prepare(self) -> None:
        self.prepared += 1
        await self._fetch(self.header)
        self.is_fresh = True

    async def renew(self, challenge: Challenge, used: str | None) -> bool:
        self.challenges.append(challenge)
        if challenge.wants_scopes:
            self.need = SignInNeed("scope", challenge.scopes)
            return False
        return await self._fetch(used)

    async def _fetch(self, used: str | None) -> bool:
        async with self._lock:
            if self.header != used:
                return True
            await asyncio.sleep(0)
            self.fetched += 1
            token = self.fetch()
            if token is None or token == self.token:
                self.need = SignInNeed("never" if self.token is None else "revoked")
                return False
            self.token, self.need = token, None
            self.version += 1
            return True

    def needs_sign_in(self) -> SignInNeed | None:
        return self.need
