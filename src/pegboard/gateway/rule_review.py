"""A review of rules: what those of the config, of tokens and of servers' entries name that there is not, said once in
the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pegboard.access.rule import Rule
from pegboard.access.rule_check import KnownNames, check_patterns, check_rule
from pegboard.access.rule_words import name_rule
from pegboard.auth.token import StaticToken
from pegboard.board import Board
from pegboard.config import ServerSpec
from pegboard.exactjson import as_object
from pegboard.listing.loaded import board_key
from pegboard.log import logger
from pegboard.names import compose

# What a rule is called, and what it names that there is not.
Remarks = dict[str, list[str]]


def rules_of(board: Board, tokens: Iterable[StaticToken]) -> dict[str, Rule]:
    """Every rule, by what it is called."""
    configured = {name_rule(number): rule for number, rule in enumerate(board.settings.auth.rules, 1)}
    return configured | {f"token {token.name}": token.rule for token in tokens if not token.problem}


async def review_rules(board: Board, rules: Mapping[str, Rule], tokens: Iterable[StaticToken]) -> Remarks:
    """What these rules name that there is not; those that name nothing of the kind are left out."""
    known = _find_names(board, tokens)
    # A pattern that fits nothing is compared with every tool.
    found = await asyncio.to_thread(lambda: {about: check_rule(rule, known) for about, rule in rules.items()})
    return {about: remarks for about, remarks in found.items() if remarks}


async def review_servers(board: Board) -> Remarks:
    """Patterns in servers' entries that fit none of the tools of their servers, as far as those are known."""
    entries = [
        (spec, known.raw) for name, spec in board.settings.servers.items() if (known := board.registry.server(name))
    ]
    found = await asyncio.to_thread(lambda: {f"server {spec.name}": _check_entry(spec, raw) for spec, raw in entries})
    return {about: remarks for about, remarks in found.items() if remarks}


def _check_entry(spec: ServerSpec, raw: Iterable[Any]) -> list[str]:
    given = {"tools.allow": spec.allow, "tools.deny": spec.deny, "tools.readOnly": spec.read_only}
    if not any(given.values()):
        return []
    tools = {str(name) for each in raw if isinstance(name := (as_object(each) or {}).get("name"), str)}
    names = {spec.name, spec.given_name}
    return [remark for where, patterns in given.items() for remark in check_patterns(where, patterns, names, tools)]


def _find_names(board: Board, tokens: Iterable[StaticToken]) -> KnownNames:
    settings, tools, shared = board.settings, board.all_tools(), board_key("")
    asked = {*board.registry.servers(), *(tool.server_name for tool in tools)}
    own = (compose(tool.server_name, tool.original_name) for tool in tools if tool.server_name is not None)
    return KnownNames(
        servers=frozenset(settings.servers),
        unasked=frozenset(settings.servers.keys() - asked),
        toolsets=frozenset(settings.toolsets),
        tools=frozenset((*(tool.name for tool in tools), *own)),
        entries=frozenset((tool.server_name, tool.original_name, tool.name) for tool in tools),
        boards=frozenset(key.removeprefix(shared) for key in board.loaded.boards if key.startswith(shared)),
        tokens=frozenset(text for token in tokens for text in (token.name, token.id)),
        issuers=frozenset(each.issuer for each in settings.auth.issuers),
    )


class RuleReview:
    """Logs what rules name that there is not, each once for as long as it is so."""

    def __init__(self, board: Board, tokens: Callable[[], Iterable[StaticToken]]) -> None:
        self._board = board
        self._tokens = tokens
        self._said: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Look at all rules as they are now."""
        tokens = list(self._tokens())
        found = await review_rules(self._board, rules_of(self._board, tokens), tokens)
        found |= await review_servers(self._board)
        said = {(about, remark) for about, remarks in found.items() for remark in remarks}
        for about, remark in sorted(said - self._said):
            logger().warning("rule.remark", about=about, remark=remark)
        self._said = said
