"""Chats over REST: the list and the search as the tools give them, and a whole dialog."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from chats.makers import Home, session
from harness import LIMIT, http_client, open_gateway
from pegboard.gateway.rest.openapi import document

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def rest(tmp_path: Path, **own: Any) -> AsyncGenerator[tuple[httpx2.AsyncClient, str]]:
    """A gateway with the chats toolset, a plain HTTP client, and where MCP is."""
    async with (
        open_gateway(tmp_path, {}, **{"toolsets": ["chats"], **own}) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway.mcp


def data_schema(path: str) -> Any:
    """What the API description promises of a good answer."""
    reply = document()["paths"][path]["get"]["responses"]["200"]
    return reply["content"]["application/json"]["schema"]


async def test_the_list_and_the_search_are_the_tools(tmp_path: Path, home: Home) -> None:
    """The same parameters and the same rows, described by /openapi.json."""
    for number in range(3):
        home.chat(f"s{number}", session(f"quokka {number}"), workspace=f"w{number}", folder=f"file:///srv/{number}")
    async with rest(tmp_path) as (http, mcp), http_client(mcp) as client:
        for path, query, tool, arguments in (
            ("/api/chats", "limit=2&offset=1", "list_sessions", {"limit": 2, "offset": 1}),
            ("/api/chats", "workspace=/srv/2", "list_sessions", {"workspace": "/srv/2"}),
            ("/api/chat/search", "q=quokka&limit=1", "search", {"query": "quokka", "limit": 1}),
            ("/api/chat/search", "q=quokka&sessionId=s1", "search", {"query": "quokka", "sessionId": "s1"}),
        ):
            reply = await http.get(f"{path}?{query}")
            told = (await client.call(f"copilot_chat_secretary_{tool}", arguments))["structuredContent"]
            assert reply.status_code == 200
            assert {**reply.json()["data"], "success": True} == told
            jsonschema_rs.validate(data_schema(path), reply.json())


async def test_a_dialog_in_full(tmp_path: Path, home: Home) -> None:
    """Its record and its requests with their answers, a page at a time; never where the file is."""
    home.chat("one", session("first", "second", "third"))
    async with rest(tmp_path) as (http, _):
        reply = await http.get("/api/chats/one?limit=2&offset=1")
        jsonschema_rs.validate(data_schema("/api/chats/{id}"), reply.json())
        data = reply.json()["data"]
        assert (data["sessionId"], data["requestsCount"], data["workspace"]) == ("one", 3, "/home/ada/shop")
        assert [(turn["index"], turn["request"], turn["response"]) for turn in data["requests"]] == [
            (2, "second", "Answer to second"),
            (3, "third", "Answer to third"),
        ]
        assert data["pagination"] == {"total": 3, "limit": 2, "offset": 1, "hasMore": False}
        assert str(home.folder) not in reply.text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/chats/nobody", 404, "Session not found: nobody"),
        ("/api/chats/..%2f..%2fpasswd", 404, "nothing here"),
        ("/api/chats/%2e%2e", 404, ""),
        ("/api/chats?limit=0", 400, "limit"),
        ("/api/chats?limit=many", 400, "limit"),
        ("/api/chats?colour=red", 400, "colour"),
        ("/api/chats/one?workspace=/srv", 400, "workspace"),
        ("/api/chat/search", 400, "q is missing"),
    ],
)
async def test_what_is_wrong_is_said(tmp_path: Path, home: Home, path: str, status: int, words: str) -> None:
    """In the one shape of errors, with the status that fits."""
    home.chat("one", session("first"))
    async with rest(tmp_path) as (http, _):
        reply = await http.get(path)
        assert reply.status_code == status
        assert reply.json()["success"] is False
        assert words in reply.json()["error"]["message"]


async def test_a_toolset_that_is_off_is_off_here_too(tmp_path: Path) -> None:
    """And says so."""
    async with rest(tmp_path, toolsets=[]) as (http, _):
        reply = await http.get("/api/chats")
        assert reply.status_code == 501
        assert "switched off" in reply.json()["error"]["message"]


async def test_a_dialog_is_saved_as_a_file(tmp_path: Path, home: Home) -> None:
    """All of it, as the command exports it or as data, under a name that says what it is; refused where the dialog
    itself is."""
    title = "Über 工具 \u202e<b>"
    home.chat("one", session(*(f"request {number}" for number in range(150)), customTitle=title))
    async with rest(tmp_path, auth={"required": False}) as (http, _):
        reply = await http.get("/api/chats/one/export")
        assert reply.headers["content-type"].startswith("text/markdown")
        assert reply.headers["content-disposition"] == (
            "attachment; filename*=utf-8''2026-01-01-%C3%BCber-%E5%B7%A5%E5%85%B7-b-one.md"
        )
        assert "## 150. Request" in reply.text
        assert "Answer to request 149" in reply.text
        reply = await http.get("/api/chats/one/export?format=json")
        assert reply.headers["content-disposition"].endswith("-one.json")
        data = reply.json()
        assert (data["title"], len(data["requests"])) == (title, 150)
        assert str(home.folder) not in reply.text
        assert (await http.get("/api/chats/one/export?format=pdf")).status_code == 400
        assert (await http.get("/api/chats/nobody/export")).status_code == 404
        remote = await http.get("/api/chats/one/export", headers={"X-Forwarded-For": "192.0.2.7"})
        assert remote.status_code == 403
        assert "request 1" not in remote.text
