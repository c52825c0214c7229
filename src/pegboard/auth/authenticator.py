"""The authenticator: who sends a request over HTTP. Every entrance over HTTP asks it before anything else happens.

A bearer that is brought is always looked at, wherever it comes from. Without one, the user that the gateway runs as
needs none on this machine, unless the config says so (`auth.required`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

from pegboard.access.principal import ANONYMOUS, Principal
from pegboard.access.settings import AuthSettings, Required
from pegboard.auth.bearer import bearer_of, refuse_token_in_query
from pegboard.auth.proof import is_proven
from pegboard.auth.reach import Reach
from pegboard.auth.refused import AuthRefused, invalid_token
from pegboard.auth.rule_book import RuleBook
from pegboard.auth.token import PREFIX, StaticToken
from pegboard.auth.tokens import Tokens
from pegboard.clients.locality import is_remote
from pegboard.clients.peer_user import peer_of
from pegboard.config import Settings
from pegboard.log import logger

_NOBODY = "this gateway wants to know who asks: send Authorization: Bearer TOKEN (`pegboard token add NAME` makes one)"
_ANOTHER_USER = f"{_NOBODY}. Another user of this machine needs one, too"
_THIS_MACHINE = Reach()
_UNKNOWN = "the bearer token is not known here, or not any more"


class Authenticator:
    """Knows who is behind a request."""

    def __init__(self, settings: Callable[[], Settings], secret: str = "", reach: Reach = _THIS_MACHINE) -> None:
        self._settings = settings
        self.reach = reach
        # Of the run file: whoever can read that is the user of this machine.
        self._secret = secret
        # As of which settings everybody is known.
        self._read_of: AuthSettings | None = None
        # How often that has changed: what was found out about a request before is not so any more.
        self.generation = 0
        self._rules = RuleBook(AuthSettings(), self._read_only_tools)
        self.tokens = Tokens(self._make_principal)
        self._local = self._rules.local()

    @property
    def rules(self) -> RuleBook:
        """The rules of the config as it is now. With other rules everybody is somebody else."""
        auth = self._settings().auth
        if auth is self._read_of:
            return self._rules
        changed, self._read_of = auth != self._read_of, auth
        if changed:
            self.generation += 1
            before, self._rules = self._local, RuleBook(auth, self._read_only_tools)
            self._local = self._rules.local()
            if before is not self._local and before.access is not None:
                before.end()
            self.tokens.forget_principals()
            if auth.required is False and self.requirement is not False:
                remark = "auth.required is false, which does not open a gateway that other machines reach"
                logger().warning("config.remark", remark=f"{remark}: start it anew with --insecure for that")
        return self._rules

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
        self.reach.check(self._settings().auth, len(self.tokens.list_live()))

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
            return self._recognize(scope)
        except AuthRefused:
            return None

    async def authenticate(self, scope: MutableMapping[str, Any]) -> Principal:
        """Who sends a request; `AuthRefused` says why nobody is let in."""
        refuse_token_in_query(scope)
        principal = self._recognize(scope)
        if principal is None:
            # What was missing is whose the connection is.
            await asyncio.to_thread(peer_of(scope).look_up)
            principal = self._recognize(scope)
        assert principal is not None
        return principal

    def _recognize(self, scope: MutableMapping[str, Any]) -> Principal | None:
        headers = scope["headers"]
        bearer = bearer_of(headers)
        if bearer is not None:
            return self._find_bearer(bearer)
        if self._secret and is_proven(headers, self._secret, scope.get("server")):
            return self.local
        return self._without_credentials(scope)

    def _find_bearer(self, bearer: str) -> Principal:
        self.apply()
        principal = self.tokens.find(bearer) if bearer.startswith(PREFIX) else None
        if principal is None:
            raise invalid_token(_UNKNOWN)
        return principal

    def _without_credentials(self, scope: MutableMapping[str, Any]) -> Principal | None:
        required = self.requirement
        if required is True:
            raise AuthRefused(401, _NOBODY)
        if is_remote(scope):
            return self._anybody(required, _NOBODY)
        peer = peer_of(scope)
        if peer.is_own is None:
            return None
        return self.local if peer.is_own else self._anybody(required, _ANOTHER_USER)

    def _anybody(self, required: object, refusal: str) -> Principal:
        if required is not False:
            raise AuthRefused(401, refusal)
        return ANONYMOUS

    def _make_principal(self, token: StaticToken) -> Principal:
        return self.rules.of_token(token)

    def _read_only_tools(self, server: str) -> tuple[str, ...]:
        spec = self._settings().servers.get(server)
        return () if spec is None else spec.read_only
