"""REST: the board's answers as JSON, one shape for good ones and bad."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, Entry, Gateway, eventually, open_gateway, toy, toy_unless
from pegboard.gateway.rest.openapi import document
from pegboard.servers.server_state import ServerState
from pegboard.tool import Tool
from servers.toy import BUILT_IN

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}


@asynccontextmanager
async def rest(
    tmp_path: Path, servers: dict[str, Entry], **own: Any
) -> AsyncGenerator[tuple[httpx2.AsyncClient, Gateway]]:
    """A gateway and a plain HTTP client."""
    async with (
        open_gateway(tmp_path, servers, **own) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway


async def data(http: httpx2.AsyncClient, path: str, method: str = "GET", **options: Any) -> Any:
    answer = await http.request(method, path, **options)
    body = answer.json()
    assert (answer.status_code, body["success"]) == (200, True), body
    return body["data"]


async def error(http: httpx2.AsyncClient, path: str, method: str = "GET", **options: Any) -> tuple[int, str, str]:
    answer = await http.request(method, path, **options)
    body = answer.json()
    assert set(body) == {"success", "error"}
    assert set(body["error"]) == {"code", "message", "retryable"}
    return answer.status_code, body["error"]["code"], body["error"]["message"]


async def test_servers_and_their_states(tmp_path: Path) -> None:
    """Each server has its state, its number of tools, and the reason where something is wrong."""
    servers = {
        "one": toy(),
        "off": toy({"enabled": False}),
        "gone": {"command": "no-such-command"},
        "odd": {"url": "http://x/${NOPE}"},
    }
    async with rest(tmp_path, servers) as (http, gateway):
        await data(http, "/api/tools")
        await eventually(lambda: gateway.board.servers["gone"].last_error)
        rows = {row["name"]: row for row in (await data(http, "/api/servers"))["servers"]}
        assert {name: row["state"] for name, row in rows.items()} == {
            "one": "connected", "off": "disabled", "gone": "unreachable", "odd": "invalid",
        }  # fmt: skip
        assert rows["one"]["tools"] == len(BUILT_IN)
        assert rows["one"]["latencyMs"] > 0
        assert rows["one"]["lastSeen"]
        assert "no-such-command" in rows["gone"]["lastError"]
        assert "${NOPE}" in rows["odd"]["lastError"]
        schema = document()["components"]["schemas"]["Server"]
        for row in rows.values():
            jsonschema_rs.validate(schema, row)


@pytest.mark.scenario(
    "gateway: Filter tools by prefix",
    "gateway: Filter tools by backend",
    "gateway: Empty filter returns all tools",
)
async def test_tools_with_filters_and_status(tmp_path: Path) -> None:
    """`server`, `prefix` and `status` narrow the list; disabled servers' tools are told about, too."""
    servers = {"one": toy(tools=["x"]), "two": toy(tools=["x"])}
    async with rest(tmp_path, servers) as (http, gateway):
        everything = await data(http, "/api/tools")
        assert everything["total"] == len(everything["tools"]) == 2 * (len(BUILT_IN) + 1)
        for row in everything["tools"]:
            jsonschema_rs.validate(document()["components"]["schemas"]["Tool"], row)
        assert [row["name"] for row in (await data(http, "/api/tools?server=two&prefix=two__x"))["tools"]] == ["two__x"]
        assert (await data(http, "/api/tools?server=&prefix="))["total"] == everything["total"]
        await gateway.configure({"one": servers["one"], "two": {**servers["two"], "enabled": False}})
        off = await data(http, "/api/tools?status=unavailable")
        assert {(row["server"], row["status"]) for row in off["tools"]} == {("two", "disabled")}
        on = await data(http, "/api/tools?status=available")
        assert {row["server"] for row in on["tools"]} == {"one"}
        assert (await error(http, "/api/tools?status=odd"))[:2] == (400, "TOOL_INVALID_INPUT")


