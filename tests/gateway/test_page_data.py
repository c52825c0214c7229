"""What a page shows beside what there was: numbers of tokens and calls, sessions, boards, how memories are linked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, MODERN, Entry, Gateway, http_client, open_gateway, toy
from pegboard import pace
from pegboard.audit import statistics
from pegboard.audit.query import AuditQuery
from pegboard.audit.statistics import POINTS, CallStatistics, Statistics
from pegboard.board import Board
from pegboard.client_configs.check import check_target
from pegboard.client_configs.entries import EntryTarget
from pegboard.gateway.rest import rows, shared_counts
from pegboard.gateway.rest.rows import count_tools
from pegboard.gateway.rest.shared_counts import SharedCounts
from pegboard.listing.view import EVERYTHING, Filter
from servers.toy import BUILT_IN

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def rest(
    tmp_path: Path, servers: dict[str, Entry], **own: Any
) -> AsyncGenerator[tuple[httpx2.AsyncClient, Gateway]]:
    async with (
        open_gateway(tmp_path, servers, **own) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway


async def read(http: httpx2.AsyncClient, path: str, status: int = 200, headers: dict[str, str] | None = None) -> Any:
    answer = await http.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    said = answer.json()
    return said["data"] if said["success"] else said["error"]["message"]


def test_calls_are_counted_by_server_by_tool_and_over_time() -> None:
    """Errors too, and how long half of them and nearly all of them took."""
    rows = [(int(at * 1e9), "one", f"one__{at % 2}", "ok" if at else "failed", at * 1000) for at in range(100)]
    found = Statistics.of(rows, 0.0, 100.0)
    assert found.total.to_dict() == {"calls": 100, "errors": 1, "p50": 50.0, "p99": 99.0}
    assert found.tools["one__1"].to_dict() == {"calls": 50, "errors": 0, "p50": 51.0, "p99": 99.0}
    assert {name: each.calls for name, each in found.servers.items()} == {"one": 100}
    assert (len(found.points), sum(point.calls for point in found.points)) == (POINTS, 100)
    assert (found.points[0].errors, found.points[-1].errors) == (1, 0)


async def test_statistics_tell_what_tools_cost_and_how_calls_went(tmp_path: Path) -> None:
    """Everything in a prompt against what a new client is given, and what that saved."""
    own = {"expose": "search", "toolsets": ["discovery"], "audit": {}}
    async with rest(tmp_path, {"one": toy(), "two": toy()}, **own) as (http, gateway):
        await gateway.board.discover_all_tools()
        await http.post("/api/tools/one__echo/call", json={"arguments": {"text": "a"}})
        await http.post("/api/tools/one__no_such/call", json={})
        await read(http, "/api/tools")
        async with http_client(gateway.mcp, MODERN) as client:
            await client.request("tools/list")
        stats = await read(http, "/api/stats")
        of_two = await read(http, "/api/stats?server=two&since=1h")
        tools = (await read(http, "/api/tools?server=one"))["tools"]
    tokens = stats["tokens"]
    assert 0 < tokens["first"] < tokens["all"]
    # Who looks at the tools over REST is no client that is given its list.
    assert (tokens["lists"], tokens["saved"]) == (1, tokens["all"] - tokens["first"])
    one = next(row for row in stats["servers"] if row["name"] == "one")
    assert (one["calls"], one["errors"], one["tools"]) == (1, 0, len(tools))
    assert one["tokens"] == sum(tool["tokens"] for tool in tools) > 0
    assert (stats["recorded"], stats["total"]["calls"], stats["total"]["errors"]) == (True, 2, 1)
    assert {row["name"] for row in stats["tools"]} == {"one__echo", "one__no_such"}
    assert sum(point["calls"] for point in stats["points"]) == 2
    assert of_two["total"]["calls"] == 0


async def test_a_list_of_our_own_check_saves_nobody_a_prompt(tmp_path: Path) -> None:
    """When a client is connected, Pegboard asks as that client will ask, to see whether it answers."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        await gateway.board.discover_all_tools()
        found = await asyncio.to_thread(check_target, EntryTarget(url=gateway.mcp))
        assert (found.problem, found.tools) == (None, (await read(http, "/api/tools"))["total"])
        assert (await read(http, "/api/stats"))["tokens"]["lists"] == 0


