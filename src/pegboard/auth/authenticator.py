"""The authenticator: who sends a request over HTTP. Every entrance over HTTP asks it before anything else happens.

A bearer that is brought is always looked at, wherever it comes from. Without one, the user that the gateway runs as
needs none on this machine, unless the config says so (`auth.required`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from pegboard.access.principal import LOCAL, Principal
from pegboard.access.settings import AuthSettings, IssuerSettings, Required
from pegboard.auth.bearer import bearer_of, refuse_token_in_address
from pegboard.auth.flood import BearerFlood
from pegboard.auth.jwt import Jwt
from pegboard.auth.jwts import Jwts
from pegboard.auth.page_cookie import PageCookie, list_cookies
from pegboard.auth.proof import is_proven
from pegboard.auth.reach import Reach
from pegboard.auth.refused import AuthRefused
from pegboard.auth.rule_book import RuleBook, SightOf
from pegboard.auth.token import PREFIX, StaticToken
from pegboard.auth.tokens import Tokens
from pegboard.clients.locality import is_remote, share_holder
from pegboard.clients.peer_user import peer_of
from pegboard.config import Settings
from pegboard.log import logger
from pegboard.servers.connection_key import is_per_user

_NOBODY = "this gateway wants to know who asks: send Authorization: Bearer TOKEN (`pegboard token add NAME` makes one)"
_ANOTHER_USER = f"{_NOBODY}. Another user of this machine needs one, too"
_THIS_MACHINE = Reach()
# In the scope of a request that proved to be this machine's own user's: the proof itself is good for a minute only.
_PROVEN = "pegboard.proven"
# In the scope of a request whose cookies were looked at: the token of the one that is good, if there is one.
_OF_COOKIE = "pegboard.cookie"
# What the commands need that mend a config. Whoever runs them has the file itself: no rule in it locks its owner out.
_MENDING = tuple(f"/api/{part}" for part in ("servers", "tokens", "rules", "status", "clients", "calls", "audit"))
_OWNER = Principal("local", LOCAL.id, LOCAL.name, admin=True)


class Authenticator:
    """Knows who is behind a request."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        secret: str = "",
        reach: Reach = _THIS_MACHINE,
        *,
        own_names: frozenset[str] = frozenset(),
        cookie: PageCookie | None = None,
        on_successor: Callable[[Principal], None] = lambda _: None,
        sight_of: SightOf = lambda _: None,
    ) -> None:
        self._settings = settings
        # What a browser brings in place of a header.
        self.cookie = cookie
        # Told of a principal that goes on under other rules.
        self._on_successor = on_successor
        # Asked as long as there are servers that everybody signs in to for themselves.
        self._sight_of, self._has_sights = sight_of, False
        self.reach = reach
        # Of the run file: whoever can read that is the user of this machine.
        self._secret = secret
        # As of which settings everybody is known.
        self._read_of: Settings | None = None
        self._required_before: Required | None = None
        # How often that has changed: what was found out about a request before is not so any more.
        self.generation = 0
        self._rules = RuleBook(AuthSettings(), self._read_only_tools)
        self.tokens = Tokens(self._make_principal, on_successor)
        self.jwts = Jwts(self._make_jwt_principal, own_names)
        self._flood = BearerFlood()
        self._local, self._anonymous = self._rules.local(), self._rules.anonymous()

    @property
    def rules(self) -> RuleBook:
        """The rules of the config as it is now. With other rules everybody is somebody else."""
        settings, before = self._settings(), self._read_of
        if settings is before:
            return self._rules
        auth, self._read_of = settings.auth, settings
        had_sights, self._has_sights = self._has_sights, any(map(is_per_user, settings.servers.values()))
        if before is None or auth != before.auth or had_sights != self._has_sights:
            self.generation += 1
            self._rules = RuleBook(auth, self._read_only_tools, *([self._sight_of] if self._has_sights else []))
            self._follow_both()
            self.tokens.apply_rules()
            self.jwts.apply(auth)
            if auth.required is False and self.requirement is not False:
                remark = "auth.required is false, which does not open a gateway that other machines reach"
                logger().warning("config.remark", remark=f"{remark}: start it anew with --insecure for that")
        return self._rules

    def _follow_both(self) -> None:
        """Who brings no bearer is somebody else under other rules, or nobody any more."""
        required = self.requirement
        is_shut = required is True and self._required_before is not True
        self._local = self._follow(self._local, self._rules.local(), is_shut=is_shut)
        if required is False:
            self._anonymous = self._follow(self._anonymous, self._rules.anonymous())
        else:
            self._anonymous.end()
            self._anonymous = self._rules.anonymous()
        self._required_before = required

    def _follow(self, before: Principal, after: Principal, *, is_shut: bool = False) -> Principal:
        """Who somebody is under other rules; the same as before if they say the same."""
        if not is_shut and (before.access, before.admin) == (after.access, after.admin):
            return before
        before.end(after)
        self._on_successor(after)
        return after

    def apply(self) -> None:
        """The config may be another one: whoever other rules hold for is somebody else."""
        _ = self.rules

    @property
    def local(self) -> Principal:
        """The user that the gateway runs as."""
        self.apply()
        return self._local

    @property
    def requirement(self) -> Required:
        """Who has to say who they are."""
        return self.reach.requirement(self._settings().auth)

    def check_reach(self) -> None:
        """Refuse to start where nobody could tell who comes: `UnprotectedError`."""
        expired = [token.name for token in self.tokens.list_expired()]
        self.reach.check(self._settings().auth, len(self.tokens.list_live()), expired)

    def count_admission(self) -> dict[str, Any]:
        """Who may come in, for programs."""
        required = self.requirement
        return {
            "local": required is not True,
            "anonymous": required is False,
            "tokens": len(self.tokens.list_live()),
            "issuers": len(self._settings().auth.issuers),
        }

    def describe_admission(self) -> str:
        """Who may come in, for people."""
        if self.requirement is False:
            return "everybody who reaches this address, without a token"
        count = len(self.tokens.list_live())
        tokens = f"{count or 'no'} token{'' if count == 1 else 's'}"
        others = [f"whoever has a token ({tokens} so far)"]
        issuers = ", ".join(each.issuer for each in self._settings().auth.issuers)
        others += [f"whom {issuers} vouches for"] if issuers else []
        own = [] if self.requirement is True else ["you, on this machine"]
        return "; ".join([*own, *others])

    def recognize(self, scope: MutableMapping[str, Any]) -> Principal | None:
        """Who sends a request, as far as that can be told at once; `None` where `authenticate` has to look."""
        try:
            refuse_token_in_address(scope)
            return self._recognize(scope)
        except AuthRefused:
            return None

    async def authenticate(self, scope: MutableMapping[str, Any]) -> Principal:
        """Who sends a request; `AuthRefused` says why nobody is let in."""
        refuse_token_in_address(scope)
        scope.pop(_OF_COOKIE, None)
        try:
            return self._recognize(scope) or await self._look_up(scope)
        except AuthRefused as exc:
            # Without an error no credentials came, and a status of its own is not the bearer's fault.
            if exc.status not in {400, 401} or not exc.error:
                raise
            raise self._flood.record(_address(scope), exc) from None

    def is_current(self, principal: Principal, generation: int) -> bool:
        """Whether whoever was let in at this generation would be let in as the same one now, as far as that can be told
        without asking."""
        if generation != self.generation:
            return False
        until = principal.valid_until
        return until == math.inf or time.time() < min(until, principal.recheck_at)

    def keeps(self, successor: Principal, scope: MutableMapping[str, Any]) -> bool:
        """Whether a stream may go on that was opened before other rules made this one of its principal."""
        if successor.kind == "local":
            return self.requirement is not True or _PROVEN in scope
        # Nobody knows whose it is: it has to be opened anew.
        return successor.kind != "anonymous"

    async def close(self) -> None:
        """End what is under way."""
        await self.jwts.close()

    async def _look_up(self, scope: MutableMapping[str, Any]) -> Principal:
        if bearer_of(scope["headers"]) is None:
            # What was missing is whose the connection is, or what is in a cookie.
            if self.requirement is not True and not is_remote(scope):
                await asyncio.to_thread(peer_of(scope).look_up)
            if (known := self._recognize(scope)) is not None:
                return known
            assert self.cookie is not None
            scope[_OF_COOKIE] = await self.cookie.find_bearer(scope)
            if (known := self._recognize(scope)) is not None:
                return known
        bearer = bearer_of(scope["headers"]) or scope[_OF_COOKIE]
        return await self.jwts.verify(bearer, scope, lambda: self._flood.wait_turn(_address(scope)))

    def _recognize(self, scope: MutableMapping[str, Any]) -> Principal | None:
        headers = scope["headers"]
        bearer = bearer_of(headers)
        if bearer is not None:
            return self._find_bearer(bearer, scope)
        if self._secret and is_proven(headers, self._secret, scope.get("server")):
            scope[_PROVEN] = True
            return self._find_owner(scope)
        return self._without_header(scope)

    def _find_owner(self, scope: MutableMapping[str, Any]) -> Principal:
        return _OWNER if scope["path"].startswith(_MENDING) else self.local

    def _find_bearer(self, bearer: str, scope: MutableMapping[str, Any]) -> Principal | None:
        self.apply()
        if not bearer.startswith(PREFIX):
            return self.jwts.find(bearer, scope)
        principal = self.tokens.find(bearer)
        if principal is None:
            raise self.tokens.refusal(bearer)
        return principal

    def _without_header(self, scope: MutableMapping[str, Any]) -> Principal | None:
        required, is_far = self.requirement, is_remote(scope)
        if required is not True and not is_far:
            peer = peer_of(scope)
            if peer.is_own is None:
                return None
            if peer.is_own:
                # Whatever cookie another server of this host gave their browser.
                return self.local
        if self.cookie is not None and list_cookies(scope):
            if _OF_COOKIE not in scope:
                return None
            if (bearer := scope[_OF_COOKIE]) is not None:
                return self._find_bearer(bearer, scope)
        return self._anybody(required, _NOBODY if is_far or required is True else _ANOTHER_USER)

    def _anybody(self, required: object, refusal: str) -> Principal:
        if required is not False:
            raise AuthRefused(401, refusal)
        self.apply()
        return self._anonymous

    def _make_principal(self, token: StaticToken) -> Principal:
        return self.rules.of_token(token)

    def _make_jwt_principal(self, token: Jwt, issuer: IssuerSettings) -> Principal:
        subject, client_id, scopes = token.subject(issuer), token.client_id, token.scopes
        principal = self.rules.of_jwt(issuer.issuer, subject, client_id, token.groups(issuer), scopes, token.expires_at)
        if principal is not None:
            return principal
        kinds = [f'"sub:{subject}"', *([f'"client:{client_id}"'] if client_id else []), '"group:NAME"', '"scope:NAME"']
        reason = f'no rule of auth.rules is for this token: one whose "who" has {", ".join(kinds)} or "*" would be'
        wanted = self.rules.scopes - scopes
        raise AuthRefused(403, reason, error="insufficient_scope" if wanted else "", scopes=wanted)

    def _read_only_tools(self, server: str) -> tuple[str, ...]:
        return self._settings().read_only_tools(server)


def _address(scope: MutableMapping[str, Any]) -> str:
    """Whose bad bearers are counted together."""
    peer = scope.get("client")
    return share_holder(str(peer[0]) if peer else "")
