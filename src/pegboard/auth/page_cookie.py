"""The page's cookie: a bearer token that somebody gave the page once, sealed so that only a gateway on the same storage
can use it, and only for the page and REST.

A browser sends a cookie to every port of a host, and takes one from each. Another server there that is given ours has a
text that opens nothing elsewhere, and nothing here once its session is over: at sign-out, or by time. That is kept in
storage, and whoever reads that has nothing to open. Whether the token still lets somebody in is asked at every request,
as if it were sent as a header.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pegboard.access.principal import Principal
from pegboard.auth.bearer import MAX_TOKEN
from pegboard.lru_dict import LruDict
from pegboard.storage.database import StorageError
from pegboard.storage.page_sessions import PageSessionStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_CONTEXT = b"pegboard page cookie 2"
_NONCE = 12
_ID_BYTES = 16
_DAYS_30 = 30 * 86_400.0
_LONGEST = 2 * MAX_TOKEN
# Cookies of one name that are looked at, and sessions that are known to go on while storage is away.
_MOST_COOKIES, _MOST_KNOWN = 8, 1000
# What a cookie is good for: the page itself has nothing secret, and MCP clients send headers.
_PATHS = ("/api/", "/docs", "/openapi.json", "/metrics")
# Seconds between two looks at whether sessions with streams go on, as for tokens.
_LOOK_EVERY = 0.5
# In the scope of a request whose cookie was good: its session.
_SESSION = "pegboard.page_session"
# Where a browser may have one from another server of this host that is sent here.
_FORGET_AT = ("/", "/api", "/docs")


class PageCookie:
    """Makes cookies, and finds the token in them. Its key is read when the first of them comes."""

    def __init__(self, load_key: Callable[[], Awaitable[bytes]], sessions: PageSessionStore) -> None:
        self._load_key = load_key
        self._sessions = sessions
        self._cipher: AESGCM | None = None
        self._known: LruDict[str, None] = LruDict(_MOST_KNOWN)
        # By session: whom to tell that it is over.
        self._listeners: dict[str, set[Callable[[], None]]] = {}

    async def begin(self, scope: Mapping[str, Any], bearer: str, principal: Principal) -> str:
        """Begin a session with this token; the header that has a browser keep its cookie."""
        cipher, now = await self._prepare(), time.time()
        until = min(principal.valid_until, now + _DAYS_30)
        session_id, nonce = secrets.token_hex(_ID_BYTES), os.urandom(_NONCE)
        await self._sessions.add(session_id, principal.id, now, until)
        sealed = nonce + cipher.encrypt(nonce, f"{session_id}{bearer}".encode(), _CONTEXT)
        value = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
        return _header(scope, value, "/", max(int(until - now), 0))

    async def find_bearer(self, scope: MutableMapping[str, Any]) -> str | None:
        """The token of a request's cookie, if its session goes on.

        A browser sends ours last of all of its name, as it is for the widest path.
        """
        for value in reversed(list_cookies(scope)):
            session_id, bearer = await self._open(value)
            if session_id and await self._goes_on(session_id):
                scope[_SESSION] = session_id
                return bearer
        return None

    def on_end(self, scope: Mapping[str, Any], listener: Callable[[], None]) -> Callable[[], None]:
        """Have somebody told when the session of a request is over, if it came with one; gives what takes that back."""
        session_id = scope.get(_SESSION)
        if session_id is None:
            return lambda: None
        self._listeners.setdefault(session_id, set()).add(listener)
        return lambda: self._forget(session_id, listener)

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            await self.look()

    async def look(self) -> None:
        """See which of the sessions that somebody listens to are over: they may have ended at another gateway, or by
        time. While storage is away, they go on."""
        if not self._listeners:
            return
        with suppress(StorageError):
            for session_id in await self._sessions.list_over(list(self._listeners), time.time()):
                self._tell_end(session_id)

    async def end(self, scope: Mapping[str, Any]) -> None:
        """End the sessions of a request's cookies, at every gateway on the storage."""
        for value in list_cookies(scope):
            session_id, _ = await self._open(value)
            if session_id:
                await self._sessions.end(session_id)
                self._known.pop(session_id, None)
                self._tell_end(session_id)

    def _tell_end(self, session_id: str) -> None:
        for listener in list(self._listeners.get(session_id, ())):
            listener()

    def _forget(self, session_id: str, listener: Callable[[], None]) -> None:
        listeners = self._listeners.get(session_id, set())
        listeners.discard(listener)
        if not listeners:
            self._listeners.pop(session_id, None)

    async def _prepare(self) -> AESGCM:
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(await self._load_key())
        return self._cipher

    async def _open(self, value: str) -> tuple[str, str]:
        """The session and the token in a cookie's value; nothing, if it is none of ours."""
        from cryptography.exceptions import InvalidTag

        cipher = await self._prepare()
        try:
            sealed = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
            opened = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _CONTEXT).decode()
        except (binascii.Error, InvalidTag, ValueError):
            return "", ""
        return opened[: 2 * _ID_BYTES], opened[2 * _ID_BYTES :]

    async def _goes_on(self, session_id: str) -> bool:
        try:
            is_there = await self._sessions.has(session_id, time.time())
        except StorageError:
            # As for tokens: what is known stays in force while storage is away.
            return session_id in self._known
        if is_there:
            self._known[session_id] = None
        else:
            self._known.pop(session_id, None)
        return is_there


def list_cookies(scope: Mapping[str, Any]) -> list[str]:
    """The values of the page's cookie in a request that it is good for, in the order they were sent. Other servers of
    this host can set some, too."""
    if not scope["path"].startswith(_PATHS):
        return []
    name = _name(scope).encode()
    parts = (part for header, value in scope["headers"] if header == b"cookie" for part in value.split(b";"))
    pairs = (part.strip().partition(b"=") for part in parts)
    found = [value.decode("latin-1") for given, _, value in pairs if given == name and len(value) <= _LONGEST]
    return found[-_MOST_COOKIES:]


def headers_to_forget(scope: Mapping[str, Any]) -> list[str]:
    """The headers that have a browser forget the cookie, wherever it is from."""
    return [_header(scope, "", path, 0) for path in _FORGET_AT]


def _name(scope: Mapping[str, Any]) -> str:
    """The name of the cookie at this gateway: those of several ports of a host stand side by side."""
    server = scope.get("server")
    return f"pegboard_{server[1] if server else 0}"


def _header(scope: Mapping[str, Any], value: str, path: str, seconds: int) -> str:
    """A cookie that no page can read, and that comes with requests of our own pages alone."""
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{_name(scope)}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
