"""Discovery: from a server that asks for a sign-in to its authorization server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
)
from mcp.shared.auth_utils import check_resource_allowed

from oauth.scripted import METADATA, OPENID, PRM, Said, ScriptedServer, said
from pegboard.oauth.authorization_server import AuthorizationServer, metadata_addresses
from pegboard.oauth.discovery import (
    ENDPOINT_RULE,
    FIND_SERVER_RULE,
    ISSUER_RULE,
    RESOURCE_RULE,
    DiscoveryFailed,
    DiscoveryStep,
    OAuthDiscovery,
    discover,
    discover_issuer,
    is_same_issuer,
)
from pegboard.oauth.fetching import Fetcher, FetchFailed
from pegboard.oauth.resource_metadata import covers, resource_metadata_addresses
from pegboard.servers.authorization import Challenge

pytestmark = pytest.mark.anyio


async def find(
    script: ScriptedServer, said_at: str | None = None, path: str = "/mcp", **settings: Any
) -> OAuthDiscovery:
    spec = script.spec(path, **settings)
    challenge = None if said_at is None else Challenge(401, True, resource_metadata=said_at)
    return await discover(spec, challenge, Fetcher.of(spec))


async def failure(script: ScriptedServer, **settings: Any) -> DiscoveryFailed:
    with pytest.raises(DiscoveryFailed) as failed:
        await find(script, **settings)
    return failed.value


async def test_resource_metadata_lead_to_the_authorization_server(script: ScriptedServer) -> None:
    """The way of 2025-06-18 and later; the resource is used as it is written."""
    script.protect(scopes_supported=["a", "b"])
    found = await find(script)
    assert (found.resource, found.resource_scopes, found.is_fallback) == (f"{script.url}/mcp", ("a", "b"), False)
    server = found.authorization_server
    assert (server.issuer, server.token_endpoint) == (script.url, f"{script.url}/token")
    assert script.paths == [f"{PRM}/mcp", METADATA]


async def test_the_challenge_says_where_the_resource_metadata_are(script: ScriptedServer) -> None:
    """And nowhere else is asked."""
    script.protect()
    script.answers["/meta"] = script.answers.pop(f"{PRM}/mcp")
    await find(script, f"{script.url}/meta")
    assert script.paths == ["/meta", METADATA]


@pytest.mark.parametrize("status", [404, 401, 405])
async def test_an_address_of_the_challenge_without_metadata_is_no_end(script: ScriptedServer, status: int) -> None:
    """The well-known ones are asked next: that of the path, then that of the origin."""
    script.protect("")
    script.answers["/meta"] = said({}, status)
    found = await find(script, f"{script.url}/meta")
    assert found.resource == script.url
    assert script.paths == ["/meta", f"{PRM}/mcp", PRM, METADATA]


@pytest.mark.parametrize("said_url", [None, "https://x.example/meta"])
@pytest.mark.parametrize("url", ["https://x.example", "https://x.example/", "https://x.example:8/mcp", "https://x/a/b"])
def test_the_addresses_of_resource_metadata_are_those_of_the_sdk(said_url: str | None, url: str) -> None:
    """In the same order."""
    assert resource_metadata_addresses(url, said_url) == build_protected_resource_metadata_discovery_urls(said_url, url)


@pytest.mark.parametrize("issuer", ["https://x.example", "https://x.example/", "https://x.example/t/1", "https://x/t/"])
def test_the_addresses_of_metadata_are_those_of_the_sdk(issuer: str) -> None:
    """Two for an issuer without a path, three for one with a path."""
    assert metadata_addresses(issuer) == build_oauth_authorization_server_metadata_discovery_urls(issuer, "")


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/mcp/", "/mcp/v1", "/mcp1", "/other"])
@pytest.mark.parametrize("resource", ["", "/", "/mcp", "/mcp/", "/mcp/v1"])
def test_which_resource_fits_a_server_is_as_in_the_sdk(path: str, resource: str) -> None:
    """Its own path, or one above."""
    server, named = f"https://x.example{path}", f"https://x.example{resource}"
    assert covers(named, server) is check_resource_allowed(server, named)


@pytest.mark.parametrize("other", ["https://y.example", "http://x.example", "https://x.example:8443", "x", "https://["])
def test_a_resource_of_another_origin_fits_none(other: str) -> None:
    """Whatever its path; a default port and capitals make no other origin."""
    assert not covers(other, "https://x.example/mcp")
    assert covers("https://X.example:443", "https://x.example/mcp")


async def test_metadata_of_another_resource_are_not_used(script: ScriptedServer) -> None:
    """They would get a token for somebody else; there is no other way round them."""
    script.protect(resource="https://other.example/mcp")
    script.answers[PRM] = said({"resource": script.url, "authorization_servers": [script.url]})
    assert (await failure(script)).rule == RESOURCE_RULE
    assert METADATA not in script.paths


@pytest.mark.parametrize("path", ["", "/tenant/1"])
@pytest.mark.parametrize("kind", [METADATA, OPENID, "appended"])
async def test_metadata_are_found_at_each_address(script: ScriptedServer, path: str, kind: str) -> None:
    """OAuth's, then OpenID Connect's, inserted before the path of the issuer or appended to it."""
    at = f"{path}{OPENID}" if kind == "appended" else f"{kind}{path}"
    script.protect(authorization_servers=[f"{script.url}{path}"])
    script.answers.pop(METADATA)
    script.answers[at] = said(script.metadata(path))
    server = (await find(script)).authorization_server
    assert server.issuer == f"{script.url}{path}"
    assert (
        script.paths[1:]
        == [each.removeprefix(script.url) for each in metadata_addresses(server.issuer)][: script.paths.index(at)]
    )


@pytest.mark.parametrize("issuer", ["https://evil.example", "URL/other", "URL/tenant/", "", None])
async def test_metadata_of_another_issuer_are_not_used(script: ScriptedServer, issuer: str | None) -> None:
    """Compared as plain texts, so that nobody gets what is another's."""
    script.protect(authorization_servers=[f"{script.url}/tenant"])
    said_issuer = issuer.replace("URL", script.url) if issuer else issuer
    script.answers[f"{METADATA}/tenant"] = said(script.metadata("/tenant", issuer=said_issuer))
    assert (await failure(script)).rule == ISSUER_RULE