async def test_a_tool_costs_the_same_on_every_screen(tmp_path: Path) -> None:
    """With the name that clients know it by, also where it is denied and so in no list."""
    servers = {"one": toy(), "two": toy({"tools": {"deny": ["echo"]}}), "bare": toy({"prefix": False}, tools=["own"])}
    async with rest(tmp_path, servers) as (http, gateway):
        await gateway.board.discover_all_tools()
        listed = {row["name"]: row["tokens"] for row in (await read(http, "/api/tools"))["tools"]}
        offers = {
            name: {row["name"]: row["tokens"] for row in (await read(http, f"/api/servers/{name}"))["offers"]}
            for name in servers
        }
    assert offers["one"]["echo"] == offers["two"]["echo"] == listed["one__echo"]
    assert offers["bare"]["own"] == listed["own"]


async def test_a_token_is_given_as_many_tools_as_there_are(tmp_path: Path) -> None:
    """Those that find others count as they do everywhere else."""
    async with rest(tmp_path, {"one": toy()}, toolsets=["discovery"]) as (http, gateway):
        await gateway.board.discover_all_tools()
        token = await gateway.token("any")
        gives = (await read(http, "/api/whoami"))["gives"]
        theirs = (await read(http, "/api/whoami", headers=token))["gives"]
        total = (await read(http, "/api/tools"))["total"]
        assert gives["tools"] == gives["of"] == theirs["tools"] == (await read(http, "/api/status"))["tools"] == total
        none = (await read(http, "/api/whoami", headers=await gateway.token("none", servers=[])))["gives"]
    assert none["tools"] == none["finding"] > 0


async def test_statistics_of_a_weak_token_are_its_own(tmp_path: Path) -> None:
    """Other servers, and other people's calls, are not counted."""
    async with rest(tmp_path, {"one": toy(), "two": toy()}, audit={}) as (http, gateway):
        await gateway.board.discover_all_tools()
        weak = await gateway.token("weak", servers=["two"])
        await http.post("/api/tools/one__echo/call", json={"arguments": {"text": "a"}})
        await http.post("/api/tools/two__echo/call", json={"arguments": {"text": "a"}}, headers=weak)
        whole, stats = await read(http, "/api/stats"), await read(http, "/api/stats", headers=weak)
    assert ([row["name"] for row in stats["servers"]], stats["total"]["calls"]) == (["two"], 1)
    assert stats["tokens"].keys() == {"all", "first"}
    assert stats["tokens"]["all"] < whole["tokens"]["all"]


async def test_statistics_that_many_ask_for_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that takes long, also for whoever asks in the next moment; other calls are other statistics, and one count
    is made at a time, and beside the event loop."""
    async with rest(tmp_path, {"one": toy()}, audit={}) as (http, gateway):
        weak = await gateway.token("weak")
        await http.post("/api/tools/one__echo/call", json={"arguments": {"text": "a"}})
        counted, under_way, threads = list[str | None](), [0], set[threading.Thread]()
        statistics_of, to_dict = gateway.board.audit.statistics, CallStatistics.to_dict

        async def slowly(query: AuditQuery, since: float, until: float) -> Statistics:
            counted.append(query.owner)
            under_way[0] += 1
            assert under_way == [1]
            await asyncio.sleep(shared_counts._LONG * 1.1)
            under_way[0] -= 1
            return await statistics_of(query, since, until)

        def watched(self: CallStatistics) -> dict[str, Any]:
            threads.add(threading.current_thread())
            return to_dict(self)

        monkeypatch.setattr(gateway.board.audit, "statistics", slowly)
        monkeypatch.setattr(CallStatistics, "to_dict", watched)
        asked = [read(http, "/api/stats", headers=headers) for headers in (None, None, weak, weak, None)]
        found = await asyncio.gather(*asked)
        assert [stats["total"]["calls"] for stats in found] == [1, 1, 0, 0, 1]
        assert len(counted) == len(set(counted)) == 2
        await read(http, "/api/stats?since=1h")
        monkeypatch.setattr(shared_counts, "_GOOD_FOR", 0.0)
        await read(http, "/api/stats?since=2h")
        await read(http, "/api/stats?since=2h")
        assert len(counted) == 5
    assert threading.current_thread() not in threads


async def test_a_count_that_is_quick_is_of_now() -> None:
    """Whoever asks after a call is told of it, also if somebody asked before; those who wait share a count."""
    counts, may_go, began = SharedCounts[int](), asyncio.Event(), list[int]()

    async def count() -> int:
        began.append(len(began))
        await may_go.wait()
        return len(began)

    asked = [asyncio.ensure_future(counts.take(who, "calls", count)) for who in ("a", "a", "b", "b")]
    await asyncio.sleep(0)
    before = len(began)
    may_go.set()
    assert (before, await asyncio.gather(*asked)) == (1, [1, 2, 2, 2])
    assert await counts.take("a", "calls", count) == 3


async def test_of_more_calls_than_can_be_counted_the_newest_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is said."""
    monkeypatch.setattr(statistics, "MOST_CALLS", 1)
    monkeypatch.setattr("pegboard.audit.store.MOST_CALLS", 1)
    async with rest(tmp_path, {"one": toy()}, audit={}) as (http, _):
        for name in ("old", "new"):
            await http.post(f"/api/tools/{name}/call", json={})
        stats = await read(http, "/api/stats")
        assert "since" in await read(http, "/api/stats?since=2100-01-01", 400)
    assert ([row["name"] for row in stats["tools"]], stats["cut"]) == (["new"], True)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=999999999w", "since must be between the years 1970 and 9999"),
        ("since=0001-01-01T00:00%2B23:59", "since must be between the years 1970 and 9999"),
        ("since=bananas", "since must be like"),
        (f"server={'*a' * 101}", "server has more than 200 characters"),
        (f"tool={'*a' * 101}", "tool has more than 200 characters"),
    ],
)
async def test_what_statistics_are_asked_for_is_checked(tmp_path: Path, query: str, said: str) -> None:
    """A moment that no calendar has, a pattern that is longer than any name."""
    async with rest(tmp_path, {}, audit={}) as (http, _):
        assert said in await read(http, f"/api/stats?{query}", 400)


