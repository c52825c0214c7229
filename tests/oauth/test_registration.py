"""Who the gateway is at an authorization server: configured, a metadata document, or registered."""

from __future__ import annotations

from typing import Any

import pytest

from oauth.scripted import Said, ScriptedServer, said
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.oauth_client import OAuthClient, client_of_config, document_client, idp_client
from pegboard.oauth.registration import RegistrationRefused, register

pytestmark = pytest.mark.anyio

HOME = "http://127.0.0.1:7420/oauth/callback"


def server_of(script: ScriptedServer, **changes: Any) -> AuthorizationServer:
    found = AuthorizationServer.of(script.url, script.metadata(**changes))
    assert found is not None
    return found


def answer_with(script: ScriptedServer, status: int = 201, **members: Any) -> None:
    script.answers["/register"] = said({"client_id": "new", **members}, status)


async def refusal(script: ScriptedServer, server: AuthorizationServer | None = None) -> RegistrationRefused:
    with pytest.raises(RegistrationRefused) as refused:
        await register(Fetcher(script.url), server or server_of(script), HOME)
    return refused.value


async def test_a_registration_says_who_it_is(script: ScriptedServer) -> None:
    """A native client with a redirect to this machine, refresh tokens wanted."""
    answer_with(script)
    client = await register(Fetcher(script.url), server_of(script), HOME, scopes=["a", "b"])
    assert client == OAuthClient(client_id="new", issuer=script.url, source="registered", redirect_uri=HOME)
    assert script.asked[0].members == {
        "client_name": "Pegboard",
        "redirect_uris": [HOME],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": "a b",
    }


async def test_a_redirect_elsewhere_is_one_of_a_web_client(script: ScriptedServer) -> None:
    """As a gateway with an address of its own is."""
    answer_with(script)
    await register(Fetcher(script.url), server_of(script), "https://gateway.example/oauth/callback")
    assert script.asked[0].members["application_type"] == "web"


