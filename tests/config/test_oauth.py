"""The `oauth` section of a server's entry, in the words of every client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.config import ServerSpec, parse_settings
from pegboard.config.aliases import with_own_keys
from pegboard.config.entry_effects import entry_effects
from pegboard.config.literal_secrets import literal_secrets, mask_entry
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.config.review import overview, review

ENVIRONMENT = {"SECRET": "tulip-secret", "ISSUER": "https://as.example"}
URL = "https://docs.example/mcp"
KEY = "-----BEGIN PRIVATE KEY-----\ntuliptulip\n-----END PRIVATE KEY-----"


def read(**entry: Any) -> ServerSpec:
    text = json.dumps({"mcpServers": {"docs": {"url": URL, **entry}}})
    return parse_settings(text, Path("/x/pegboard.json"), ENVIRONMENT).servers["docs"]


def oauth(**entry: Any) -> OAuthSettings:
    spec = read(**entry)
    assert spec.problem is None
    assert spec.oauth
    return spec.oauth


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        # Claude Code.
        (
            {"oauth": {"clientId": "me", "callbackPort": 3118, "authServerMetadataUrl": URL, "scopes": "a b"}},
            {"client_id": "me", "callback_port": 3118, "auth_server_metadata_url": URL, "scopes": ("a", "b")},
        ),
        ({"oauth": {"client_id": "me", "callback_port": 1}}, {"client_id": "me", "callback_port": 1}),
        # Cursor.
        (
            {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${SECRET}", "scopes": ["a", "b"]}},
            {"client_id": "me", "client_secret": "tulip-secret", "scopes": ("a", "b")},
        ),
        # Codex.
        ({"scopes": ["a"], "oauth_resource": URL}, {"scopes": ("a",), "resource": URL}),
        # OpenCode.
        (
            {"oauth": {"clientId": "me", "clientSecret": "${env:SECRET}", "scope": "a b"}},
            {"client_id": "me", "client_secret": "tulip-secret", "scopes": ("a", "b")},
        ),
        # Gemini CLI.
        (
            {
                "oauth": {
                    "enabled": True,
                    "clientId": "me",
                    "authorizationUrl": f"{URL}/a",
                    "tokenUrl": f"{URL}/t",
                    "scopes": ["a"],
                    "audiences": ["x", "y"],
                    "redirectUri": "http://localhost:7777/oauth/callback",
                    "tokenParamName": "token",
                }
            },
            {
                "client_id": "me",
                "authorization_endpoint": f"{URL}/a",
                "token_endpoint": f"{URL}/t",
                "scopes": ("a",),
                "params": {"audience": "x y"},
                "redirect_uri": "http://localhost:7777/oauth/callback",
            },
        ),
        # All that is Pegboard's own.
        (
            {
                "oauth": {
                    "clientId": "me",
                    "privateKey": KEY,
                    "algorithm": "ES256",
                    "keyId": "k",
                    "flow": "client_credentials",
                    "issuer": "${ISSUER}/t",
                    "resource": False,
                    "params": {"audience": "${ISSUER}", "n": 1},
                    "allowHttp": True,
                    "clientMetadataUrl": "https://me.example/client.json",
                }
            },
            {
                "client_id": "me",
                "private_key": KEY,
                "algorithm": "ES256",
                "key_id": "k",
                "flow": "client_credentials",
                "issuer": "https://as.example/t",
                "resource": False,
                "params": {"audience": "https://as.example", "n": "1"},
                "allow_http": True,
                "client_metadata_url": "https://me.example/client.json",
            },
        ),
        (
            {
                "oauth": {
                    "flow": "id-jag",
                    "assertion": "x",
                    "idpIssuer": URL,
                    "idpClientId": "i",
                    "idpClientSecret": "s",
                }
            },
            {"flow": "id_jag", "assertion": "x", "idp_issuer": URL, "idp_client_id": "i", "idp_client_secret": "s"},
        ),
        ({"oauth": {"grantType": "authorization_code"}}, {"flow": "browser"}),
        ({"oauth": {"flow": "device", "per": "user"}}, {"flow": "device", "per": "user"}),
        ({"oauth": {"scopes": []}}, {"scopes": ()}),
        ({"oauth": {}}, {}),
    ],
)
def test_the_section_is_read_in_every_spelling(entry: dict[str, Any], meant: dict[str, Any]) -> None:
    """Whoever's snippet it is; variables are filled in."""
    assert oauth(**entry) == OAuthSettings(**meant)


@pytest.mark.parametrize("entry", [{"oauth": False}, {"oauth": {"enabled": False, "clientId": "me"}}])
def test_a_sign_in_can_be_switched_off(entry: dict[str, Any]) -> None:
    """By OpenCode's word, and by Gemini's."""
    spec = read(**entry)
    assert spec.oauth is False
    assert not spec.signs_in


def test_without_the_section_the_server_decides() -> None:
    """A sign-in is found out by what it answers; the words of others that mean nothing here do no harm."""
    for entry in ({}, {"oauth": True}, {"oauth": None}, {"auth": "oauth"}, {"auth": None}):
        spec = read(**entry)
        assert (spec.oauth, spec.problem, spec.signs_in) == (None, None, True)