async def test_words_that_tools_are_chosen_by_are_so_many(tmp_path: Path) -> None:
    """Each is looked for in every tool."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        await gateway.board.discover_all_tools()
        assert (await read(http, "/api/tools?words=ECHO%20one"))["total"] == 1
        assert "words has more than" in await read(http, f"/api/tools?words={'a%20' * 501}", 400)


async def test_without_the_audit_it_is_said_that_nothing_is_known(tmp_path: Path) -> None:
    """Rather than that nobody called anything."""
    async with rest(tmp_path, {"one": toy()}) as (http, _):
        assert (await read(http, "/api/stats"))["recorded"] is False


async def test_sessions_are_listed_for_whoever_may_know_of_them(tmp_path: Path) -> None:
    """With what they call themselves and what they have loaded; nobody can go on with one that has its id."""
    async with rest(tmp_path, {"one": toy()}, expose="search", toolsets=["discovery"]) as (http, gateway):
        weak = await gateway.token("weak")
        await gateway.board.discover_all_tools()
        async with http_client(gateway.mcp, "2025-11-25") as client:
            await client.request("tools/call", {"name": "tool_load", "arguments": {"names": ["one__echo"]}})
            listed = await read(http, "/api/sessions")
            assert await read(http, "/api/sessions", headers=weak) == {"sessions": [], "total": 0}
            assert (await read(http, "/api/status"))["sessions"] == 1
            assert (await read(http, "/api/status", headers=weak))["sessions"] == 0
            async with http_client(gateway.mcp, "2025-11-25", headers=weak):
                assert (await read(http, "/api/status", headers=weak))["sessions"] == 1
    (session,) = listed["sessions"]
    assert (session["client"], session["protocolVersion"], session["loaded"]) == ("raw", "2025-11-25", 1)
    assert session["principal"] == {"id": "local", "name": "local"}
    assert len(session["id"]) == 12
    assert abs(datetime.fromisoformat(session["since"]).timestamp() - time.time()) < LIMIT


async def test_a_board_is_read_and_changed(tmp_path: Path) -> None:
    """What is loaded is in the list of whoever comes in there; a tool that is not there changes nothing."""
    async with rest(tmp_path, {"one": toy()}, expose="search", toolsets=["discovery"]) as (http, gateway):
        await gateway.board.discover_all_tools()
        assert await read(http, "/api/boards/mine") == {"name": "mine", "tools": []}
        await http.patch("/api/boards/mine", json={"load": ["one__echo"]})
        answer = await http.patch("/api/boards/mine", json={"unload": ["one__echo"], "load": ["no_such"]})
        assert answer.status_code == 404
        assert await read(http, "/api/boards/mine") == {"name": "mine", "tools": ["one__echo"]}
        async with http_client(f"{gateway.mcp}/mine", MODERN) as client:
            names = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
        assert "one__echo" in names
        weak = await gateway.token("weak", servers=[])
        assert (await http.patch("/api/boards/mine", json={"load": ["one__echo"]}, headers=weak)).status_code == 404
        changed = (await http.patch("/api/boards/mine", json={"unload": ["one__echo"]})).json()["data"]
        assert (changed["tools"], changed["unloaded"]) == ([], ["one__echo"])
        assert (await http.get("/api/boards/%20")).status_code == 404


async def test_no_more_names_are_looked_up_than_a_board_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name counts once however often it is given; too many are refused before any of them is looked for."""
    own = {"expose": "search", "toolsets": ["discovery"], "boardSize": 2}
    async with rest(tmp_path, {"one": toy()}, **own) as (http, gateway):
        await gateway.board.discover_all_tools()
        names = ["one__echo", "one__pid"] * 1000
        assert (await http.patch("/api/boards/mine", json={"load": names, "unload": names})).status_code == 200
        assert await read(http, "/api/boards/mine") == {"name": "mine", "tools": ["one__echo", "one__pid"]}
        looked_for: list[str] = []
        monkeypatch.setattr(gateway.board, "find_tool", looked_for.append)
        monkeypatch.setattr(gateway.board, "lookup_tool", looked_for.append)
        for body, most in (({"load": ["a", "b", "c"]}, 2), ({"unload": [f"a{n}" for n in range(1001)]}, 1000)):
            answer = await http.patch("/api/boards/mine", json=body)
            assert (answer.status_code, f"a board holds {most} tools" in answer.text) == (400, True)
        assert not looked_for


