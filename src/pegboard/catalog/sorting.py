"""Sorting in small steps: a long list that is sorted at once holds up everybody else on the event loop."""

from __future__ import annotations

from collections.abc import Generator, Iterable

_RUN = 2000


def sorting(items: Iterable[str]) -> Generator[None, None, list[str]]:
    """These in order. A step sorts a few of them, or merges two runs, which Python's sort does in one pass."""
    unsorted = list(items)
    runs: list[list[str]] = []
    for start in range(0, len(unsorted), _RUN):
        runs.append(sorted(unsorted[start : start + _RUN]))
        yield
    while len(runs) > 1:
        merged: list[list[str]] = []
        for at in range(0, len(runs), 2):
            merged.append(sorted(item for run in runs[at : at + 2] for item in run))
            yield
        runs = merged
    return runs[0] if runs else []
