"""The static tokens of a gateway, in memory as they are in storage, and the principals that they stand for."""

from __future__ import annotations

import math
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
        if token is None or not token.fits(text) or time.time() >= (token.expires_at or math.inf):
            return None
        principal = self._principals.get(token.id)
        if principal is None:
            principal = self._principals[token.id] = self._make_principal(token)
        return principal

    def replace(self, tokens: Iterable[StaticToken]) -> None:
        """Take over what storage has now."""
        before, self._tokens = self._tokens, {token.id: token for token in tokens}
        for token_id, old in before.items():
            new = self._tokens.get(token_id)
            if new is None or (new.digest, new.rule, new.expires_at) != (old.digest, old.rule, old.expires_at):
                self._end(token_id)

    def forget_principals(self) -> None:
        """The rules of the config are others now: who a token stands for is found out anew."""
        for token_id in list(self._principals):
            self._end(token_id)

    def _end(self, token_id: str) -> None:
        if (principal := self._principals.pop(token_id, None)) is not None:
            principal.end()