async def test_a_tool_of_a_disabled_server_is_found_without_a_look_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is gone costs nothing, however many tools disabled servers have; one that the config denies is."""
    async with rest(tmp_path, {"one": toy()}, expose="search") as (http, gateway):
        await gateway.board.discover_all_tools()
        await http.post("/api/servers/one/disable")
        looked_at: list[str] = []
        permits = gateway.board.gate.permits
        monkeypatch.setattr(gateway.board.gate, "permits", lambda tool: looked_at.append(tool.name) or permits(tool))
        assert gateway.board.lookup_tool("one__no_such") is None
        found = gateway.board.lookup_tool("one__echo")
        assert (found is not None and found.name, looked_at) == ("one__echo", ["one__echo"])
        await http.patch("/api/servers/one", json={"tools": {"deny": ["echo"]}})
        assert gateway.board.lookup_tool("one__echo") is None


async def test_boards_are_listed_for_those_who_may_use_them(tmp_path: Path) -> None:
    """Each with its tools: one's own and those that one shares, and of those only what one may see; the
    board that a session has for itself never, the named one that it uses even without tools."""
    own = {"expose": "search", "toolsets": ["discovery"]}
    async with rest(tmp_path, {"one": toy(), "two": toy()}, **own) as (http, gateway):
        await gateway.board.discover_all_tools()
        weak = await gateway.token("weak", servers=["two"], boards=["shared", "hidden"])
        for name, tool in (("shared", "two__echo"), ("hidden", "one__echo"), ("private", "two__echo")):
            await http.patch(f"/api/boards/{name}", json={"load": [tool]})
        await http.patch("/api/boards/mine", json={"load": ["two__pid"]}, headers=weak)
        async with http_client(gateway.mcp, "2025-11-25") as one, http_client(f"{gateway.mcp}/empty", "2025-11-25"):
            await one.call("tool_load", {"names": ["one__echo"]})
            every = (await read(http, "/api/boards"))["boards"]
        seen = (await read(http, "/api/boards", headers=weak))["boards"]
    assert [row["name"] for row in every] == ["empty", "hidden", "private", "shared"]
    assert seen == [{"name": "mine", "tools": ["two__pid"]}, {"name": "shared", "tools": ["two__echo"]}]


async def test_why_a_server_cannot_be_asked_is_for_whoever_is_told_its_last_error(tmp_path: Path) -> None:
    """It may say where a program is; whoever is denied a part of the server is told as little by a refresh as by its
    row."""
    async with rest(tmp_path, {"gone": {"command": "/private/ada/program"}}) as (http, gateway):
        part = await gateway.token("part", tools={"deny": ["gone__other"]})
        whole = await gateway.token("whole")
        said = (await http.post("/api/servers/gone/refresh", headers=part)).json()["error"]
        assert (said["message"], said["code"]) == ("server gone could not be asked", "TOOL_UNAVAILABLE")
        (row,) = (await read(http, "/api/servers", headers=part))["servers"]
        assert row["lastError"] is None
        for headers in ({}, whole):
            refused = await http.post("/api/servers/gone/refresh", headers=headers)
            assert "/private/ada/program" in refused.json()["error"]["message"]


async def test_tools_of_many_servers_are_counted_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For whoever is given a part of them, with turns for everybody else; those of disabled servers count, too."""
    servers = {name: toy() for name in ("one", "two", "off")}
    async with rest(tmp_path, servers) as (http, gateway):
        await gateway.board.discover_all_tools()
        await http.post("/api/servers/off/disable")
        part = await gateway.token("part", tools={"deny": ["*__pid"]})
        passes = list[set[str]]()

        async def watched(board: Board, names: Collection[str], wanted: Filter) -> dict[str, int]:
            passes.append({*names})
            return await count_tools(board, names, wanted)

        monkeypatch.setattr(rows, "count_tools", watched)
        found = (await read(http, "/api/servers", headers=part))["servers"]
        assert {row["name"]: row["tools"] for row in found} == dict.fromkeys(servers, len(BUILT_IN) - 1)
        assert passes == [{*servers}]
        monkeypatch.setattr(pace, "SLICE", 0.0)
        counting = asyncio.ensure_future(count_tools(gateway.board, ["one"], EVERYTHING))
        await asyncio.sleep(0)
        assert not counting.done()
        assert await counting == {"one": len(BUILT_IN)}


