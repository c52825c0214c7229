"""The tools of one server, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.config import ServerSpec
from pegboard.tool import RegisteredTool

DEFAULT_TTL = 300.0


@dataclass(frozen=True, slots=True)
class Exposure:
    """How one server's tools are shown."""

    prefix: bool = True
    permits: Callable[[str], bool] = lambda _: True
    allows_hidden_text: bool = False

    def is_judged_alike(self, other: Exposure) -> bool:
        """Whether a tool that was taken, and named, by one of them is so by the other."""
        return (self.prefix, self.allows_hidden_text) == (other.prefix, other.allows_hidden_text)

    @classmethod
    def of(cls, spec: ServerSpec) -> Exposure:
        """As its entry in the config says."""
        return cls(spec.prefix, spec.permits, spec.allows_hidden_text)


@dataclass(slots=True)
class ServerTools:
    """What is known of one server's tools."""

    tools: dict[str, RegisteredTool] = field(default_factory=dict[str, RegisteredTool])
    # The tools as the server sent them, bad ones included: for the catalog on disk, and to tell a change.
    raw: list[Any] = field(default_factory=list[Any])
    # Those of them that are served, some as they were approved before; `None`: all as they are.
    served: list[Any] | None = None
    # Why others are not, by the server's own names; and those by the names that clients would use.
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])
    withheld_tools: dict[str, RegisteredTool] = field(default_factory=dict[str, RegisteredTool])
    discovered_at: float = 0.0
    ttl: float = DEFAULT_TTL
    # Tools left out because a static tool has their name, or because something is wrong with them.
    conflicts: tuple[str, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    exposure: Exposure = field(default_factory=Exposure)
    # What each tool was made of, by its own name: one that stays the same is not judged again.
    made_of: dict[str, tuple[Any, RegisteredTool]] = field(default_factory=dict[str, "tuple[Any, RegisteredTool]"])

    def withheld_by_name(self, name: str) -> tuple[RegisteredTool, str] | None:
        """A tool that is not served by the name that it would have, and why; nothing else is known of it."""
        tool = self.withheld_tools.get(name)
        return None if tool is None else (tool, self.withheld[tool.original_name])
