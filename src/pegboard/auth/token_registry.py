"""The static tokens in storage: list them, add one, change one, give one another secret, remove one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pegboard import exactjson
from pegboard.access.rule import Rule
from pegboard.access.rule_json import RuleError, read_rule, write_rule
from pegboard.auth.expiry import ExpiryError, parse_expiry
from pegboard.auth.token import NAME_HINT, StaticToken, digest_of, is_token_name, new_token_text
from pegboard.log import logger
from pegboard.names import nearest
from pegboard.result import Conflict, ToolErrorCode, ToolFailure, invalid
from pegboard.storage.database import Row
from pegboard.storage.tokens import TokenStore, TokenTerms
from pegboard.toolsets.installed import TOOLSETS

# Instead of a time to expire.
NEVER = "never"
# What a rule of the config says and a token's own cannot: it is for this token, which has no scopes.
_NOT_OF_TOKENS = ("who", "scopes")


# What rules and the audit call somebody else.
_RESERVED = {"local": "this machine's own user", "anonymous": "whoever comes without a credential"}


async def _nothing() -> None:
    """Where nobody else has to know."""


class TokenRegistry:
    """Changes tokens. A token's text is given back once, and is kept nowhere."""

    def __init__(self, store: TokenStore, on_change: Callable[[], Awaitable[None]] = _nothing) -> None:
        self._store = store
        self._on_change = on_change

    async def list(self) -> list[StaticToken]:
        """Every token, in the order they were made."""
        return read_tokens(await self._store.load())

    async def add(self, name: str, rule: object, expires: str | None) -> tuple[StaticToken, str]:
        """Make a token with a rule (as JSON), and when it expires (as people write it); the token, and its text."""
        _check_name(name)
        now = time.time()
        token_id, text = new_token_text()
        token = StaticToken(token_id, name, digest_of(text), _read_rule(rule), now, _read_expiry(expires, now))
        if not await self._store.add(token.id, name, token.digest, _write_rule(token.rule), now, token.expires_at):
            advice = (
                f"`pegboard token change {name}` changes it, `pegboard token rotate {name}` gives it another secret"
            )
            raise Conflict(f"there is a token {name!r} already; {advice}")
        logger().info("token.added", token=name, id=token.id)
        await self._on_change()
        return token, text

    async def rotate(self, name: str, expires: str | None) -> tuple[StaticToken, str]:
        """Give a token another secret, and another time to expire if one is given; the one before is refused from now
        on."""
        token, now = await self.find(name), time.time()
        if expires is None and token.is_expired(now):
            raise invalid(f"token {name!r} has expired: say until when it is to be good now, with --expires 30d")
        _, text = new_token_text(token.id)
        expires_at = token.expires_at if expires is None else _read_expiry(expires, now)
        digest = digest_of(text)
        if not await self._store.rotate(token.id, digest, expires_at):
            raise _not_found(name, ())
        logger().info("token.rotated", token=name, id=token.id)
        await self._on_change()
        return StaticToken(token.id, name, digest, token.rule, token.created_at, expires_at, token.last_used_at), text

    async def change(
        self,
        name: str,
        *,
        new_name: str | None = None,
        rule: Mapping[str, Any] | None = None,
        expires: str | None = None,
    ) -> StaticToken:
        """Change what is given, and leave the rest. `rule` has the members that change; `None` takes one out."""
        if new_name is not None:
            _check_name(new_name)
        now = time.time()
        expires_at = _read_expiry(expires, now)
        known = [token.name for token in await self.list()]
        changed: list[StaticToken] = []

        def change(row: Row | None) -> TokenTerms:
            if row is None:
                raise _not_found(name, known)
            token = _read_token(row)
            if rule is not None and token.problem:
                raise invalid(f"token {name!r} cannot be changed: {token.problem}")
            merged = token.rule if rule is None else _read_rule(_merge(write_rule(token.rule), rule))
            token = replace(token, name=new_name or name, rule=merged)
            token = token if expires is None else replace(token, expires_at=expires_at)
            changed[:] = [token]
            written = str(row[3]) if rule is None else _write_rule(merged)
            return token.name, written, token.expires_at

        if not await self._store.change(name, change):
            raise Conflict(f"there is a token {new_name!r} already")
        logger().info("token.changed", token=changed[0].name, id=changed[0].id)
        await self._on_change()
        return changed[0]

    async def remove(self, name: str) -> None:
        """Whoever has this token is refused from now on."""
        if not await self._store.remove(name):
            raise _not_found(name, [token.name for token in await self.list()])
        logger().info("token.removed", token=name)
        await self._on_change()

    async def find(self, name: str) -> StaticToken:
        """The token of this name."""
        tokens = {token.name: token for token in await self.list()}
        if name not in tokens:
            raise _not_found(name, tokens)
        return tokens[name]


def read_tokens(rows: Iterable[Row]) -> list[StaticToken]:
    """Tokens out of what is kept of them. One whose rule cannot be read, as that of a newer Pegboard, lets nobody
    in."""
    return list(map(_read_token, rows))


def _read_token(row: Row) -> StaticToken:
    token_id, name, digest, written, created_at, expires_at, last_used_at = row
    rule, problem = Rule(deny=("*",)), ""
    try:
        rule = read_rule(exactjson.parse(str(written).encode()), toolsets=TOOLSETS)
    except (RuleError, exactjson.NotJson) as exc:
        problem = f"its rule cannot be read: {exc}"
    return StaticToken(token_id, name, bytes(digest), rule, created_at, expires_at, last_used_at, problem)


def _check_name(name: str) -> None:
    if not is_token_name(name):
        raise invalid(f"{NAME_HINT}: found {name[:80]!r}")
    if name.lower() in _RESERVED:
        raise invalid(f"a token cannot be called {name!r}: rules and the audit mean {_RESERVED[name.lower()]} by it")


def _merge(rule: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A rule with other members, and in `tools` and `perServer` with other members of those."""
    merged = dict(rule)
    for key, value in changes.items():
        inner = exactjson.as_object(value)
        if inner is None:
            merged[key] = value
        else:
            both = {**(exactjson.as_object(rule.get(key)) or {}), **inner}
            merged[key] = {name: each for name, each in both.items() if each is not None}
    return merged


def _write_rule(rule: Rule) -> str:
    return exactjson.dump(write_rule(rule)).decode()


def _read_rule(given: object) -> Rule:
    members: dict[str, Any] = exactjson.as_object(given) or {}
    for key in _NOT_OF_TOKENS:
        if members.get(key):
            raise invalid(f"rule: {key} is for rules of the config; a token's own rule is for this token alone")
    try:
        return read_rule(given, toolsets=TOOLSETS)
    except RuleError as exc:
        raise invalid(f"rule: {exc}") from None


def _read_expiry(expires: str | None, now: float) -> float | None:
    try:
        return None if expires in {None, NEVER} else parse_expiry(str(expires), now)
    except ExpiryError as exc:
        raise invalid(str(exc)) from None


def _not_found(name: str, known: Iterable[str]) -> ToolFailure:
    close = nearest(name[:80], list(known), 1)
    hint = f": did you mean {close[0]}?" if close else ""
    return ToolFailure(ToolErrorCode.NOT_FOUND, f"there is no token {name[:80]!r}{hint}", retryable=False)
