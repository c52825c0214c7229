"""Deny: patterns of what is hidden. One that hides nothing because its author spelt a name in another way is a hole, so
case, `-` and `_` make no difference here; a tool is known by each of its names (the server's own, with the server
before it, the one that clients see), and `server.tool`, `server/tool` and `server:tool` mean `server__tool`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from pegboard.names import SEPARATOR, compose, is_cut_from

# What people write between a server and a tool, beside our own.
_JOINTS = "./:"
_WILD = frozenset("*?[")
_CUT = re.compile(r".*_[0-9a-f]{8}", re.DOTALL)
_Pattern = re.Pattern[str] | None


def denies(patterns: tuple[str, ...], server: str | None, tool: str, shown: str = "", *, is_own: bool = False) -> bool:
    """Whether one of these patterns hides a tool: `tool` is what its server calls it, `shown` what clients do. Patterns
    of a server's entry (`is_own`) are about that server's tools alone, so that each may be the server's own name."""
    if not patterns:
        return False
    deny = _read(patterns)
    full = compose(server, tool) if server is not None else tool
    names = {full, shown} if shown else {full}
    if _fits(deny.composed, names | {tool} if is_own else names):
        return True
    if deny.bare is not None:
        joined = (f"{server}{joint}{tool}" for joint in deny.joints) if server is not None else ()
        if _fits(deny.bare, {*names, tool, *joined}):
            return True
    return any(is_cut_from(cut, name) for cut in deny.cut for name in (full, tool))


def may_deny(patterns: tuple[str, ...], server: str) -> bool:
    """Whether one of these patterns could hide a tool of a server, whatever that tool is called."""
    return any(_may_fit(pattern, server) for pattern in patterns)


@lru_cache(maxsize=1024)
def _may_fit(pattern: str, server: str) -> bool:
    if SEPARATOR not in pattern:
        # It fits what servers themselves call their tools.
        return True
    beginning = _loosen(compose(server, "")).lower()
    fixed = _loosen(literal_beginning(pattern)).lower()
    return fixed.startswith(beginning) or (len(fixed) < len(pattern) and beginning.startswith(fixed))


def literal_beginning(pattern: str) -> str:
    """What stands in a pattern before the first sign that stands for others."""
    return next((pattern[:at] for at, letter in enumerate(pattern) if letter in _WILD), pattern)


@dataclass(frozen=True, slots=True)
class _Deny:
    """Patterns with a server before `__`, those without, what these have between a server and a tool, and names that
    may be cut ones."""

    composed: _Pattern
    bare: _Pattern
    joints: str
    cut: tuple[str, ...]


@lru_cache(maxsize=1024)
def _read(patterns: tuple[str, ...]) -> _Deny:
    composed = [pattern for pattern in patterns if SEPARATOR in pattern]
    bare = [pattern for pattern in patterns if SEPARATOR not in pattern]
    joints = "".join(joint for joint in _JOINTS if any(joint in pattern for pattern in bare))
    cut = tuple(pattern for pattern in patterns if _WILD.isdisjoint(pattern) and _CUT.fullmatch(pattern))
    return _Deny(_join(composed), _join(bare), joints, cut)


def _join(patterns: list[str]) -> _Pattern:
    """All of them as one: thousands of tools are compared with each of what may be hundreds."""
    # In [a-z] the line is no letter of a name.
    loose = (pattern if "[" in pattern else _loosen(pattern) for pattern in patterns)
    return re.compile("|".join(map(translate, loose)), re.IGNORECASE) if patterns else None


def _fits(pattern: _Pattern, names: Iterable[str]) -> bool:
    return pattern is not None and any(pattern.match(name) is not None for name in _spellings(names))


def _spellings(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        if (loose := _loosen(name)) != name:
            yield loose


def _loosen(text: str) -> str:
    return text.replace("-", "_").replace(" ", "_")
