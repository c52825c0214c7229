"""What may not be used is out of reach by every entrance: not listed, found, described, loaded or called."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest

from harness import (
    LIMIT,
    Entry,
    RawClient,
    eventually,
    http_client,
    open_gateway,
    seen,
    serving,
    stdio_client,
    toy,
    write_config,
)
from pegboard import Pegboard
from pegboard.board import Board
from pegboard.config import Settings
from pegboard.listing.view import Filter
from pegboard.servers.errors import RpcError
from pegboard.tool import ResultTool

pytestmark = pytest.mark.anyio

TOOLS = ["erase_all", "keep"]
# Each rule, and a tool that it rules out.
RULES = {
    "tools.deny of the pegboard section": "memory_add",
    "a toolset that is off": "registry_update",
    "tools.deny of a server": "denying__erase_all",
    "tools.allow of a server": "allowing__erase_all",
    "a server that is disabled": "off__erase_all",
}
FILTERED = {**RULES, "the filter of an address": "other__erase_all"}
OWN: dict[str, Any] = {"toolsets": ["discovery", "memory"], "tools": {"deny": ["memory_add", "memory_list"]}}
FILTER = "?server=denying,allowing,off"
# Ways to spell a call that a careless server might take for one.
DISGUISES = (
    "tools/call ",
    "TOOLS/CALL",
    "tools//call",
    "tools\uff0fcall",
    "tools.call",
    "tools/call\0",
    "tools/call\0x",
    "tools/call?x",
    "tools/call/x",
    "tools/call2",
    "x-tools/call",
    "com.example/Tools.Call",
    "tools/call" + "/" * 250,
)
# Members beside the name of a tool that may be called, or in its place, which a careless server takes for its name.
LOOK_ALIKES = ("Name", "NAME", "na\u200bme", "name\0", " name", "na\u0301me", "\uff4eame", "_name")
TASK_LOOK_ALIKES = ("TaskId", "task_id", "ta\u017fkId", "tas\u212aId", "task\u0131d")


def servers() -> dict[str, Entry]:
    return {
        "denying": toy({"tools": {"deny": ["erase_*"]}}, tools=TOOLS),
        "allowing": toy({"tools": {"allow": ["keep", "seen"]}}, tools=TOOLS),
        "off": toy({"enabled": False}, tools=TOOLS),
        "other": toy(tools=TOOLS),
    }


class Entrance(Protocol):
    """A way in; each question is answered with names, or with whether it was refused."""

    @property
    def hidden(self) -> Mapping[str, str]: ...

    async def listed(self) -> set[str]: ...
    async def found(self, query: str) -> set[str]: ...
    async def refused(self, name: str) -> dict[str, bool]: ...
    async def attack(self) -> None: ...


class OverMcp:
    def __init__(self, client: RawClient, hidden: Mapping[str, str]) -> None:
        self._client, self.hidden = client, hidden

    async def listed(self) -> set[str]:
        return set(await self._client.until_listed(lambda names: {"denying__keep", "allowing__keep"} <= names))

    async def found(self, query: str) -> set[str]:
        answer = await self._client.call("tool_find", {"query": query, "limit": 50})
        return {tool["name"] for tool in answer["structuredContent"]["data"]["tools"]}

    async def refused(self, name: str) -> dict[str, bool]:
        return {
            "described": await self._is_refused("tool_describe", {"name": name}),
            "loaded": await self._is_refused("tool_load", {"names": [name]}),
            "called": await self._is_refused(name, {"key": "k", "text": "t"}),
            "called by tool_call": await self._is_refused("tool_call", {"name": name, "arguments": {"key": "k"}}),
        }

    async def _is_refused(self, name: str, arguments: Mapping[str, Any]) -> bool:
        try:
            return (await self._client.call(name, arguments)).get("isError") is True
        except RpcError as exc:
            return exc.code == -32602

    async def attack(self) -> None:
        """No message that is not exactly a `tools/call` reaches a server as one."""
        # Over HTTP the modern era has the method in a header, too, where no NUL can stand.
        disguises = [each for each in DISGUISES if self._client.can_notify or "\0" not in each]
        for server in ("denying", "allowing"):
            call = {"name": "erase_all", "_meta": {"pegboard/server": server}}
            for method in ("tools/call", "initialize", "tasks/list", *disguises, "notifications/INITIALIZED"):
                await self._client.notify(method, call)
            for method in disguises:
                await self._client.notify(f"notifications/{method}", call)
            for method in (*disguises, "Tasks/List", "sampling/createMessage"):
                with pytest.raises(RpcError) as refusal:
                    await self._client.request(method, call)
                # A header trims blanks, so that over HTTP the modern era has another word for some.
                assert refusal.value.code in {-32601, -32020}, method
            before = await seen(self._client, server)
            await self._attack_by_members(server)
            # Behind it in the same conversation: what was said before has been dealt with.
            await self._client.call(f"{server}__keep")
            noticed = await seen(self._client, server)
            assert {note[0] for note in noticed["notes"]} <= {"notifications/initialized"}
            assert set(noticed["meta"]).isdisjoint({*DISGUISES, "Tasks/List", "sampling/createMessage"})
            assert noticed["calls"] == before["calls"] + 3, "what resembles nothing, keep and seen"
            assert not any(method.startswith(("tasks/", "completion/")) for method in noticed["requests"])

    async def _attack_by_members(self, server: str) -> None:
        """No member that only resembles one of the specification's reaches a server."""
        keep, meta, token = f"{server}__keep", {"pegboard/server": server}, {"progressToken": 1}
        tries: list[tuple[str, dict[str, Any], str]] = []
        for alike in LOOK_ALIKES:
            tries += [
                ("tools/call", {"name": keep, alike: "erase_all"}, alike),
                (
                    "tools/call",
                    {alike: "erase_all", "name": keep, "arguments": {}, "_meta": token},
                    alike,
                ),
                ("tools/call", {"name": "tool_call", alike: "x", "arguments": {"name": keep, "arguments": {}}}, alike),
                ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x", alike: "y"}, "_meta": meta}, alike),
            ]
        for alike in TASK_LOOK_ALIKES:
            tries += [(f"tasks/{verb}", {alike: "t", "_meta": meta}, alike) for verb in ("get", "result", "cancel")]
        tries += [
            ("tools/call", {"name": keep, "Arguments": {}}, "Arguments"),
            ("tools/call", {"name": keep, "extra": 1, "EXTRA": 2}, "EXTRA"),
            ("tools/call", {"name": keep, "task": {"ttl": 1, "TTL": 2}}, "TTL"),
            ("tools/call", {"name": keep, "_meta": {"ProgressToken": 1}}, "ProgressToken"),
            ("tasks/get", {"_meta": meta}, "taskId"),
        ]
        for method, params, named in tries:
            with pytest.raises(RpcError) as refusal:
                await self._client.request(method, params)
            assert refusal.value.code == -32602, params
            assert ascii(named)[1:-1] in refusal.value.message
            await self._client.notify(method, params)
        for alike in TASK_LOOK_ALIKES:
            await self._client.notify("notifications/tasks/status", {"taskId": "t", alike: "u", "_meta": meta})
        # What resembles nothing goes on, and so do arguments of any name.
        carried = {"name": keep, "extra": 1, "arguments": {"name": 1, "Name": 2}, "_meta": {"com.example/a": 1}}
        assert not (await self._client.request("tools/call", carried)).get("isError")


