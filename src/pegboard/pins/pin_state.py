"""A pin state: what is known of one server as somebody is shown it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard.pins.change import DefinitionChange
from pegboard.pins.news_pace import NewsPace
from pegboard.pins.pin_set import KINDS, PinSet
from pegboard.pins.review import Outcome, SaidItem


@dataclass(slots=True)
class PinState:
    """One server as somebody is shown it: what is approved, what it says, and how that differs."""

    pins: PinSet = field(default_factory=PinSet)
    # Each kind as it was sent last, and the same by names, where it is compared.
    raw: dict[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    said: dict[str, dict[str, SaidItem]] = field(default_factory=dict[str, dict[str, SaidItem]])
    changes: dict[str, dict[str, DefinitionChange]] = field(default_factory=dict[str, dict[str, DefinitionChange]])
    # What clients have of what differs, and why it wants a look, by what is approved and what is said.
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict[str, dict[str, Outcome]])
    marks: dict[str, dict[tuple[str, str], list[str]]] = field(
        default_factory=dict[str, "dict[tuple[str, str], list[str]]"]
    )
    # What the server calls its version now.
    version: str = ""
    # Approved definitions that were needed, by digest.
    definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    # Counts decisions, and lists that were reviewed.
    revision: int = 0
    reviews: int = 0
    # Baselines that could not be kept yet.
    unsaved: dict[str, dict[str, SaidItem]] = field(default_factory=dict[str, dict[str, SaidItem]])
    # What was last told of, where nothing of it is kept.
    told: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    # When news may be told, and who waits to tell what came too early.
    pace: NewsPace = field(default_factory=NewsPace)
    waiting: asyncio.Task[None] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def list_changes(self) -> list[DefinitionChange]:
        """All that differs, of every kind."""
        return [change for kind in KINDS for _, change in sorted(self.changes.get(kind, {}).items())]