@pytest.mark.scenario(
    "gateway: Tool marked as available when backend connected",
    "gateway: Tool marked as unavailable when backend disconnected",
    "gateway: Tool availability updates in real-time",
)
async def test_availability_follows_the_connection_at_once(tmp_path: Path) -> None:
    """Available while its server is connected, unavailable with the reason once it is lost, and back again."""
    gone = tmp_path / "gone"
    async with rest(tmp_path, {"one": toy_unless(gone)}) as (http, gateway):
        # A look at a tool meets its server.
        assert (await data(http, "/api/tools/one__echo"))["availability"] == {"status": "available"}
        server = gateway.board.servers["one"]
        assert server.state is ServerState.CONNECTED
        pid = int((await data(http, "/api/tools/one__pid/call", "POST"))["content"][0]["text"])
        gone.touch()
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: server.state is ServerState.LOST)
        said = (await data(http, "/api/tools/one__echo"))["availability"]
        assert said["status"] == "unavailable"
        assert said["reason"]
        assert said["nextTryInSeconds"] >= 0
        assert (await error(http, "/api/tools/one__echo/call", "POST"))[:2] == (503, "TOOL_UNAVAILABLE")
        gone.unlink()
        await eventually(lambda: server.state is ServerState.CONNECTED)
        assert (await data(http, "/api/tools/one__echo"))["availability"] == {"status": "available"}


async def test_a_call_over_rest(tmp_path: Path) -> None:
    """`data` is the server's result as it is; every failure has the one error shape and a fitting status."""
    async with rest(tmp_path, {"one": toy({"timeout": 1.5})}) as (http, _):
        result = await data(http, "/api/tools/one__echo/call", "POST", json={"arguments": {"big": 2**80, "é": None}})
        assert json.loads(result["content"][0]["text"]) == {"big": 2**80, "é": None}
        assert (await data(http, "/api/tools/one__fails/call", "POST"))["isError"] is True
        assert (await error(http, "/api/tools/one__nope/call", "POST"))[:2] == (404, "TOOL_NOT_FOUND")
        assert (await error(http, "/api/tools/one__refuses/call", "POST"))[:2] == (502, "TOOL_EXECUTION_FAILED")
        late = await error(http, "/api/tools/one__sleep/call", "POST", json={"arguments": {"seconds": 9}})
        assert late[:2] == (503, "TOOL_UNAVAILABLE")
        for body in (b"{", b"[]", b'{"arguments": []}', b'"x"', b"\xff", b"[" * 100_000):
            refused = await error(http, "/api/tools/one__echo/call", "POST", content=body, headers=JSON)
            assert refused[:2] == (400, "TOOL_INVALID_INPUT")


async def test_a_filter_that_means_nothing_is_refused(tmp_path: Path) -> None:
    """Neither a server that there is not nor a misspelt parameter lets everything, or nothing, through."""
    async with rest(tmp_path, {"docs": toy({"enabled": False})}) as (http, _):
        for path, hint in (
            ("/api/tools?server=dosc", "did you mean docs?"),
            ("/api/tools?sever=docs", "did you mean server?"),
            ("/api/tools/search?q=x&limt=1", "did you mean limit?"),
        ):
            status, code, message = await error(http, path)
            assert (status, code) == (400, "TOOL_INVALID_INPUT")
            assert hint in message
        assert "did you mean docs?" in (await error(http, "/api/servers/dosc/refresh", "POST"))[2]


async def test_arguments_beside_the_field_for_them_are_refused(tmp_path: Path) -> None:
    """A tool that was called without them would do something else than was meant."""
    async with rest(tmp_path, {"one": toy()}) as (http, _):
        for body in ({"timezone": "UTC"}, {"arguments": {}, "argument": {}}):
            status, code, message = (await error(http, "/api/tools/one__echo/call", "POST", json=body))[:3]
            assert (status, code) == (400, "TOOL_INVALID_INPUT")
            assert 'did you mean {"arguments": {…}}' in message