async def test_the_slash_of_an_origin_makes_no_other_issuer(script: ScriptedServer) -> None:
    """Frameworks add it to addresses without a path; what the metadata say is what answers are compared with."""
    script.protect(authorization_servers=[f"{script.url}/"])
    assert (await find(script)).authorization_server.issuer == script.url
    assert not is_same_issuer("https://x.example/a", "https://x.example/a/")
    assert not is_same_issuer("https://x.example", "https://x.example//")


async def test_the_next_authorization_server_is_tried(script: ScriptedServer) -> None:
    """The first one that can be used is."""
    servers = ["ftp://x", "http://10.0.0.1/", f"{script.url}/gone", f"{script.url}/good"]
    script.protect(authorization_servers=servers)
    script.answers[f"{METADATA}/good"] = said(script.metadata("/good"))
    assert (await find(script)).authorization_server.issuer == f"{script.url}/good"


async def test_a_server_of_2025_03_26_is_its_own_authorization_server(script: ScriptedServer) -> None:
    """With metadata at its origin."""
    script.answers[METADATA] = said(script.metadata(token_endpoint=f"{script.url}/oauth/t"))
    found = await find(script, path="/deep/mcp")
    assert (found.resource, found.is_fallback) == (None, True)
    assert found.authorization_server.token_endpoint == f"{script.url}/oauth/t"


async def test_without_any_metadata_the_endpoints_have_fixed_names(script: ScriptedServer) -> None:
    """As 2025-03-26 has them, at the origin."""
    found = await find(script, path="/deep/mcp")
    assert found.authorization_server == AuthorizationServer.at_origin(script.url)
    assert found.authorization_server.authorization_endpoint == f"{script.url}/authorize"


async def test_an_old_server_gets_nobody_elses_credentials(script: ScriptedServer) -> None:
    """Whatever issuer it says it is, clients and grants are kept for its origin."""
    script.answers[METADATA] = said(script.metadata(issuer="https://accounts.example"))
    assert (await find(script)).authorization_server.issuer == script.url


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("at", [f"{PRM}/mcp", METADATA])
async def test_who_is_away_is_not_taken_for_somebody_without_metadata(
    script: ScriptedServer, at: str, status: int
) -> None:
    """It is tried again later instead of with other rules."""
    script.protect()
    script.answers[at] = said({}, status)
    with pytest.raises(FetchFailed) as failed:
        await find(script)
    assert failed.value.is_away


@pytest.mark.parametrize(
    "answer", [Said(200, b"<html>"), said([]), said({"resource": 5}), said({"authorization_servers": ["x"]})]
)
async def test_what_is_no_resource_metadata_is_passed_over(script: ScriptedServer, answer: Said) -> None:
    """A page that a web site has for every address, for instance."""
    script.protect("")
    script.answers[f"{PRM}/mcp"] = answer
    assert (await find(script)).resource == script.url


async def test_a_broken_address_of_the_challenge_is_named(script: ScriptedServer) -> None:
    """Where there is nothing else, it is what went wrong, and no old rules apply."""
    with pytest.raises(DiscoveryFailed, match="169"):
        await find(script, "https://169.254.169.254/meta")


