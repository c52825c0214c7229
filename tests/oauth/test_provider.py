"""Sign-in with a real authorization server, oidc-provider: each way to a token, rotation, and revocation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from auth.issuer import private_key, public_jwk
from auth.provider import SECRET, browse, open_provider
from harness import LIMIT
from oauth.scripted import PRM, ScriptedServer, open_scripted, said
from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.oauth.authorization_request import build_authorization_request
from pegboard.oauth.authorization_response import read_code
from pegboard.oauth.device import DevicePending, authorize_device, poll_device
from pegboard.oauth.discovery import OAuthDiscovery, discover
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.oauth_client import OAuthClient, client_of_config, document_client
from pegboard.oauth.registration import client_metadata, register
from pegboard.oauth.revocation import revoke
from pegboard.oauth.scopes import choose_scopes
from pegboard.oauth.token_answer import ClientRefused, GrantRefused, TokenAnswer
from pegboard.oauth.token_request import client_credentials, exchange_code, refresh

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

HOME = "http://127.0.0.1:1/callback"
DOCUMENT = "https://gateway.example/client.json"
PATH = "/tenant/one"


@dataclass(frozen=True, slots=True)
class Parts:
    """A server with its resource metadata, and the issuer that signs in to it."""

    script: ScriptedServer
    issuer: str

    def spec(self, **settings: Any) -> ServerSpec:
        return self.script.spec(**settings)


@pytest.fixture(scope="module")
def parts() -> Generator[Parts]:
    """The issuer is under a path."""
    key = json.dumps(public_jwk("ES256", "k1"))
    with open_scripted() as script, open_provider(path=PATH, jwk=key, documents=script.url) as issuer:
        resource = {"resource": f"{script.url}/mcp", "authorization_servers": [issuer], "scopes_supported": ["mcp"]}
        script.answers[f"{PRM}/mcp"] = said(resource)
        script.answers["/client.json"] = said({**client_metadata([HOME]), "client_id": DOCUMENT})
        yield Parts(script, issuer)


async def found_by(parts: Parts, **settings: Any) -> tuple[Fetcher, OAuthDiscovery]:
    spec = parts.spec(**settings)
    fetcher = Fetcher.of(spec)
    return fetcher, await discover(spec, None, fetcher)


async def sign_in(fetcher: Fetcher, found: OAuthDiscovery, client: OAuthClient) -> TokenAnswer:
    """A person agrees in a browser."""
    server = found.authorization_server
    scopes = choose_scopes(configured=None, challenge_scope=None, resource_scopes=found.resource_scopes, server=server)
    asked = build_authorization_request(server, client, redirect_uri=HOME, scopes=scopes, resource=found.resource)
    code = read_code(await browse(asked.url), state=asked.state, server=server)
    return await exchange_code(
        *(fetcher, server, client), code=code, verifier=asked.verifier, redirect_uri=HOME, resource=found.resource
    )


def claims_of(answer: TokenAnswer) -> dict[str, object]:
    return jwt.decode(answer.access_token, options={"verify_signature": False})


async def test_an_issuer_under_a_path_is_found(parts: Parts) -> None:
    """By the third of its addresses, with all that it offers."""
    _, found = await found_by(parts)
    server = found.authorization_server
    assert (server.issuer, server.iss_parameter_supported) == (parts.issuer, True)
    assert server.client_id_metadata_document_supported
    assert "S256" in (server.code_challenge_methods or ())


async def test_a_registered_client_signs_in_and_its_refresh_tokens_rotate(parts: Parts) -> None:
    """The token is for the server; a refresh token that was used ends the whole grant."""
    fetcher, found = await found_by(parts)
    server = found.authorization_server
    client = await register(fetcher, server, HOME)
    first = await sign_in(fetcher, found, client)
    assert claims_of(first)["aud"] == found.resource
    assert first.refresh_token is not None
    second = await refresh(fetcher, server, client, refresh_token=first.refresh_token, resource=found.resource)
    assert claims_of(second)["aud"] == found.resource
    assert second.refresh_token not in {None, first.refresh_token}
    for token in (first.refresh_token, second.refresh_token):
        with pytest.raises(GrantRefused) as refused:
            await refresh(fetcher, server, client, refresh_token=token or "", resource=found.resource)
        assert refused.value.ends_grant


async def test_a_metadata_document_is_a_client(parts: Parts) -> None:
    """Nothing is registered: its id is where the document is."""
    fetcher, found = await found_by(parts)
    client = document_client(DOCUMENT, found.authorization_server, HOME)
    assert client is not None
    assert claims_of(await sign_in(fetcher, found, client))["client_id"] == DOCUMENT


async def test_a_code_is_good_once(parts: Parts) -> None:
    """And only with its verifier."""
    fetcher, found = await found_by(parts)
    server = found.authorization_server
    client = client_of_config(OAuthSettings(client_id="native"), server)
    assert client is not None
    asked = build_authorization_request(server, client, redirect_uri=HOME, scopes=["mcp"], resource=found.resource)
    code = read_code(await browse(asked.url), state=asked.state, server=server)

    async def exchange(verifier: str) -> TokenAnswer:
        return await exchange_code(fetcher, server, client, code=code, verifier=verifier, redirect_uri=HOME)

    with pytest.raises(GrantRefused):
        await exchange("x" * 43)
    assert (await exchange(asked.verifier)).access_token
    with pytest.raises(GrantRefused) as refused:
        await exchange(asked.verifier)
    assert refused.value.ends_grant


async def test_a_revoked_grant_is_at_its_end(parts: Parts) -> None:
    """The server took it back."""
    fetcher, found = await found_by(parts)
    server = found.authorization_server
    client = await register(fetcher, server, HOME)
    tokens = await sign_in(fetcher, found, client)
    assert tokens.refresh_token is not None
    assert await revoke(fetcher, server, client, refresh_token=tokens.refresh_token, access_token=None)
    with pytest.raises(GrantRefused) as refused:
        await refresh(fetcher, server, client, refresh_token=tokens.refresh_token)
    assert refused.value.ends_grant


async def test_a_machine_signs_in_by_a_secret(parts: Parts) -> None:
    """A wrong one is the client's fault."""
    fetcher, found = await found_by(parts)
    server = found.authorization_server

    def client_with(secret: str) -> OAuthClient:
        settings = OAuthSettings(client_id="machine", client_secret=secret)
        # As that client is registered there.
        only = replace(server, token_endpoint_auth_methods=("client_secret_post",))
        return client_of_config(settings, only) or pytest.fail("there is no client")

    answer = await client_credentials(fetcher, server, client_with(SECRET), scopes=["mcp"], resource=found.resource)
    assert claims_of(answer)["aud"] == found.resource
    with pytest.raises(ClientRefused):
        await client_credentials(fetcher, server, client_with("wrong"), resource=found.resource)


