"""So much at once, and so much a second after that."""

from __future__ import annotations

from pegboard.servers.token_bucket import TokenBucket


def test_a_burst_then_a_rate() -> None:
    """What was refused is counted, and the bucket fills up again, though not beyond its size."""
    now = 0.0
    bucket = TokenBucket(rate=2, burst=3, clock=lambda: now)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]
    assert (bucket.take_refused(), bucket.take_refused()) == (2, 0)
    now = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now = 100.0
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
