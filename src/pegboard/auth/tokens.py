"""The static tokens of a gateway, in memory as they are in storage, and the principals that they stand for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from pegboard.access.principal import Principal
from pegboard.auth.token import StaticToken, token_id_of

MakePrincipal = Callable[[StaticToken], Principal]


class Tokens:
    """Tokens by id. A principal lasts until its token is revoked, expires, or gets another rule."""

    def __init__(self, make_principal: MakePrincipal) -> None:
        self._make_principal = make_principal
        self._tokens: dict[str, StaticToken] = {}
        self._principals: dict[str, Principal] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def find(self, text: str) -> Principal | None:
        """The principal of a bearer; `None` if there is no such token, or it is over."""
        token = self._tokens.get(token_id_of(text) or "")
        if token is None or not token.fits(text) or token.problem or token.is_expired(time.time()):
            return None
        principal = self._principals.get(token.id)
        if principal is None:
            principal = self._principals[token.id] = self._make_principal(token)
        principal.was_used = True
        return principal

    def list_live(self) -> list[StaticToken]:
        """Those that let somebody in now."""
        now = time.time()
        return [token for token in self._tokens.values() if not token.problem and not token.is_expired(now)]

    def list_expired(self) -> list[StaticToken]:
        """Those that let nobody in any more."""
        now = time.time()
        return [token for token in self._tokens.values() if token.is_expired(now)]

    def take_used(self) -> list[str]:
        """The ids of tokens that were used since this was last asked."""
        used = [token_id for token_id, principal in self._principals.items() if principal.was_used]
        for token_id in used:
            self._principals[token_id].was_used = False
        return used

    def replace(self, tokens: Iterable[StaticToken]) -> list[str]:
        """Take over what storage has now; the ids of tokens that are gone."""
        before, self._tokens = self._tokens, {token.id: token for token in tokens}
        for token_id, old in before.items():
            new = self._tokens.get(token_id)
            if new is None or _terms(new) != _terms(old):
                self._end(token_id)
        return [token_id for token_id in before if token_id not in self._tokens]

    def forget_principals(self) -> None:
        """The rules of the config are others now: who a token stands for is found out anew."""
        for token_id in list(self._principals):
            self._end(token_id)

    def _end(self, token_id: str) -> None:
        if (principal := self._principals.pop(token_id, None)) is not None:
            principal.end()


def _terms(token: StaticToken) -> tuple[object, ...]:
    """What a principal follows from. When it was used last is no part of that."""
    return token.name, token.digest, token.rule, token.expires_at, token.problem