class OverRest:
    hidden = RULES

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def _get(self, path: str, **query: str) -> Any:
        return (await self._http.get(path, params=query)).json()["data"]

    async def listed(self) -> set[str]:
        tools = (await self._get("/api/tools"))["tools"]
        return {tool["name"] for tool in tools if tool["status"] == "available"}

    async def found(self, query: str) -> set[str]:
        return {tool["name"] for tool in (await self._get("/api/tools/search", q=query, limit="50"))["tools"]}

    async def refused(self, name: str) -> dict[str, bool]:
        described = await self._http.get(f"/api/tools/{name}")
        called = await self._http.post(f"/api/tools/{name}/call", json={"arguments": {"key": "k"}})
        return {"described": described.status_code in {404, 503}, "called": called.status_code in {404, 503}}

    async def attack(self) -> None:
        """The routes of the toolsets are their tools."""
        for method, path in (("POST", "/api/memories"), ("GET", "/api/memories")):
            answer = await self._http.request(method, path, json={"key": "k"} if method == "POST" else None)
            assert (answer.status_code, answer.json()["success"]) == (403, False)
            assert "tools.deny" in answer.json()["error"]["message"]
        assert (await self._http.get("/api/memories/k")).status_code == 404, "memory_get is allowed; nothing is there"
        # A body has arguments, and nothing else.
        body = {"arguments": {}, "Name": "erase_all", "name": "erase_all", "params": {"name": "erase_all"}}
        called = await self._http.post("/api/tools/denying__keep/call", json=body)
        assert called.status_code == 400
        for method, path in (("GET", "/api/tasks"), ("POST", "/api/tasks/sync"), ("PATCH", "/api/tasks/a/1")):
            assert (await self._http.request(method, path)).status_code == 501