@pytest.mark.parametrize("endpoint", ["http://as.example/x", "javascript:alert(1)", "https://a:b@as.example/x"])
@pytest.mark.parametrize("key", ["authorization_endpoint", "token_endpoint"])
async def test_endpoints_must_be_safe_addresses(script: ScriptedServer, key: str, endpoint: str) -> None:
    """Else nothing of that server is used."""
    script.protect()
    script.answers[METADATA] = said(script.metadata(**{key: endpoint}))
    assert (await failure(script)).rule == ENDPOINT_RULE


async def test_endpoints_of_the_config_must_be_safe_addresses(script: ScriptedServer) -> None:
    """As those that are found."""
    assert (await failure(script, token_endpoint="http://as.example/t")).rule == ENDPOINT_RULE


async def test_an_endpoint_that_is_not_needed_may_be_missing(script: ScriptedServer) -> None:
    """One that may not be asked counts as missing."""
    script.protect()
    script.answers[METADATA] = said(
        script.metadata(registration_endpoint="http://as.example/r", revocation_endpoint=None)
    )
    server = (await find(script)).authorization_server
    assert (server.registration_endpoint, server.revocation_endpoint) == (None, None)


async def test_an_authorization_server_without_metadata_is_an_error(script: ScriptedServer) -> None:
    """Its resource metadata say that it is there, so it is not one of 2025-03-26."""
    script.protect()
    script.answers.pop(METADATA)
    assert (await failure(script)).rule == FIND_SERVER_RULE


async def test_the_config_names_the_authorization_server(script: ScriptedServer) -> None:
    """By its metadata, its issuer or its endpoints; what the resource metadata say of it does not count."""
    script.protect(authorization_servers=["https://other.example"])
    script.answers["/my/metadata"] = said(script.metadata("/mine"))
    script.answers[f"{METADATA}/mine"] = said(script.metadata("/mine"))
    for settings in ({"auth_server_metadata_url": f"{script.url}/my/metadata"}, {"issuer": f"{script.url}/mine"}):
        found = await find(script, **settings)
        assert (found.authorization_server.issuer, found.resource) == (f"{script.url}/mine", f"{script.url}/mcp")
    endpoints = {"token_endpoint": f"{script.url}/t", "authorization_endpoint": f"{script.url}/a"}
    server = (await find(script, **endpoints)).authorization_server
    assert (server.token_endpoint, server.authorization_endpoint) == (f"{script.url}/t", f"{script.url}/a")
    wrong = {"auth_server_metadata_url": f"{script.url}/my/metadata", "issuer": "https://other.example"}
    assert (await failure(script, **wrong)).rule == ISSUER_RULE


@pytest.mark.parametrize(("setting", "resource"), [(False, None), ("api://x", "api://x"), (None, "URL/mcp")])
async def test_the_config_decides_about_the_resource(
    script: ScriptedServer, setting: Any, resource: str | None
) -> None:
    """Another one, or none where the authorization server cannot bear it."""
    script.protect()
    assert (await find(script, resource=setting)).resource == (resource and resource.replace("URL", script.url))


async def test_each_step_is_told_with_its_rule(script: ScriptedServer) -> None:
    """So that whoever looks for the fault sees where it is."""
    script.protect("", authorization_servers=[f"{script.url}/t"])
    steps: list[DiscoveryStep] = []
    spec = script.spec()
    with pytest.raises(DiscoveryFailed):
        await discover(spec, None, Fetcher.of(spec), steps.append)
    told = [(step.name, step.url.removeprefix(script.url), step.is_fine) for step in steps]
    assert told == [
        ("resource metadata", f"{PRM}/mcp", False),
        ("resource metadata", PRM, True),
        ("authorization server metadata", f"{METADATA}/t", False),
        ("authorization server metadata", f"{OPENID}/t", False),
        ("authorization server metadata", f"/t{OPENID}", False),
    ]
    assert steps[0].outcome == "HTTP 404"
    assert all(step.rule for step in steps)


async def test_an_identity_provider_is_found_by_its_issuer(script: ScriptedServer) -> None:
    """Without any server in between."""
    script.answers[OPENID] = said(script.metadata())
    assert (await discover_issuer(script.url, Fetcher(script.url))).token_endpoint == f"{script.url}/token"


async def test_an_authorization_server_is_kept_and_read_again(script: ScriptedServer) -> None:
    """All of it that is used."""
    metadata = script.metadata(
        scopes_supported=["a"],
        grant_types_supported=[],
        token_endpoint_auth_methods_supported=["none"],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=True,
    )
    server = AuthorizationServer.of(script.url, metadata)
    assert server is not None
    assert AuthorizationServer.from_json(server.to_json()) == server
    with pytest.raises(ValueError, match="no authorization server"):
        AuthorizationServer.from_json({"issuer": "x"})
