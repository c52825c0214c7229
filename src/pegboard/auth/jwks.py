"""The keys that an issuer signs with (JWKS): fetched when they are needed, kept, and refreshed in the background.

One fetch is under way at most, and everybody who needs it waits for that one. While the issuer is away, the keys that
are kept go on to be used.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.access.settings import IssuerSettings
from pegboard.auth.document import fetch_document, find_keys_address
from pegboard.auth.refused import AuthRefused
from pegboard.exactjson import as_list, as_object
from pegboard.log import logger
from pegboard.oauth.fetching import JsonAnswer
from pegboard.result import ToolFailure, invalid
from pegboard.task_set import TaskSet

# Seconds: how long keys are good without a word of the issuer's, and how far such a word counts.
_FRESH, _LEAST_FRESH, _MOST_FRESH = 600.0, 60.0, 3600.0
# How long a key that is not there is not asked for again, and how long an issuer that is away is let alone.
UNKNOWN_PAUSE = 30.0
AWAY_PAUSE = 5.0
_MOST_KEYS = 100
# Without a `kid` every key that fits may be the one.
_MOST_TRIED = 8
_LEAST_RSA_BITS = 2048
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=\"?([0-9]{1,9})")
# What a key of an algorithm is: its type, and its curve where that is given.
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "ES512": ("EC", ("P-521",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
}
# What is private, or could be: only what verifies is kept.
_PUBLIC = frozenset({"kty", "n", "e", "crv", "x", "y"})


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """One key that verifies."""

    kid: str | None
    algorithm: str | None
    members: Mapping[str, Any]

    def fits(self, kid: str | None, algorithm: str) -> bool:
        """Whether a token that says this may be signed with it."""
        kind, curves = _KINDS.get(algorithm, ("RSA", ()))
        return (
            (kid is None or kid == self.kid)
            and self.algorithm in {None, algorithm}
            and self.members["kty"] == kind
            and (not curves or self.members.get("crv") in curves)
        )

    def load(self, algorithm: str) -> Any:
        """The key as PyJWT wants it; `None` if it is none, or too weak. Not for the event loop."""
        import jwt

        try:
            key = jwt.get_algorithm_by_name(algorithm).from_jwk(dict(self.members))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None
        is_weak = self.members["kty"] == "RSA" and key.key_size < _LEAST_RSA_BITS
        return None if is_weak else key


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, settings: IssuerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._keys: list[IssuerKey] | None = None
        # Where they are, as far as that was found out.
        self._address = settings.jwks_url
        self._fresh_until = self._kept_until = 0.0
        self._pause_until = 0.0
        self._fetched_at = -math.inf
        self._is_away = False
        self._fetching: asyncio.Task[None] | None = None
        self._tasks = TaskSet()

    async def close(self) -> None:
        """End what is under way."""
        await self._tasks.close()

    async def find(self, kid: str | None, algorithm: str) -> list[IssuerKey]:
        """The keys that a token may be signed with; none if the issuer has no such key. `AuthRefused` with 503 where
        nobody can say: whoever has a good token is not to throw it away."""
        asked_at = self._clock()
        if self._keys is None or asked_at >= self._kept_until:
            await self._fetch()
        elif asked_at >= self._fresh_until:
            self._start_fetch()
        found = self._select(kid, algorithm)
        if found or kid is None:
            return found
        if self._fetched_at < asked_at:
            # A key that is not known may be new.
            await self._fetch()
            found = self._select(kid, algorithm)
        if not found and self._is_away:
            raise self._unavailable()
        if not found and self._fetched_at >= asked_at:
            # Names of keys that somebody makes up are no way to have an issuer asked time and again.
            self._pause_until = self._fetched_at + UNKNOWN_PAUSE
        return found

    def _select(self, kid: str | None, algorithm: str) -> list[IssuerKey]:
        if self._keys is None:
            raise self._unavailable()
        return [key for key in self._keys if key.fits(kid, algorithm)][:_MOST_TRIED]

    def _unavailable(self) -> AuthRefused:
        wait = max(self._pause_until - self._clock(), 1.0)
        reason = f"the keys of the issuer {self.settings.issuer} cannot be fetched now: try again"
        return AuthRefused(503, reason, retry_after=wait)

    async def _fetch(self) -> None:
        """Wait for the fetch that is under way, or for a new one if it is time for that."""
        if (task := self._start_fetch()) is not None:
            # Whoever goes away does not end it for the others.
            await asyncio.shield(task)

    def _start_fetch(self) -> asyncio.Task[None] | None:
        if self._fetching is None and self._clock() >= self._pause_until:
            self._fetching = self._tasks.spawn(self._update())
        return self._fetching

    async def _update(self) -> None:
        try:
            document = await self._read()
            keys = _read_keys(document.members)
        except ToolFailure as exc:
            self._is_away = True
            self._address = self.settings.jwks_url
            self._pause_until = self._clock() + (AWAY_PAUSE if self._keys is None else UNKNOWN_PAUSE)
            logger().warning("issuer.keys.failed", issuer=self.settings.issuer, reason=str(exc))
        else:
            self._is_away, self._keys, self._fetched_at = False, keys, self._clock()
            lifetime = _lifetime(document.headers)
            self._fresh_until, self._kept_until = self._fetched_at + lifetime, self._fetched_at + 2 * lifetime
        finally:
            self._fetching = None

    async def count(self) -> int:
        """How many keys the issuer has now that verify something; a `ToolFailure` says why they cannot be had."""
        return len(_read_keys((await self._read()).members))

    async def _read(self) -> JsonAnswer:
        issuer = self.settings.issuer
        if not self._address:
            self._address = await find_keys_address(issuer)
        return await fetch_document(self._address, issuer, is_configured=self._address == self.settings.jwks_url)


def _read_keys(members: Mapping[str, Any]) -> list[IssuerKey]:
    listed = as_list(members.get("keys"))
    if listed is None:
        raise invalid("the issuer's keys are no JWKS: there is no list of keys")
    known = (_read_key(as_object(each) or {}) for each in listed[:_MOST_KEYS])
    return [key for key in known if key is not None]


def _read_key(members: Mapping[str, Any]) -> IssuerKey | None:
    """A key for signatures; one that is for anything else, or is a shared secret, is left out."""
    kid, algorithm, uses = members.get("kid"), members.get("alg"), members.get("key_ops")
    if members.get("kty") not in {"RSA", "EC", "OKP"} or members.get("use", "sig") != "sig":
        return None
    if isinstance(uses, list) and "verify" not in cast("list[object]", uses):
        return None
    return IssuerKey(
        kid if isinstance(kid, str) else None,
        algorithm if isinstance(algorithm, str) else None,
        {name: value for name, value in members.items() if name in _PUBLIC},
    )


def _lifetime(headers: Mapping[str, str]) -> float:
    """For how long keys are fresh, by the word of the issuer within bounds."""
    match = _MAX_AGE.search(headers.get("cache-control", "").lower())
    return min(max(float(match[1]), _LEAST_FRESH), _MOST_FRESH) if match else _FRESH
