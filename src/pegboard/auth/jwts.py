"""The JWTs that are known to be good, by their digests: a token is verified once, and not with each request."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from pegboard.access.principal import Principal
from pegboard.access.settings import AuthSettings, IssuerSettings
from pegboard.auth.jwks import IssuerKeys
from pegboard.auth.jwt import Jwt, is_jwt, parse_jwt, verify_signature
from pegboard.auth.refused import AuthRefused, invalid_token
from pegboard.auth.resource import audiences_of
from pegboard.lru_dict import LruDict
from pegboard.task_set import TaskSet

# How long a token that was verified is not looked at again: its key may be withdrawn before it expires.
RECHECK = 300.0
_MOST_KNOWN = 4096
# At the same time; each is a thread for some 100 microseconds.
_MOST_VERIFYING = 4
_UNKNOWN = "the bearer token is not known here: its issuer is none of this gateway's (auth.issuers)"

# The principal of a token, by the rules; `AuthRefused` where none is for it.
MakePrincipal = Callable[[Jwt, IssuerSettings], Principal]


@dataclass(frozen=True, slots=True)
class _KnownJwt:
    """What came of a token whose signature is good."""

    audience: frozenset[str]
    # An issuer's own audience is the same for all requests.
    has_own_audience: bool
    until: float
    principal: Principal | None = None
    refusal: AuthRefused | None = None

    def result(self) -> Principal:
        """Who it is; `AuthRefused` where no rule is for it."""
        if self.principal is None:
            assert self.refusal is not None
            raise self.refusal.again()
        return self.principal


class Jwts:
    """Tokens of the issuers of a config."""

    def __init__(self, make_principal: MakePrincipal, own_names: frozenset[str] = frozenset()) -> None:
        self._make_principal = make_principal
        # What the gateway is called beside its addresses.
        self._own_names = own_names
        self._settings = AuthSettings()
        self._issuers: dict[str, IssuerKeys] = {}
        self._known: LruDict[bytes, _KnownJwt] = LruDict(_MOST_KNOWN)
        # Also those that nobody knows by their token any more, and whose streams are open.
        self._principals: WeakSet[Principal] = WeakSet()
        self._verifying: dict[bytes, asyncio.Task[_KnownJwt]] = {}
        self._turns = asyncio.Semaphore(_MOST_VERIFYING)
        self._tasks = TaskSet()

    def apply(self, settings: AuthSettings) -> None:
        """The config is another: who a token stands for is found out anew. Keys of issuers that stay are kept."""
        self._settings = settings
        kept = {keys.settings: keys for keys in self._issuers.values()}
        self._issuers = {each.issuer: kept.pop(each, None) or IssuerKeys(each) for each in settings.issuers}
        for keys in kept.values():
            self._tasks.spawn(keys.close())
        self._known.clear()
        self._verifying.clear()
        for principal in list(self._principals):
            principal.end()
        self._principals.clear()

    async def close(self) -> None:
        """End what is under way."""
        await self._tasks.close()
        for keys in self._issuers.values():
            await keys.close()

    def find(self, text: str, scope: Mapping[str, Any]) -> Principal | None:
        """The principal of a token that is known to be good; `None` where it has to be verified."""
        known = self._known.use(_digest(text))
        if known is None or time.time() >= known.until or not self._is_for_us(known, scope):
            return None
        return known.result()

    def find_principal(self, principal_id: str) -> Principal | None:
        """Whom the last token of a principal stood for, if it came here and is in force, or was until it expired."""
        known = [each for each in self._principals if each.id == principal_id and each.valid_until]
        return max(known, key=lambda each: each.valid_until, default=None)

    async def verify(self, text: str, scope: Mapping[str, Any], wait_turn: Callable[[], Awaitable[None]]) -> Principal:
        """The principal of a token; `AuthRefused` says why there is none. What costs something waits for its turn."""
        if not self._issuers or not is_jwt(text):
            raise invalid_token("the bearer token is not known here, or not any more")
        token = parse_jwt(text)
        keys = self._issuers.get(token.issuer)
        if keys is None:
            raise invalid_token(_UNKNOWN)
        token.check(keys.settings, time.time())
        expected = frozenset(keys.settings.audience) or self._own_audiences(scope)
        if token.audience.isdisjoint(expected):
            raise invalid_token("the token is for somebody else: its audience (aud) is not this gateway")
        await wait_turn()
        return (await self._verify_once(token, keys)).result()

    def _is_for_us(self, known: _KnownJwt, scope: Mapping[str, Any]) -> bool:
        return known.has_own_audience or not known.audience.isdisjoint(self._own_audiences(scope))

    def _own_audiences(self, scope: Mapping[str, Any]) -> frozenset[str]:
        return audiences_of(scope, self._settings.public_url, self._own_names)

    async def _verify_once(self, token: Jwt, keys: IssuerKeys) -> _KnownJwt:
        """Wait for whoever verifies this token already."""
        digest = _digest(token.text)
        task = self._verifying.get(digest)
        if task is None:
            task = self._verifying[digest] = self._tasks.spawn(self._verify(digest, token, keys))
            task.add_done_callback(lambda done: self._forget_task(digest, done))
        return await asyncio.shield(task)

    def _forget_task(self, digest: bytes, task: asyncio.Task[_KnownJwt]) -> None:
        if self._verifying.get(digest) is task:
            del self._verifying[digest]
        if not task.cancelled():
            # Whoever waited has it; if they are all gone, nobody needs to hear of it.
            task.exception()

    async def _verify(self, digest: bytes, token: Jwt, keys: IssuerKeys) -> _KnownJwt:
        settings = keys.settings
        found = await keys.find(token.kid, token.algorithm)
        async with self._turns:
            is_good = bool(found) and await asyncio.to_thread(verify_signature, token, found)
        before = self._known.pop(digest, None)
        if not is_good or self._issuers.get(settings.issuer) is not keys:
            if before is not None and before.principal is not None:
                # Its key was withdrawn.
                before.principal.end()
            raise invalid_token("the signature of the token is not one of its issuer's keys")
        known = self._known[digest] = self._judge(token, settings, before)
        return known

    def _judge(self, token: Jwt, settings: IssuerSettings, before: _KnownJwt | None) -> _KnownJwt:
        until = min(token.expires_at, time.time() + RECHECK)
        principal, refusal = before.principal if before is not None else None, None
        if principal is None:
            try:
                principal = self._make_principal(token, settings)
                self._principals.add(principal)
            except AuthRefused as exc:
                refusal = exc
        if principal is not None:
            principal.recheck_at = until
        return _KnownJwt(token.audience, bool(settings.audience), until, principal, refusal)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
