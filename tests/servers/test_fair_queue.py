"""The fair queue: principals take turns, and each one's own come in their order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pegboard.servers.fair_queue import FairQueue


def test_one_request_does_not_wait_for_all_of_another_principal() -> None:
    """Of five hundred that wait before it, one is served first."""
    queue: FairQueue[str] = FairQueue()
    for number in range(500):
        queue.put("many", f"many {number}")
    queue.put("one", "one")
    assert [queue.get() for _ in range(3)] == ["many 0", "one", "many 1"]
    assert len(queue) == 498


@given(st.lists(st.sampled_from(["put a", "put b", "put c", "get"]), max_size=200))
def test_it_is_fair_and_loses_nothing(steps: list[str]) -> None:
    """Each principal's own in order; while one waits, nobody else is served twice."""
    queue: FairQueue[tuple[str, int]] = FairQueue()
    put: Counter[str] = Counter()
    got: Counter[str] = Counter()
    since: dict[str, Counter[str]] = {}
    for step in steps:
        if step != "get":
            whose = step[-1]
            if put[whose] == got[whose]:
                since[whose] = Counter()
            queue.put(whose, (whose, put[whose]))
            put[whose] += 1
        elif len(queue):
            whose, number = queue.get()
            assert number == got[whose]
            got[whose] += 1
            since[whose] = Counter()
            for other, served in since.items():
                if other != whose and put[other] > got[other]:
                    served[whose] += 1
                    assert served[whose] == 1
    assert len(queue) == put.total() - got.total()
    while len(queue):
        got[queue.get()[0]] += 1
    assert got == put
