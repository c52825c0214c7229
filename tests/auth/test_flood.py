"""Floods of bad bearers: slowed by address, and nobody who is good is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from auth.door import open_door
from auth.issuer import Issuer
from auth.test_jwks import Clock
from harness import LIMIT, eventually
from pegboard.auth import flood, jwts
from pegboard.auth.flood import BearerFlood
from pegboard.auth.jwks import IssuerKey
from pegboard.auth.jwt import Jwt
from pegboard.auth.refused import AuthRefused, invalid_token

pytestmark = pytest.mark.anyio


def statuses(floods: BearerFlood, address: str, count: int) -> list[int]:
    return [floods.record(address, invalid_token("bad")).status for _ in range(count)]


@pytest.mark.scenario("issuers: A flood of bad bearers holds up nobody who is known")
def test_twenty_bad_ones_in_a_minute_are_mistakes() -> None:
    """Beyond that it is 429, until some time has passed; another address is not concerned."""
    clock = Clock()
    floods = BearerFlood(clock)
    assert statuses(floods, "192.0.2.1", 22) == [401] * 20 + [429] * 2
    assert statuses(floods, "192.0.2.2", 1) == [401]
    refused = floods.record("192.0.2.1", invalid_token("bad"))
    assert refused.retry_after == pytest.approx(3.0)
    clock.now += refused.retry_after or 0
    assert statuses(floods, "192.0.2.1", 2) == [401, 429]
    clock.now += 60
    assert statuses(floods, "192.0.2.1", 21) == [401] * 20 + [429]


def test_memory_is_bounded() -> None:
    """However many addresses there are."""
    floods = BearerFlood(Clock())
    for number in range(10_000):
        statuses(floods, str(number), 1)
    assert len(floods._addresses) == flood._MOST_ADDRESSES


async def test_new_bearers_of_such_an_address_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many may wait, each a little longer than the one before; whoever comes then is told to come back."""
    floods = BearerFlood(Clock())
    await floods.wait_turn("a")
    statuses(floods, "a", 20)
    pauses: list[float] = []
    held = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(round(seconds, 3))
        await held.wait()

    with monkeypatch.context() as patched:
        patched.setattr(flood.asyncio, "sleep", sleep)
        waiting = [asyncio.ensure_future(floods.wait_turn("a")) for _ in range(flood._MOST_WAITING)]
        while len(pauses) < flood._MOST_WAITING:
            await asyncio.wait(waiting, timeout=0.001)
        assert pauses == [round(number * flood._APART, 3) for number in range(flood._MOST_WAITING)]
        with pytest.raises(AuthRefused) as caught:
            await floods.wait_turn("a")
        assert caught.value.status == 429
        await floods.wait_turn("b")
        held.set()
        await asyncio.gather(*waiting)


@pytest.mark.scenario("issuers: A flood of bad bearers holds up nobody who is known")
@pytest.mark.both_paths
async def test_a_flood_slows_nobody_who_is_known(tmp_path: Path, issuer: Issuer) -> None:
    """Bad ones get 429 with when to try again; a known token goes on, and a new good one gets its turn."""
    async with open_door(tmp_path, issuer) as door:
        good = door.token()
        assert (await door.call(good)).status_code == 200
        bad = door.token(number=1)
        answers = [await door.call(bad) for _ in range(21)]
        assert [answer.status_code for answer in answers] == [401] * 20 + [429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert answers[-1].json()["error"]["code"] == "RATE_LIMITED"
        assert (await door.call("pgb_000000000000_" + "x" * 43)).status_code == 429
        assert (await door.call(good)).status_code == 200
        assert (await door.call(door.token(sub="bob"))).status_code == 200
        told = door.gateway.board.metrics.text([], 0, 0)
        assert 'pegboard_auth_refused_total{reason="flood"} 2' in told
        assert 'pegboard_auth_refused_total{reason="invalid_token"} 20' in told


@pytest.mark.scenario("issuers: A flood of bad bearers holds up nobody who is known")
@pytest.mark.both_paths
async def test_whoever_is_known_does_not_wait_behind_a_flood(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that verifies is busy with bad bearers, more of them wait, and none is answered before the good ones are."""
    verify, held = jwts.verify_signature, threading.Event()
    verifying: list[str] = []

    def hold(token: Jwt, keys: list[IssuerKey]) -> bool:
        verifying.append(token.text)
        assert held.wait(LIMIT)
        return verify(token, keys)

    async with open_door(tmp_path, issuer) as door:
        good = door.token()
        static = (await door.gateway.token())["authorization"].removeprefix("Bearer ")
        session = await door.open_session(good)
        monkeypatch.setattr(jwts, "verify_signature", hold)
        try:
            bad = [asyncio.create_task(door.call(door.token(number=1, jti=str(at)))) for at in range(50)]
            await eventually(lambda: len(verifying) == jwts._MOST_VERIFYING)
            for _ in range(20):
                answers = [await door.call(good), await door.call(static), await door.call(good, session=session)]
                assert [answer.status_code for answer in answers] == [200] * 3
            assert not any(sent.done() for sent in bad)
            assert len(verifying) == jwts._MOST_VERIFYING
        finally:
            held.set()
        refused = sorted([(await sent).status_code for sent in bad])
        assert refused == [401] * 20 + [429] * 30


async def test_whoever_brings_nothing_is_not_counted(tmp_path: Path, issuer: Issuer) -> None:
    """A client's first request has no token: that is how it learns where to get one."""
    async with open_door(tmp_path, issuer) as door:
        assert {(await door.call()).status_code for _ in range(30)} == {401}
        assert (await door.call(door.token(number=1))).status_code == 401
        metrics = door.gateway.board.metrics.refused
        await eventually(lambda: metrics["no_credentials"] == 30)
