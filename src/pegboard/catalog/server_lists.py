"""The own lists of one server: who has which, and what those have alike."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pegboard.catalog.own_list import OwnList
from pegboard.lru_dict import LruDict

# Principals of one server of whom something is known.
_MOST_HOLDERS = 4096


@dataclass(slots=True)
class ListHolder:
    """One principal at one server."""

    list: OwnList | None = None
    # `None`: nobody has looked yet.
    is_signed_in: bool | None = None
    # Whether its list, or that there is none, was found out since it last signed in.
    is_settled: bool = False
    # Until when its list, or that there is none, is taken as it is.
    fresh_until: float = 0.0
    failures: int = 0
    # Counts its sign-ins and sign-outs: what was asked for before one of them counts no more.
    version: int = 0
    asking: asyncio.Task[None] | None = None


@dataclass(slots=True)
class ServerLists:
    """What is known of one server."""

    # Of which server, should another one have its name.
    fingerprint: str
    holders: LruDict[str, ListHolder] = field(default_factory=lambda: LruDict[str, ListHolder](_MOST_HOLDERS))
    # Whether people were ever shown different things. It is kept: nobody signs out of what is theirs alone.
    differs: bool = False
    is_difference_kept: bool = False
    # Tools that the lists of several had alike, by name, with the digest that they had then.
    alike: dict[str, int] = field(default_factory=dict[str, int])
    # Names of those that whoever has no list of their own sees; `None`: all.
    common: frozenset[str] | None = None
    # Whether that was found by a look at the lists of several; else it is the list of one of them.
    is_compared: bool = False
    # How often it became known that somebody has signed in, or has not.
    changes: int = 0

    def hides_common(self, found: ListHolder | None) -> bool:
        """Whether a principal without a list of its own has to wait for that: it has signed in, or may have, and what
        there is may be somebody else's alone."""
        return not self.is_compared and (found is None or found.is_signed_in is not False)

    def lists(self) -> list[OwnList]:
        """Every list, once."""
        return list({id(each.list): each.list for each in self.holders.values() if each.list is not None}.values())
