"""The keys of an issuer: found, kept, refreshed, and never asked for more often than needed."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from auth.issuer import JWKS, METADATA, OPENID, Issuer, algorithm_of, public_jwk
from pegboard.access.settings import IssuerSettings
from pegboard.auth.jwks import AWAY_PAUSE, UNKNOWN_PAUSE, IssuerKeys
from pegboard.auth.refused import AuthRefused
from pegboard.oauth import fetching
from pegboard.oauth.fetching import Fetcher

pytestmark = pytest.mark.anyio


class Clock:
    """A time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def keys_of(issuer: Issuer, clock: Clock | None = None, **changes: Any) -> IssuerKeys:
    return IssuerKeys(IssuerSettings(issuer=issuer.url, **changes), clock or Clock())


async def refusal(keys: IssuerKeys, kid: str | None = "one", algorithm: str = "RS256") -> AuthRefused:
    with pytest.raises(AuthRefused) as caught:
        await keys.find(kid, algorithm)
    return caught.value


async def test_keys_are_found_by_the_metadata_and_kept(issuer: Issuer) -> None:
    """The second token costs no request."""
    keys = keys_of(issuer)
    assert [key.kid for key in await keys.find("one", "RS256")] == ["one"]
    await keys.find("one", "RS256")
    assert issuer.asked == {METADATA: 1, JWKS: 1}


async def test_openid_metadata_is_the_second_choice(issuer: Issuer) -> None:
    """An issuer that speaks OpenID Connect alone is found, too, below its own path as well."""
    issuer.url += "/realms/it"
    issuer.answers[f"/realms/it{OPENID}"] = (
        200,
        json.dumps({"issuer": issuer.url, "jwks_uri": issuer.url.replace("/realms/it", JWKS)}).encode(),
        {},
    )
    assert await keys_of(issuer).find("one", "RS256")
    assert list(issuer.asked) == [f"{METADATA}/realms/it", f"{OPENID}/realms/it", f"/realms/it{OPENID}", JWKS]


@pytest.mark.scenario("issuers: Keys are fetched from the issuer alone")
@pytest.mark.parametrize("named", ["http://127.0.0.1:1", "URL/", "", None])
async def test_metadata_of_another_issuer_is_not_used(issuer: Issuer, named: str | None) -> None:
    """Its `issuer` must be the configured one to the letter."""
    said = named.replace("URL", issuer.url) if named else named
    issuer.answers[METADATA] = (200, json.dumps({"issuer": said, "jwks_uri": f"{issuer.url}{JWKS}"}).encode(), {})
    assert (await refusal(keys_of(issuer))).status == 503
    assert issuer.asked[JWKS] == 0


@pytest.mark.scenario("issuers: Keys are fetched from the issuer alone")
@pytest.mark.parametrize(
    ("issuer_url", "url", "is_fetched"),
    [
        ("https://id.example", "https://keys.example/k", True),
        ("https://id.example", "http://id.example/k", False),
        ("https://id.example", "http://127.0.0.1/k", False),
        ("https://id.example", "file:///etc/passwd", False),
        ("http://127.0.0.1:1", "http://localhost:2/k", True),
        ("http://127.0.0.1:1", "http://id.example/k", False),
    ],
)
def test_where_documents_are_fetched_from(issuer_url: str, url: str, is_fetched: bool) -> None:
    """Without TLS only an issuer on this machine leads to this machine."""
    assert (Fetcher(issuer_url).address_problem(url) is None) is is_fetched


@pytest.mark.parametrize("answer", [b"[]", b"{", b'{"keys":{}}', b'{"keys":[]}' + b" " * 256 * 1024, b"<html>"])
async def test_what_is_no_jwks_is_no_answer(issuer: Issuer, answer: bytes) -> None:
    """Whoever has a good token is told to come back, not that it is bad."""
    issuer.answers[JWKS] = (200, answer, {})
    refused = await refusal(keys_of(issuer))
    assert (refused.status, refused.error) == (503, "")
    assert refused.retry_after is not None


