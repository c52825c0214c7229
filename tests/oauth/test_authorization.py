"""The authorization request and what may come back for it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pegboard.oauth.authorization_request import PKCE_RULE, build_authorization_request, challenge_of
from pegboard.oauth.authorization_response import AuthorizationRefused, read_code, read_query
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.discovery import DiscoveryFailed
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.scopes import choose_scopes

ISSUER = "https://as.example"
HOME = "http://localhost:3118/callback"
CLIENT = OAuthClient(client_id="me", issuer=ISSUER, source="configured")


def server_with(**changes: Any) -> AuthorizationServer:
    given: dict[str, Any] = {
        "authorization_endpoint": f"{ISSUER}/authorize?tenant=1&state=theirs",
        "code_challenge_methods": ("plain", "S256"),
    }
    return AuthorizationServer(issuer=ISSUER, token_endpoint=f"{ISSUER}/token", **given | changes)


def query_of(**options: Any) -> dict[str, str]:
    made = build_authorization_request(server_with(), CLIENT, redirect_uri=HOME, **options)
    query = parse_qs(urlsplit(made.url).query)
    assert all(len(values) == 1 for values in query.values())
    assert query["state"] == [made.state]
    assert query["code_challenge"] == [challenge_of(made.verifier)]
    return {name: values[0] for name, values in query.items()}


def test_a_request_carries_all_that_it_must() -> None:
    """PKCE, state, resource and scopes; a query of the endpoint's own stays."""
    query = query_of(scopes=("a", "b"), resource="https://x.example/mcp")
    changing = ("state", "code_challenge")
    assert {name: value for name, value in query.items() if name not in changing} == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "me",
        "redirect_uri": HOME,
        "code_challenge_method": "S256",
        "scope": "a b",
        "resource": "https://x.example/mcp",
    }


def test_what_is_not_chosen_is_left_out() -> None:
    """No empty scope, no resource."""
    assert not {"scope", "resource", "prompt"} & query_of(scopes=()).keys()


def test_parameters_of_the_config_come_along() -> None:
    """Where they are not the request's own; consent is asked for where a refresh token needs it."""
    query = query_of(scopes=("offline_access",), params={"audience": "x", "state": "evil", "client_id": "evil"})
    assert (query["audience"], query["client_id"], query["prompt"]) == ("x", "me", "consent")
    assert query["state"] != "evil"
    assert query_of(scopes=("offline_access",), params={"prompt": "login"})["prompt"] == "login"


def test_each_request_is_another() -> None:
    """State and verifier are long, random, and in no repr."""
    made = [build_authorization_request(server_with(), CLIENT, redirect_uri=HOME) for _ in range(2)]
    assert made[0].state != made[1].state
    assert made[0].verifier != made[1].verifier
    assert 43 <= len(made[0].verifier) <= 128
    assert made[0].state not in repr(made[0])
    # RFC 7636, appendix B.
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.parametrize("methods", [None, (), ("plain",), ("s256",)])
def test_a_server_without_pkce_is_refused(methods: tuple[str, ...] | None) -> None:
    """Also where its metadata do not say; that is a rule since 2025-11-25."""
    with pytest.raises(DiscoveryFailed) as failed:
        build_authorization_request(server_with(code_challenge_methods=methods), CLIENT, redirect_uri=HOME)
    assert failed.value.rule == PKCE_RULE


def test_a_server_without_an_authorization_endpoint_is_refused() -> None:
    """There is nowhere to send a person."""
    with pytest.raises(DiscoveryFailed, match="no authorization endpoint"):
        build_authorization_request(server_with(authorization_endpoint=None), CLIENT, redirect_uri=HOME)


@pytest.mark.parametrize(
    "pasted",
    [
        f"{HOME}?code=c%2F1&state=s",
        "  http://127.0.0.1:1/x?state=s&code=c%2F1#frag \n",
        "?code=c%2F1&state=s",
        "code=c%2F1&state=s",
    ],
)
def test_what_people_paste_is_read(pasted: str) -> None:
    """The whole address, or what stands behind its question mark."""
    assert read_query(pasted) == {"code": "c/1", "state": "s"}


