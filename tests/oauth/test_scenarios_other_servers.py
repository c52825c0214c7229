"""The same sign-in with the protected servers and authorization servers of the SDKs."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from harness import http_client
from oauth.other_servers import open_fastmcp, open_typescript
from oauth.signed_in import open_signed_in

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def typescript() -> Generator[str]:
    """An authorization server that takes tokens for exactly its own resource alone."""
    with open_typescript("--oauth-strict") as url:
        yield url


@pytest.fixture(scope="module")
def fastmcp() -> Generator[str]:
    with open_fastmcp() as url:
        yield url


@pytest.mark.scenario("sign-in: The servers of the SDKs are signed in to")
async def test_the_typescript_sdks_server_is_signed_in_to(typescript: str, tmp_path: Path) -> None:
    """An issuer with a slash at its end, and an answer without `iss`."""
    async with (
        open_signed_in(tmp_path, {"one": {"url": typescript}}) as opened,
        http_client(opened.gateway.mcp) as client,
    ):
        assert await client.text("one__greet", {"name": "you"}) == "Hello, you!"


@pytest.mark.scenario("sign-in: The servers of the SDKs are signed in to")
async def test_fastmcps_server_is_signed_in_to_and_out_of(fastmcp: str, tmp_path: Path) -> None:
    """An authorization server at the server's own address; after signing out, a call says how to come back."""
    async with (
        open_signed_in(tmp_path, {"one": {"url": fastmcp}}) as opened,
        http_client(opened.gateway.mcp) as client,
    ):
        assert await client.text("one__greet", {"name": "you"}) == "Hello, you!"
        await opened.person("one").sign_out()
        refused = await client.call("one__greet", {"name": "you"})
        assert refused["isError"]
        assert "pegboard login one" in refused["content"][0]["text"]
        await opened.person("one").sign_in()
        assert await client.text("one__greet", {"name": "you"}) == "Hello, you!"
