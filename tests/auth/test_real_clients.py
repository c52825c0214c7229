"""Real clients and a real authorization server: they find it by our metadata, sign in, call, and refresh within their
session."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.types import TextContent

from auth.provider import SECRET, browse, machine_token, open_provider
from harness import LIMIT, Gateway, eventually, open_gateway, toy
from node import HERE, NODE_MODULES, node, package

pytestmark = pytest.mark.anyio

ALICE = {"who": ["sub:alice", "client:machine"], "scopes": {"one__x": ["x.write"]}}


@contextlib.asynccontextmanager
async def protected(tmp_path: Path, issuer: str, **rule: Any) -> AsyncGenerator[Gateway]:
    """A gateway that takes the tokens of an issuer alone."""
    auth = {"required": True, "issuers": [{"issuer": issuer, "scopes": ["mcp"]}], "rules": [{**ALICE, **rule}]}
    async with open_gateway(tmp_path, {"one": toy(tools=["x", "y"])}, auth=auth) as gateway:
        await gateway.board.list_tools()
        yield gateway


class Memory:
    """Keeps what a client of the SDK wants to keep, and all tokens that it ever had."""

    def __init__(self) -> None:
        self.tokens: list[OAuthToken] = []
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """What the SDK's client opens to have somebody sign in."""

    def __init__(self) -> None:
        self.visits: list[str] = []

    async def open(self, url: str) -> None:
        self.visits.append(url)

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(await browse(self.visits[-1]))


def python_provider(url: str, memory: Memory, browser: Browser) -> OAuthClientProvider:
    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "python",
            "redirect_uris": ["http://127.0.0.1:1/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        }
    )
    return OAuthClientProvider(url, metadata, memory, browser.open, browser.come_back)


@contextlib.asynccontextmanager
async def python_session(url: str, provider: Any) -> AsyncGenerator[ClientSession]:
    http = httpx2.AsyncClient(auth=provider, timeout=LIMIT, follow_redirects=True)
    async with http, streamable_http_client(url, http_client=http) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield session


async def test_the_python_sdk_signs_in_and_refreshes_within_its_session(tmp_path: Path) -> None:
    """Its tokens last two seconds, and three of them are one session of one principal; nobody signs in twice."""
    memory, browser = Memory(), Browser()
    with open_provider(2) as issuer:
        async with protected(tmp_path, issuer, scopes={}) as gateway, asyncio.timeout(LIMIT):
            async with python_session(gateway.mcp, python_provider(gateway.mcp, memory, browser)) as session:
                while len(memory.tokens) < 3:
                    answer = await session.call_tool("one__y", {})
                    assert not answer.is_error
                    await asyncio.sleep(0.05)
                assert len(gateway.front._manager._server_instances) == 1
                assert len(principals_seen(gateway)) == 1
                assert len(browser.visits) == 1


def tokens_seen(gateway: Gateway) -> int:
    """How many tokens the gateway has verified."""
    return len(gateway.front.authenticator.jwts._known)


def principals_seen(gateway: Gateway) -> set[str]:
    """Whom all of those tokens stand for."""
    known = gateway.front.authenticator.jwts._known.values()
    return {each.principal.id for each in known if each.principal}


async def revoke_everybody(gateway: Gateway, issuer: str) -> None:
    """Rules that are for somebody else."""
    auth = {"required": True, "issuers": [{"issuer": issuer}], "rules": [{"who": ["sub:nobody"]}]}
    await gateway.configure({"one": toy(tools=["x", "y"])}, auth=auth)


