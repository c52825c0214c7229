"""The load generator: so many calls in flight, each on a connection of its own, every reply checked."""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.gateways.exchanges import Sender, Way
from benchmarks.gateways.requests import FIRST_NUMBER, CallForm, WrongReply

# However slow a gateway is, each caller is waited for once, unless that takes longer than the patience.
PATIENCE = 10.0
_WARM_AT_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of it."""

    calls: int
    # Calls before, which do not count.
    warm: int
    seconds: float
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds


@dataclass
class _Run:
    """What the callers of one run share."""

    form: CallForm
    in_flight: int
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST_NUMBER * 2))
    counts_from: float = float("inf")
    ends_at: float = float("inf")
    gives_up_at: float = float("inf")
    latencies: list[float] = field(default_factory=list[float])
    last: float = 0.0
    warm: int = 0
    failure: BaseException | None = None

    def count(self, sent: float, now: float) -> bool:
        """Note a reply; whether there is to be another call."""
        if now >= self.counts_from:
            self.latencies.append(now - sent)
            self.last = now
        else:
            self.warm += 1
        enough = now >= self.ends_at and len(self.latencies) >= self.in_flight
        return not enough and now < self.gives_up_at and self.failure is None

    def begin(self, seconds: float) -> None:
        """From here on it counts."""
        self.counts_from = time.perf_counter()
        self.ends_at = self.counts_from + seconds
        self.gives_up_at = self.counts_from + max(PATIENCE, seconds * 2)


class _Caller:
    """Calls, waits for the answer, and calls again."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._number = 0
        self._sent = 0.0
        self._sender: Sender | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, way: Way) -> None:
        """Get a connection of its own."""
        self._sender = await way.open(self._on_reply, self._fail)

    def call(self) -> None:
        """Call once more."""
        assert self._sender is not None
        self._number = next(self._run.numbers)
        request = self._run.form.request(self._number)
        self._sent = time.perf_counter()
        self._sender.send(request, self._number)

    def close(self) -> None:
        """Hang up."""
        if self._sender is not None:
            self._sender.close()

    def _on_reply(self, head: bytes, body: bytes) -> None:
        now = time.perf_counter()
        try:
            self._run.form.check(self._number, head, body)
        except WrongReply as exc:
            self._fail(exc)
            return
        if self._run.count(self._sent, now):
            self.call()
        elif not self.done.done():
            self.done.set_result(None)

    def _fail(self, exc: BaseException) -> None:
        if self.done.done():
            # It waits for slower callers, and a gateway may well hang up on a connection that is not used.
            return
        self._run.failure = self._run.failure or exc
        self.done.set_result(None)


async def load(way: Way, form: CallForm, in_flight: int, seconds: float, warm_up: float = 0.15) -> Loaded:
    """Keep so many calls in flight for so many seconds, after a warm-up."""
    run = _Run(form, in_flight)
    callers = [_Caller(run) for _ in range(in_flight)]
    try:
        for caller in callers:
            await caller.connect(way)
        gc.collect()
        gc.disable()
        for caller in callers:
            caller.call()
        await _warmed_up(run, warm_up)
        run.begin(seconds)
        async with asyncio.timeout(max(PATIENCE, seconds * 2) * 2):
            await asyncio.gather(*(caller.done for caller in callers))
    finally:
        gc.enable()
        for caller in callers:
            caller.close()
    if run.failure is not None:
        raise run.failure
    if not run.latencies:
        raise WrongReply("no call was answered in time")
    return _summary(run)


async def _warmed_up(run: _Run, seconds: float) -> None:
    """The time of the warm-up, and longer if nobody has got a reply yet."""
    started = time.perf_counter()
    while run.failure is None:
        await asyncio.sleep(seconds / 5 or 0.01)
        passed = time.perf_counter() - started
        if passed >= max(seconds, _WARM_AT_MOST) or (passed >= seconds and run.warm >= run.in_flight):
            return


def _summary(run: _Run) -> Loaded:
    ordered = sorted(run.latencies)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return Loaded(len(ordered), run.warm, run.last - run.counts_from, statistics.median(ordered), p99)