class FromPython:
    hidden = RULES

    def __init__(self, board: Pegboard) -> None:
        self._board = board

    async def listed(self) -> set[str]:
        return {tool["name"] for tool in await self._board.get_tool_definitions(format="json", patience=10)}

    async def found(self, query: str) -> set[str]:
        return {tool["name"] for tool in (await self._board.find(query, 50)).unwrap()["tools"]}

    async def refused(self, name: str) -> dict[str, bool]:
        asked = {
            "described": ("tool_describe", {"name": name}),
            "called": (name, {"key": "k", "text": "t"}),
            "called by tool_call": ("tool_call", {"name": name, "arguments": {}}),
        }
        refused = {how: not (await self._board.call(*call)).success for how, call in asked.items()}
        return {**refused, "loaded": not (await self._board.load(name)).success}

    async def attack(self) -> None:
        """There is no other way from Python."""


Opening = Callable[[Path], contextlib.AbstractAsyncContextManager[Entrance]]


def over_http(version: str, query: str = "") -> Opening:
    @contextlib.asynccontextmanager
    async def entrance(tmp_path: Path) -> AsyncGenerator[Entrance]:
        async with open_gateway(tmp_path, servers(), **OWN) as gateway:
            async with http_client(gateway.mcp + query, version, listen=False) as client:
                yield OverMcp(client, FILTERED if query else RULES)

    return entrance


def over_a_pipe(version: str, *, bridge: bool = False) -> Opening:
    @contextlib.asynccontextmanager
    async def entrance(tmp_path: Path) -> AsyncGenerator[Entrance]:
        config = write_config(tmp_path / "pegboard.json", servers(), **OWN)
        with serving(config) if bridge else contextlib.nullcontext():
            async with stdio_client(config, version, listen=False) as client:
                yield OverMcp(client, RULES)

    return entrance


@contextlib.asynccontextmanager
async def over_rest(tmp_path: Path) -> AsyncGenerator[Entrance]:
    async with open_gateway(tmp_path, servers(), **OWN) as gateway:
        await gateway.board.refresh()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            yield OverRest(http)


@contextlib.asynccontextmanager
async def from_python(tmp_path: Path) -> AsyncGenerator[Entrance]:
    del tmp_path
    async with Pegboard(servers(), settings=OWN) as board:
        yield FromPython(board)


ENTRANCES: dict[str, Opening] = {
    "handshake over HTTP": over_http("2025-11-25"),
    "modern over HTTP": over_http("2026-07-28"),
    "handshake over HTTP, filtered": over_http("2025-11-25", FILTER),
    "modern over HTTP, filtered": over_http("2026-07-28", FILTER),
    "handshake over a pipe": over_a_pipe("2025-11-25"),
    "modern over a pipe": over_a_pipe("2026-07-28"),
    "handshake over the bridge": over_a_pipe("2025-11-25", bridge=True),
    "modern over the bridge": over_a_pipe("2026-07-28", bridge=True),
    "REST": over_rest,
    "Python": from_python,
}


