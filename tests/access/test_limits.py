"""Limits of principals: rates, calls at once, and what is kept of whom."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.access import limits as limits_module
from pegboard.access.access import Access
from pegboard.access.limits import Limits, RateLimited, Slot
from pegboard.access.principal import LOCAL, Principal
from pegboard.access.quota import Quota, Rate
from pegboard.access.rule import Rule

SIX_A_MINUTE = Rate(6, 60.0)


class Clock:
    """A time that goes by when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def somebody(*rules: Rule, name: str = "ada") -> Principal:
    return Principal("token", f"token:{name}", name, Access(rules))


def limited(quota: Quota, **per_server: Quota) -> Principal:
    return somebody(Rule(quota=quota, server_quotas=tuple(per_server.items())))


def admit(limits: Limits, principal: Principal, server: str | None = "one") -> Slot:
    slot = limits.admit(principal, server)
    assert slot is not None
    return slot


def refusal(limits: Limits, principal: Principal, server: str | None = "one") -> RateLimited:
    with pytest.raises(RateLimited) as refused:
        limits.admit(principal, server)
    return refused.value


def test_whoever_has_no_limits_leaves_no_trace() -> None:
    """Neither the machine's own user nor a principal whose rules limit nothing is counted."""
    limits = Limits()
    assert limits.admit(LOCAL, "one") is None
    assert limits.admit(somebody(Rule(), Rule(servers=("*",))), "one") is None
    assert len(limits) == 0


def test_a_rate_lets_so_many_calls_through_at_once_and_then_as_they_come_back() -> None:
    """Six a minute: six at once, then one every ten seconds, and never more than six saved up."""
    clock = Clock()
    limits, ada = Limits(clock=clock), limited(Quota(SIX_A_MINUTE))
    for _ in range(6):
        admit(limits, ada).release()
    assert refusal(limits, ada).error.retry_after == 10.0
    clock.now += 7.5
    assert refusal(limits, ada).error.retry_after == 2.5
    clock.now += 2.5
    admit(limits, ada)
    refusal(limits, ada)
    clock.now += 3600
    for _ in range(6):
        admit(limits, ada)
    refusal(limits, ada)


def test_a_refusal_uses_up_nothing() -> None:
    """Whoever tries all the time gets through as soon as whoever waits."""
    clock = Clock()
    limits, ada = Limits(clock=clock), limited(Quota(Rate(1, 1.0)), one=Quota(Rate(1, 60.0)))
    admit(limits, ada)
    for _ in range(20):
        clock.now += 1.0
        assert refusal(limits, ada).scope == "server"
    # What the server's limit refused is not counted among all calls, either.
    admit(limits, ada, "two")


def test_calls_at_once_are_limited_until_one_is_over() -> None:
    """A place is free again when its call is over, once, however often that is said."""
    limits, ada = Limits(), limited(Quota(in_flight=2))
    first, second = admit(limits, ada), admit(limits, ada, "two")
    refused = refusal(limits, ada).error
    assert (refused.code, refused.retryable, refused.retry_after) == ("RATE_LIMITED", True, 1.0)
    assert refused.message == "too many calls: 2 are under way, and the limit is 2; try again in 1 s"
    first.release()
    first.release()
    third = admit(limits, ada)
    refusal(limits, ada)
    second.release()
    third.release()
    assert limits.in_flight(ada) == 0


def test_a_call_that_was_not_made_is_given_back() -> None:
    """Both its place and its token."""
    limits, ada = Limits(clock=Clock()), limited(Quota(Rate(1, 60.0), in_flight=1))
    admit(limits, ada).give_back()
    admit(limits, ada)
    refusal(limits, ada)


def test_limits_of_a_server_are_its_own() -> None:
    """A pattern limits each server that it fits by itself, beside the limit of all calls."""
    found: Counter[str] = Counter()
    limits = Limits(lambda scope: found.update([scope]), Clock())
    ada = somebody(Rule(quota=Quota(Rate(5, 60.0)), server_quotas=(("git*", Quota(Rate(2, 60.0))),)))
    for server in ("github", "github", "gitlab", "gitlab"):
        admit(limits, ada, server)
    assert str(refusal(limits, ada, "github")) == (
        "too many calls to server github: the limit is 2/m; try again in 30 s"
    )
    admit(limits, ada, None)
    assert str(refusal(limits, ada, "other")) == "too many calls: the limit is 5/m; try again in 12 s"
    assert found == {"server": 1, "principal": 1}


