"""Everybody whom a gateway lets in, by their ids: what was begun or granted for somebody does not outlive them."""

from __future__ import annotations

from pegboard.access.principal import LOCAL, Principal
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.rule_book import token_id_in
from pegboard.auth.token_watch import TokenWatch

_JWT = "jwt:"


class KnownPrincipals:
    """Finds them as storage and config have them now."""

    def __init__(self, authenticator: Authenticator, watch: TokenWatch) -> None:
        self._authenticator = authenticator
        self._watch = watch

    def find(self, principal_id: str) -> Principal | None:
        """Who this is now; `None` if nobody is let in as this one, or it is not known."""
        if principal_id in {"", LOCAL.id}:
            # Also where a rule makes it no admin: whoever runs the commands has the config file itself.
            return LOCAL
        self._authenticator.apply()
        if principal_id.startswith(_JWT):
            return self._authenticator.jwts.find_principal(principal_id)
        token_id = token_id_in(principal_id)
        return None if token_id is None else self._authenticator.tokens.find_principal(token_id)

    async def may_sign_in(self, principal_id: str, *, for_all: bool) -> bool:
        """Whether somebody is let in now, and is an admin if the sign-in is `for_all`."""
        await self._watch.catch_up()
        principal = self.find(principal_id)
        if principal is not None:
            return principal.admin or not for_all
        # A JWT may have come to another gateway. What is granted can be used by whoever brings one of the same name.
        return not for_all and principal_id.startswith(_JWT)

    async def list_removed(self, principal_ids: set[str]) -> set[str]:
        """Those of them whose tokens are gone."""
        await self._watch.catch_up()
        return {each for each in principal_ids if self.is_removed(each)}

    def is_removed(self, principal_id: str) -> bool:
        """Whether somebody's token is known to be gone."""
        token_id = token_id_in(principal_id)
        return token_id is not None and self._watch.is_loaded and not self._authenticator.tokens.has(token_id)