@pytest.mark.parametrize(
    "pasted", ["", "c/1", HOME, "code=a&code=b&state=s", "x=" + "y" * 20000, "&".join(f"a{n}=1" for n in range(99))]
)
def test_what_is_no_answer_is_refused(pasted: str) -> None:
    """With words that say what to paste, or why not."""
    with pytest.raises(AuthorizationRefused):
        read_query(pasted)


@pytest.mark.parametrize(
    ("is_advertised", "iss", "is_taken"),
    [
        (True, ISSUER, True),
        (True, None, False),
        (True, "https://evil.example", False),
        (False, None, True),
        (False, ISSUER, True),
        (False, "https://evil.example", False),
        # Compared as plain texts: nothing is made alike first.
        (True, f"{ISSUER}/", False),
        (True, "https://AS.example", False),
        (True, f"{ISSUER}:443", False),
        (True, "", False),
    ],
)
@pytest.mark.parametrize("outcome", [{"code": "c"}, {"error": "access_denied", "error_description": "tulip"}])
def test_who_answers_must_be_who_was_asked(
    is_advertised: bool, iss: str | None, is_taken: bool, outcome: dict[str, str]
) -> None:
    """RFC 9207; of somebody else's answer not even the error is shown."""
    server = server_with(iss_parameter_supported=is_advertised)
    query = {"state": "s", **outcome} | ({} if iss is None else {"iss": iss})
    if is_taken and "code" in outcome:
        assert read_code(query, state="s", server=server) == "c"
        return
    with pytest.raises(AuthorizationRefused) as refused:
        read_code(query, state="s", server=server)
    assert ("tulip" in str(refused.value)) is is_taken
    assert refused.value.oauth_error == ("access_denied" if is_taken else "")


@pytest.mark.parametrize("state", ["", "other", "s ", "é"])
def test_another_state_is_refused(state: str) -> None:
    """Nothing of that answer is believed."""
    with pytest.raises(AuthorizationRefused, match="begin anew"):
        read_code({"code": "c", "state": state}, state="s", server=server_with())
    with pytest.raises(AuthorizationRefused, match="begin anew"):
        read_code({"error": "tulip"}, state="s", server=server_with())


def test_words_of_the_server_are_cut_and_in_one_line() -> None:
    """They are somebody else's."""
    query = {"state": "s", "error": "x", "error_description": "a\n\x1b[31mb" + "c" * 5000}
    with pytest.raises(AuthorizationRefused) as refused:
        read_code(query, state="s", server=server_with())
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_an_answer_without_a_code_is_refused() -> None:
    """An empty one is none."""
    with pytest.raises(AuthorizationRefused, match="no code"):
        read_code({"state": "s", "code": ""}, state="s", server=server_with())


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ({}, ()),
        ({"challenge_scope": "a b"}, ("a", "b")),
        ({"resource_scopes": ["c", "d"]}, ("c", "d")),
        ({"challenge_scope": "a", "resource_scopes": ["c"]}, ("a",)),
        ({"challenge_scope": "", "resource_scopes": ["c"]}, ()),
        # A new grant replaces the old one: step-up asks for the union.
        ({"challenge_scope": "b a", "earlier": ["a", "x"]}, ("a", "x", "b")),
        ({"challenge_scope": "a", "wanted": ["w", "a"]}, ("a", "w")),
        # What the config names is all.
        ({"configured": ["k"], "challenge_scope": "a", "earlier": ["x"], "wanted": ["w"]}, ("k", "w")),
        ({"configured": [], "challenge_scope": "a"}, ()),
    ],
)
def test_which_scopes_are_asked_for(given: dict[str, Any], scopes: tuple[str, ...]) -> None:
    """Those of the challenge, else those of the resource metadata, else none; with a scope for refresh tokens where
    the server lists it, and never that alone."""
    options: dict[str, Any] = {"configured": None, "challenge_scope": None, "resource_scopes": None, **given}
    assert choose_scopes(**options, server=server_with(scopes_supported=("zz",))) == scopes
    offering = server_with(scopes_supported=("zz", "offline_access"))
    assert choose_scopes(**options, server=offering) == ((*scopes, "offline_access") if scopes else ())
    assert choose_scopes(**options, server=offering, wants_refresh=False) == scopes