def test_all_rules_of_a_principal_limit_it() -> None:
    """A token's own rule and that of the config; the one that is used up first counts."""
    limits = Limits(clock=Clock())
    ada = somebody(Rule(quota=Quota(Rate(3, 60.0))), Rule(quota=Quota(Rate(2, 3600.0), in_flight=9)))
    admit(limits, ada)
    admit(limits, ada)
    assert refusal(limits, ada).error.retry_after == 1800.0


def test_a_principal_is_the_same_with_another_token_or_other_rules() -> None:
    """What was used stays used: by the id, not by the object."""
    limits = Limits(clock=Clock())
    for _ in range(6):
        admit(limits, limited(Quota(SIX_A_MINUTE)))
    refusal(limits, limited(Quota(SIX_A_MINUTE)))
    refusal(limits, limited(Quota(SIX_A_MINUTE, in_flight=100)))
    refusal(limits, limited(Quota(in_flight=6)))
    admit(limits, somebody(Rule(quota=Quota(SIX_A_MINUTE)), name="bob"))


def test_of_many_principals_only_those_in_debt_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes in the company of many is not forgiven, and who used up nothing is no burden."""
    monkeypatch.setattr(limits_module, "_MOST_METERS", 50)
    clock = Clock()
    limits, rule = Limits(clock=clock), Rule(quota=Quota(Rate(1, 3600.0)))
    debtor = somebody(rule, name="debtor")
    admit(limits, debtor)
    busy = admit(limits, somebody(Rule(quota=Quota(in_flight=1)), name="busy"))
    for number in range(500):
        admit(limits, somebody(Rule(quota=Quota(Rate(9, 1.0))), name=str(number))).release()
        clock.now += 1
        assert len(limits) <= 50
    refusal(limits, debtor)
    refusal(limits, somebody(Rule(quota=Quota(in_flight=1)), name="busy"))
    busy.release()


@given(st.integers(1, 50), st.sampled_from([1.0, 60.0, 3600.0]), st.floats(0.0, 100.0))
def test_it_is_told_when_to_try_again(calls: int, seconds: float, pause: float) -> None:
    """Whoever tries again then gets through, and who comes a little earlier does not."""
    clock = Clock()
    limits, ada = Limits(clock=clock), limited(Quota(Rate(calls, seconds)))
    for _ in range(calls):
        admit(limits, ada)
    clock.now += pause * seconds / calls / 101
    wait = refusal(limits, ada).error.retry_after
    clock.now += wait - 0.002
    if wait > 0.002:
        refusal(limits, ada)
    clock.now += 0.002
    admit(limits, ada)


@given(
    st.integers(1, 50),
    st.sampled_from([1.0, 60.0, 3600.0]),
    st.lists(st.floats(0.0, 30.0, allow_nan=False), min_size=1, max_size=300),
)
def test_no_window_has_more_calls_than_the_rate_allows(calls: int, seconds: float, pauses: list[float]) -> None:
    """In any window: those of the burst, and those that came back in its time."""
    clock = Clock()
    limits, ada = Limits(clock=clock), limited(Quota(Rate(calls, seconds)))
    admitted: list[float] = []
    for pause in pauses:
        clock.now += pause
        with contextlib.suppress(RateLimited):
            admit(limits, ada).release()
            admitted.append(clock.now)
    for at, begin in enumerate(admitted):
        for count, end in enumerate(admitted[at:], 1):
            assert count <= calls + (end - begin) * calls / seconds + 1e-3


def test_what_is_left_is_told_without_using_anything_up() -> None:
    """Of each limit in all, and of those at servers that have some; whoever has none is told of none."""
    clock = Clock()
    limits = Limits(clock=clock)
    ada = limited(Quota(SIX_A_MINUTE, 2), one=Quota(Rate(3, 60.0)))
    slot = admit(limits, ada)
    admit(limits, ada).release()

    def left() -> list[tuple[str, int, str | None]]:
        return [(each.limit, each.left, each.server) for each in limits.report(ada, ["one", "two"])]

    assert left() == left() == [("6/m", 4, None), ("2 at once", 1, None), ("3/m", 1, "one")]
    slot.release()
    clock.now += 60.0
    assert left() == [("6/m", 6, None), ("2 at once", 2, None), ("3/m", 3, "one")]
    assert limits.report(LOCAL, ["one"]) == []
