"""A Python program that writes where its CPU time went: `python -m benchmarks.gateways.sampler FILE MODULE ARG…`.

The kernel interrupts it after every two milliseconds of CPU time, and the stack it was on is counted: what runs often
is seen often, and nothing is slowed down by being watched. What C code does counts for whoever called it, what the
event loop does for the function that it runs next.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import FrameType

_PERIOD = 0.002
Site = tuple[str, str]


class Sampler:
    """Counts stacks: alone for the innermost function, and all together for each that is somewhere on it."""

    def __init__(self) -> None:
        self.samples = 0
        self.own: Counter[Site] = Counter()
        self.total: Counter[Site] = Counter()

    def look(self, _: int, frame: FrameType | None) -> None:
        """Count one stack."""
        if frame is None:
            return
        self.samples += 1
        self.own[_site(frame)] += 1
        seen: set[Site] = set()
        while frame is not None:
            seen.add(_site(frame))
            frame = frame.f_back
        self.total.update(seen)

    def clear(self, *_: object) -> None:
        """Start again: what came before was warming up."""
        self.samples = 0
        self.own.clear()
        self.total.clear()

    @contextlib.contextmanager
    def looking(self) -> Generator[None]:
        """Look at this program, until the end of the block."""
        signal.signal(signal.SIGPROF, self.look)
        signal.signal(signal.SIGUSR1, self.clear)
        signal.setitimer(signal.ITIMER_PROF, _PERIOD, _PERIOD)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def write(self, file: Path) -> None:
        """Everything that was counted."""
        rows = [[*site, self.own[site], count] for site, count in self.total.items()]
        file.write_text(json.dumps({"samples": self.samples, "sites": rows}), "utf-8")


def _site(frame: FrameType) -> Site:
    return frame.f_code.co_filename, frame.f_code.co_qualname


def main() -> None:
    """Run a module as a program, and look at it."""
    file, module, *args = sys.argv[1:]
    sampler = Sampler()
    sys.argv = [module, *args]
    try:
        with sampler.looking():
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sampler.write(Path(file))


if __name__ == "__main__":
    main()
