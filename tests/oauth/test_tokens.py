"""Requests to token endpoints, and what each answer means."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from auth.issuer import private_key
from oauth.scripted import Said, ScriptedServer, said
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.client_assertion import ASSERTION_TYPE
from pegboard.oauth.device import DeviceAuthorization, DevicePending, authorize_device, poll_device
from pegboard.oauth.discovery import DiscoveryFailed
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.revocation import revoke
from pegboard.oauth.token_answer import ClientRefused, GrantRefused, TokenAnswer, TokenEndpointAway, TokenRefused
from pegboard.oauth.token_request import (
    client_credentials,
    exchange_code,
    exchange_id_jag,
    jwt_bearer,
    refresh,
)
from pegboard.result import ToolFailure

pytestmark = pytest.mark.anyio

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
GOOD = {"access_token": "at", "token_type": "bearer", "expires_in": 60}


def server_of(script: ScriptedServer, **changes: Any) -> AuthorizationServer:
    found = AuthorizationServer.of(script.url, script.metadata(**changes))
    assert found is not None
    return found


def client_of(script: ScriptedServer, **changes: Any) -> OAuthClient:
    given: dict[str, Any] = {"client_id": "me", "issuer": script.url, "source": "configured"}
    return OAuthClient(**given | changes)


async def ask(script: ScriptedServer, answer: Said, **client: Any) -> TokenAnswer:
    script.answers["/token"] = answer
    made = client_of(script, **client)
    return await refresh(Fetcher(script.url), server_of(script), made, refresh_token="rt-tulip", resource="https://x")


async def refusal(script: ScriptedServer, answer: Said) -> TokenRefused:
    with pytest.raises(TokenRefused) as refused:
        await ask(script, answer)
    return refused.value


async def test_a_code_is_exchanged(script: ScriptedServer) -> None:
    """With its verifier, the redirect that it came to, and the resource."""
    script.answers["/token"] = said({**GOOD, "refresh_token": "rt", "scope": "a b", "id_token": "id"})
    found = await exchange_code(
        *(Fetcher(script.url), server_of(script), client_of(script)),
        code="c",
        verifier="v",
        redirect_uri="http://localhost:1/callback",
        resource="https://x.example",
    )
    assert found == TokenAnswer(
        access_token="at", expires_in=60.0, refresh_token="rt", scope="a b", token_type="bearer", id_token="id"
    )
    assert script.asked[0].form == {
        "grant_type": "authorization_code",
        "code": "c",
        "code_verifier": "v",
        "redirect_uri": "http://localhost:1/callback",
        "resource": "https://x.example",
        "client_id": "me",
    }
    assert "at" not in repr(found).split("=")


async def test_a_refresh_asks_for_what_was_granted(script: ScriptedServer) -> None:
    """With the resource, and without scopes."""
    await ask(script, said(GOOD))
    form = {"grant_type": "refresh_token", "refresh_token": "rt-tulip", "resource": "https://x", "client_id": "me"}
    assert script.asked[0].form == form


async def test_a_secret_in_the_header_stands_there_alone(script: ScriptedServer) -> None:
    """No `client_id` in the form, which strict servers refuse; both are encoded before they are joined."""
    await ask(script, said(GOOD), auth_method="client_secret_basic", client_id="m:e", client_secret="s/ä")
    asked = script.asked[0]
    assert not {"client_id", "client_secret"} & asked.form.keys()
    assert base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")) == b"m%3Ae:s%2F%C3%A4"


async def test_a_secret_in_the_form_stands_there_alone(script: ScriptedServer) -> None:
    """With the client's id, and no header."""
    await ask(script, said(GOOD), auth_method="client_secret_post", client_secret="s")
    asked = script.asked[0]
    assert (asked.form["client_id"], asked.form["client_secret"]) == ("me", "s")
    assert "authorization" not in asked.headers