async def test_what_a_tool_costs_is_told_with_it(tmp_path: Path) -> None:
    """In the list, in what was found, and of one tool, the same."""
    async with rest(tmp_path, {"one": toy()}, toolsets=["discovery"]) as (http, gateway):
        await gateway.board.discover_all_tools()
        (listed,) = [row for row in (await read(http, "/api/tools"))["tools"] if row["name"] == "one__echo"]
        found = (await read(http, "/api/tools/search?q=echo"))["tools"][0]
        whole = await read(http, "/api/tools/one__echo")
    assert found["name"] == "one__echo"
    assert listed["tokens"] == found["tokens"] == whole["tokens"] > 0


async def test_a_shared_board_names_nothing_that_one_may_not_see(tmp_path: Path) -> None:
    """It is neither shown nor unloaded, nor named where it has to make room; nor when it is gone for the moment."""
    own = {"expose": "search", "toolsets": ["discovery"], "boardSize": 1}
    async with rest(tmp_path, {"one": toy(), "two": toy()}, **own) as (http, gateway):
        await gateway.board.discover_all_tools()
        weak = await gateway.token("weak", servers=["two"], boards=["shared"])
        await http.patch("/api/boards/shared", json={"load": ["one__echo"]})
        assert (await read(http, "/api/boards/shared", headers=weak))["tools"] == []
        await http.patch("/api/boards/shared", json={"unload": ["one__echo"]}, headers=weak)
        assert (await read(http, "/api/boards/shared"))["tools"] == ["one__echo"]
        await http.post("/api/servers/one/disable")
        assert (await read(http, "/api/boards/shared", headers=weak))["tools"] == []
        changed = await http.patch("/api/boards/shared", json={"load": ["two__echo"]}, headers=weak)
    assert (changed.json()["data"]["tools"], changed.json()["data"]["unloaded"]) == (["two__echo"], [])


async def test_memories_are_shown_as_a_graph(tmp_path: Path) -> None:
    """Links lead both ways, may lead to what nobody has written, and end after so many; looking counts for nothing."""
    async with rest(tmp_path, {}, toolsets=["memory"]) as (http, _):
        chain = {"a": "b", "b": "c", "c": "d", "d": "later", "x": "a"}
        for key, target in chain.items():
            memory = {"key": key, "summary": f"about {key}", "links": [{"key": target, "type": "next"}]}
            assert (await http.post("/api/memories", json=memory)).status_code == 201
        near = await read(http, "/api/memory/graph?key=a&depth=1")
        far = await read(http, "/api/memory/graph?key=b&depth=3")
        few = await read(http, "/api/memory/graph?key=a&depth=3&limit=2")
        every = await read(http, "/api/memory/graph")
        assert (await read(http, "/api/memories/a"))["meta"]["access_count"] == 1
        assert "depth" in await read(http, "/api/memory/graph?key=a&depth=9", 400)
        await read(http, "/api/memory/graph?key=nobody", 404)
    assert {node["key"]: node["depth"] for node in near["nodes"]} == {"a": 0, "b": 1, "x": 1}
    assert near["links"] == [{"from": "a", "to": "b", "type": "next"}, {"from": "x", "to": "a", "type": "next"}]
    later = next(node for node in far["nodes"] if node["key"] == "later")
    assert later == {"key": "later", "depth": 3, "written": False, "summary": ""}
    assert (len(few["nodes"]), few["cut"]) == (2, True)
    assert ({node["key"] for node in every["nodes"]}, len(every["links"])) == ({"a", "b", "c", "d", "x"}, 4)