async def test_enable_disable_and_refresh_change_the_file(tmp_path: Path) -> None:
    """REST changes the config file, only that entry, and it is taken over at once."""
    async with rest(tmp_path, {"one": toy(), "two": toy()}) as (http, gateway):
        text = '{\n  // kept\n  "mcpServers": ' + json.dumps({"one": toy(), "two": toy()}, indent=2) + "\n}\n"
        gateway.config.write_text(text)
        await gateway.front.config.reload()
        assert (await data(http, "/api/servers/one/disable", "POST"))["state"] == "disabled"
        changed = gateway.config.read_text()
        assert "// kept" in changed
        assert '"enabled": false' in changed
        assert (await data(http, "/api/servers/one/enable", "POST"))["enabled"] is True
        assert (await data(http, "/api/servers/one/refresh", "POST")) == {"registered": len(BUILT_IN)}
        assert (await error(http, "/api/servers/nope/enable", "POST"))[:2] == (404, "TOOL_NOT_FOUND")


async def test_static_tools_stand_beside_the_servers(tmp_path: Path) -> None:
    """A static tool lists, is described and is called like any other, without a connection."""

    class Greet(Tool):
        name = "greet"
        description = "Greets."
        input_schema: ClassVar = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}

        async def call(self, arguments: Any) -> Any:
            return {"success": True, "greeting": f"hello {arguments['who']}"}

    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        gateway.board.register(Greet())
        described = await data(http, "/api/tools/greet")
        assert (described["server"], described["description"]) == (None, "Greets.")
        result = await data(http, "/api/tools/greet/call", "POST", json={"arguments": {"who": "you"}})
        assert result["structuredContent"] == {"success": True, "greeting": "hello you"}
        refused = await http.post("/api/tools/greet/call", json={"arguments": {"who": 5}})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "TOOL_INVALID_INPUT")
        own = refused.json()["data"]["structuredContent"]
        assert (own["isError"], own["message"]) == (True, refused.json()["error"]["message"])


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("memory_get", {"key": "nope"}, 404, "TOOL_NOT_FOUND"),
        ("memory_get", {}, 400, "TOOL_INVALID_INPUT"),
        ("tool_call", {"name": "memory_get", "arguments": {"key": "nope"}}, 404, "TOOL_NOT_FOUND"),
        ("tool_describe", {"name": "__x"}, 400, "TOOL_INVALID_INPUT"),
        ("copilot_chat_secretary_get_request", {"index": 1, "sessionId": "nope"}, 404, "TOOL_NOT_FOUND"),
        ("copilot_chat_secretary_get_request", {"index": "x"}, 400, "TOOL_INVALID_INPUT"),
    ],
)
async def test_a_static_tool_that_fails_is_a_failure(
    tmp_path: Path, tool: str, arguments: dict[str, Any], status: int, code: str
) -> None:
    """With the status that fits; what the tool says itself, the chat tools' flat answers included, stands beside it."""
    async with rest(tmp_path, {}, toolsets=["discovery", "memory", "chats"]) as (http, _):
        answer = await http.post(f"/api/tools/{tool}/call", json={"arguments": arguments})
        body = answer.json()
        assert (answer.status_code, body["success"], body["error"]["code"]) == (status, False, code)
        assert body["data"]["isError"] is True
        assert body["error"]["message"] in json.dumps(body["data"]["structuredContent"]).replace('\\"', '"')


async def test_a_float_without_a_fraction_is_an_integer(tmp_path: Path) -> None:
    """As JSON Schema has it, for every tool of Pegboard's own."""
    async with rest(tmp_path, {"one": toy()}, toolsets=["discovery", "memory"]) as (http, _):
        found = await data(
            http, "/api/tools/tool_find/call", "POST", json={"arguments": {"query": "echo", "limit": 5.0}}
        )
        assert 0 < len(found["structuredContent"]["data"]["tools"]) <= 5
        await data(http, "/api/tools/memory_list/call", "POST", json={"arguments": {"limit": 2.0, "offset": 0.0}})
        assert (await error(http, "/api/tools/search?q=x&limit=1.5"))[1] == "TOOL_INVALID_INPUT"