@pytest.mark.parametrize("kind", ["RSA", "ES256", "ES384", "EdDSA"])
@pytest.mark.parametrize("is_one_line", [False, True])
async def test_a_key_says_who_the_client_is(script: ScriptedServer, kind: str, is_one_line: bool) -> None:
    """`private_key_jwt`: signed with what fits the key, for the issuer, once."""
    key = private_key(kind)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    pem = pem.replace("\n", "\\n") if is_one_line else pem
    for _ in range(2):
        await ask(script, said(GOOD), auth_method="private_key_jwt", private_key=pem, key_id="k1")
    forms = [asked.form for asked in script.asked]
    assert {form["client_assertion_type"] for form in forms} == {ASSERTION_TYPE}
    algorithm = {"RSA": "RS256"}.get(kind, kind)
    claims = [
        jwt.decode(form["client_assertion"], key.public_key(), [algorithm], audience=script.url) for form in forms
    ]
    assert claims[0]["iss"] == claims[0]["sub"] == "me"
    assert 0 < claims[0]["exp"] - claims[0]["iat"] <= 300
    assert claims[0]["jti"] != claims[1]["jti"]
    assert jwt.get_unverified_header(forms[0]["client_assertion"])["kid"] == "k1"


async def test_a_key_signs_with_what_the_server_takes(script: ScriptedServer) -> None:
    """As its metadata list; the config may choose."""
    pem = private_key("RSA").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    script.answers["/token"] = said(GOOD)
    server = server_of(script, token_endpoint_auth_signing_alg_values_supported=["ES256", "PS256"])
    for algorithm in (None, "RS512"):
        client = client_of(script, auth_method="private_key_jwt", private_key=pem, algorithm=algorithm)
        await client_credentials(Fetcher(script.url), server, client)
    used = [jwt.get_unverified_header(asked.form["client_assertion"])["alg"] for asked in script.asked]
    assert used == ["PS256", "RS512"]


@pytest.mark.parametrize("pem", ["", "tulip", "-----BEGIN PRIVATE KEY-----\ntulip\n-----END PRIVATE KEY-----"])
async def test_what_is_no_key_is_an_error_that_does_not_show_it(script: ScriptedServer, pem: str) -> None:
    """Nothing is sent."""
    with pytest.raises(ToolFailure) as failed:
        await ask(script, said(GOOD), auth_method="private_key_jwt", private_key=pem)
    assert "oauth.privateKey" in str(failed.value)
    assert "tulip" not in str(failed.value)
    assert script.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        said({}, 429, retry_after="7"),
        said({"error": "invalid_grant"}, 503),
        Said(500, b"oops"),
        Said(502, b"<html>"),
        Said(200, b"<html>"),
        Said(400, b"<html>"),
        Said(401, b""),
        said({}, 400),
        said({"access_token": ""}),
        said({"access_token": 5}),
        said({"error": "temporarily_unavailable"}, 400),
        said({"error": "server_error"}, 400),
    ],
)
async def test_who_cannot_say_now_ends_nothing(script: ScriptedServer, answer: Said) -> None:
    """Garbage, too many requests and errors of the server are no word about the grant."""
    refused = await refusal(script, answer)
    assert isinstance(refused, TokenEndpointAway)
    assert refused.error.retryable
    assert refused.error.retry_after == (7.0 if answer.status == 429 else 0.0)


@pytest.mark.parametrize("error", ["invalid_grant", "bad_refresh_token", "invalid_refresh_token", "login_required"])
@pytest.mark.parametrize("status", [200, 400, 401, 403])
async def test_a_grant_at_its_end_is_told(script: ScriptedServer, error: str, status: int) -> None:
    """By `invalid_grant`, or another server's word for it, with whatever status."""
    refused = await refusal(script, said({"error": error}, status))
    assert isinstance(refused, GrantRefused)
    assert refused.ends_grant


@pytest.mark.parametrize("error", ["invalid_scope", "invalid_request", "invalid_target", "unsupported_grant_type"])
async def test_a_refusal_of_something_else_ends_no_grant(script: ScriptedServer, error: str) -> None:
    """The refresh token may still be good."""
    refused = await refusal(script, said({"error": error}, 400))
    assert isinstance(refused, GrantRefused)
    assert not refused.ends_grant


@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client", "incorrect_client_credentials"])
async def test_a_client_that_is_not_known_is_told_apart(script: ScriptedServer, error: str) -> None:
    """It can be registered anew."""
    assert isinstance(await refusal(script, said({"error": error}, 401)), ClientRefused)


async def test_words_of_the_server_show_no_secret(script: ScriptedServer) -> None:
    """Some repeat what they were sent."""
    refused = await refusal(script, said({"error": "invalid_grant", "error_description": "bad rt-tulip here"}, 400))
    assert "tulip" not in str(refused)
    assert "here" in str(refused)


