"""A server that writes half of a surrogate pair costs nobody anything, and nobody is asked for a name that has one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness import LIMIT, Gateway, RawClient, http_client, open_gateway, stdio_client, toy, write_config
from pegboard.exactjson import dump, exact, well_formed
from pegboard.servers.errors import RpcError
from servers.halves import LARGE

pytestmark = pytest.mark.anyio

HALVES = {
    "command": sys.executable,
    "args": ["-I", "-S", str(Path(__file__).parent.parent / "servers" / "halves.py")],
}
SERVERS = {"h": HALVES, "one": toy()}
HALF = "x\ud83d"
VERSIONS = ("2025-11-25", "2026-07-28")
# Requests with half of a surrogate pair, and the member that has it.
ASKED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("tools/call", {"name": HALF}, "name"),
    ("prompts/get", {"name": HALF}, "name"),
    ("resources/read", {"uri": HALF}, "uri"),
    ("resources/read", {"uri": f"pegboard://one/{HALF}"}, "uri"),
    ("resources/subscribe", {"uri": HALF}, "uri"),
    ("resources/unsubscribe", {"uri": HALF}, "uri"),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": HALF}}, "ref.name"),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": HALF}}, "ref.uri"),
    ("prompts/list", {"cursor": HALF}, "cursor"),
    ("logging/setLevel", {"level": HALF}, "level"),
    ("tasks/get", {"taskId": HALF}, "taskId"),
    ("toy/any", {"taskId": HALF}, "taskId"),
    ("toy/any", {"_meta": {"pegboard/server": HALF}}, "_meta.pegboard/server"),
    ("tools/list", {"_meta": {"pegboard/server": HALF}}, "_meta.pegboard/server"),
)


@contextlib.asynccontextmanager
async def a_client(tmp_path: Path, over: str, version: str) -> AsyncGenerator[RawClient]:
    """A client of a gateway that has met its servers."""
    if over == "http":
        async with a_gateway(tmp_path) as gateway, http_client(gateway.mcp, version) as client:
            yield client
    else:
        config = write_config(tmp_path / "pegboard.json", SERVERS)
        async with stdio_client(config, version) as client:
            await client.until_in("tools", "h__fail")
            yield client


@contextlib.asynccontextmanager
async def a_gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    async with open_gateway(tmp_path, SERVERS, toolsets=["discovery"]) as gateway:
        await gateway.board.refresh()
        yield gateway


async def refusal(client: RawClient, method: str, params: dict[str, Any]) -> RpcError:
    """The error that a request is answered with. No header can have half of a pair, so it has what a reader makes of
    it that knows no better."""
    stamped, headers = client._stamped(method, well_formed(params))
    meta = {**((stamped or {}).get("_meta") or {}), **params.get("_meta", {})}
    body = {**(stamped or {}), **params, **({"_meta": meta} if meta else {})}
    with pytest.raises(RpcError) as caught:
        await client.link.request(method, exact(body), timeout=30, headers=headers)
    return caught.value


async def until_prompts(client: RawClient) -> None:
    """A list has what is known by then: on a busy machine a server may take a while to say what it has."""
    async with asyncio.timeout(LIMIT):
        while "good" not in json.dumps(await client.request("prompts/list")):
            await asyncio.sleep(0.05)


@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("over", ["http", "pipe"])
async def test_an_error_of_a_server_arrives_whole_and_what_comes_next_is_answered(
    tmp_path: Path, version: str, over: str
) -> None:
    """Code, message and data; the client is written to as before, on the full path as well."""
    async with a_client(tmp_path, over, version) as client:
        for meta in ({}, {"_meta": {"progressToken": 1}}):
            error = await refusal(client, "tools/call", {"name": "h__fail", **meta})
            assert (error.code, str(error.message), dump(error.data)) == (
                -32000,
                "cut \ud83d",
                rb'{"x":"\ud83d","n":1e400}',
            )
            await until_prompts(client)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("over", ["http", "pipe"])
async def test_a_list_goes_on_without_what_nobody_could_ask_for(tmp_path: Path, version: str, over: str) -> None:
    """Names and URIs that are not valid Unicode are left out; other texts are carried as they are."""
    async with a_client(tmp_path, over, version) as client:
        prompts = await client.until_in("prompts", "h__good")
        resources, templates = await client.listed("resources"), await client.listed("templates")
        assert [dump(one) for one in prompts.values() if one["name"].startswith("h__")] == [
            rb'{"name":"h__good","description":"\ud83d"}'
        ]
        assert [uri for uri in resources if "toy:" not in uri] == ["good://x"]
        assert dump(resources["good://x"]["name"]) == rb'"\ud83d"'
        assert dump(templates["good://{y}"]["name"]) == rb'"\ud83d"'
        assert not any("\ud83d" in uri for uri in templates)


@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("over", ["http", "pipe"])
async def test_a_link_of_a_server_is_carried(tmp_path: Path, version: str, over: str) -> None:
    """Also under the name that it has to get here."""
    async with a_client(tmp_path, over, version) as client:
        (link,) = (await client.call("h__link"))["content"]
        assert dump(link["uri"]) == rb'"pegboard://h/pegboard://z/\ud83d"'


async def test_a_link_of_a_server_is_carried_over_rest(tmp_path: Path) -> None:
    """There it is written by Pegboard, whose own words would have U+FFFD instead."""
    async with a_gateway(tmp_path) as gateway, httpx.AsyncClient(base_url=gateway.url, timeout=30) as http:
        answer = await http.post("/api/tools/h__link/call", json={"arguments": {}})
        assert rb'"uri":"pegboard://h/pegboard://z/\ud83d"' in answer.content


@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_large_answer_is_carried(tmp_path: Path, version: str) -> None:
    """Its size is judged as that of any other answer."""
    async with a_client(tmp_path, "http", version) as client:
        for meta in ({}, {"_meta": {"progressToken": 1}}):
            result = await client.request("tools/call", {"name": "h__large", **meta})
            assert (result.get("isError"), len(result["content"][0]["text"])) == (None, LARGE + 1)


async def test_a_large_error_is_not_read_because_of_it(tmp_path: Path) -> None:
    """An error is a sentence."""
    async with a_client(tmp_path, "http", "2025-11-25") as client:
        result = await client.call("h__large_error")
        assert "the limit is" in result["content"][0]["text"]


@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tools_title_and_description_are_carried(tmp_path: Path, version: str) -> None:
    """The tool is listed, found, described and called; one whose name is not valid Unicode is left out."""
    async with a_client(tmp_path, "http", version) as client:
        listed = await client.listed("tools")
        shown = [dump(listed["h__titled"][key]) for key in ("title", "description")]
        assert shown == [rb'"cut \ud83d"', rb'"emoji \ud83d"']
        assert not any("named" in name for name in listed)
        found = json.loads(await client.text("tool_find", {"query": "emoji"}))
        assert [(hit["name"], hit["description"]) for hit in found["data"]["tools"]] == [("h__titled", "emoji \ufffd")]
        assert "emoji" in await client.text("tool_describe", {"name": "h__titled"})
        assert (await client.call("h__titled"))["content"] == []


async def test_instructions_of_a_server_keep_no_client_out(tmp_path: Path) -> None:
    """They are words for people and models: half of a pair becomes U+FFFD, after a restart as well."""
    for _ in range(2):
        async with a_gateway(tmp_path) as gateway:
            for version in ("2025-03-26", *VERSIONS):
                async with http_client(gateway.mcp, version) as client:
                    assert "h: cut \ufffd" in client.hello["instructions"]
    async with stdio_client(tmp_path / "pegboard.json") as client:
        assert "h: cut \ufffd" in client.hello["instructions"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("over", ["http", "pipe"])
async def test_a_request_for_what_is_not_unicode_is_refused_by_the_members_name(
    tmp_path: Path, version: str, over: str
) -> None:
    """And the next one is answered."""
    async with a_client(tmp_path, over, version) as client:
        handshake_only = ("resources/subscribe", "resources/unsubscribe", "logging/setLevel")
        for method, params, member in ASKED:
            if client.modern and method in handshake_only:
                continue
            error = await refusal(client, method, params)
            assert error.code == -32602, (method, params)
            assert error.message.startswith(f"Invalid params: {member} must be valid Unicode"), (method, params)
        if client.modern:
            followed = {"notifications": {"resourceSubscriptions": ["a:b", HALF]}}
            error = await refusal(client, "subscriptions/listen", followed)
            assert (error.code, "resourceSubscriptions.1" in error.message) == (-32602, True)
        await until_prompts(client)
