"""What was measured: a number for each peer, measure and round; and what could not be, with the reason."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Rounds = dict[int, float]


@dataclass
class Results:
    """All numbers of a run."""

    numbers: dict[str, dict[str, Rounds]] = field(default_factory=dict[str, dict[str, Rounds]])
    reasons: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def note(self, peer: str, measure: str, turn: int, value: float) -> None:
        """Keep a number."""
        self.numbers.setdefault(peer, {}).setdefault(measure, {})[turn] = value

    def fail(self, peer: str, what: str, reason: str) -> None:
        """Keep the reason why something has no number; the first one tells most."""
        self.reasons.setdefault(peer, {}).setdefault(what, reason)

    def median(self, peer: str, measure: str) -> float | None:
        """A number over all rounds."""
        rounds = self.numbers.get(peer, {}).get(measure)
        return statistics.median(rounds.values()) if rounds else None

    def combined(self, combine: Callable[..., float], *measures: tuple[str, str]) -> float | None:
        """The median of what is computed from several numbers of the same round, which share its noise."""
        columns = [self.numbers.get(peer, {}).get(measure, {}) for peer, measure in measures]
        common = set(columns[0]).intersection(*columns[1:])
        if not common:
            return None
        return statistics.median(combine(*(column[turn] for column in columns)) for turn in common)

    def as_json(self) -> dict[str, Any]:
        """Medians and single rounds, by peer and measure."""
        numbers = {
            peer: {
                measure: {"median": statistics.median(rounds.values()), "rounds": list(rounds.values())}
                for measure, rounds in measures.items()
            }
            for peer, measures in self.numbers.items()
        }
        return {"numbers": numbers, "could_not": self.reasons}
