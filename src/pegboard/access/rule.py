"""A rule: what a principal may use. What a rule does not give is hidden: it is as if it were not there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Protocol

from pegboard.access.deny import denies, literal_beginning, may_deny
from pegboard.access.quota import Quota
from pegboard.names import compose, parse

# The tools that find others find what a rule gives, so that every principal has them.
DISCOVERY = "discovery"
# And so does the one that reads what was left out of a result: that is the principal's own.
_EVERYBODYS = frozenset({DISCOVERY, "results"})
# Stands for whatever a server may have: a pattern that fits it fits all. No name ends like this, and none is so long.
_ANY = "\0" * 300


class RuledItem(Protocol):
    """Something that a rule decides about: a tool or a prompt."""

    @property
    def name(self) -> str: ...
    @property
    def server_name(self) -> str | None: ...
    @property
    def original_name(self) -> str: ...
    @property
    def toolset(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """Which servers, toolsets and tools there are for whoever it is for, and what else they may.

    Without `servers` and `toolsets` it gives all of both; with one of them, none of the other. `allow` and `deny` are
    patterns of tools' names, and hold among what is given.
    """

    who: tuple[str, ...] = ()
    servers: tuple[str, ...] | None = None
    toolsets: tuple[str, ...] | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    read_only: bool = False
    # Shared boards that may be used by their name; without any, boards are the principal's own.
    boards: tuple[str, ...] | None = None
    # Namespaces of memory; the first is meant where none is named.
    namespaces: tuple[str, ...] | None = None
    quota: Quota = field(default_factory=Quota)
    # For servers whose name fits a pattern, beside the quota of all.
    server_quotas: tuple[tuple[str, Quota], ...] = ()
    # The scopes that a JWT has to have for tools whose name fits a pattern.
    scopes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    admin: bool = False

    @property
    def hides_nothing(self) -> bool:
        """Whether everything is given."""
        return self.servers is None and self.toolsets is None and not (self.allow or self.deny or self.read_only)

    def gives_server(self, name: str) -> bool:
        """Whether a server is given, at least in part."""
        if self.servers is None:
            return self.toolsets is None
        return matches_any(name, self.servers)

    def gives_toolset(self, name: str | None) -> bool:
        """Whether a toolset of Pegboard's own is given."""
        if name in _EVERYBODYS:
            return True
        if self.toolsets is None:
            return self.servers is None
        return name in self.toolsets

    def admits(self, item: RuledItem) -> bool:
        """Whether a tool or a prompt is given, whatever it does."""
        if item.server_name is None:
            return self.gives_toolset(item.toolset) and self.admits_name(item.name, item.toolset in _EVERYBODYS)
        if not self.gives_server(item.server_name):
            return False
        if denies(self.deny, item.server_name, item.original_name, item.name):
            return False
        # The name that clients see may be cut, or have no server in it.
        full = compose(item.server_name, item.original_name)
        names = (full,) if full == item.name else (full, item.name)
        return not self.allow or any(matches_any(name, self.allow) for name in names)

    def admits_name(self, name: str, is_discovery: bool = False) -> bool:
        """Whether `allow` and `deny` let a name through."""
        if denies_name(self.deny, name):
            return False
        return is_discovery or not self.allow or matches_any(name, self.allow)

    def admits_server(self, name: str) -> bool:
        """Whether anything of a server may be given."""
        if not self.gives_server(name) or denies(self.deny, name, _ANY):
            return False
        beginning = compose(name, "")
        return not self.allow or any(_may_begin(pattern, beginning) for pattern in self.allow)

    def admits_resources(self, name: str) -> bool:
        """Whether what of a server has no name of ours is given, which no pattern of single tools is about."""
        if not self.gives_server(name) or denies(self.deny, name, _ANY):
            return False
        return not self.allow or any(_fits_all(pattern, compose(name, "")) for pattern in self.allow)

    def admits_whole_server(self, name: str) -> bool:
        """Whether nothing of a server is hidden, so that all that is known of it may be told. A single tool that may
        be denied hides what tells of it: a word of the server about all of its tools, a name in an error."""
        return self.admits_resources(name) and not may_deny(self.deny, name)


def denies_name(patterns: tuple[str, ...], name: str) -> bool:
    """Whether one of these patterns hides whatever clients know by this name, be it known or not."""
    server, tool = parse(name) or (None, name)
    return denies(patterns, server, tool)


def matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name fits one of these patterns, as a shell has them (`*`, `?`, `[…]`)."""
    return bool(patterns) and _join(patterns).match(name) is not None


@lru_cache(maxsize=1024)
def _join(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """All of them as one: thousands of tools are compared with each of what may be hundreds."""
    return re.compile("|".join(map(translate, patterns)))


@lru_cache(maxsize=1024)
def _fits_all(pattern: str, beginning: str) -> bool:
    """Whether every name with this beginning fits a pattern: some of the beginning fits what stands before a last `*`.
    A sign such as `[!a]` fits much of what may follow, and not all."""
    before = pattern.rstrip("*")
    ends = range(len(beginning) + 1)
    return before != pattern and any(matches_any(beginning[:end], (before,)) for end in ends)


@lru_cache(maxsize=1024)
def _may_begin(pattern: str, beginning: str) -> bool:
    """Whether a name with this beginning can fit a pattern."""
    fixed = literal_beginning(pattern)
    if len(fixed) < len(pattern):
        return beginning.startswith(fixed) or fixed.startswith(beginning)
    return fixed.startswith(beginning)
