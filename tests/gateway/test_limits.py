"""Limits of principals: whichever entrance a call comes by, it counts once, and is refused in the words of its
entrance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bearers import bearer_client, bearer_http, principal_of
from harness import (
    LIMIT,
    Gateway,
    RawClient,
    http_client,
    open_gateway,
    serving,
    stdio_client,
    toy,
    until_seen,
    write_config,
)
from pegboard.access.principal import Principal
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

VERSIONS = ("2025-11-25", "2026-07-28")
FEATURES = ["tools", "resources", "prompts", "completions", "asking"]
OWN: dict[str, Any] = {"toolsets": ["discovery", "memory"]}
ECHO = {"name": "one__echo", "arguments": {"said": "this"}}
ONCE: dict[str, Any] = {"rate": "1/h"}
Call = Callable[[RawClient, httpx2.AsyncClient], Awaitable[Any]]


# Each kind of call gives the error object of its refusal, or nothing if it went through.


def error_in(result: dict[str, Any]) -> dict[str, Any] | None:
    return json.loads(result["content"][0]["text"])["error"] if result.get("isError") else None


async def fast_path(client: RawClient, _: httpx2.AsyncClient) -> Any:
    return error_in(await client.request("tools/call", ECHO))


async def full_path(client: RawClient, _: httpx2.AsyncClient) -> Any:
    return error_in(await client.request("tools/call", {**ECHO, "_meta": {"progressToken": 1}}))


async def another_tool(client: RawClient, _: httpx2.AsyncClient) -> Any:
    return error_in(await client.request("tools/call", {"name": "tool_call", "arguments": ECHO}))


async def own_tool(client: RawClient, _: httpx2.AsyncClient) -> Any:
    return error_in(await client.call("memory_list", {}))


async def prompt(client: RawClient, _: httpx2.AsyncClient) -> Any:
    return await rpc_error(client, "prompts/get", {"name": "one__greet", "arguments": {"name": "ada"}})


async def resource(client: RawClient, _: httpx2.AsyncClient) -> Any:
    return await rpc_error(client, "resources/read", {"uri": "toy://one/text"})


async def completion(client: RawClient, _: httpx2.AsyncClient) -> Any:
    ref = {"type": "ref/prompt", "name": "one__greet"}
    return await rpc_error(client, "completion/complete", {"ref": ref, "argument": {"name": "name", "value": "a"}})


async def rpc_error(client: RawClient, method: str, params: dict[str, Any]) -> Any:
    try:
        await client.request(method, params)
    except RpcError as exc:
        return exc.data
    return None


async def rest(_: RawClient, http: httpx2.AsyncClient) -> Any:
    return rest_error(await http.post("/api/tools/one__echo/call", json={}))


async def refresh(_: RawClient, http: httpx2.AsyncClient) -> Any:
    return rest_error(await http.post("/api/servers/one/refresh"))


async def own_route(_: RawClient, http: httpx2.AsyncClient) -> Any:
    return rest_error(await http.get("/api/memories"))


def rest_error(response: httpx2.Response) -> Any:
    if response.status_code == 200:
        return None
    assert response.status_code == 429
    assert 0 < int(response.headers["retry-after"]) <= 3600
    return response.json()["error"]


async def meet(gateway: Gateway) -> None:
    """Have everything of the servers known, and the servers connected, by somebody without limits."""
    async with http_client(gateway.mcp) as local:
        await local.until_in("tools", "one__echo")
        await local.until_in("prompts", "one__greet")
        await local.until_in("resources", "toy://one/text")
        for _ in range(2):
            await local.request("tools/call", ECHO)


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_entrance_counts_and_refuses(tmp_path: Path, version: str) -> None:
    """A call of any kind uses up the limit for all kinds, none reaches its server, and each is told when to try."""
    calls = (fast_path, full_path, another_tool, own_tool, prompt, resource, completion, rest, own_route, refresh)
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        tokens = {call: await gateway.token(call.__name__, **ONCE) for call in calls}
        for number, first in enumerate(calls):
            token = tokens[first]
            async with bearer_client(gateway, token, version) as client, bearer_http(gateway, token) as http:
                assert await first(client, http) is None
                for later in calls:
                    error = await later(client, http)
                    assert error.keys() == {"code", "message", "retryable", "retryAfter"}
                    assert (error["code"], error["retryable"]) == ("RATE_LIMITED", True)
                    assert 3500 < error["retryAfter"] <= 3600
                    assert error["message"].startswith("too many calls: the limit is 1/h; try again in ")
            assert gateway.board.metrics.rate_limited == {"principal": (number + 1) * len(calls)}
        async with http_client(gateway.mcp) as local:
            seen = await until_seen(local, "one", lambda _: True)
    # Those of `meet`, one for each entrance that leads to a tool of the server, and this look itself.
    assert seen["calls"] == 2 + 4 + 1


async def test_looking_for_tools_and_lists_do_not_count(tmp_path: Path) -> None:
    """What only tells what there is, is there also for whoever has used up its calls."""
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token(**ONCE)
        async with bearer_client(gateway, token) as client, bearer_http(gateway, token) as http:
            assert await fast_path(client, http) is None
            assert await fast_path(client, http) is not None
            assert "one__echo" in await client.names()
            assert await client.request("ping") == {}
            assert await client.listed("prompts")
            found = await client.call("tool_find", {"query": "echo"})
            assert found["isError"] is False
            (await http.get("/api/tools/search", params={"q": "echo"})).raise_for_status()
            (await http.get("/api/tools/one__echo")).raise_for_status()


async def test_limits_of_one_server_leave_the_others(tmp_path: Path) -> None:
    """Whoever has used up one server is refused there, on both paths and through `tool_call`, and nowhere else."""
    servers = {"one": toy(name="one", features=FEATURES), "two": toy(name="two")}
    async with open_gateway(tmp_path, servers, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token(perServer={"o*": ONCE})
        async with bearer_client(gateway, token) as client, bearer_http(gateway, token) as http:
            await client.until_in("tools", "two__echo")
            assert await fast_path(client, http) is None
            for call in (fast_path, full_path, another_tool, rest):
                assert (await call(client, http))["message"].startswith(
                    "too many calls to server one: the limit is 1/h"
                )
            for _ in range(3):
                assert "isError" not in await client.call("two__echo", {})
            text = gateway.board.metrics.text([], 0, 0)
    assert 'pegboard_rate_limited_total{scope="server"} 4\n' in text
    assert 'pegboard_calls_total{server="one",outcome="limited"} 4\n' in text


def is_free(gateway: Gateway, principal: Principal) -> bool:
    return gateway.board.limits.in_flight(principal) == 0


async def until_free(gateway: Gateway, principal: Principal) -> None:
    async with asyncio.timeout(LIMIT):
        while not is_free(gateway, principal):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seconds", [0.2, 1.5], ids=["fast", "handed over"])
async def test_calls_at_once_are_counted_once_on_both_paths(tmp_path: Path, version: str, seconds: float) -> None:
    """Also a call that is handed over has one place, from its beginning to its end."""
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token(inFlight=2)
        ada = principal_of(gateway, token)
        async with (
            bearer_client(gateway, token, version) as client,
            bearer_http(gateway, token) as http,
        ):
            # Known to be quiet from now on, so that calls of it do not wait for each other.
            await client.call("one__sleep", {"seconds": 0})
            results = await asyncio.gather(*(client.call("one__sleep", {"seconds": seconds}) for _ in range(4)))
            refused = [error["message"] for result in results if (error := error_in(result)) is not None]
            assert refused == ["too many calls: 2 are under way, and the limit is 2; try again in 1 s"] * 2
            assert is_free(gateway, ada)
            assert (await http.post("/api/tools/one__echo/call", json={})).status_code == 200
    assert gateway.board.limits.in_flight(ada) == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("after", [0.1, 0.8], ids=["fast", "handed over"])
async def test_a_place_is_free_when_the_call_is_cancelled(tmp_path: Path, version: str, after: float) -> None:
    """By the client's word, or because the client went away."""
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token(inFlight=1)
        ada = principal_of(gateway, token)
        async with bearer_client(gateway, token, version) as client:
            call = asyncio.create_task(client.call("one__sleep", {"seconds": 60}))
            async with asyncio.timeout(LIMIT):
                while is_free(gateway, ada):
                    await asyncio.sleep(0.01)
            declined = gateway.board.metrics.declined
            before = declined["handed_over"]
            if after > 0.5:
                async with asyncio.timeout(LIMIT):
                    while declined["handed_over"] == before:
                        await asyncio.sleep(0.01)
            call.cancel()
            await until_free(gateway, ada)
            assert "isError" not in await client.request("tools/call", ECHO)


@pytest.mark.parametrize(
    "arguments",
    [{"how": "not_json"}, {"how": "half_then_die"}, {"how": "result_is_list"}],
    ids=lambda each: each["how"],
)
async def test_a_place_is_free_when_the_server_fails(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Whatever the server answers, or if it ends instead."""
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token(inFlight=1)
        async with bearer_client(gateway, token) as client:
            failed = error_in(await client.call("one__misbehave", arguments))
            assert failed is not None
            assert failed["code"] != "RATE_LIMITED"
            assert is_free(gateway, principal_of(gateway, token))


async def test_over_a_bridge_the_user_of_the_machine_has_the_limits_of_its_rule(tmp_path: Path) -> None:
    """Where a rule is for `local`; all its bridges count together."""
    auth = {"rules": [{"who": ["local"], "rate": "2/h"}]}
    config = write_config(tmp_path / "pegboard.json", {"one": toy(name="one")}, auth=auth)
    with serving(config):
        for refused in (None, None, "RATE_LIMITED"):
            async with stdio_client(config) as client:
                await client.until_in("tools", "one__echo")
                assert (error_in(await client.request("tools/call", ECHO)) or {}).get("code") == refused
