"""JWTs of a configured issuer at a real gateway: who is let in, who is not, and why, on both paths alike."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auth.asking import ends, modern_request, open_session, open_stream
from auth.door import Door, open_door
from auth.issuer import JWKS, METADATA, Issuer, open_issuer, public_jwk
from harness import LIMIT
from pegboard.auth import jwts

pytestmark = pytest.mark.anyio


def forge(claims: dict[str, Any], header: dict[str, Any], signature: str = "c2ln") -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in (header, claims))
    return ".".join([*parts, signature])


def bad_tokens(door: Door) -> dict[str, str]:
    """One of each kind that must not be let in."""
    issuer, now, aud = door.issuer, int(time.time()), door.resource
    good = issuer.claims(aud=aud)
    confused = {"alg": "HS256", "kid": "one", "typ": "at+jwt"}
    return {
        "alg none": forge(good, {"alg": "none"}, "AA"),
        "alg None": forge(good, {"alg": "None", "kid": "one"}, "AA"),
        "HS256 with the public key": _hmac(good, confused, issuer.public_pem()),
        "algorithm of another key": door.token("ES256", kid="one"),
        "signature of another key": door.token(number=1),
        "wrong kid": door.token(kid="nobody"),
        "own key in the head": door.token(number=1, header={"jwk": public_jwk("RSA", "one", 1)}),
        "crit": door.token(header={"crit": ["exp"], "exp": 1}),
        "wrong iss": door.token(iss="https://id.example"),
        "iss with a slash": door.token(iss=f"{issuer.url}/"),
        "no iss": door.token(iss=None),
        "wrong aud": door.token(aud="https://other.example/mcp"),
        "longer aud": door.token(aud=f"{aud}/team"),
        "no aud": door.token(aud=None),
        "expired": door.token(exp=now - 3),
        "no exp": door.token(exp=None),
        "exp in words": door.token(exp="never"),
        "exp is true": door.token(exp=True),
        "not yet": door.token(nbf=now + 120),
        "issued tomorrow": door.token(iat=now + 86400),
        "no sub": door.token(sub=None),
        "sub with NUL": door.token(sub="a\0b"),
        "sub with an escape sequence": door.token(sub="a\x1b[2Jb"),
        "sub with half of a character": door.token(sub="a\ud83d"),
        "client with half of a character": door.token(client_id="a\ud83d"),
        "ID token by typ": door.token(header={"typ": "id_token+jwt"}),
        "logout token": door.token(header={"typ": "logout+jwt"}),
        "ID token by at_hash": door.token(header={"typ": "JWT"}, at_hash="x"),
        "ID token by nonce": door.token(header={"typ": "JWT"}, scope=None, nonce="n"),
        "ID token by its claim": door.token(header={"typ": "JWT"}, token_use="id"),
        "refresh token": door.token(header={"typ": "JWT"}, typ="Refresh"),
        "no token": "aaaa.bbbb.cccc",
        "two parts": "aaaa.bbbb",
        "half of one": door.token()[:-20],
        "long head": door.token(header={"x": "a" * 5000}),
    }


def _hmac(claims: dict[str, Any], header: dict[str, Any], key: bytes) -> str:
    unsigned = forge(claims, header).rpartition(".")[0]
    digest = hmac.new(key, unsigned.encode(), hashlib.sha256).digest()
    return f"{unsigned}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.mark.scenario("issuers: A bad JWT is refused")
@pytest.mark.both_paths
async def test_bad_tokens_are_refused(tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with 401 and `invalid_token`, before and behind a good one; nothing of a token is said back."""
    monkeypatch.setattr("pegboard.auth.flood._MISTAKES", 1000)
    async with open_door(tmp_path, issuer) as door:
        for _ in range(2):
            for name, token in bad_tokens(door).items():
                answer = await door.call(token)
                assert answer.status_code == 401, (name, answer.text)
                assert 'error="invalid_token"' in answer.headers["www-authenticate"], name
                assert not any(part in answer.text for part in token.split(".") if len(part) > 8), name
            assert (await door.call(door.token())).status_code == 200


