"""When a server is tried again."""

from __future__ import annotations

import pytest

from pegboard.servers.breaker import Breaker


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_three_failures_open_it_for_thirty_seconds_doubling_to_five_minutes() -> None:
    """1 s, 2 s, then 30, 60, 120, 240 and 300 for ever; closed in between only for one try each."""
    clock = Clock()
    breaker = Breaker(clock, chance=lambda: 0.0)
    pauses: list[float] = []
    for _ in range(12):
        breaker.record_failure("no")
        pauses.append(breaker.remaining())
        clock.now = breaker.retry_at
    assert pauses == [1, 2, 30, 60, 120, 240, 300, 300, 300, 300, 300, 300]


def test_it_is_open_only_from_the_third_failure_and_until_its_time() -> None:
    """Before that a call may try; at its time one may try again; a success closes it."""
    clock = Clock()
    breaker = Breaker(clock, chance=lambda: 0.0)
    breaker.record_failure("a")
    breaker.record_failure("b")
    assert (breaker.is_open, breaker.is_tripped, breaker.is_waiting) == (False, False, True)
    breaker.record_failure("c")
    assert (breaker.is_open, breaker.is_tripped, breaker.reason) == (True, True, "c")
    clock.now += 30
    assert (breaker.is_open, breaker.is_tripped) == (False, True)
    breaker.record_success()
    assert (breaker.is_open, breaker.is_tripped, breaker.failures, breaker.remaining()) == (False, False, 0, 0)


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_jitter_spreads_the_tries_by_up_to_a_fifth(chance: float) -> None:
    """A hundred clients of one server do not come back in step."""
    breaker = Breaker(Clock(), chance=lambda: chance)
    for _ in range(3):
        breaker.record_failure("no")
    assert breaker.remaining() == pytest.approx(30 * (1 + 0.2 * chance))


def test_a_thousand_failures_overflow_nothing() -> None:
    """The pause stays at its longest."""
    breaker = Breaker(Clock(), chance=lambda: 0.0)
    for _ in range(2000):
        breaker.record_failure("no")
    assert breaker.remaining() == 300


def test_time_outs_in_a_row_open_it_and_an_answer_ends_the_row() -> None:
    """After it was open, one more is enough, for longer; that the server connects again shows nothing."""
    clock = Clock()
    breaker = Breaker(clock, chance=lambda: 0.0)

    def time_outs(count: int) -> list[bool]:
        return [breaker.record_timeout("hangs", since=clock.now + 1) for _ in range(count)]

    assert time_outs(2) == [False, False]
    breaker.record_answer()
    assert time_outs(3) == [False, False, True]
    assert breaker.is_open
    assert breaker.remaining() == 30
    breaker.record_loss("it was closed", 0)
    assert breaker.remaining() == 30
    breaker.record_success()
    assert time_outs(1) == [True]
    assert breaker.remaining() == 60
    breaker.record_success()
    breaker.record_answer()
    assert time_outs(1) == [False]


def test_a_time_out_does_not_count_if_another_call_was_answered_meanwhile() -> None:
    """One slow tool does not make a slow server, however many calls of it time out at once."""
    clock = Clock()
    breaker = Breaker(clock, chance=lambda: 0.0)
    sent, clock.now = clock.now, clock.now + 10
    breaker.record_answer()
    clock.now += 20
    assert not any(breaker.record_timeout("slow", since=sent) for _ in range(5))


def test_a_server_that_asks_for_a_pause_is_not_tried_before() -> None:
    """Not even after its first failure; one that asks for less is tried when it would have been anyway."""
    clock = Clock()
    breaker = Breaker(clock, chance=lambda: 0.0)
    breaker.hold_off(120)
    breaker.record_failure("HTTP 503")
    assert (breaker.is_open, breaker.is_waiting, breaker.is_tripped, breaker.remaining()) == (True, True, False, 120)
    clock.now += 120
    assert (breaker.is_open, breaker.is_waiting) == (False, False)
    breaker.hold_off(1)
    breaker.record_failure("HTTP 503")
    assert (breaker.remaining(), breaker.retry_after()) == (2, 1)
    breaker.half_open()
    assert not breaker.is_open
