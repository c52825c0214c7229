"""The address of /mcp: a typing error in it is told, not passed over."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from harness import ALL_VERSIONS, LIMIT, http_client, open_gateway, toy

pytestmark = pytest.mark.anyio

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.mark.parametrize("fast_path", ["on", "off"])
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?servers=one", ["'servers'", "did you mean server?"]),
        ("?server=one&perfix=x", ["'perfix'", "did you mean prefix?"]),
        ("?zzz=1", ["'zzz'", "server, prefix"]),
        ("/board?Server=one", ["'Server'", "did you mean server?"]),
        (f"?server={'one,' * 100}one", ["server", "100 names"]),
        (f"?prefix={'one,' * 100}one", ["prefix", "100 names"]),
    ],
)
async def test_a_parameter_that_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, words: list[str], fast_path: str
) -> None:
    """A filter that is misspelt would let everything through; the refusal names it and what is like it."""
    monkeypatch.setenv("PEGBOARD_FAST_PATH", fast_path)
    async with open_gateway(tmp_path, {}) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        for headers in (ACCEPT, {**ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "ping"}):
            answer = await http.post(gateway.mcp + query, json=PING, headers=headers)
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == "TOOL_INVALID_INPUT"
            for word in words:
                assert word in answer.json()["error"]["message"]


@pytest.mark.parametrize("version", [ALL_VERSIONS[-2], ALL_VERSIONS[-1]])
async def test_a_server_that_is_not_there_is_told_of(
    tmp_path: Path, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be added later, so the client is let in; its instructions and the log say so."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with http_client(f"{gateway.mcp}?server=ome", version, listen=False) as client:
            told = client.hello["instructions"]
            assert 'no server "ome"' in told
            assert "did you mean one?" in told
            assert await client.names() == []
        assert "client.filter.unknown" in caplog.text
        async with http_client(f"{gateway.mcp}?server=one", version, listen=False) as client:
            assert "no server" not in client.hello["instructions"]
            assert await client.names() != []
