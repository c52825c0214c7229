"""Memories over REST: statuses, addresses, and what is wrong with a request."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, open_gateway
from pegboard.gateway.rest.openapi import document

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}

OWN: dict[str, Any] = {"toolsets": ["memory"]}


@asynccontextmanager
async def rest(tmp_path: Path, **own: Any) -> AsyncGenerator[httpx2.AsyncClient]:
    """A gateway with the memory toolset, and a plain HTTP client."""
    async with (
        open_gateway(tmp_path, {}, **{**OWN, **own}) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http


async def test_statuses_fit(tmp_path: Path) -> None:
    """Created, replaced, conflict, not found, wrong: each has its own."""
    async with rest(tmp_path) as http:
        memory = {"key": "a", "text": "words"}
        assert (await http.post("/api/memories", json=memory)).status_code == 201
        assert (await http.post("/api/memories", json=memory)).status_code == 409
        assert (await http.post("/api/memories", json={**memory, "replace": True})).status_code == 200
        assert (await http.patch("/api/memories/a", json={"text": "x", "version": 1})).status_code == 409
        assert (await http.patch("/api/memories/a", json={"text": "x", "version": 2})).status_code == 200
        assert (await http.patch("/api/memories/a", json={})).status_code == 400
        assert (await http.post("/api/memories/a/rename", json={"new_key": "b"})).status_code == 200
        assert (await http.get("/api/memories/a")).status_code == 404
        assert (await http.delete("/api/memories/b")).status_code == 200
        assert (await http.delete("/api/memories/b")).status_code == 404
        assert (await http.post("/api/memories/b", json={})).status_code == 404
        assert (await http.put("/api/memories/b", json={})).status_code == 405


async def test_head_writes_nothing(tmp_path: Path) -> None:
    """HEAD asks what GET would, with its status and no body, on every address that can be read."""
    async with rest(tmp_path) as http:
        assert (await http.post("/api/memories", json={"key": "a"})).status_code == 201
        for path, status in (
            ("/api/memories", 200),
            ("/api/memories?key=b&text=x", 400),
            ("/api/memories/a", 200),
            ("/api/memories/b", 404),
            ("/api/memories/a/linked", 200),
            ("/api/memories/a/rename", 404),
            ("/api/memory/search?q=a", 200),
            ("/api/memory/fulltext?keywords=a", 200),
        ):
            answer = await http.head(path)
            assert (answer.status_code, answer.content) == (status, b""), path
            assert (await http.get(path)).status_code == status, path
        listed = (await http.get("/api/memories")).json()["data"]["memories"]
        assert [memory["key"] for memory in listed] == ["a"]


async def test_a_wrong_request_is_told_what_is_wrong(tmp_path: Path) -> None:
    """400 with the parameter's name, and nothing is changed."""
    async with rest(tmp_path) as http:
        for path, name in (
            ("/api/memory/search", "query"),
            ("/api/memory/search?q=x&sortLinks=maybe", "sortLinks"),
            ("/api/memory/search?q=x&sortLinks=", "sortLinks"),
            ("/api/memory/search?q=x&limit=many", "limit"),
            ("/api/memory/search?q=x&limit=" + "9" * 5000, "limit"),
            ("/api/memory/search?q=x&limit=1.5", "limit"),
            ("/api/memory/search?q=x&colour=red", "colour"),
            ("/api/memory/search?q=x&query=y", "query"),
            ("/api/memory/search?query=y&q=x", "query"),
            ("/api/memory/search?q=x&q=y", "q"),
            ("/api/memories?limit=1&limit=2", "limit"),
            ("/api/memory/fulltext?keywords=%20,%20%22%22", "keywords"),
            ("/api/memory/fulltext?keywords=&keywords=%20", "keywords"),
            ("/api/memory/fulltext?keywords=x&operator=NEAR", "operator"),
            ("/api/memories?limit=0", "limit"),
            ("/api/memories/%FF", "key"),
            ("/api/memories/a?namespace=", "namespace"),
        ):
            answer = await http.get(path)
            assert answer.status_code == 400, path
            assert answer.json()["error"]["code"] == "TOOL_INVALID_INPUT"
            assert name in answer.json()["error"]["message"], answer.text
        for body in (b"{", b"[]", b'"x"', b"\xff", b'{"key": "a", "key2": 1}', b'{"text": "no key"}', b'{"key": 5}'):
            assert (await http.post("/api/memories", content=body, headers=JSON)).status_code == 400
        conflicting = await http.patch("/api/memories/a", json={"key": "b", "text": "x"})
        assert conflicting.status_code == 400
        assert (await http.get("/api/memories")).json()["data"]["pagination"]["total"] == 0


async def test_any_key_has_an_address(tmp_path: Path) -> None:
    """Slashes, percent signs, other scripts, and words that are actions, as they are or encoded."""
    from urllib.parse import quote

    async with rest(tmp_path) as http:
        for key in ("a/b", "50%", "日本語/メモ", "linked", "x/rename", "?#&", "...", " space "):
            assert (await http.post("/api/memories", json={"key": key})).status_code == 201
            answer = await http.get(f"/api/memories/{quote(key, safe='')}")
            assert answer.json()["data"]["key"] == key
        assert (await http.get("/api/memories/a/b")).json()["data"]["key"] == "a/b"
        assert (await http.get("/api/memories/a/b/linked")).json()["data"]["total"] == 1


async def test_repeated_keywords_are_a_list(tmp_path: Path) -> None:
    """`keywords` given twice is two keywords, commas and all."""
    async with rest(tmp_path) as http:
        await http.post("/api/memories", json={"key": "a", "text": "red, green"})
        await http.post("/api/memories", json={"key": "b", "text": "blue"})
        answer = await http.get("/api/memory/fulltext", params=[("keywords", "red, green"), ("keywords", "blue")])
        assert answer.json()["data"]["pagination"]["total"] == 2


async def test_a_switched_off_toolset_says_so(tmp_path: Path) -> None:
    """501, and memories are not touched."""
    async with rest(tmp_path, toolsets=[]) as http:
        answer = await http.get("/api/memories")
        assert (answer.status_code, answer.json()["error"]["code"]) == (501, "TOOL_NOT_IMPLEMENTED")


async def test_answers_are_as_the_description_says(tmp_path: Path) -> None:
    """Every route of memories is in the OpenAPI document, and its answers fit what stands there."""
    paths = document()["paths"]

    def fits(path: str, method: str, answer: httpx2.Response) -> None:
        responses = paths[path][method]["responses"]
        described = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        jsonschema_rs.validate(described, answer.json())

    async with rest(tmp_path) as http:
        fits("/api/memories", "post", await http.post("/api/memories", json={"key": "a", "text": "words"}))
        fits("/api/memories", "get", await http.get("/api/memories"))
        fits("/api/memories/{key}", "get", await http.get("/api/memories/a"))
        fits("/api/memories/{key}", "patch", await http.patch("/api/memories/a", json={"text": "other words"}))
        fits("/api/memories/{key}/linked", "get", await http.get("/api/memories/a/linked"))
        fits("/api/memory/search", "get", await http.get("/api/memory/search", params={"q": "words"}))
        fits("/api/memory/fulltext", "get", await http.get("/api/memory/fulltext", params={"keywords": "words"}))
        renamed = await http.post("/api/memories/a/rename", json={"new_key": "b"})
        fits("/api/memories/{key}/rename", "post", renamed)
        fits("/api/memories/{key}", "delete", await http.delete("/api/memories/b"))
