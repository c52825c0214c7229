"""The rule book: which rules hold for whom. The first of the config that names a principal, and a token's own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from pegboard.access.access import Access, ReadOnlyTools
from pegboard.access.principal import ANONYMOUS, LOCAL, Principal
from pegboard.access.rule import Rule
from pegboard.access.settings import AuthSettings
from pegboard.access.sight import Sight
from pegboard.auth.token import StaticToken

_WILD = frozenset("*?[")
_KIND = "token:"
# What the sign-ins of a principal, by its id, show of servers; `None` where each shows everybody the same.
SightOf = Callable[[str], Sight | None]


class RuleBook:
    """The rules of a config, as they apply to principals."""

    def __init__(
        self, settings: AuthSettings, read_only_tools: ReadOnlyTools, sight_of: SightOf = lambda _: None
    ) -> None:
        self._rules = settings.rules
        self._read_only_tools = read_only_tools
        self._sight_of = sight_of

    def local(self) -> Principal:
        """The user that the gateway runs as, who may do everything if no rule is for it; `*` does not mean it."""
        rule = self._first(["local"])
        return Principal(
            "local", LOCAL.id, LOCAL.name, self._access_by(LOCAL.id, rule), admin=rule is None or rule.admin
        )

    def anonymous(self) -> Principal:
        """Whoever is let in without saying who they are; `*` does not mean them."""
        rule = self._first(["anonymous"])
        return Principal("anonymous", ANONYMOUS.id, ANONYMOUS.name, self._access_by(ANONYMOUS.id, rule))

    def of_token(self, token: StaticToken) -> Principal:
        """A token has its own rule, and that of the config where one names it; `*` does not mean it."""
        named = self.rule_of_token(token)[1]
        rules = (token.rule,) if named is None else (token.rule, named)
        valid_until = math.inf if token.expires_at is None else token.expires_at
        principal_id = token_principal_id(token.id)
        return Principal(
            "token",
            principal_id,
            token.name,
            self._access(principal_id, *rules),
            admin=token.rule.admin and (named is None or named.admin or named.hides_nothing),
            valid_until=valid_until,
        )

    def rule_of_token(self, token: StaticToken) -> tuple[int, Rule | None]:
        """The rule of the config that holds for a token beside its own, and its place among them, from 1 on."""
        named = self._first([f"{_KIND}{token.name}"], exactly=f"{_KIND}{token.id}")
        return (0, None) if named is None else (self._rules.index(named) + 1, named)

    def of_jwt(
        self,
        issuer: str,
        subject: str,
        client_id: str,
        groups: Iterable[str],
        scopes: frozenset[str],
        valid_until: float,
    ) -> Principal | None:
        """Whoever an issuer vouches for, by the first rule that names it; `None` where none does: it is refused."""
        names = [f"sub:{subject}", f"client:{client_id}", f"issuer:{issuer}"]
        names += [f"group:{group}" for group in groups]
        names += [f"scope:{scope}" for scope in scopes]
        rule = self._first(names, everybody=True)
        if rule is None:
            return None
        principal_id = f"jwt:{_digest(issuer, subject, client_id)}"
        return Principal(
            "jwt",
            principal_id,
            subject,
            self._access(principal_id, rule),
            admin=rule.admin,
            valid_until=valid_until,
            scopes=scopes,
            issuer=issuer,
            client_id=client_id,
        )

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that rules are for, by their very names."""
        named = (each.removeprefix("scope:") for rule in self._rules for each in rule.who if each.startswith("scope:"))
        return frozenset(scope for scope in named if _WILD.isdisjoint(scope))

    def _access(self, principal_id: str, *rules: Rule) -> Access:
        # What matters of a rule by now is what it gives, so that principals of several rules can share lists.
        return Access(rules, self._read_only_tools, self._sight_of(principal_id))

    def _access_by(self, principal_id: str, rule: Rule | None) -> Access | None:
        """The access of somebody who may have everything if no rule is for them."""
        if rule is not None:
            return self._access(principal_id, rule)
        access = self._access(principal_id)
        return None if access.sight is None else access

    def _first(self, names: list[str], *, exactly: str | None = None, everybody: bool = False) -> Rule | None:
        """The first rule for one of these names. An id is random, so only the whole of it is meant, never a pattern."""
        for rule in self._rules:
            if exactly in rule.who or (everybody and "*" in rule.who):
                return rule
            if any(_is_named(name, rule.who) for name in names):
                return rule
        return None


def token_principal_id(token_id: str) -> str:
    """The id of the principal that a token stands for, whatever its secret is."""
    return f"{_KIND}{token_id}"


def token_id_in(principal_id: str) -> str | None:
    """The id of the token that a principal has, if it has one."""
    return principal_id.removeprefix(_KIND) if principal_id.startswith(_KIND) else None


def _is_named(name: str, who: Iterable[str]) -> bool:
    """Whether one of these names it. A pattern is for a value, never for what kind of value it is."""
    kind, _, value = name.partition(":")
    for each in who:
        its_kind, _, pattern = each.partition(":")
        if its_kind == kind and fnmatchcase(value, pattern):
            return True
    return False


def _digest(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:32]