@pytest.mark.filterwarnings("ignore:Using in-memory token storage:UserWarning")
async def test_fastmcp_signs_in_and_refreshes_until_it_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing but `auth="oauth"`: it registers, opens a browser once, and takes the redirect itself."""
    from fastmcp import Client

    visits: list[asyncio.Future[Any]] = []
    loop = asyncio.get_running_loop()

    def open_browser(url: str) -> bool:
        visits.append(asyncio.ensure_future(browse(url, follow_home=True), loop=loop))
        return True

    monkeypatch.setattr("webbrowser.open", open_browser)
    with open_provider(2) as issuer:
        async with protected(tmp_path, issuer, scopes={}) as gateway, asyncio.timeout(2 * LIMIT):
            async with Client(gateway.mcp, auth="oauth") as client:
                while tokens_seen(gateway) < 3:
                    answer = await client.call_tool("one__y")
                    assert isinstance(answer.content[0], TextContent)
                    assert answer.content[0].text == "toy:y"
                    await asyncio.sleep(0.05)
                # It speaks the modern era, which has no sessions.
                assert len(principals_seen(gateway)) == 1
                assert len(visits) == 1
                await revoke_everybody(gateway, issuer)
                with pytest.raises(Exception):  # noqa: B017  what it makes of a 403 is its own
                    await client.call_tool("one__y")
                assert gateway.board.metrics.refused["no_rule"] >= 1
            await asyncio.gather(*visits)


async def test_the_python_sdk_steps_up(tmp_path: Path) -> None:
    """A call that needs another scope leads to another sign-in, for both scopes; others needed none."""
    memory, browser = Memory(), Browser()
    with open_provider() as issuer:
        memory.client = OAuthClientInformationFull.model_validate(
            {
                "client_id": "native",
                "redirect_uris": ["http://127.0.0.1:1/callback"],
                "token_endpoint_auth_method": "none",
                "issuer": issuer,
            }
        )
        async with protected(tmp_path, issuer) as gateway, asyncio.timeout(LIMIT):
            async with python_session(gateway.mcp, python_provider(gateway.mcp, memory, browser)) as session:
                assert not (await session.call_tool("one__y", {})).is_error
                assert [set((token.scope or "").split()) & {"mcp", "x.write"} for token in memory.tokens] == [{"mcp"}]
                assert not (await session.call_tool("one__x", {})).is_error
                assert set((memory.tokens[-1].scope or "").split()) >= {"mcp", "x.write"}
                assert len(browser.visits) == 2


async def test_a_principal_that_no_rule_is_for_any_more_is_refused(tmp_path: Path) -> None:
    """Whoever revokes it in the config need not wait for its token to expire; its standing stream ends at once."""
    memory = Memory()
    with open_provider() as issuer:
        async with protected(tmp_path, issuer, scopes={}) as gateway, asyncio.timeout(LIMIT):
            machine = ClientCredentialsOAuthProvider(
                gateway.mcp, memory, "machine", SECRET, "client_secret_post", "mcp", issuer
            )
            async with python_session(gateway.mcp, machine) as session:
                assert not (await session.call_tool("one__y", {})).is_error
                (principal,) = gateway.front.authenticator.jwts._principals
                auth = {"required": True, "issuers": [{"issuer": issuer}], "rules": [{"who": ["sub:alice"]}]}
                await gateway.configure({"one": toy(tools=["x", "y"])}, auth=auth)
                assert principal.valid_until == 0
                with pytest.raises(Exception):  # noqa: B017  what the SDK makes of a 403 is its own
                    await session.call_tool("one__y", {})
                assert gateway.board.metrics.refused["no_rule"] >= 1


async def run(*command: str, **environment: str) -> tuple[int, str, str]:
    """A program and what it says; it has to end by itself."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    try:
        async with asyncio.timeout(2 * LIMIT):
            said, complained = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, said.decode(), complained.decode()


async def test_the_typescript_sdk_signs_in_and_refreshes_within_its_session(tmp_path: Path) -> None:
    """As the Python one does."""
    with open_provider(2) as issuer:
        async with protected(tmp_path, issuer, scopes={}) as gateway:
            script = [str(node()), str(HERE / "oauth_client.mjs"), gateway.mcp, "one__y", "3"]
            code, said, complained = await run(*script)
            assert code == 0, complained
            told = json.loads(said)
            assert told["signIns"] == 1
            assert told["sessions"] == 1
            assert len(set(told["tokens"])) == 3
            assert told["answers"] == ["toy:y"]


@pytest.mark.parametrize("way", ["http", "legacy"])
async def test_the_inspector_calls_with_a_token(tmp_path: Path, way: str) -> None:
    """With one it calls a tool; without one it is refused."""
    with open_provider() as issuer:
        async with protected(tmp_path, issuer, scopes={}) as gateway:
            command = [
                *package("@modelcontextprotocol/inspector", "clients/launcher/build/index.js"),
                *("--cli", "--server-url", gateway.mcp, "--transport", "http", "--method", "tools/call"),
                *("--protocol-era", "modern" if way == "http" else "legacy", "--tool-name", "one__y"),
            ]
            token = await machine_token(issuer, gateway.mcp)
            code, said, complained = await run(*command, "--header", f"Authorization: Bearer {token}")
            assert (code, "toy:y" in said) == (0, True), complained
            code, said, _ = await run(*command, "--header", f"Authorization: Bearer {token[:-8]}")
            assert "toy:y" not in said
            assert code != 0