@pytest.mark.parametrize("token_type", ["DPoP", "mac"])
async def test_a_token_that_is_no_bearer_is_not_used(script: ScriptedServer, token_type: str) -> None:
    """It would be taken for more than it is."""
    refused = await refusal(script, said({**GOOD, "token_type": token_type}))
    assert isinstance(refused, GrantRefused)
    assert not refused.ends_grant


@pytest.mark.parametrize("token", ["a b", "a\r\nx: y", "ä", "\x00"])
async def test_a_token_that_cannot_stand_in_a_header_is_not_used(script: ScriptedServer, token: str) -> None:
    """It would end the header, and begin another."""
    assert isinstance(await refusal(script, said({**GOOD, "access_token": token})), GrantRefused)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(60, 60.0), ("60", 60.0), (1.5, 1.5), (0, None), (-5, None), ("x", None), (True, None), (None, None), ([], None)],
)
async def test_lifetimes_are_read_as_servers_write_them(
    script: ScriptedServer, written: Any, seconds: float | None
) -> None:
    """As a number, or as a text; what is none is unknown."""
    assert (await ask(script, said({**GOOD, "expires_in": written}))).expires_in == seconds


async def test_a_machine_gets_a_token_for_itself(script: ScriptedServer) -> None:
    """With its scopes and the resource."""
    script.answers["/token"] = said(GOOD)
    client = client_of(script, auth_method="client_secret_basic", client_secret="s")
    await client_credentials(
        Fetcher(script.url), server_of(script), client, scopes=["a", "b"], resource="https://x.example"
    )
    form = {"grant_type": "client_credentials", "scope": "a b", "resource": "https://x.example"}
    assert script.asked[0].form == form


async def test_an_id_token_becomes_an_access_token_in_two_steps(script: ScriptedServer) -> None:
    """RFC 8693 at the identity provider, then RFC 7523 at the server's authorization server."""
    script.answers["/idp/token"] = said({"access_token": "jag", "issued_token_type": ID_JAG, "token_type": "N_A"})
    script.answers["/token"] = said(GOOD)
    idp = AuthorizationServer.of(f"{script.url}/idp", script.metadata("/idp"))
    assert idp is not None
    fetcher, server = Fetcher(script.url), server_of(script)
    jag = await exchange_id_jag(
        *(fetcher, idp, client_of(script, client_id="there")),
        id_token="id",
        audience=server.issuer,
        resource="https://x.example",
        scopes=["a"],
    )
    found = await jwt_bearer(fetcher, server, client_of(script), assertion=jag, scopes=["a"])
    assert found.access_token == "at"
    assert script.asked[0].form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": ID_JAG,
        "audience": script.url,
        "resource": "https://x.example",
        "scope": "a",
        "subject_token": "id",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "client_id": "there",
    }
    assert script.asked[1].form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "jag",
        "scope": "a",
        "client_id": "me",
    }


async def test_another_token_is_no_id_jag(script: ScriptedServer) -> None:
    """An access token of the identity provider goes nowhere."""
    kind = "urn:ietf:params:oauth:token-type:access_token"
    script.answers["/token"] = said({"access_token": "x", "issued_token_type": kind, "token_type": "Bearer"})
    with pytest.raises(GrantRefused):
        await exchange_id_jag(
            *(Fetcher(script.url), server_of(script), client_of(script)), id_token="id", audience="https://as.example"
        )


async def test_a_workload_needs_no_client(script: ScriptedServer) -> None:
    """Its JWT says who it is."""
    script.answers["/token"] = said(GOOD)
    await jwt_bearer(Fetcher(script.url), server_of(script), None, assertion="workload")
    assert "client_id" not in script.asked[0].form


