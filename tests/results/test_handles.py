"""Kept results as arguments of a call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import HANDSHAKE_VERSIONS, MODERN, http_client
from pegboard.gateway.fastpath.decline import Decline
from pegboard.storage.database import StorageError
from results.shelf import GET, about, open_shelf, records, text_of, text_result

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

VALUE = {"items": records(), "name": "all of them"}
ERAS = pytest.mark.parametrize("version", [HANDSHAKE_VERSIONS[-1], MODERN])


async def sent(client: Any, arguments: Any) -> Any:
    """What arrives at a server; whole, however large."""
    call = {"name": GET, "arguments": arguments, "_meta": {"pegboard/cap": 0}}
    return json.loads(text_of(await client.request("tools/call", call)))


@pytest.mark.scenario("results: A kept result can be an argument, where the server allows it")
@ERAS
async def test_a_handle_is_filled_in_before_the_call(version: str, tmp_path: Path) -> None:
    """With all of it, or what a path leads to; a text stays a text. Escapes hide nothing."""
    async with (
        open_shelf(tmp_path, {"results": {"handles": True}}) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
    ):
        kept = about(await client.call(GET, shelf.put(text_result(json.dumps(VALUE)))))["id"]
        text = about(await client.call(GET, shelf.put(text_result("word " * 20_000))))["id"]
        whole = {"$result": kept}
        given = {"a": whole, "b": [{"$result": kept, "path": "items[3]"}, {"$result": kept, "path": "/name"}]}
        assert await sent(client, given) == {"a": VALUE, "b": [records()[3], "all of them"]}
        assert await sent(client, {"deep": {"er": [[{"$result": text}]]}}) == {"deep": {"er": [["word " * 20_000]]}}
        ids = {"ids": {"$result": kept, "path": "items[].id"}}
        assert await sent(client, ids) == {"ids": list(range(2000))}
        # On the fast path, such a call is not plain.
        before = gateway.board.metrics.declined[Decline.RESULT_ARGUMENTS]
        await client.call(GET, {"a": {"$result": kept, "path": "name"}})
        is_fast = not gateway.board.metrics.declined.keys() <= {Decline.SESSION}
        assert gateway.board.metrics.declined[Decline.RESULT_ARGUMENTS] - before == is_fast


@pytest.mark.scenario("results: A kept result can be an argument, where the server allows it")
@ERAS
async def test_a_handle_that_leads_nowhere_fails_the_call(version: str, tmp_path: Path) -> None:
    """And the server does not hear of it."""
    async with (
        open_shelf(tmp_path, {"results": {"handles": True}}) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
        http_client(gateway.mcp, version, name="other") as other,
    ):
        kept = about(await client.call(GET, shelf.put(text_result(json.dumps(VALUE)))))["id"]
        for handle, problem in (
            ({"$result": "r_nobody"}, "call the tool again"),
            ({"$result": kept, "path": "nobody"}, 'has no \\"nobody\\"'),
            ({"$result": kept, "path": 7}, "a kept result is written"),
            ({"$result": kept, "more": 1}, "a kept result is written"),
            ({"$result": 5}, "a kept result is written"),
        ):
            result = await client.call(GET, {"list": [handle]})
            assert result["isError"] is True
            assert problem in text_of(result)
            assert "list[0]" in text_of(result)
        if version != MODERN:
            assert "call the tool again" in text_of(await other.call(GET, {"x": {"$result": kept}}))


@pytest.mark.scenario("results: A kept result can be an argument, where the server allows it")
@ERAS
async def test_servers_that_did_not_allow_it_get_what_was_written(version: str, tmp_path: Path) -> None:
    """A server may have a meaning of its own for it. Only what surely is a kept result of the caller is refused, with
    what to do."""
    async with (
        open_shelf(tmp_path) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
        http_client(gateway.mcp, version, name="other") as other,
    ):
        kept = about(await client.call(GET, shelf.put(text_result(json.dumps(VALUE)))))["id"]
        written: list[Any] = [{"$result": "r_nobody"}, {"$result": kept, "more": 1}, {"$result": 5}, "$result", kept]
        for value in written:
            assert await sent(client, {"a": [value]}) == {"a": [value]}
        if version != MODERN:
            assert await sent(other, {"a": {"$result": kept}}) == {"a": {"$result": kept}}
        handles: list[Any] = [{"$result": kept}, {"$result": kept, "path": "name"}]
        for handle in handles:
            result = await client.call(GET, {"deep": [{"er": handle}]})
            assert result["isError"] is True
            assert "deep[0].er: " in text_of(result)
            assert "tools of shelf do not take" in text_of(result)
            assert '\\"results\\": {\\"handles\\": true}' in text_of(result)


@pytest.mark.scenario("results: A kept result can be an argument, where the server allows it")
async def test_a_call_does_not_fail_because_nothing_can_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is only help for a mistake fails no call."""
    async with open_shelf(tmp_path) as (gateway, _), http_client(gateway.mcp, MODERN) as client:
        await client.names()
        monkeypatch.setattr(gateway.board.results.keeper, "find", fail)
        handle = {"a": {"$result": "r_7Kd0a2Q9xYzW1bC3dE5fGh"}}
        assert await sent(client, handle) == handle