@pytest.mark.parametrize(
    ("offered", "members", "method"),
    [
        (None, {}, "none"),
        (["client_secret_post", "none"], {}, "none"),
        # Which is first in the list counts: some cannot do all that they list.
        (["client_secret_post", "client_secret_basic"], {"client_secret": "s"}, "client_secret_post"),
        (["client_secret_basic", "client_secret_post"], {"client_secret": "s"}, "client_secret_basic"),
        (["client_secret_post"], {"client_secret": "s"}, "client_secret_post"),
        # What the answer says counts.
        (None, {"client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}, "client_secret_post"),
        (["client_secret_basic"], {"token_endpoint_auth_method": "none"}, "none"),
        # A secret that nobody asked for is there to be used.
        (None, {"client_secret": "s"}, "client_secret_basic"),
        (["none", "client_secret_post"], {"client_secret": "s"}, "client_secret_post"),
        # Without a secret there is none to send.
        (["client_secret_basic"], {}, "none"),
    ],
)
async def test_how_a_registered_client_says_who_it_is(
    script: ScriptedServer, offered: list[str] | None, members: dict[str, Any], method: str
) -> None:
    """What the server offers, and what its answer says."""
    answer_with(script, **members)
    server = server_of(script, token_endpoint_auth_methods_supported=offered)
    client = await register(Fetcher(script.url), server, HOME)
    assert (client.auth_method, client.client_secret) == (method, members.get("client_secret"))


async def test_only_grants_that_are_offered_are_asked_for(script: ScriptedServer) -> None:
    """Strict servers refuse the rest."""
    answer_with(script)
    server = server_of(script, grant_types_supported=["authorization_code"])
    await register(Fetcher(script.url), server, HOME)
    assert script.asked[0].members["grant_types"] == ["authorization_code"]


@pytest.mark.parametrize(("said_expiry", "expiry"), [(0, None), (None, None), (5, 5.0), ("x", None), (True, None)])
async def test_a_secret_may_expire(script: ScriptedServer, said_expiry: Any, expiry: float | None) -> None:
    """Zero is never."""
    answer_with(script, client_secret="s", client_secret_expires_at=said_expiry)
    client = await register(Fetcher(script.url), server_of(script), HOME)
    assert client.secret_expires_at == expiry
    assert client.is_expired(6) is (expiry is not None)


@pytest.mark.parametrize(
    ("answer", "is_away"),
    [
        (said({"error": "invalid_redirect_uri", "error_description": "no\nloopback"}, 400), False),
        (said({}, 201), False),
        (Said(403, b"<html>"), False),
        (Said(503, b"<html>"), True),
        (said({}, 429), True),
    ],
)
async def test_a_refused_registration_says_what_to_do(script: ScriptedServer, answer: Said, is_away: bool) -> None:
    """To register by hand; or to come back."""
    script.answers["/register"] = answer
    refused = await refusal(script)
    assert refused.is_away is is_away
    assert ("oauth.clientId" in str(refused)) is not is_away
    assert "\n" not in str(refused)


async def test_a_server_that_registers_nobody_says_what_to_do(script: ScriptedServer) -> None:
    """GitHub, Slack and Entra have no registration."""
    assert "--client-id" in str(await refusal(script, server_of(script, registration_endpoint=None)))
    only = server_of(script, token_endpoint_auth_methods_supported=["tls_client_auth"])
    assert "tls_client_auth" in str(await refusal(script, only))
    assert script.asked == []


def test_a_configured_client_sends_its_secret_as_the_server_wants_it(script: ScriptedServer) -> None:
    """In the header unless only the form is offered; with a key by an assertion."""
    settings = OAuthSettings(client_id="me", client_secret="s")
    post = server_of(script, token_endpoint_auth_methods_supported=["client_secret_post"])
    found = [client_of_config(settings, server, HOME) for server in (server_of(script), post)]
    assert [client and client.auth_method for client in found] == ["client_secret_basic", "client_secret_post"]
    key = client_of_config(OAuthSettings(client_id="me", private_key="pem"), post)
    assert key is not None
    assert (key.auth_method, key.source, key.issuer) == ("private_key_jwt", "configured", script.url)
    assert client_of_config(OAuthSettings(), post) is None
    public = client_of_config(OAuthSettings(client_id="me"), post)
    assert public is not None
    assert public.auth_method == "none"


def test_the_client_at_an_identity_provider_is_another(script: ScriptedServer) -> None:
    """Its secret is not sent where the other's belongs."""
    both = OAuthSettings(client_id="me", client_secret="s", idp_client_id="there", idp_client_secret="t")
    one = OAuthSettings(client_id="me", client_secret="s")
    public = OAuthSettings(client_id="me", client_secret="s", idp_client_id="there")
    found = [idp_client(settings, server_of(script)) for settings in (both, one, public)]
    assert [client and (client.client_id, client.client_secret) for client in found] == [
        ("there", "t"),
        ("me", "s"),
        ("there", None),
    ]


@pytest.mark.parametrize(
    ("url", "is_supported", "is_used"),
    [
        ("https://gateway.example/oauth/client.json", True, True),
        ("https://gateway.example/oauth/client.json", False, False),
        ("https://gateway.example/", True, False),
        ("http://127.0.0.1/client.json", True, False),
        ("https://gateway.example/a/../client.json", True, False),
        ("https://me@gateway.example/client.json", True, False),
        (None, True, False),
    ],
)
def test_a_metadata_document_is_a_client_where_it_is_taken(
    script: ScriptedServer, url: str | None, is_supported: bool, is_used: bool
) -> None:
    """An https address with a path, at a server that says that it takes such."""
    server = server_of(script, client_id_metadata_document_supported=is_supported)
    client = document_client(url, server, HOME)
    assert (client is not None) is is_used
    if client is not None:
        assert (client.client_id, client.auth_method, client.source) == (url, "none", "document")


def test_a_client_is_kept_and_read_again_and_shows_no_secret() -> None:
    """Its repr may end up in a log."""
    client = OAuthClient(client_id="me", issuer="i", source="registered", client_secret="tulip", private_key="tulip")
    assert OAuthClient.from_json(client.to_json()) == client
    assert "tulip" not in repr(client)
    with pytest.raises(ValueError, match="no client"):
        OAuthClient.from_json({"client_id": "me"})