def test_credentials_of_the_entry_itself_win() -> None:
    """A header, or a name in the address; and a command has nothing to sign in to."""
    assert not read(headers={"authorization": "Bearer x"}, oauth={"clientId": "me"}).signs_in
    assert not read(url="https://me:pw@docs.example/mcp").signs_in
    assert not read(url=None, command="npx").signs_in
    assert read(headers={"X-Key": "x"}).signs_in


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("yes", "must be an object or false"),
        ({"clientID ": "x", "cllientId": "x"}, 'is not a key: use "clientId"'),
        ({"clientId": 5}, "must be a text"),
        ({"callbackPort": 0}, "must be between 1 and 65535"),
        ({"callbackPort": "3118"}, "must be a whole number"),
        ({"scopes": {"a": 1}}, "must be a list of texts"),
        ({"flow": "magic"}, "must be one of browser, device"),
        ({"per": "tab"}, "must be one of gateway, user"),
        ({"algorithm": "HS256"}, "must be one of RS256"),
        ({"issuer": "as.example"}, "must be an http:// or https:// address"),
        ({"clientMetadataUrl": "https://me.example"}, "must have a path"),
        ({"clientMetadataUrl": "http://me.example/x"}, "must begin with https://"),
        ({"redirectUri": "http://me.example/x"}, "must begin with https://, unless"),
        ({"resource": True}, "must be a text or false"),
        ({"params": {"state": "x"}}, "has state, which Pegboard sets itself"),
        ({"clientSecret": "x"}, "no clientId"),
        ({"privateKey": "x"}, "no clientId"),
        ({"flow": "client_credentials", "clientId": "me"}, "needs clientId, and clientSecret or privateKey"),
        ({"flow": "jwt_bearer"}, "needs an assertion"),
        ({"flow": "id_jag", "assertion": "x"}, "needs idpIssuer or idpTokenEndpoint"),
        ({"flow": "jwt_bearer", "assertion": "x", "per": "user"}, "needs a person"),
        ({"clientId": "${NOT_SET}"}, "set NOT_SET"),
        ({"issuer": "${SECRET}"}, "oauth.issuer must be an http:// or https:// address"),
    ],
)
def test_a_mistake_is_the_servers_own_problem(section: Any, reason: str) -> None:
    """It is told with its place; the others go on."""
    problem = read(oauth=section).problem
    assert problem is not None
    assert reason in problem
    assert "tulip" not in problem


def test_its_secrets_are_in_no_text() -> None:
    """Neither in a repr nor in what is said about the server."""
    secrets = {"clientId": "me", "clientSecret": "tulip-one", "privateKey": KEY, "idpClientSecret": "tulip-two"}
    spec = read(oauth={**secrets, "assertion": "tulip-three", "params": {"api_key": "tulip-four"}})
    assert "tulip" not in repr(spec)
    for text in ("tulip-one", "tulip-two", "tulip-three", "tulip-four", "tuliptulip", KEY):
        assert "tulip" not in spec.redactor.clean(f"a {text} b")


SECTION = {"clientId": "me", "clientSecret": "tulip", "privateKey": "${KEY}", "tokenEndpoint": "https://as.example/t"}


@pytest.mark.parametrize("entry", [{"oauth": SECTION}, {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "tulip"}}])
def test_secrets_that_stand_in_an_entry_are_named_and_masked(entry: dict[str, Any]) -> None:
    """In any spelling; variables, and where things are sent, are shown."""
    assert literal_secrets({"url": URL, **entry}) == ["oauth clientSecret"]
    shown = json.dumps(mask_entry({"url": URL, **entry}))
    assert "tulip" not in shown
    assert '"me"' in shown
    lines = "\n".join(entry_effects({"url": URL, **entry}))
    assert "tulip" not in lines
    assert ("https://as.example/t" in lines) is ("oauth" in entry)
    assert ("gets KEY of your environment: it goes to docs.example" in lines) is ("oauth" in entry)


def test_whoever_trusts_a_file_sees_the_section() -> None:
    """Each member in a line, secrets hidden, and which variables go out."""
    lines = overview(review(json.dumps({"mcpServers": {"docs": {"url": URL, "oauth": SECTION}}})))
    text = "\n".join(lines)
    assert "oauth clientId=me" in text
    assert "oauth tokenEndpoint=https://as.example/t" in text
    assert "$KEY of your environment goes to server docs" in text
    assert "tulip" not in text
    assert "mean nothing here" not in text


def test_two_spellings_of_the_same_entry_are_the_same() -> None:
    """So that the same server is known again."""
    cursor = {"url": URL, "auth": {"CLIENT_ID": "me", "scopes": ["a"]}}
    assert with_own_keys(cursor) == {"url": URL, "oauth": {"clientId": "me", "scopes": ["a"]}}
    assert with_own_keys({"url": URL, "scopes": ["a"]}) == {"url": URL, "oauth": {"scopes": ["a"]}}
    assert with_own_keys({"url": URL}) == {"url": URL}


@pytest.mark.parametrize(("key", "meant"), [("client", "clientId"), ("scop", "scopes"), ("dynamicRegistration", None)])
def test_a_key_that_is_none_is_remarked_with_the_nearest(key: str, meant: str | None) -> None:
    """The server works on; a key that is like none of ours may be another client's, and nothing is said of it."""
    text = json.dumps({"mcpServers": {"docs": {"url": URL, "oauth": {key: "x"}}}})
    settings = parse_settings(text, Path("/x/pegboard.json"), ENVIRONMENT)
    said = () if meant is None else (f'server "docs": oauth.{key} is not a key: did you mean "{meant}"?',)
    assert (settings.servers["docs"].problem, settings.remarks) == (None, said)
