"""The tools of one server, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pegboard.tool import RegisteredTool

DEFAULT_TTL = 300.0


@dataclass(frozen=True, slots=True)
class Exposure:
    """How one server's tools are shown."""

    prefix: bool = True
    permits: Callable[[str], bool] = lambda _: True


@dataclass(slots=True)
class ServerTools:
    """What is known of one server's tools."""

    tools: dict[str, RegisteredTool] = field(default_factory=dict[str, RegisteredTool])
    # The tools as the server sent them, bad ones included: for the catalog on disk, and to tell a change.
    raw: list[Any] = field(default_factory=list[Any])
    discovered_at: float = 0.0
    ttl: float = DEFAULT_TTL
    # Tools left out because a static tool has their name, or because something is wrong with them.
    conflicts: tuple[str, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    exposure: Exposure = field(default_factory=Exposure)
    # What each tool was made of, by its own name: one that stays the same is not judged again.
    made_of: dict[str, tuple[Any, RegisteredTool]] = field(default_factory=dict[str, "tuple[Any, RegisteredTool]"])
