"""What the gateway says of itself as a protected resource: its metadata, and the challenges in refusals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth.utils import (
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
)

from auth.door import open_door
from auth.issuer import Issuer
from harness import open_gateway, toy
from pegboard.auth.resource import base_url

pytestmark = pytest.mark.anyio
WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.mark.scenario("issuers: A refusal leads clients to their issuer")
@pytest.mark.parametrize("public", ["", "https://tools.example", "https://example.com/tools"])
@pytest.mark.parametrize("path", ["", "/mcp", "/mcp/team"])
async def test_the_metadata_of_each_resource(tmp_path: Path, issuer: Issuer, path: str, public: str) -> None:
    """It names the resource of its own path, whoever issues tokens for it, and their scopes; nobody needs a token."""
    own: dict[str, Any] = {
        "settings": {"scopes": ["mcp", "offline_access"]},
        **({"publicUrl": public} if public else {}),
    }
    async with open_door(tmp_path, issuer, **own) as door:
        answer = await door.get(f"{WELL_KNOWN}{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "resource": f"{public or door.gateway.url}{path}",
            "authorization_servers": [issuer.url],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Pegboard",
        }


async def test_without_issuers_there_is_no_metadata(tmp_path: Path, issuer: Issuer) -> None:
    """Nor below a path that is none of ours."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url) as http:
            for path in ("", "/mcp", "/mcp/team"):
                assert (await http.get(f"{WELL_KNOWN}{path}")).status_code == 404
            challenge = (await http.get("/api/tools")).headers["www-authenticate"]
            assert challenge == 'Bearer realm="pegboard"'
    async with open_door(tmp_path, issuer) as door:
        for path in ("/api", "/mcp/a%20b", "/mcp/a/b"):
            assert (await door.get(f"{WELL_KNOWN}{path}")).status_code == 404


@pytest.mark.scenario("issuers: A refusal leads clients to their issuer")
@pytest.mark.parametrize(
    ("path", "place"), [("/mcp", "/mcp"), ("/mcp/team", "/mcp/team"), ("/api/tools", "/mcp"), ("/metrics", "/mcp")]
)
async def test_a_refusal_leads_to_the_metadata(tmp_path: Path, issuer: Issuer, path: str, place: str) -> None:
    """As the SDK's client reads it; without credentials there is no error in it, with bad ones there is."""
    async with open_door(tmp_path, issuer, settings={"scopes": ["mcp", "offline_access", "a"]}) as door:
        for bearer in (None, door.token(number=1)):
            answer = await door.get(path, bearer)
            assert answer.status_code == 401
            assert extract_resource_metadata_from_www_auth(answer) == f"{door.gateway.url}{WELL_KNOWN}{place}"
            assert extract_scope_from_www_auth(answer) == "a mcp"
            challenge = answer.headers["www-authenticate"]
            assert ('error="invalid_token"' in challenge) is (bearer is not None)
            assert ("error" in challenge) is (bearer is not None)


@pytest.mark.scenario("issuers: A refusal leads clients to their issuer")
async def test_nothing_in_a_challenge_breaks_out_of_it(tmp_path: Path, issuer: Issuer) -> None:
    """Whatever stands in a token, or in the Host that a proxy passes on."""
    async with open_door(tmp_path, issuer, rules=[{"who": ["scope:other"]}]) as door:
        token = door.token(sub='a"b\\c, x=y\u00e9', client_id='", error="none')
        challenge = (await door.call(token)).headers["www-authenticate"]
        assert "sub:abc, x=y" in challenge
        assert re.fullmatch(r'Bearer (?:[a-z_]+="[^"\\]*"(?:, )?)+', challenge)


def test_the_own_address_is_the_host_that_is_named() -> None:
    """Wherever it stands among the headers; HTTP/1.0 need not name one."""
    scope: dict[str, Any] = {"scheme": "http", "path": "/mcp", "server": ("127.0.0.1", 7420), "headers": []}
    named = {**scope, "headers": [(b"accept", b"*/*"), (b"host", b"Tools.example:81"), (b"x-host", b"other")]}
    assert base_url(named, "") == "http://tools.example:81"
    assert base_url(scope, "") == "http://127.0.0.1:7420"
    assert base_url(named, "https://public.example") == "https://public.example"
