"""What one server, client or request gets wrong stays with it: lists, subscriptions, questions and malformed input."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Entry, Gateway, eventually, http_client, open_gateway, seen, toy, until_seen
from pegboard.pace import Pace
from pegboard.servers.errors import RpcError
from servers.toy import FEATURES

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

VERSIONS = ("2025-11-25", "2026-07-28")
ABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
UPDATED = "notifications/resources/updated"


def full(name: str = "one", entry: Entry | None = None, **more: Any) -> Entry:
    """A toy that can do everything."""
    return toy(entry, name=name, features=FEATURES, **{"era": "handshake", **more})


async def test_a_server_that_hangs_with_its_prompts_has_its_tools(tmp_path: Path) -> None:
    """The kinds of things a server offers are asked for side by side: none waits for another."""
    async with open_gateway(tmp_path, {"one": full(hang_on=["prompts/list"])}) as gateway:
        async with http_client(gateway.mcp) as client:
            await client.until_listed(lambda names: "one__echo" in names, 5)
            assert await client.text("one__pid")
            assert not await client.listed("prompts")


async def test_a_server_whose_tools_fail_has_its_prompts(tmp_path: Path) -> None:
    """And the other way round."""
    async with open_gateway(tmp_path, {"one": full(list_fails="not today")}) as gateway:
        async with http_client(gateway.mcp) as client:
            await client.until_in("prompts", "one__greet")


async def test_an_unlisted_resource_does_not_wait_for_servers_that_never_answer(tmp_path: Path) -> None:
    """Where one server has resources, it is asked; one that is still starting holds up nothing."""
    servers = {"one": full(), "slow": full("slow", start_delay=60)}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("resources", "toy://one/text")
        read = await client.request("resources/read", {"uri": "toy://one/hidden"}, timeout=5)
        assert read["contents"][0]["uri"] == "toy://one/hidden"


async def test_a_resource_of_a_server_that_is_still_starting_is_waited_for(tmp_path: Path) -> None:
    """Nobody else may have it, so nobody can say yet that there is none."""
    async with open_gateway(tmp_path, {"one": full(start_delay=1.5)}) as gateway, http_client(gateway.mcp) as client:
        read = await client.request("resources/read", {"uri": "toy://one/text"})
        assert read["contents"][0]["uri"] == "toy://one/text"


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_refused_subscription_leaves_the_others_alone(tmp_path: Path, era: str) -> None:
    """Whoever subscribed before still hears of its resource."""
    async with open_gateway(tmp_path, {"one": full(era=era)}) as gateway:
        async with http_client(gateway.mcp) as client, http_client(gateway.mcp) as other:
            await client.request("resources/subscribe", {"uri": "toy://one/text"})
            gateway.board.servers["one"]._connections[None].peer.transport.send = refusing(gateway, "toy://one/blob")
            with pytest.raises(RpcError):
                await other.request("resources/subscribe", {"uri": "toy://one/blob"})
            await client.call("one__touch", {"uri": "toy://one/text"})
            await client.until_heard(UPDATED, 1)


def refusing(gateway: Any, uri: str) -> Any:
    """A wire that loses what mentions this resource, as a server would that refuses it."""
    wire = gateway.board.servers["one"]._connections[None].peer.transport
    send = wire.send

    async def sent(message: dict[str, Any], headers: Any) -> None:
        if "id" in message and uri in str(message.get("params", {})):
            wire._link.deliver({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}})
            return
        await send(message, headers)

    return sent


async def test_a_server_that_comes_back_can_be_subscribed_to_again(tmp_path: Path) -> None:
    """Taken out of the config and put back: a client that subscribes anew hears of its resource."""
    async with open_gateway(tmp_path, {"one": full()}) as gateway, http_client(gateway.mcp) as client:
        for count in (1, 2):
            await client.request("resources/subscribe", {"uri": "toy://one/text"})
            await client.call("one__touch", {"uri": "toy://one/text"})
            await client.until_heard(UPDATED, count)
            await gateway.configure({})
            await gateway.configure({"one": full()})
            await client.until_in("resources", "toy://one/text")


async def test_a_subscription_outlives_being_switched_off(tmp_path: Path) -> None:
    """Disabled and enabled again: the server is connected for whoever subscribed, without a call."""
    async with open_gateway(tmp_path, {"one": full()}) as gateway, http_client(gateway.mcp) as client:
        await client.request("resources/subscribe", {"uri": "toy://one/text"})
        await gateway.configure({"one": full(entry={"enabled": False})})
        await gateway.configure({"one": full()})
        await eventually(lambda: gateway.board.servers["one"].is_connected)
        await until_seen(client, "one", lambda now: now["subscriptions"] == ["toy://one/text"])


async def test_a_catalog_that_knew_only_tools_is_completed(tmp_path: Path) -> None:
    """A file of an older Pegboard: prompts and resources were never asked for, so they are asked for now."""
    async with open_gateway(tmp_path, {"one": full()}) as gateway:
        await gateway.board.refresh()
        file = gateway.board.storage.database.name
        await eventually(lambda: gateway.board.library.prompts.entries)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE catalog SET prompts = NULL, resources = '[]', templates = '[]'")
    db.close()
    async with open_gateway(tmp_path, {"one": full()}) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("prompts", "one__greet")
        await client.until_in("resources", "toy://one/text")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_malformed_requests_are_refused_by_name(tmp_path: Path, version: str, era: str) -> None:
    """Whatever a client sends wrongly is an error that says so, never a fault of ours; the next call works."""
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("prompts/get", {"name": 5}),
        ("prompts/get", {}),
        ("resources/read", {"uri": ["x"]}),
        ("completion/complete", {"ref": "x"}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": 7}}),
        ("prompts/list", {"cursor": "%%%"}),
        ("resources/list", {"cursor": 5}),
    ]
    if version == "2025-11-25":
        wrong += [("logging/setLevel", {"level": "loud"}), ("resources/subscribe", {"uri": None})]
        wrong += [("tools/call", {"name": "one__echo", "_meta": meta}) for meta in (5, "x", [1])]
    async with open_gateway(tmp_path, {"one": full(era=era)}) as gateway, http_client(gateway.mcp, version) as client:
        await gateway.board.refresh()
        for method, params in wrong:
            with pytest.raises(RpcError) as refused:
                await client.request(method, params)
            # In the modern era a name that is none cannot stand in the header, either.
            assert refused.value.code in {-32602, -32020}, (method, params)
        assert await client.text("one__pid")


@pytest.mark.parametrize("odd", ["x", 5, [1], {"q": "x"}, {"q": {"method": 5}}])
async def test_an_odd_wish_for_input_is_one_clear_error(tmp_path: Path, odd: Any) -> None:
    """A modern server that asks in a shape nobody knows: its tool is called once, and the call fails."""
    result = {"resultType": "input_required", "inputRequests": odd}
    entry = full(era="modern", tools=["odd"], results={"odd": result})
    async with open_gateway(tmp_path, {"one": entry}) as gateway:
        async with http_client(gateway.mcp, capabilities=ABLE) as client:
            failed = await client.call("one__odd")
            assert failed["isError"] is True
            assert "TOOL_EXECUTION_FAILED" in failed["content"][0]["text"]
            assert (await seen(client, "one"))["calls"] == 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_handshake_server_cannot_wish_for_input_in_its_result(tmp_path: Path, version: str) -> None:
    """That word means nothing in its era: the result is a result."""
    result = {"resultType": "input_required", "content": [{"type": ["odd"], "text": "x"}]}
    entry = full(tools=["odd"], results={"odd": result})
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp, version) as client:
        answer = await client.call("one__odd")
        assert answer["content"] == result["content"]
        assert answer.get("resultType", "complete") == "complete"


async def test_nobody_answers_a_modern_servers_question(tmp_path: Path) -> None:
    """Whoever is asked has the call's time limit, in this era as in the other."""

    async def never(_: Any) -> Any:
        await asyncio.Event().wait()

    async with open_gateway(tmp_path, {"one": full(era="modern", entry={"timeout": 1})}) as gateway:
        async with http_client(gateway.mcp, capabilities=ABLE, answers={"elicitation/create": never}) as client:
            failed = await client.call("one__ask_form", timeout=20)
            assert failed["isError"] is True
            assert "TOOL_UNAVAILABLE" in failed["content"][0]["text"]


async def test_a_filter_finds_its_own_servers_resource(tmp_path: Path) -> None:
    """A template of a server that the client does not see never stands in the way of one that it does."""
    servers = {
        "one": full("one", template_uris=["db://tables/{table}"]),
        "two": full("two", template_uris=["db://{+path}"], resource_uris=["db://views/5"]),
    }
    async with open_gateway(tmp_path, servers) as gateway:
        await gateway.board.refresh()
        await eventually(lambda: len(gateway.board.library.templates.entries) == 4)
        assert await owner(gateway, "db://tables/7", lambda name: name == "two") == ("two", "db://tables/7")
        assert await owner(gateway, "db://tables/7", lambda _: True) == ("one", "db://tables/7")
        assert await owner(gateway, "db://views/5", lambda _: True) == ("two", "db://views/5")


async def owner(gateway: Gateway, uri: str, admits: Callable[[str], bool]) -> tuple[str, str] | None:
    return await Pace().outcome(gateway.board.library.find_owner(uri, admits))
