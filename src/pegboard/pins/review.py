"""A review: what becomes of a list that a server sent, by what is approved and by the policy: to hold a change is to
serve what was approved, or nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pegboard import exactjson
from pegboard.config.settings import LOCK_NAME, ChangePolicy
from pegboard.names import MAX_OWN_NAME
from pegboard.pins.canonical import FORMAT, digest_of_definition
from pegboard.pins.change import DefinitionChange
from pegboard.pins.definition_fit import stand_in
from pegboard.pins.pin_set import KINDS

# What a client has of something that changed: what the server says now, what was approved, or nothing: because it waits
# or was rejected, or because it hides text.
Outcome = Literal["in use", "held", "withheld", "left out"]


@dataclass(frozen=True, slots=True)
class SaidItem:
    """One item as a server sent it."""

    definition: Any
    digest: str


@dataclass(frozen=True, slots=True)
class Review:
    """What is served of a list, and why something of it is not."""

    served: list[Any]
    # By the server's own name of it.
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])
    changes: Sequence[DefinitionChange] = ()
    policy: ChangePolicy = "follow"
    # As of which decisions.
    revision: tuple[int, int] = (0, 0)

    @property
    def mark(self) -> str:
        """The same for reviews of one list that serve the same; empty where that is the list itself."""
        if not self.changes:
            return ""
        # As JSON, for a server may put into a name whatever would stand between two names.
        return json.dumps(
            [self.policy, *([each.long_id, each.approved, each.said, each.is_rejected] for each in self.changes)]
        )


def first_of_each(kind: str, items: Sequence[Any]) -> Sequence[Any]:
    """A list without what repeats a name: the first one is judged, and no other may take its place, whatever becomes of
    it. What has no name is left out of every list."""
    names = [name_of(kind, item) for item in items]
    if len(set(names)) == len(names):
        return items
    seen: set[str | None] = {None}
    return [item for name, item in zip(names, items, strict=True) if name not in seen and not seen.add(name)]


def read_items(kind: str, items: Sequence[Any], known: Mapping[str, SaidItem]) -> dict[str, SaidItem]:
    """What a list says, by name."""
    found: dict[str, SaidItem] = {}
    for item in items:
        name = name_of(kind, item)
        if name is None:
            continue
        before = known.get(name)
        same = before is not None and exactjson.is_same(before.definition, item)
        digest = before.digest if before is not None and same else ""
        found[name] = SaidItem(item, digest or digest_of_definition(item, has_hints=kind == "tool"))
    return found


def fingerprint_list(items: Sequence[Any], approved: Mapping[str, str]) -> str:
    """The same for the same list, byte for byte, beside the same approved definitions; empty for what is no JSON.

    To compare definitions takes ten times as long, and most lists are as they were at the last start.
    """
    try:
        text = exactjson.dump([FORMAT, list(items), approved])
    except exactjson.NotJson:
        return ""
    return hashlib.sha256(text).hexdigest()


def recall_items(kind: str, items: Sequence[Any], approved: Mapping[str, str]) -> dict[str, SaidItem]:
    """What a list says of which is known that all is as approved."""
    found: dict[str, SaidItem] = {}
    for item in items:
        name = name_of(kind, item)
        if name is not None:
            found[name] = SaidItem(item, approved[name])
    return found


def name_of(kind: str, item: Any) -> str | None:
    """What tells an item from others of its kind. What has none, or a name too long to be kept, is left out of every
    list."""
    name = (exactjson.as_object(item) or {}).get(KINDS[kind])
    is_name = isinstance(name, str) and len(name) <= MAX_OWN_NAME and exactjson.is_well_formed(name)
    return name if is_name else None


def serve(
    kind: str,
    items: Sequence[Any],
    changes: Mapping[str, DefinitionChange],
    *,
    policy: ChangePolicy,
    approved: Callable[[str], Any],
    explain: Callable[[DefinitionChange, str], str],
    is_refused: Callable[[Any], bool],
) -> tuple[list[Any], dict[str, str], dict[str, Outcome]]:
    """What of a list is served, why the rest is withheld, and what came of each change. `approved` has definitions by
    digest; what differs and is not in force is served as it was approved, as long as that fits. What is refused in any
    case passes: the list says why it is left out."""
    served, withheld, outcomes = list[Any](), dict[str, str](), dict[str, Outcome]()
    for item in items:
        name = name_of(kind, item)
        change = None if name is None else changes.get(name)
        if name is None or change is None:
            served.append(item)
        elif _is_in_force(change, policy):
            served.append(item)
            outcomes[name] = "left out" if is_refused(item) else "in use"
        else:
            before = approved(change.approved) if change.what == "changed" else None
            stands_in = None if before is None else stand_in(kind, before, item)
            if stands_in is not None:
                served.append(stands_in)
                outcomes[name] = "held"
            elif is_refused(item):
                served.append(item)
                outcomes[name] = "left out"
            else:
                withheld[name] = explain(change, _word_state(change))
                outcomes[name] = "withheld"
    return served, withheld, outcomes


def _is_in_force(change: DefinitionChange, policy: ChangePolicy) -> bool:
    return policy == "tell" and not change.is_rejected


def _word_state(change: DefinitionChange) -> str:
    if change.is_rejected:
        return "was rejected"
    if change.what == "new":
        return "is new"
    return "changed so that calls by its approved definition might be refused"


def explain_withheld(server: str, policy: ChangePolicy, change: DefinitionChange, state: str) -> str:
    """Why something is withheld, and what to do about it."""
    see = f"(pegboard changes show {server})"
    if policy == "locked":
        return f"it {state}, and server {server} is locked to {LOCK_NAME}: whoever keeps that file decides {see}"
    if change.is_rejected:
        return f"it {state} by somebody who reviews changes {see}"
    return f"it {state}, and waits until a person who runs this gateway approves it {see}"
