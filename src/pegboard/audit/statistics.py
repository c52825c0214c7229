"""Statistics of calls, made of the records of the audit: how many, how many failed, how long they took (p50, p99), in
all, by server and by tool, and over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# Calls that are looked at; of more, the newest.
MOST_CALLS = 100_000
# Points of a plot.
POINTS = 48
# Outcomes that are nobody's fault.
_FINE = frozenset({"ok", "input_required", "cancelled"})
# Nanoseconds since 1970, server, tool, outcome and microseconds of a call.
CallRow: TypeAlias = tuple[int, str, str, str, int]


@dataclass(slots=True)
class CallStatistics:
    """Counts of some calls."""

    calls: int = 0
    errors: int = 0
    _times: list[int] = field(default_factory=list[int])

    def add(self, outcome: str, us: int) -> None:
        """Count one."""
        self.calls += 1
        self.errors += outcome not in _FINE
        if us >= 0:
            self._times.append(us)

    def to_dict(self) -> dict[str, Any]:
        """As programs read it; milliseconds."""
        times = sorted(self._times)
        row: dict[str, Any] = {"calls": self.calls, "errors": self.errors}
        return row | ({"p50": _rank(times, 0.5), "p99": _rank(times, 0.99)} if times else {})


@dataclass(frozen=True, slots=True)
class Statistics:
    """Calls since a moment, in all, by server, by tool, and in equal spans of time."""

    since: float
    until: float
    total: CallStatistics
    servers: dict[str, CallStatistics]
    tools: dict[str, CallStatistics]
    points: Sequence[CallStatistics]
    # Whether there were more calls than were looked at.
    is_cut: bool

    @classmethod
    def of(cls, rows: Iterable[CallRow], since: float, until: float) -> Statistics:
        """Count these calls."""
        total, servers, tools = CallStatistics(), dict[str, CallStatistics](), dict[str, CallStatistics]()
        points = [CallStatistics() for _ in range(POINTS)]
        begin, span = int(since * 1e9), max((until - since) / POINTS, 1e-3) * 1e9
        for at, server, tool, outcome, us in rows:
            point = points[min(max(int((at - begin) / span), 0), POINTS - 1)]
            by_server = servers.setdefault(server, CallStatistics())
            by_tool = tools.setdefault(tool, CallStatistics())
            for each in (total, point, by_server, by_tool):
                each.add(outcome, us)
        return cls(since, until, total, servers, tools, points, total.calls >= MOST_CALLS)


def _rank(times: Sequence[int], share: float) -> float:
    """The value below which so large a share of them lies (nearest rank), in milliseconds."""
    return times[min(int(share * len(times)), len(times) - 1)] / 1000
