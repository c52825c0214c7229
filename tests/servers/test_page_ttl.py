"""How long a list of several pages holds."""

from __future__ import annotations

import pytest

from pegboard.servers.pages import _ttl


@pytest.mark.parametrize(
    ("said", "before", "seconds"),
    [
        (b"2000", None, 2.0),
        (b"3000", 2.0, 2.0),
        (b"1000", 2.0, 1.0),
        (b"0", 2.0, 2.0),
        (b"-5", None, None),
        (b"true", None, None),
        (b'"1000"', 2.0, 2.0),
        (None, 2.0, 2.0),
        (b"1" + b"0" * 400, None, 365 * 86_400),
        (b"1e300", None, 365 * 86_400),
    ],
)
def test_the_shortest_time_of_all_pages_counts(said: bytes | None, before: float | None, seconds: float | None) -> None:
    """In seconds, where pages say milliseconds; what is no time says nothing."""
    assert _ttl(said, before) == seconds