@pytest.mark.scenario("issuers: Keys are fetched from the issuer alone")
async def test_a_redirect_leads_nowhere_else(issuer: Issuer) -> None:
    """Within the origin it is followed, thrice at most; beyond it never."""
    issuer.answers["/moved"] = (307, b"", {"location": JWKS})
    assert await keys_of(issuer, jwks_url=f"{issuer.url}/moved").find("one", "RS256")
    issuer.answers["/away"] = (307, b"", {"location": "http://127.0.0.2:1/keys"})
    assert (await refusal(keys_of(issuer, jwks_url=f"{issuer.url}/away"))).status == 503
    issuer.answers["/round"] = (307, b"", {"location": "/round"})
    assert (await refusal(keys_of(issuer, jwks_url=f"{issuer.url}/round"))).status == 503
    assert issuer.asked["/round"] == 4


async def test_a_slow_issuer_is_not_waited_for_without_end(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of a document has one time limit."""
    monkeypatch.setattr(fetching, "TIME_LIMIT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        keys = keys_of(issuer, jwks_url=f"http://127.0.0.1:{silent.getsockname()[1]}/keys")
        assert (await refusal(keys)).status == 503


async def test_one_fetch_serves_all_who_wait(issuer: Issuer) -> None:
    """And whoever goes away does not end it for the others."""
    keys = keys_of(issuer)
    waiting = [asyncio.create_task(keys.find("one", "RS256")) for _ in range(100)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    found = await asyncio.gather(*waiting[1:])
    assert all(found)
    assert issuer.asked[JWKS] == 1


@pytest.mark.scenario("issuers: Keys that nobody knows lead to one fetch")
@pytest.mark.parametrize("is_warm", [True, False])
async def test_a_thousand_unknown_keys_lead_to_one_fetch(issuer: Issuer, is_warm: bool) -> None:
    """Within 30 seconds, whether any keys were there before or not."""
    clock = Clock()
    keys = keys_of(issuer, clock)
    if is_warm:
        await keys.find("one", "RS256")
        clock.now += 1
    before = issuer.asked[JWKS]
    for number in range(1000):
        assert await keys.find(f"unknown {number}", "RS256") == []
        clock.now += 0.02
    assert issuer.asked[JWKS] - before == 1
    clock.now += UNKNOWN_PAUSE
    await keys.find("unknown", "RS256")
    assert issuer.asked[JWKS] - before == 2


async def test_a_new_key_is_found_at_once(issuer: Issuer) -> None:
    """An issuer may turn its keys at any moment; the old one is gone with that."""
    clock = Clock()
    keys = keys_of(issuer, clock)
    await keys.find("one", "RS256")
    clock.now += 1
    issuer.keys = [public_jwk("RSA", "two", 1)]
    assert [key.kid for key in await keys.find("two", "RS256")] == ["two"]
    assert await keys.find("one", "RS256") == []


@pytest.mark.scenario("issuers: Without keys nobody is told that a token is bad")
async def test_keys_stay_in_use_while_the_issuer_is_away(issuer: Issuer) -> None:
    """However old they are; a key that is not among them is nobody's fault."""
    clock = Clock()
    keys = keys_of(issuer, clock)
    await keys.find("one", "RS256")
    issuer.status = 503
    for _ in range(3):
        clock.now += 24 * 3600
        assert await keys.find("one", "RS256")
    assert (await refusal(keys, "two")).status == 503
    issuer.status, issuer.keys = 200, [public_jwk("RSA", "two", 1)]
    clock.now += UNKNOWN_PAUSE
    assert await keys.find("two", "RS256")


async def test_an_issuer_that_is_away_is_let_alone_for_a_while(issuer: Issuer) -> None:
    """Without any keys everybody is told when to come back, and one of them asks again."""
    clock = Clock()
    keys, issuer.status = keys_of(issuer, clock), 500
    refused = [await refusal(keys) for _ in range(50)]
    assert {each.status for each in refused} == {503}
    assert {each.retry_after for each in refused} == {AWAY_PAUSE}
    assert issuer.asked[METADATA] == 1
    issuer.status = 200
    clock.now += AWAY_PAUSE
    assert await keys.find("one", "RS256")


@pytest.mark.parametrize(
    ("said", "fresh"), [("", 600), ("public, max-age=120", 120), ("max-age=1", 60), ("max-age=999999", 3600)]
)
async def test_keys_are_refreshed_in_the_background(issuer: Issuer, said: str, fresh: int) -> None:
    """When they are as old as the issuer says, within bounds; whoever asks then does not wait for it."""
    clock = Clock()
    keys, issuer.cache_control = keys_of(issuer, clock), said
    await keys.find("one", "RS256")
    clock.now += fresh - 1
    await keys.find("one", "RS256")
    assert issuer.asked[JWKS] == 1
    clock.now += 1
    issuer.keys = []
    assert await keys.find("one", "RS256")
    await asyncio.gather(*keys._tasks)
    assert issuer.asked[JWKS] == 2
    assert await keys.find(None, "RS256") == []


async def test_old_keys_are_fetched_before_they_are_used(issuer: Issuer) -> None:
    """A key that was withdrawn while nobody came does not let the next one in."""
    clock = Clock()
    keys = keys_of(issuer, clock)
    await keys.find("one", "RS256")
    clock.now, issuer.keys = clock.now + 1200, [public_jwk("RSA", "two", 1)]
    assert await keys.find("one", "RS256") == []


@pytest.mark.scenario("issuers: A key is used for what it is for")
@pytest.mark.parametrize("kind", ["RSA", "ES256", "ES384", "EdDSA"])
async def test_a_key_fits_its_own_algorithm_alone(issuer: Issuer, kind: str) -> None:
    """By its type and curve, and by what it says of itself."""
    issuer.keys = [public_jwk(kind, "it")]
    keys = keys_of(issuer)
    fitting = {name for name in ("RS256", "PS512", "ES256", "ES384", "EdDSA") if await keys.find("it", name)}
    assert fitting == ({"RS256", "PS512"} if kind == "RSA" else {kind})
    (key,) = await keys.find("it", algorithm_of(kind))
    assert key.load(algorithm_of(kind)) is not None


@pytest.mark.scenario("issuers: A key is used for what it is for")
@pytest.mark.parametrize(
    "changes", [{"use": "enc"}, {"key_ops": ["encrypt"]}, {"alg": "RS512"}, {"kty": "oct", "k": "c2VjcmV0"}]
)
async def test_keys_for_something_else_are_left_out(issuer: Issuer, changes: dict[str, Any]) -> None:
    """One that encrypts, one of another algorithm, a shared secret."""
    issuer.keys = [public_jwk("RSA", "one") | changes]
    assert await keys_of(issuer).find("one", "RS256") == []


@pytest.mark.scenario("issuers: A key is used for what it is for")
async def test_keys_that_are_weak_or_broken_verify_nothing(issuer: Issuer) -> None:
    """RSA has 2,048 bits at least."""
    issuer.keys = [public_jwk("weak RSA", "weak"), {"kty": "RSA", "kid": "broken", "n": 1, "e": "!"}]
    keys = keys_of(issuer)
    for kid in ("weak", "broken"):
        (key,) = await keys.find(kid, "RS256")
        assert key.load("RS256") is None


async def test_nothing_private_is_kept(issuer: Issuer) -> None:
    """Even if an issuer publishes it."""
    issuer.keys = [public_jwk("RSA", "one") | {"d": "AQAB", "p": "AQAB"}]
    (key,) = await keys_of(issuer).find("one", "RS256")
    assert set(key.members) == {"kty", "n", "e"}