@pytest.mark.scenario("issuers: What is no bearer of one token is refused")
@pytest.mark.both_paths
async def test_what_is_no_bearer_of_one_token_is_refused(tmp_path: Path, issuer: Issuer) -> None:
    """Two headers, 20 kB, a token in the address, another scheme."""
    async with open_door(tmp_path, issuer) as door:
        good = door.token()
        assert (await door.call(good)).status_code == 200
        assert (await door.call(good, headers=[("authorization", f"Bearer {good}")])).status_code == 400
        assert (await door.call(door.token(pad="x" * 20_000))).status_code == 400
        for name in ("access_token", "token"):
            answer = await door.call(None, path=f"/mcp?{name}={good}")
            assert (answer.status_code, "must not stand in the address" in answer.text) == (400, True)
            assert (await door.call(good, path=f"/mcp?{name}={good}")).status_code == 400
        answer = await door.call(None, headers=[("authorization", f"Basic {good}")])
        assert answer.status_code == 401
        # A scheme is the same in any case (RFC 9110, section 11.1).
        assert (await door.call(None, headers=[("authorization", f"bearer {good}")])).status_code == 200


@pytest.mark.scenario("issuers: A token is for this gateway and no other")
@pytest.mark.both_paths
@pytest.mark.parametrize(
    ("path", "audience", "is_taken"),
    [
        ("/mcp", "URL/mcp", True),
        ("/mcp", "URL", True),
        ("/mcp", "URL/", True),
        ("/mcp", ["https://other.example", "URL/mcp"], True),
        ("/mcp", "URL/mcp/team", False),
        ("/mcp/team", "URL/mcp/team", True),
        ("/mcp/team", "URL/mcp", True),
        ("/mcp/other", "URL/mcp/team", False),
        ("/mcp", "URL/api", False),
        ("/mcp", ["x"], False),
    ],
)
@pytest.mark.parametrize("public", ["", "https://tools.example"])
async def test_the_audience_is_this_gateway(
    tmp_path: Path, issuer: Issuer, path: str, audience: Any, is_taken: bool, public: str
) -> None:
    """The gateway, its MCP address, or the very board; by `publicUrl`, or by the address that the request came to."""
    own: dict[str, Any] = {"publicUrl": public} if public else {}
    async with open_door(tmp_path, issuer, **own) as door:
        base = public or door.gateway.url
        aud = [each.replace("URL", base) for each in ([audience] if isinstance(audience, str) else audience)]
        token = door.token(aud=aud[0] if isinstance(audience, str) else aud)
        # First where it is for, so that it is known, then where it may not be for.
        await door.call(token, path="/mcp/team")
        answers = [await door.call(token, path=path) for _ in range(2)]
        assert {answer.status_code for answer in answers} == {200 if is_taken else 401}


@pytest.mark.scenario("issuers: A token is for this gateway and no other")
@pytest.mark.both_paths
@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:1", "localhost", "other.example.com", "tools.example:1"])
async def test_nobody_makes_a_token_fit_by_the_host_that_they_name(tmp_path: Path, issuer: Issuer, host: str) -> None:
    """A token for another gateway stays that one's, though the request says that it is for it."""
    async with open_door(tmp_path, issuer, hosts=["tools.example", "*.example.com"]) as door:
        token = door.token(aud=f"http://{host}/mcp")
        port = door.gateway.url.rpartition(":")[2]
        for named in (host, f"{host.partition(':')[0]}:{port}", f"127.0.0.1:{port}"):
            bearer = [("authorization", f"Bearer {token}")]
            for _ in range(2):
                assert (await door.call(raw=bearer, host=named)).status_code == 401


@pytest.mark.scenario("issuers: A token is for this gateway and no other")
@pytest.mark.both_paths
@pytest.mark.parametrize(
    ("audience", "is_taken_from"),
    [
        ("http://localhost:PORT/mcp", "here"),
        ("https://[::1]:PORT", "here"),
        ("https://tools.example/mcp", "both"),
        ("http://tools.example:PORT", "both"),
        ("https://any.example.com/mcp", ""),
    ],
)
async def test_a_gateway_knows_what_it_is_called(
    tmp_path: Path, issuer: Issuer, audience: str, is_taken_from: str
) -> None:
    """Its own addresses and the names that it was given; what every machine is called is for its own clients."""
    async with open_door(tmp_path, issuer, hosts=["tools.example", "*.example.com"]) as door:
        token = door.token(aud=audience.replace("PORT", door.gateway.url.rpartition(":")[2]))
        here = await door.call(token)
        assert (here.status_code == 200) == (is_taken_from in {"here", "both"})
        elsewhere = await door.call(token, headers=[("x-forwarded-for", "203.0.113.9")])
        assert (elsewhere.status_code == 200) == (is_taken_from == "both")