async def test_the_inspector_signs_in(tmp_path: Path) -> None:
    """It registers, says where to sign in, takes the redirect, and calls."""
    with open_provider() as issuer, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        taken.close()
        async with protected(tmp_path / "gateway", issuer, scopes={}) as gateway, asyncio.timeout(2 * LIMIT):
            process = await asyncio.create_subprocess_exec(
                *package("@modelcontextprotocol/inspector", "clients/launcher/build/index.js"),
                *("--cli", "--server-url", gateway.mcp, "--transport", "http", "--method", "tools/call"),
                *("--tool-name", "one__y", "--callback-url", f"http://127.0.0.1:{port}/oauth/callback"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # Without a terminal it asks nobody to sign in unless it may open a browser.
                env={**os.environ, "HOME": str(tmp_path), "BROWSER": "true", "MCP_AUTO_OPEN_ENABLED": "true"},
            )
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                said, visits = await asyncio.gather(process.stdout.read(), _sign_in(process.stderr, issuer))
                await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()
            assert json.loads(said)["content"][0]["text"] == "toy:y"
            assert (process.returncode, visits) == (0, 1)
            assert gateway.board.metrics.refused["no_credentials"] >= 1


async def test_mcp_remote_signs_in_for_a_client_on_a_pipe_until_it_is_revoked(tmp_path: Path) -> None:
    """It registers, prints the address to sign in at, takes the redirect, and relays; its tokens last two seconds, and
    its session outlives three of them."""
    with open_provider(2) as issuer:
        async with protected(tmp_path / "gateway", issuer, scopes={}) as gateway, asyncio.timeout(2 * LIMIT):
            process = await asyncio.create_subprocess_exec(
                *(str(node()), str(NODE_MODULES / "mcp-remote" / "dist" / "proxy.js"), gateway.mcp, "--allow-http"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "HOME": str(tmp_path), "BROWSER": "true", "MCP_REMOTE_CONFIG_DIR": str(tmp_path)},
            )
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            reading = asyncio.create_task(_sign_in(process.stderr, issuer))
            try:
                hello = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "piped", "version": "1"},
                }
                await _send(process.stdin, {"id": 1, "method": "initialize", "params": hello})
                assert (await _answer(process.stdout, 1))["result"]["serverInfo"]["name"] == "pegboard"
                await _send(process.stdin, {"method": "notifications/initialized"})
                call = {"method": "tools/call", "params": {"name": "one__y"}}
                sessions = gateway.front._manager._server_instances
                before = set(sessions)
                made = 0
                while tokens_seen(gateway) < 3:
                    made += 1
                    await _send(process.stdin, {"id": 1 + made, **call})
                    assert (await _answer(process.stdout, 1 + made))["result"]["content"][0]["text"] == "toy:y"
                    await asyncio.sleep(0.05)
                assert set(sessions) == before
                await revoke_everybody(gateway, issuer)
                await _send(process.stdin, {"id": 1000, **call})
                await eventually(lambda: gateway.board.metrics.refused["no_rule"])
                assert gateway.board.metrics.calls["one", "ok"] == made
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()
                await reading
                process.stdin.close()


async def _sign_in(said: asyncio.StreamReader, issuer: str) -> int:
    """Read all that a program says, and sign in wherever it sends its user; how often that was."""
    visits = 0
    while line := await said.readline():
        if (url := re.search(rf"{issuer}/auth\S+", line.decode())) is not None:
            await browse(url[0], follow_home=True)
            visits += 1
    return visits


async def _send(stream: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    stream.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    await stream.drain()


async def _answer(stream: asyncio.StreamReader, number: int) -> dict[str, Any]:
    while line := await stream.readline():
        message = json.loads(line)
        if message.get("id") == number:
            return message
    raise AssertionError("mcp-remote ended")