async def test_a_memory_is_shown_whole(tmp_path: Path) -> None:
    """All of its text and its links, as they were written, where memory_get cuts; looking counts for nothing."""
    links = [{"key": f"target:{number}", "type": "next", "term": "", "weight": number % 3 / 2} for number in range(300)]
    async with rest(tmp_path, {}, toolsets=["memory"]) as (http, _):
        memory = {"key": "a/b", "summary": "s" * 4000, "text": "ä\n" * 50_000, "links": links}
        assert (await http.post("/api/memories", json=memory)).status_code == 201
        cut = await read(http, "/api/memories/a%2Fb")
        whole = await read(http, "/api/memory/whole?key=a%2Fb")
        assert "key" in await read(http, "/api/memory/whole", 400)
        assert "other" in await read(http, "/api/memory/whole?key=a&other=1", 400)
        await read(http, "/api/memory/whole?key=nobody", 404)
    assert len(cut["text"]) < len(memory["text"])
    assert {name: whole[name] for name in memory} == memory
    assert (whole["version"], whole["meta"]["access_count"], "moreLinks" in whole) == (1, 1, False)


async def test_what_is_shown_is_of_a_namespace_that_one_has(tmp_path: Path) -> None:
    """Another one is refused as it is everywhere."""
    async with rest(tmp_path, {}, toolsets=["memory"]) as (http, gateway):
        await http.post("/api/memories", json={"key": "a", "namespace": "theirs"})
        own = await gateway.token("own", toolsets=["memory"], namespaces=["mine"])
        assert (await read(http, "/api/memory/graph", headers=own))["nodes"] == []
        await read(http, "/api/memory/graph?namespace=theirs", 403, own)
        await read(http, "/api/memory/whole?key=a", 404, own)
        await read(http, "/api/memory/whole?key=a&namespace=theirs", 403, own)
        lister = await gateway.token("lister", tools=["memory_list"])
        await read(http, "/api/memory/graph", headers=lister)
        await read(http, "/api/memory/whole?key=a&namespace=theirs", 403, lister)
        few = await gateway.token("few", toolsets=["memory"], rate="1/h")
        await read(http, "/api/memory/graph", headers=few)
        await read(http, "/api/memory/graph", 429, few)
        none = await gateway.token("none", toolsets=["discovery"])
        await read(http, "/api/memory/graph", 501, none)
        assert len((await read(http, "/api/memory/graph?namespace=theirs"))["nodes"]) == 1


async def test_metrics_of_whoever_is_no_admin_count_nothing_that_others_do(tmp_path: Path) -> None:
    """Only the states of their servers, and how many tools they have; an admin has all, and so has this machine."""
    async with rest(tmp_path, {"one": toy(), "two": toy()}) as (http, gateway):
        await gateway.board.discover_all_tools()
        await http.post("/api/tools/one__echo/call", json={"arguments": {"text": "a"}})
        weak, any_tool = await gateway.token("weak", servers=["two"]), await gateway.token("any")
        admin = await gateway.token("admin", admin=True)
        texts = [(await http.get("/metrics", headers=each)).text for each in (weak, any_tool, admin, None)]
        listed = await read(http, "/api/tools", headers=weak)
    names = [{line.partition("{")[0].split()[0] for line in text.splitlines() if line[0] != "#"} for text in texts]
    assert names[0] == names[1] == {"pegboard_server_state", "pegboard_tools"}
    assert 'server="one"' not in texts[0]
    assert f"pegboard_tools {listed['total']}" in texts[0]
    assert 'pegboard_calls_total{server="one",outcome="ok"} 1' in texts[2]
    assert names[2] == names[3] > names[0]