async def test_an_issuer_may_have_an_audience_of_its_own(tmp_path: Path, issuer: Issuer) -> None:
    """Then that one counts, and the gateway's own does not."""
    async with open_door(tmp_path, issuer, settings={"audience": ["api://tools"]}) as door:
        assert (await door.call(door.token(aud="api://tools"))).status_code == 200
        assert (await door.call(door.token())).status_code == 401


@pytest.mark.parametrize("kind", ["RSA", "ES256", "EdDSA"])
async def test_algorithms_are_the_issuers_list(tmp_path: Path, issuer: Issuer, kind: str) -> None:
    """A key of another kind is of no use, though the issuer has it."""
    issuer.keys = [public_jwk(each, each) for each in ("RSA", "ES256", "EdDSA")]
    async with open_door(tmp_path, issuer, settings={"algorithms": ["ES256"]}) as door:
        assert (await door.call(door.token(kind, kid=kind))).status_code == (200 if kind == "ES256" else 401)


async def test_a_token_without_kid_may_be_of_any_key(tmp_path: Path, issuer: Issuer) -> None:
    """As long as the issuer has few."""
    issuer.keys = [public_jwk("RSA", None, 1), public_jwk("RSA", None)]
    async with open_door(tmp_path, issuer) as door:
        assert (await door.call(door.token(kid=None))).status_code == 200