async def test_a_machine_signs_in_by_its_key(parts: Parts) -> None:
    """`private_key_jwt`; another key is refused."""
    fetcher, found = await found_by(parts)
    server = found.authorization_server

    def client_with(number: int) -> OAuthClient:
        key = private_key("ES256", number)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        made = client_of_config(OAuthSettings(client_id="signer", private_key=pem, key_id="k1"), server)
        assert made is not None
        return made

    answer = await client_credentials(fetcher, server, client_with(0), scopes=["mcp"], resource=found.resource)
    assert claims_of(answer)["client_id"] == "signer"
    with pytest.raises(ClientRefused):
        await client_credentials(fetcher, server, client_with(1), scopes=["mcp"], resource=found.resource)


async def test_a_person_agrees_on_another_device(parts: Parts) -> None:
    """Until then it is pending."""
    fetcher, found = await found_by(parts)
    server = found.authorization_server
    client = client_of_config(OAuthSettings(client_id="native"), server)
    assert client is not None
    begun = await authorize_device(fetcher, server, client, scopes=["mcp"], resource=found.resource)
    asking: dict[str, Any] = {"device_code": begun.device_code, "interval": begun.interval, "resource": found.resource}
    assert await poll_device(fetcher, server, client, **asking) == DevicePending(begun.interval)
    await agree(begun.verification_uri_complete or "")
    answer = await poll_device(fetcher, server, client, **asking)
    assert isinstance(answer, TokenAnswer)
    with pytest.raises(GrantRefused):
        await poll_device(fetcher, server, client, **asking)


async def agree(url: str) -> None:
    """Open the page for a code, confirm it, and follow where it leads."""
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        fields: dict[str, str] = {}
        for _ in range(10):
            answer = await (http.post(url, data=fields) if fields else http.get(url))
            while answer.has_redirect_location:
                url = urljoin(url, answer.headers["location"])
                answer = await http.get(url)
            found = dict(re.findall(r'name="(\w+)" value="([^"]*)"', answer.text))
            if "user_code" not in found:
                return
            fields, url = {**found, "confirm": "yes"} if "confirm" in answer.text else found, url.partition("?")[0]


async def test_many_requests_at_once_are_no_trouble(parts: Parts) -> None:
    """Each has a connection of its own."""
    fetcher, _ = await found_by(parts)
    url = f"{parts.issuer}/.well-known/openid-configuration"
    answers = await asyncio.gather(*(fetcher.get_json(url) for _ in range(20)))
    assert {answer.members["issuer"] for answer in answers} == {parts.issuer}
