"""What was told of large results: how many characters an answer may have, in all and for some clients and tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsSettings:
    """The `results` section. A cap of 0 is none."""

    # `None`: off where a client is listed every tool, and the usual one where it searches for them.
    cap: int | None = None
    # By what clients call themselves, and by patterns of tools' names.
    clients: Mapping[str, int] = field(default_factory=dict[str, int])
    tools: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def caps(self) -> list[int]:
        """Every cap that is given here."""
        given = [] if self.cap is None else [self.cap]
        return [*given, *self.clients.values(), *self.tools.values()]