@pytest.mark.both_paths
async def test_a_token_is_verified_once(
    tmp_path: Path, issuer: Issuer, protocol_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then its digest is enough, and with the fast path the request's head; after a while it is verified again."""
    verified: list[str] = []
    verify = jwts.verify_signature
    monkeypatch.setattr(jwts, "verify_signature", lambda token, keys: verified.append("") or verify(token, keys))
    async with open_door(tmp_path, issuer) as door:
        token = door.token(exp=int(time.time()) + 86400)
        answers = await asyncio.gather(*(door.call(token) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        assert len(verified) == 1
        before = sum(door.declined.values())
        assert (await door.call(token)).status_code == 200
        assert sum(door.declined.values()) == before
        pass_time(monkeypatch, jwts.RECHECK + 1)
        for _ in range(2):
            assert (await door.call(token)).status_code == 200
        assert len(verified) == 2


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let so much time pass for those who look at tokens."""
    later = time.time() + seconds
    monkeypatch.setattr("pegboard.auth.jwts.time.time", lambda: later)


@pytest.mark.both_paths
async def test_a_token_that_expires_is_refused_on_the_next_request(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is known, and its head was let in a moment ago."""
    async with open_door(tmp_path, issuer) as door:
        token = door.token(exp=int(time.time()) + 60)
        assert (await door.call(token)).status_code == 200
        assert (await door.call(token)).status_code == 200
        pass_time(monkeypatch, 63)
        answer = await door.call(token)
        assert (answer.status_code, "has expired" in answer.text) == (401, True)


@pytest.mark.scenario("issuers: The streams of a JWT end with it")
@pytest.mark.both_paths
async def test_a_withdrawn_key_ends_its_tokens_when_they_are_looked_at_again(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within five minutes; streams end with it."""
    async with open_door(tmp_path, issuer) as door:
        token = door.token(exp=int(time.time()) + 86400)
        assert (await door.call(token)).status_code == 200
        (known,) = door.gateway.front.authenticator.jwts._known.values()
        assert known.principal is not None
        issuer.keys = [public_jwk("RSA", "two", 1)]
        door.gateway.front.authenticator.jwts._issuers[issuer.url]._kept_until = 0.0
        pass_time(monkeypatch, jwts.RECHECK + 1)
        assert (await door.call(token)).status_code == 401
        assert known.principal.valid_until == 0


@pytest.mark.scenario("issuers: Without keys nobody is told that a token is bad")
@pytest.mark.both_paths
async def test_without_keys_nobody_is_told_that_their_token_is_bad(tmp_path: Path, issuer: Issuer) -> None:
    """503 with when to try again; once keys are there they are used while the issuer is away."""
    issuer.status = 500
    async with open_door(tmp_path, issuer) as door:
        answer = await door.call(door.token())
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert "www-authenticate" not in answer.headers
        assert answer.json()["error"]["retryable"] is True
        assert issuer.asked[METADATA] == 1
    issuer.status = 200
    async with open_door(tmp_path, issuer) as door:
        assert (await door.call(door.token())).status_code == 200
        issuer.status = 500
        assert (await door.call(door.token(sub="bob"))).status_code == 200


@pytest.mark.scenario("issuers: Keys that nobody knows lead to one fetch")
async def test_a_thousand_tokens_with_unknown_keys_lead_to_one_fetch(tmp_path: Path, issuer: Issuer) -> None:
    """And a client whose token is known does not notice."""
    async with open_door(tmp_path, issuer) as door:
        good = door.token()
        assert (await door.call(good)).status_code == 200
        before, template = issuer.asked[JWKS], door.token(kid="made up")
        _, claims, signature = template.split(".")
        heads = (
            base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": f"k{at}"}).encode()).rstrip(b"=").decode()
            for at in range(1000)
        )
        tokens = iter([f"{head}.{claims}.{signature}" for head in heads])

        async def send() -> list[int]:
            return [(await door.call(token)).status_code for token in tokens]

        statuses = [status for sent in await asyncio.gather(*(send() for _ in range(20))) for status in sent]
        assert set(statuses) <= {401, 429}
        assert len(statuses) == 1000
        assert issuer.asked[JWKS] - before <= 1
        assert (await door.call(good)).status_code == 200


@pytest.mark.scenario("issuers: A token that no rule is for is refused")
@pytest.mark.both_paths
@pytest.mark.parametrize(
    ("who", "claims", "is_taken"),
    [
        ("sub:alice", {}, True),
        ("sub:bob", {}, False),
        ("client:agent", {}, True),
        ("client:azp", {"client_id": None, "azp": "azp"}, True),
        ("group:ops", {"groups": ["dev", "ops"]}, True),
        ("group:ops", {"groups": "dev ops"}, True),
        ("group:ops", {"groups": {"ops": True}}, False),
        ("scope:mcp", {}, True),
        ("scope:write", {"scope": None, "scp": ["read", "write"]}, True),
        ("scope:write", {"scope": None, "scp": "read write"}, True),
        ("token:alice", {}, False),
        ("local", {}, False),
    ],
)
async def test_rules_name_principals(
    tmp_path: Path, issuer: Issuer, who: str, claims: dict[str, Any], is_taken: bool
) -> None:
    """By subject, client, group or scope. Whom none names is told which kind of rule would let it in."""
    async with open_door(tmp_path, issuer, rules=[{"who": [who]}]) as door:
        token = door.token(**claims)
        for _ in range(2):
            answer = await door.call(token)
            assert answer.status_code == (200 if is_taken else 403), answer.text
            if not is_taken:
                assert '"sub:alice"' in answer.json()["error"]["message"]
                assert "error=" not in answer.headers["www-authenticate"]


async def test_a_token_without_the_scope_of_a_rule_is_told_of_it(tmp_path: Path, issuer: Issuer) -> None:
    """So that its client can get another."""
    async with open_door(tmp_path, issuer, rules=[{"who": ["scope:mcp.use", "scope:mcp.*"]}]) as door:
        challenge = (await door.call(door.token())).headers["www-authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="mcp.use"' in challenge


@pytest.mark.parametrize(
    ("settings", "claims", "who"),
    [
        ({"subject": "email"}, {"email": "a@example.com"}, "sub:a@example.com"),
        ({"groups": "realm_access.roles"}, {"realm_access": {"roles": ["ops"]}}, "group:ops"),
        ({"groups": "https://x.example/roles"}, {"https://x.example/roles": ["ops"]}, "group:ops"),
    ],
)
async def test_claims_have_the_names_that_the_config_gives_them(
    tmp_path: Path, issuer: Issuer, settings: dict[str, Any], claims: dict[str, Any], who: str
) -> None:
    """Dots lead into objects, unless a claim has the very name."""
    async with open_door(tmp_path, issuer, settings=settings, rules=[{"who": [who]}]) as door:
        assert (await door.call(door.token(**claims))).status_code == 200
        assert (await door.call(door.token())).status_code in {401, 403}


@pytest.mark.scenario("access: A rule that changes holds at once")
@pytest.mark.both_paths
async def test_other_rules_hold_at_once(tmp_path: Path, issuer: Issuer) -> None:
    """A config that is taken over ends whoever came in by the one before; one that says the same ends nobody."""
    async with open_door(tmp_path, issuer, rules=[{"who": ["sub:alice"]}]) as door:
        token = door.token()
        assert (await door.call(token)).status_code == 200
        (known,) = door.gateway.front.authenticator.jwts._known.values()
        assert known.principal is not None
        await door.configure(rules=[{"who": ["sub:alice"]}])
        assert known.principal.valid_until > 0
        fetched = issuer.asked[JWKS]
        await door.configure(rules=[{"who": ["sub:bob"]}])
        assert known.principal.valid_until == 0
        assert (await door.call(token)).status_code == 403
        assert (await door.call(door.token(sub="bob"))).status_code == 200
        assert issuer.asked[JWKS] == fetched


@pytest.mark.scenario("issuers: A session outlives its token")
@pytest.mark.both_paths
async def test_a_session_outlives_its_token(tmp_path: Path, issuer: Issuer) -> None:
    """A client that refreshes its token stays who it is; another subject with its session's id is nobody there."""
    async with open_door(tmp_path, issuer) as door:
        session = await door.open_session(door.token())
        tokens = [door.token(jti=str(number)) for number in range(3)]
        for token in tokens:
            for _ in range(2):
                assert (await door.call(token, session=session)).status_code == 200
        for other in (door.token(sub="bob"), door.token(client_id="other")):
            assert (await door.call(other, session=session)).status_code == 404
        assert (await door.call(tokens[0], session=session)).status_code == 200


@pytest.mark.scenario("issuers: The streams of a JWT end with it")
@pytest.mark.both_paths
async def test_a_stream_ends_when_its_token_expires(tmp_path: Path, issuer: Issuer) -> None:
    """Its client comes back with a new one."""
    async with open_door(tmp_path, issuer) as door:
        token = door.token(exp=time.time() + 1)
        session = await door.open_session(token)
        given = {"accept": "text/event-stream", "mcp-session-id": session, "authorization": f"Bearer {token}"}
        async with asyncio.timeout(LIMIT), door.http.stream("GET", "/mcp", headers=given) as stream:
            assert stream.status_code == 200
            with contextlib.suppress(httpx2.RemoteProtocolError):
                await stream.aread()
        assert (await door.call(token, session=session)).status_code == 401
        assert (await door.call(door.token(), session=session)).status_code == 200


@pytest.mark.both_paths
async def test_a_modern_stream_ends_when_its_token_expires(tmp_path: Path, issuer: Issuer) -> None:
    """Though it is the answer to a POST; the calls of its client are another matter."""
    async with open_door(tmp_path, issuer) as door:
        asked = {"notifications": {"toolsListChanged": True}}
        async with asyncio.timeout(LIMIT):
            answer = await door.request("subscriptions/listen", asked, door.token(exp=time.time() - 1))
        assert answer.status_code == 200
        assert "notifications/subscriptions/acknowledged" in answer.text


@pytest.mark.scenario("issuers: The streams of a JWT end with it")
@pytest.mark.both_paths
@pytest.mark.parametrize("how", ["rules", "key"])
async def test_streams_end_with_their_principal(
    tmp_path: Path, issuer: Issuer, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standing stream of a session, and that of subscriptions: at once where rules are for somebody else, and where
    a key was withdrawn when that is found out. Those of others go on."""
    async with open_door(tmp_path, issuer) as door, contextlib.AsyncExitStack() as stack:
        later = int(time.time()) + 86400
        issuer.keys.append(public_jwk("ES256", "two"))
        gone = door.token(exp=later)
        stays = door.token("ES256", kid="two", sub="bob", exp=later)

        async def follow(token: str) -> list[asyncio.Task[None]]:
            bearer = {"authorization": f"Bearer {token}"}
            session = await open_session(door.http, "/mcp", bearer)
            asked, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
            standing = open_stream(door.http, "GET", "/mcp", {**session, **bearer})
            subscribed = open_stream(door.http, "POST", "/mcp", {**headers, **bearer}, json=asked)
            return [await stack.enter_async_context(each) for each in (standing, subscribed)]

        ending, lasting = await follow(gone), await follow(stays)
        assert not any(stream.done() for stream in (*ending, *lasting))
        if how == "rules":
            await door.configure(rules=[{"who": ["sub:bob"]}])
            # Other rules are another principal for everybody.
            ending += lasting
        else:
            issuer.keys = issuer.keys[1:]
            door.gateway.front.authenticator.jwts._issuers[issuer.url]._kept_until = 0.0
            pass_time(monkeypatch, jwts.RECHECK + 1)
            assert (await door.call(gone)).status_code == 401
        await asyncio.gather(*map(ends, ending))
        assert (await door.call(stays)).status_code == 200
        assert how == "rules" or not any(stream.done() for stream in lasting)


SCHEMES = st.sampled_from(["Bearer", "bearer", "BEARER", "Basic", "Bearer ", "", "Bearer\t", "Token", "Bearer,"])
ENDS = st.sampled_from(["", " ", "\t", "x", ".", "=", " x", "\u00e9", ","])
NAMES = st.sampled_from(["authorization", "Authorization", "AUTHORIZATION", "x-pegboard-proof", "proxy-authorization"])
QUERIES = ["", "?", "?server=one", "?access_token=x", "?Token=y", "?x=y", "?%61ccess_token=x", "?server=one&BEARER=x"]
PLACES = st.builds("".join, st.tuples(st.sampled_from(["/mcp", "/mcp/team"]), st.sampled_from(QUERIES)))
# A scheme, the number of a token, and what stands behind it; or any bytes that can stand in a line.
TOKENS = st.tuples(SCHEMES, st.integers(0, 40), ENDS)
BYTES = st.binary(max_size=30).map(lambda value: re.sub(rb"[\r\n\0]", b"", value).decode("utf-8", "surrogateescape"))
# Of the first tokens each lets in.
GOOD = st.tuples(st.just("authorization"), st.tuples(st.just("Bearer"), st.integers(0, 7), st.just("")))
Credentials = list[tuple[str, tuple[str, int, str] | str]]


@pytest.mark.scenario("issuers: Both paths agree whatever the credentials are")
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(
    chosen=GOOD.map(lambda one: [one])
    | st.lists(GOOD | st.tuples(NAMES, st.one_of(TOKENS, TOKENS, BYTES)), max_size=3),
    place=PLACES,
    era=st.sampled_from(["handshake", "modern"]),
)
def test_both_paths_agree(
    both: Callable[[Credentials, str, str], None], chosen: Credentials, place: str, era: str
) -> None:
    """Whatever a client sends as its credentials: the same status, challenge and words."""
    both(chosen, place, era)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[Credentials, str, str], None]]:
    """Asks two gateways of one issuer, of which one has no fast path."""
    with open_issuer() as issuer, asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patched:
        patched.setattr("pegboard.auth.flood._MISTAKES", 1e9)
        begun, ending = asyncio.Event(), asyncio.Event()
        doors: list[Door] = []
        seen: set[int] = set()

        async def serve() -> None:
            # In one task from its beginning to its end, as task groups want it.
            async with contextlib.AsyncExitStack() as stack:
                for name in ("on", "off"):
                    patched.setenv("PEGBOARD_FAST_PATH", name)
                    folder = tmp_path_factory.mktemp(name)
                    doors.append(await stack.enter_async_context(open_door(folder, issuer, publicUrl=PUBLIC)))
                begun.set()
                await ending.wait()

        async def begin() -> asyncio.Task[None]:
            task = asyncio.create_task(serve())
            await asyncio.wait({task, asyncio.create_task(begun.wait())}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            return task

        serving = runner.run(begin())
        good = [doors[0].token(aud=f"{PUBLIC}/mcp", jti=str(at)) for at in range(8)]
        tokens = [*good, *bad_tokens(doors[0]).values(), "pgb_0123456789ab_" + "x" * 43]

        sessions = [runner.run(door.open_session(good[0])) for door in doors]

        async def ask(door: Door, headers: list[tuple[str, str]], place: str, session: str | None) -> list[object]:
            # The second time the fast path may know the head by heart.
            if session is None:
                answers = [await door.call(raw=headers, path=place) for _ in range(2)]
            else:
                answers = [await door.call_in_session(session, headers, place) for _ in range(2)]
            return [(each.status_code, each.headers.get("www-authenticate"), _words(each)) for each in answers]

        def compare(chosen: Credentials, place: str, era: str) -> None:
            headers = [(name, value if isinstance(value, str) else write(*value)) for name, value in chosen]
            fast, full = (
                runner.run(ask(door, headers, place, session if era == "handshake" else None))
                for door, session in zip(doors, sessions, strict=True)
            )
            assert fast == full
            seen.add(cast("list[tuple[int]]", fast)[0][0])

        def write(scheme: str, at: int, end: str) -> str:
            return f"{scheme} {tokens[at % len(tokens)]}{end}"

        async def end() -> None:
            ending.set()
            await serving

        yield compare
        runner.run(end())
        # Some were let in, and others refused for each kind of reason.
        assert seen >= {200, 400, 401}


def _words(answer: httpx2.Response) -> object:
    """What an answer says; a result may be on a stream, which is the full path's way."""
    return answer.json() if answer.status_code != 200 else "toy:x" in answer.text


PUBLIC = "https://tools.example"
