"""Access: what one principal may use, by all of the rules that hold for it. Filters ask it about everything that they
let through, so that what it hides is hidden on every surface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pegboard.access.deny import denies
from pegboard.access.quota import Quota
from pegboard.access.rule import DISCOVERY, Rule, RuledItem, denies_name, matches_any
from pegboard.access.sight import Sight
from pegboard.lru_dict import LruDict

# By server: patterns of its own names for tools that only read, whatever the server says of them.
ReadOnlyTools = Callable[[str], tuple[str, ...]]
_MOST_QUOTAS = 256


class AccessItem(RuledItem, Protocol):
    """What access decides about also by whether it only reads."""

    @property
    def claims_read_only(self) -> bool: ...


class Access:
    """Rules that all hold, and what sign-ins to servers show. The same of both is the same access: lists are made once
    for all who have it."""

    __slots__ = ("_hash", "_quotas", "_read_only_tools", "limits_calls", "needs_scopes", "rules", "sight")

    def __init__(
        self, rules: tuple[Rule, ...], read_only_tools: ReadOnlyTools = lambda _: (), sight: Sight | None = None
    ) -> None:
        self.rules = rules
        # `None` where no server has lists of each principal's own.
        self.sight = sight
        self._read_only_tools = read_only_tools
        # A filter is a key of every call.
        self._hash = hash((rules, sight))
        # Whether there is any limit at all: every call asks, and most principals have none.
        self.limits_calls = any(
            not quota.is_unlimited
            for rule in rules
            for quota in (rule.quota, *(each for _, each in rule.server_quotas))
        )
        self._quotas: LruDict[str | None, list[Quota]] = LruDict(_MOST_QUOTAS)
        # Whether some tools need scopes.
        self.needs_scopes = any(rule.scopes for rule in rules)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Access) and self.rules == other.rules and self.sight == other.sight)

    def without_sight(self) -> Access:
        """The same by rules alone."""
        return self if self.sight is None else Access(self.rules, self._read_only_tools)

    def admits(self, item: AccessItem) -> bool:
        """Whether a tool or a prompt is there for this principal."""
        if self.sight is not None and not self.sight.shows(item):
            return False
        return all(rule.admits(item) and (not rule.read_only or self._only_reads(item)) for rule in self.rules)

    def admits_name(self, name: str) -> bool:
        """Whether a tool of this name could be, be it known or not."""
        server, separator, _ = name.partition("__")
        return all(rule.admits_name(name) and (not separator or rule.gives_server(server)) for rule in self.rules)

    def admits_server(self, name: str) -> bool:
        """Whether anything of a server is there for this principal."""
        return all(rule.admits_server(name) for rule in self.rules)

    def admits_resources(self, name: str) -> bool:
        """Whether what of a server has no name of ours is."""
        return all(rule.admits_resources(name) for rule in self.rules)

    def admits_whole_server(self, name: str) -> bool:
        """Whether nothing of a server is hidden from this principal."""
        return all(rule.admits_whole_server(name) for rule in self.rules)

    def admits_toolset(self, name: str) -> bool:
        """Whether a toolset of Pegboard's own is."""
        return all(rule.gives_toolset(name) for rule in self.rules)

    def admits_namespace(self, name: str) -> bool:
        """Whether a namespace of memory is."""
        return all(rule.namespaces is None or name in rule.namespaces for rule in self.rules)

    @property
    def default_namespace(self) -> str | None:
        """The namespace that is meant where none is named; `None` for the usual one."""
        return next((rule.namespaces[0] for rule in self.rules if rule.namespaces), None)

    @property
    def is_read_only(self) -> bool:
        """Whether it changes nothing."""
        return any(rule.read_only for rule in self.rules)

    def shares_board(self, name: str) -> bool | None:
        """Whether the shared board of this name may be used; `None` where no rule says anything of boards."""
        named = [rule.boards for rule in self.rules if rule.boards is not None]
        return all(matches_any(name, boards) for boards in named) if named else None

    def missing_scopes(self, tool: RuledItem | str, scopes: frozenset[str]) -> frozenset[str]:
        """The scopes that a call of this tool needs, if one of them is missing; none if it may go on. A pattern is read
        as that of a `deny`: one that fits nothing would ask for nothing."""
        needed = {
            scope
            for rule in self.rules
            for pattern, wanted in rule.scopes
            if _is_meant(tool, pattern)
            for scope in wanted
        }
        return frozenset(needed) if not needed <= scopes else frozenset()

    def quotas(self, server: str | None = None) -> list[Quota]:
        """What limits calls in all, or those of one server."""
        known = self._quotas.get(server)
        if known is None:
            known = self._quotas[server] = self._find_quotas(server)
        return known

    def _find_quotas(self, server: str | None) -> list[Quota]:
        if server is None:
            found = [rule.quota for rule in self.rules]
        else:
            pairs = (pair for rule in self.rules for pair in rule.server_quotas)
            found = [quota for pattern, quota in pairs if matches_any(server, (pattern,))]
        return list(dict.fromkeys(quota for quota in found if not quota.is_unlimited))

    def _only_reads(self, item: AccessItem) -> bool:
        if item.toolset == DISCOVERY:
            return True
        if item.server_name is None:
            return item.claims_read_only
        # What a server says of its tools are hints, and whoever runs the gateway may know better.
        own = self._read_only_tools(item.server_name)
        return matches_any(item.original_name, own) if own else item.claims_read_only


def _is_meant(tool: RuledItem | str, pattern: str) -> bool:
    if isinstance(tool, str):
        return denies_name((pattern,), tool)
    return denies((pattern,), tool.server_name, tool.original_name, tool.name)
