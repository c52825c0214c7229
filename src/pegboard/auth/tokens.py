"""The static tokens of a gateway, in memory as they are in storage, and the principals that they stand for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from pegboard.access.principal import Principal
from pegboard.auth.refused import AuthRefused, invalid_token
from pegboard.auth.rule_book import token_principal_id
from pegboard.auth.token import StaticToken, token_id_of
from pegboard.lru_dict import LruDict

_MOST_REMOVED = 256
_UNKNOWN = "the bearer token is not known here, or not any more"
_ASK = "ask whoever runs this gateway for another"
MakePrincipal = Callable[[StaticToken], Principal]


class Tokens:
    """Tokens by id. A principal lasts until its token is revoked, expires, or gets another rule."""

    def __init__(self, make_principal: MakePrincipal, on_successor: Callable[[Principal], None]) -> None:
        self._make_principal = make_principal
        # Told of a principal that goes on under another rule or name.
        self._on_successor = on_successor
        self._tokens: dict[str, StaticToken] = {}
        self._principals: dict[str, Principal] = {}
        # The last ones that were there and are not any more.
        self._removed: LruDict[str, StaticToken] = LruDict(_MOST_REMOVED)

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

    def find_principal(self, token_id: str) -> Principal | None:
        """The principal of a token that lets somebody in now."""
        token = self._tokens.get(token_id)
        if token is None or token.problem or token.is_expired(time.time()):
            return None
        return self._principals.get(token_id) or self._make_principal(token)

    def has(self, token_id: str) -> bool:
        """Whether there is a token, be it expired or not."""
        return token_id in self._tokens

    def refusal(self, text: str) -> AuthRefused:
        """Why nobody is let in with a bearer. Only whoever has the right secret is told more than that it is not
        known, and is who they say; of others it is recorded whom they claim to be."""
        token_id = token_id_of(text) or ""
        token = self._tokens.get(token_id) or self._removed.get(token_id)
        if token is None:
            return invalid_token(_UNKNOWN, claim=f"claims the unknown token id {token_id}" if token_id else "")
        if not token.fits(text):
            return invalid_token(_UNKNOWN, claim=f"claims to be token {token.name}")
        principal = Principal("token", token_principal_id(token_id), token.name)
        if token_id not in self._tokens:
            return invalid_token(f"this token was removed; {_ASK}", cause="removed", principal=principal)
        if token.problem:
            return invalid_token(f"this token cannot be used; {_ASK}", cause="invalid", principal=principal)
        return invalid_token(f"this token has expired; {_ASK}", cause="expired", principal=principal)

    def list_all(self) -> list[StaticToken]:
        """All of them."""
        return list(self._tokens.values())

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
            if new is None or new.problem != old.problem:
                self._end(token_id)
            elif new.digest != old.digest:
                self._renew(new, has_other_secret=True)
            elif (new.name, new.rule, new.expires_at) != (old.name, old.rule, old.expires_at):
                self._renew(new)
        removed = {token_id: token for token_id, token in before.items() if token_id not in self._tokens}
        self._removed.update(removed)
        return list(removed)

    def apply_rules(self) -> None:
        """The rules of the config are others now: who a token stands for is found out anew."""
        for token_id in list(self._principals):
            self._renew(self._tokens[token_id])

    def _renew(self, token: StaticToken, *, has_other_secret: bool = False) -> None:
        """Let a principal go on as the token says now: from the next request on, without ending what is under way."""
        if (before := self._principals.get(token.id)) is not None:
            principal = self._principals[token.id] = self._make_principal(token)
            principal.was_used, principal.has_other_secret = before.was_used, has_other_secret
            before.end(principal)
            self._on_successor(principal)

    def _end(self, token_id: str) -> None:
        if (principal := self._principals.pop(token_id, None)) is not None:
            principal.end()