async def test_a_device_code_is_shown_and_asked_for(script: ScriptedServer) -> None:
    """Pending, slower, then a token."""
    fetcher, server, client = Fetcher(script.url), server_of(script), client_of(script)
    script.answers["/device"] = said(
        {
            "device_code": "dc",
            "user_code": "ABCD-EFGH",
            "verification_uri": f"{script.url}/device",
            "verification_uri_complete": "javascript:alert(1)",
            "expires_in": 300,
        }
    )
    begun = await authorize_device(fetcher, server, client, scopes=["a"], resource="https://x.example")
    assert begun == DeviceAuthorization(
        device_code="dc", user_code="ABCD-EFGH", verification_uri=f"{script.url}/device", expires_in=300.0
    )
    assert script.asked[0].form == {"scope": "a", "resource": "https://x.example", "client_id": "me"}

    async def poll(answer: Said, interval: float = 5.0) -> TokenAnswer | DevicePending:
        script.answers["/token"] = answer
        return await poll_device(fetcher, server, client, device_code="dc", interval=interval)

    assert await poll(said({"error": "authorization_pending"}, 400)) == DevicePending(5.0)
    assert await poll(said({"error": "slow_down"}, 400)) == DevicePending(10.0)
    assert await poll(Said(503, b"")) == DevicePending(10.0)
    assert await poll(said({}, 429, retry_after="30")) == DevicePending(30.0)
    assert await poll(Said(503, b""), 50.0) == DevicePending(60.0)
    found = await poll(said(GOOD))
    assert isinstance(found, TokenAnswer)
    assert script.asked[-1].form["device_code"] == "dc"
    for error in ("expired_token", "access_denied"):
        with pytest.raises(GrantRefused) as refused:
            await poll(said({"error": error}, 400))
        assert refused.value.ends_grant


@pytest.mark.parametrize(
    "answer",
    [
        said({"device_code": "dc", "user_code": "x", "verification_uri": "javascript:alert(1)"}),
        said({"device_code": "dc", "user_code": "x"}),
        said({"user_code": "x", "verification_uri": "https://x.example"}),
        said({"error": "invalid_scope"}, 400),
        Said(404, b""),
    ],
)
async def test_a_device_flow_that_cannot_begin_is_refused(script: ScriptedServer, answer: Said) -> None:
    """No address, or none that may be opened."""
    script.answers["/device"] = answer
    with pytest.raises(TokenRefused):
        await authorize_device(Fetcher(script.url), server_of(script), client_of(script))


async def test_a_server_without_a_device_flow_says_so(script: ScriptedServer) -> None:
    """Nothing is asked."""
    server = server_of(script, device_authorization_endpoint=None)
    with pytest.raises(DiscoveryFailed, match="device"):
        await authorize_device(Fetcher(script.url), server, client_of(script))


async def test_tokens_are_given_back(script: ScriptedServer) -> None:
    """The refresh token first; a server that cannot take them is no failure."""
    fetcher, server, client = Fetcher(script.url), server_of(script), client_of(script)
    script.answers["/revoke"] = Said(200, b"")
    assert await revoke(fetcher, server, client, refresh_token="rt", access_token="at")
    assert [(asked.form["token"], asked.form["token_type_hint"]) for asked in script.asked] == [
        ("rt", "refresh_token"),
        ("at", "access_token"),
    ]
    script.answers["/revoke"] = said({"error": "unsupported_token_type"}, 400)
    assert not await revoke(fetcher, server, client, refresh_token="rt", access_token=None)
    without = server_of(script, revocation_endpoint=None)
    assert not await revoke(fetcher, without, client, refresh_token="rt", access_token="at")
    assert not await revoke(fetcher, server, client, refresh_token=None, access_token=None)


async def test_an_endpoint_that_is_not_there_is_away() -> None:
    """Its host answers nobody."""
    url = "http://127.0.0.1:9"
    server = AuthorizationServer(issuer=url, token_endpoint=f"{url}/token", revocation_endpoint=f"{url}/revoke")
    client = OAuthClient(client_id="me", issuer=url, source="configured")
    with pytest.raises(TokenEndpointAway):
        await refresh(Fetcher(url), server, client, refresh_token="rt")
    assert not await revoke(Fetcher(url), server, client, refresh_token="rt", access_token=None)


async def test_requests_do_not_wait_for_each_other(script: ScriptedServer) -> None:
    """One that keeps silent holds up nobody."""
    script.answers["/slow"] = Said(is_silent=True)
    silent = asyncio.create_task(Fetcher(script.url).get_json(f"{script.url}/slow"))
    assert (await ask(script, said(GOOD))).access_token == "at"
    silent.cancel()
    with pytest.raises(asyncio.CancelledError):
        await silent