async def test_health_metrics_openapi_and_pages(tmp_path: Path) -> None:
    """What monitors, programs and people look at first."""
    async with rest(tmp_path, {"one": toy()}) as (http, _):
        await data(http, "/api/tools/one__echo/call", "POST")
        assert (await http.get("/health")).json()["status"] == "ok"
        metrics = (await http.get("/metrics")).text
        assert 'pegboard_calls_total{server="one",outcome="ok"} 1' in metrics
        assert 'pegboard_server_state{server="one",state="connected"} 1' in metrics
        described = (await http.get("/openapi.json")).json()
        assert described["openapi"].startswith("3.1")
        assert {"/api/servers", "/api/tools", "/api/tools/{name}/call"} <= set(described["paths"])
        for page in ("/", "/docs"):
            assert "text/html" in (await http.get(page)).headers["content-type"]
        assert (await error(http, "/api/nothing"))[:2] == (404, "TOOL_NOT_FOUND")
        for path, methods in {"/api/tools": "GET, HEAD", "/api/tools/one__echo/call": "POST", "/": "GET, HEAD"}.items():
            assert (await error(http, path, "DELETE"))[:2] == (405, "TOOL_INVALID_INPUT")
            assert (await http.delete(path)).headers["allow"] == methods


async def test_only_what_is_meant_for_us_gets_in(tmp_path: Path) -> None:
    """Another Host, another site's Origin and a body that is too large are refused on every path."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        for path in ("/mcp", "/api/tools", "/health", "/api/tools/one__echo/call"):
            method = "POST" if path in {"/mcp", "/api/tools/one__echo/call"} else "GET"
            assert (await http.request(method, path, headers={"host": "evil.example"})).status_code == 421
            assert (await http.request(method, path, headers={"origin": "https://evil.example"})).status_code == 403
            assert (await http.request(method, path, headers={"origin": "null"})).status_code == 403
            assert (await http.request(method, path, headers={"sec-fetch-site": "cross-site"})).status_code == 403
        assert (await http.get("/health", headers={"origin": gateway.url})).status_code == 200
        large = b"x" * (4 * 1024 * 1024 + 1)
        for path in ("/mcp", "/api/tools/one__echo/call"):
            assert (await http.post(path, content=large, headers=JSON)).status_code == 413

        async def pieces() -> AsyncGenerator[bytes]:
            for _ in range(6):
                yield b"x" * 1024 * 1024

        assert (await http.post("/api/tools/one__echo/call", content=pieces(), headers=JSON)).status_code == 413
        deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert (await http.post("/mcp", content=deep, headers=headers)).status_code == 400
        assert (await http.get("/health")).status_code == 200


async def test_a_config_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    """A full disk is no fault of the request: 503, the server as it was, and nothing half written."""
    # There is room for this name, but not for that of a draft beside it.
    (tmp_path / "pegboard.json").symlink_to(tmp_path / f"{'n' * 250}.json")
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        before = gateway.config.read_bytes()
        status, code, message = await error(http, "/api/servers/one/disable", "POST")
        assert (status, code) == (503, "TOOL_UNAVAILABLE")
        assert "it cannot be written" in message
        assert gateway.board.servers["one"].spec.enabled
        assert gateway.config.read_bytes() == before


async def test_answers_are_for_whoever_asked_alone(tmp_path: Path) -> None:
    """Good ones, refusals and streams: no browser keeps one, takes it for a script, or gives it to another site."""
    wanted = {
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway:
        token = await gateway.token()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for path, headers, status in (
                ("/api/servers", token, 200),
                ("/api/servers", {}, 401),
                ("/api/servers/nothing", token, 404),
                ("/api/nothing", token, 404),
                ("/api/events", token, 200),
            ):
                async with http.stream("GET", path, headers=headers) as answer:
                    assert answer.status_code == status
                    found = [(name, value) for name, value in answer.headers.multi_items() if name in wanted]
                    assert sorted(found) == sorted(wanted.items()), path
