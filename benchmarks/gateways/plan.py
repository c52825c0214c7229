"""How much is measured, and what happens when something cannot be."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field

from benchmarks.gateways.cores import Cores
from benchmarks.gateways.peers import Peer
from benchmarks.gateways.processes import NotStarted
from benchmarks.gateways.requests import WrongReply
from benchmarks.gateways.results import Results


@dataclass(frozen=True)
class Plan:
    """What a run does."""

    rounds: int = 3
    seconds: float = 0.4
    # Calls in flight, and the size of an answer: 0 is as short as what was asked.
    loads: tuple[tuple[int, int], ...] = ((1, 0), (16, 0), (64, 0), (1, 100_000), (16, 100_000))
    tools_each: tuple[int, ...] = (100, 500)
    starts: int = 7
    cores: Cores = field(default_factory=Cores.divided)
    began: float = field(default_factory=time.monotonic)

    def say(self, what: str) -> None:
        """Tell how far it is, beside the results."""
        print(f"{time.monotonic() - self.began:6.0f} s  {what}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def reported(self, peer: Peer, what: str, results: Results) -> Generator[None]:
        """Whatever goes wrong in here is a result as well."""
        try:
            yield
        except (NotStarted, WrongReply, OSError, TimeoutError) as exc:
            reason = f"{type(exc).__name__}: {exc}" if not isinstance(exc, NotStarted | WrongReply) else str(exc)
            results.fail(peer.key, what, reason)
            self.say(f"{peer.label}, {what}: {reason}")


QUICK = Plan(
    rounds=1, seconds=0.25, loads=tuple(load for load in Plan.loads if load[0] <= 16), tools_each=(100,), starts=5
)