@pytest.mark.parametrize("fast_path", ["on", "off"])
@pytest.mark.parametrize("entrance", ENTRANCES)
async def test_what_a_rule_forbids_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entrance: str, fast_path: str
) -> None:
    """Whoever comes in by whichever entrance: the same rules hold, and what they leave can be used."""
    if fast_path == "off" and entrance in {"REST", "Python"}:
        pytest.skip("there is one way only")
    monkeypatch.setenv("PEGBOARD_FAST_PATH", fast_path)
    async with ENTRANCES[entrance](tmp_path) as way:
        listed = await way.listed()
        found = await way.found("erase all keep add memory update registry")
        assert {"denying__keep", "allowing__keep"} <= listed
        assert {"denying__keep", "allowing__keep"} <= found
        for rule, name in way.hidden.items():
            assert name not in listed, rule
            assert name not in found, rule
            refused = await way.refused(name)
            assert refused == dict.fromkeys(refused, True), rule
        for name in ("denying__keep", "allowing__keep"):
            refused = await way.refused(name)
            assert refused == dict.fromkeys(refused, False), name
        await way.attack()


async def test_a_tool_that_is_denied_while_its_server_is_off_is_not_told_of(tmp_path: Path) -> None:
    """What is remembered of a disabled server follows its rules as they are now."""
    one = toy(tools=TOOLS)
    async with (
        open_gateway(tmp_path, {"one": one}) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        await gateway.board.refresh()
        await gateway.configure({"one": {**one, "enabled": False}})
        await gateway.configure({"one": {**one, "enabled": False, "tools": {"deny": ["erase_*"]}}})
        tools = {tool["name"] for tool in (await http.get("/api/tools")).json()["data"]["tools"]}
        assert "one__keep" in tools
        assert "one__erase_all" not in tools


@pytest.mark.both_paths
async def test_a_denied_tool_is_refused_as_soon_as_the_config_is_taken_over(tmp_path: Path) -> None:
    """Not only once the old process has ended, which may take as long as it likes."""
    one = toy(tools=TOOLS, ignore_eof=True)
    async with open_gateway(tmp_path, {"one": one}) as gateway, http_client(gateway.mcp) as client:
        assert "isError" not in await client.call("one__erase_all")
        denying = {**one, "env": {"ELSE": "1"}, "tools": {"deny": ["erase_*"]}}
        change = asyncio.create_task(gateway.configure({"one": denying}))
        await eventually(lambda: gateway.board.settings.servers["one"].deny)
        with pytest.raises(RpcError, match="Unknown tool"):
            await client.call("one__erase_all")
        assert not change.done(), "the old process has not ended yet"
        await change
        with pytest.raises(RpcError, match="Unknown tool"):
            await client.call("one__erase_all")


async def test_people_do_not_search_where_the_search_is_denied(tmp_path: Path) -> None:
    """`tool_find` in `tools.deny` holds for REST and for Python, too."""
    own: dict[str, Any] = {"toolsets": ["discovery"], "tools": {"deny": ["tool_find"]}}
    async with (
        open_gateway(tmp_path, {}, **own) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        assert (await http.get("/api/tools/search", params={"q": "x"})).status_code == 403
    async with Pegboard(settings=own) as board:
        assert not (await board.find("x")).success


async def test_a_tool_that_becomes_local_is_refused_to_clients_elsewhere_from_then_on() -> None:
    """Whatever was decided before; and no decision is kept for a filter that is longer than anybody needs."""

    class Changing(ResultTool):
        """A tool of a program."""

        name = "changing"
        description = "It changes."
        private = False

        def is_local_only(self) -> bool:
            """As things are now."""
            return self.private

        async def call(self, arguments: Mapping[str, Any]) -> Any:
            return dict(arguments)

    board, tool = Board(Settings(toolsets=())), Changing()
    board.register(tool)
    elsewhere = Filter().for_remote()
    assert board.gate.tool("changing", elsewhere) is not None
    tool.private = True
    assert board.gate.tool("changing", elsewhere) is None
    assert board.gate.tool("changing", Filter()) is not None
    assert board.gate.tool("changing", Filter.of(None, "changing" * 1000)) is None
    assert all(not wanted.is_long and not wanted.remote for _, wanted in board.gate._decided)