async def fail(*_: object) -> Any:
    """What a storage does that is away."""
    raise StorageError("it is away")


@pytest.mark.scenario("results: A kept result can be an argument, where the server allows it")
@ERAS
async def test_a_model_is_told_where_a_result_can_be_an_argument(version: str, tmp_path: Path) -> None:
    """In the part that it is given, with the servers, and in the tool that reads on. Definitions of servers stay as
    they are; without such servers nobody is told."""
    result = text_result(json.dumps(VALUE))
    for allows in (True, False):
        folder = tmp_path / str(allows)
        folder.mkdir()
        entry = {"results": {"handles": True}} if allows else {}
        async with (
            open_shelf(folder, entry, expose="all", results={"cap": 5000}) as (gateway, shelf),
            http_client(gateway.mcp, version) as client,
        ):
            given = await client.call(GET, shelf.put(result))
            handle = json.dumps({"$result": about(given)["id"], "path": "…"}, ensure_ascii=False)
            assert (f"as an argument of tools of shelf: {handle}\n" in text_of(given)) == allows
            tools = {tool["name"]: tool for tool in (await client.request("tools/list", {}))["tools"]}
            assert ("$result" in tools["result_read"]["description"]) == allows
            assert "$result" not in json.dumps(tools[GET])
            small = {"name": GET, "arguments": shelf.put(result), "_meta": {"pegboard/cap": 500}}
            assert "as an argument" not in text_of(await client.request("tools/call", small))


async def test_the_word_on_arguments_follows_the_config(tmp_path: Path) -> None:
    """Clients are told that the tool says something else now."""
    async with open_shelf(tmp_path) as (gateway, _), http_client(gateway.mcp, MODERN) as client:
        board = gateway.board
        for handles in (True, False, True):
            spec = replace(board.settings.servers["shelf"], result_handles=handles)
            await board.apply(replace(board.settings, servers={"shelf": spec}))
            (tool,) = [
                each for each in (await client.request("tools/list", {}))["tools"] if each["name"] == "result_read"
            ]
            assert ("$result" in tool["description"]) == handles


TEXT, OBJECT = {"type": "string"}, {"type": "object"}


@pytest.mark.scenario("results: A kept result can be an argument, where the server allows it")
@ERAS
async def test_a_text_that_is_json_stays_a_text_where_one_is_wanted(version: str, tmp_path: Path) -> None:
    """To write a file takes its text, to the last blank; what takes the value as well is given the value."""
    definitions = {"name": {"anyOf": [TEXT, {"type": "null"}]}, "either": {"type": ["string", "object"]}}
    properties = {
        "text": TEXT,
        "object": OBJECT,
        "number": {"anyOf": [TEXT, {"type": "integer"}]},
        "texts": {"type": "array", "items": {"$ref": "#/$defs/name"}},
        "either": {"$ref": "#/$defs/either"},
        "files": {"type": "object", "additionalProperties": {"type": "object", "properties": {"text": TEXT}}},
    }
    schema = {"type": "object", "properties": properties, "$defs": definitions}
    written = json.dumps(VALUE, indent=3) + "\n"
    async with (
        open_shelf(tmp_path, {"results": {"handles": True}}, {"get": {"inputSchema": schema}}) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
    ):
        kept = about(await client.call(GET, shelf.put(text_result(written))))["id"]
        whole, item, number = (
            {"$result": kept, **path} for path in ({}, {"path": "items[3]"}, {"path": "items[3].id"})
        )
        for given, arrives in (
            ({"text": whole}, {"text": written}),
            ({"object": whole, "either": whole, "other": whole}, dict.fromkeys(("object", "either", "other"), VALUE)),
            ({"number": number, "text": number}, {"number": 3, "text": "3"}),
            ({"texts": [whole, "x", item]}, {"texts": [written, "x", json.dumps(records()[3], separators=(",", ":"))]}),
            (
                {"files": {"a": {"text": whole, "more": item}}},
                {"files": {"a": {"text": written, "more": records()[3]}}},
            ),
        ):
            assert await sent(client, given) == arrives
