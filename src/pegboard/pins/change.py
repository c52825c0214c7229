"""A change: one definition that differs from the approved one, and what is done about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pegboard import exactjson
from pegboard.pins.pin_set import GONE

ChangeKind = Literal["new", "changed", "gone"]
# Of two descriptions, from which likeness on a new tool counts as one that has another name now.
ALIKE = 0.8
# Of longer texts only the beginning is compared, and of many only so many, each with each.
_LONGEST, _MOST = 2000, 40


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """What a server says of one thing, and what is approved of it."""

    kind: str
    name: str
    what: ChangeKind
    # Digests: of what is approved, and of what the server says.
    approved: str
    said: str
    at: float
    version: str
    is_rejected: bool = False
    # What it was called before, where it seems to be a rename.
    renamed_from: str = ""

    @property
    def id(self) -> str:
        """What people call it: a tool by its own name, unless that reads as something else; anything else with its kind
        before it. No two things have the same."""
        if self.kind == "tool":
            return self.long_id if ":" in self.name or self.name == "instructions" else self.name
        return self.kind if self.kind == "instructions" else self.long_id

    @property
    def long_id(self) -> str:
        """The same with the kind in any case."""
        return f"{self.kind}:{self.name}"

    @property
    def waits(self) -> bool:
        """Whether somebody has yet to decide: what was rejected is decided, and what is gone is not there."""
        return not self.is_rejected and self.said != GONE


def find_renames(changes: Iterable[DefinitionChange], texts: Mapping[str, str]) -> list[DefinitionChange]:
    """The changes, with what a new thing was called before. `texts` are descriptions by digest."""
    changes = list(changes)
    words = {digest: Counter(text.split()) for digest, text in texts.items() if text}
    gone = [each for each in changes if each.what == "gone" and each.approved in words][:_MOST]
    new = [each for each in changes if each.what == "new" and each.said in words][:_MOST]
    origins: dict[str, str] = {}
    for change in new if gone else ():
        alike = [
            (_likeness(words[each.approved], words[change.said]), each) for each in gone if each.kind == change.kind
        ]
        best, origin = max(alike, key=lambda each: each[0], default=(0.0, None))
        if origin is not None and best > ALIKE:
            gone.remove(origin)
            origins[change.long_id] = origin.name
    return [replace(each, renamed_from=origins[each.long_id]) if each.long_id in origins else each for each in changes]


def describe_item(definition: Any) -> str:
    """The words of a definition, for a comparison with others."""
    members = exactjson.as_object(definition) or {}
    words = [members.get(key) for key in ("title", "description", "text")]
    return " ".join(word for word in words if isinstance(word, str))[:_LONGEST]


def are_alike(one: Any, other: Any) -> bool:
    """Whether two definitions have nearly the same words."""
    return _likeness(Counter(describe_item(one).split()), Counter(describe_item(other).split())) > ALIKE


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """How many words two texts share, from 0 to 1 (Dice's coefficient)."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
