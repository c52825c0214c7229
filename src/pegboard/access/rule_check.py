"""Checks of rules: what a rule names and nobody has. It may come later, so each is a remark, and no error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pegboard.access.deny import denies
from pegboard.access.rule import Rule, matches_any
from pegboard.names import SEPARATOR, nearest

_WILD = frozenset("*?[")
# Whom an issuer of the config has to vouch for.
_OF_ISSUERS = frozenset({"sub", "group", "client", "scope"})
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What there is that a rule may name."""

    servers: frozenset[str] = frozenset()
    # Those whose tools are not known yet.
    unasked: frozenset[str] = frozenset()
    toolsets: frozenset[str] = frozenset()
    # By the names that clients use, and with their servers' names.
    tools: frozenset[str] = frozenset()
    # The same each by its server, the server's own name for it, and the name that clients use.
    entries: frozenset[tuple[str | None, str, str]] = frozenset()
    boards: frozenset[str] = frozenset()
    # By name, and by id.
    tokens: frozenset[str] = frozenset()
    issuers: frozenset[str] = frozenset()


def check_rule(rule: Rule, known: KnownNames) -> list[str]:
    """What a rule names that there is not, each in one sentence."""
    return list(dict.fromkeys((*_check_who(rule, known), *_check_what(rule, known))))


def _check_who(rule: Rule, known: KnownNames) -> Iterator[str]:
    for name in rule.who:
        kind, _, value = name.partition(":")
        if kind == "token":
            yield from _check_name("who", "token", value, known.tokens)
        elif kind == "issuer":
            yield from _check_name("who", "issuer", value, known.issuers)
        elif not known.issuers and (kind in _OF_ISSUERS or name == "*"):
            yield f"who: {_quote(name)} is nobody, since auth.issuers is empty"


def _check_what(rule: Rule, known: KnownNames) -> Iterator[str]:
    for pattern in rule.servers or ():
        yield from _check_name("servers", "server", pattern, known.servers)
    for pattern, _ in rule.server_quotas:
        yield from _check_name("perServer", "server", pattern, known.servers)
    for name in rule.toolsets or ():
        if name not in known.toolsets:
            yield f"toolsets: {_quote(name)} is switched off"
    for name in rule.boards or ():
        # A board comes to be when something is loaded on it: to have none of this name yet is no mistake.
        if name not in known.boards and _WILD.isdisjoint(name) and (close := nearest(name, known.boards, 1)):
            yield f"boards: nothing is loaded on a board {_quote(name)}; did you mean {close[0]}?"
    scopes = tuple(pattern for pattern, _ in rule.scopes)
    for pattern in rule.allow:
        yield from _check_tool("tools.allow", pattern, known)
    for where, patterns in (("tools.deny", rule.deny), ("scopes", scopes)):
        for pattern in patterns:
            if not any(denies((pattern,), *entry) for entry in known.entries):
                yield from _check_tool(where, pattern, known)


def check_patterns(
    where: str, patterns: tuple[str, ...], servers: Collection[str], tools: Collection[str]
) -> list[str]:
    """Patterns of a server's entry that fit none of its tools; the server by each of its names."""

    def fits(pattern: str, tool: str) -> bool:
        if where == "tools.deny":
            return any(denies((pattern,), server, tool, is_own=True) for server in servers)
        return matches_any(tool, (pattern,))

    unfit = [pattern for pattern in patterns if not any(fits(pattern, tool) for tool in tools)]
    return [remark for pattern in unfit for remark in _check_name(where, "tool", pattern, tools)]


def _check_tool(where: str, pattern: str, known: KnownNames) -> Iterator[str]:
    server, separator, _ = pattern.partition(SEPARATOR)
    if pattern in known.servers:
        yield f"{where}: {_quote(pattern)} is a server and no tool; {_quote(f'{pattern}__*')} is all of its tools"
    elif separator and not _fits(server, known.servers):
        yield from _check_name(where, "server", server, known.servers)
    # Of a server that was never asked nobody can tell.
    elif not (_fits(server, known.unasked) if separator else known.unasked):
        yield from _check_name(where, "tool", pattern, known.tools)


def _check_name(where: str, what: str, name: str, known: Collection[str]) -> Iterator[str]:
    if _fits(name, known):
        return
    if not _WILD.isdisjoint(name):
        yield f"{where}: no {what} fits {_quote(name)}"
        return
    close = nearest(name, known, 1)
    yield f"{where}: there is no {what} {_quote(name)}{f'; did you mean {close[0]}?' if close else ''}"


def _fits(pattern: str, known: Collection[str]) -> bool:
    return pattern in known or (not _WILD.isdisjoint(pattern) and any(map(_matcher(pattern), known)))


def _matcher(pattern: str) -> Callable[[str], bool]:
    return lambda name: matches_any(name, (pattern,))


def _quote(name: str) -> str:
    return f'"{name[:_SHOWN]}"'
