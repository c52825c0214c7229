"""Large results over MCP, on both paths and in both eras."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import HANDSHAKE_VERSIONS, MODERN, http_client, open_gateway, unstamped
from pegboard.results.room import Room
from pegboard.servers.errors import RpcError
from results.corpus import corpus
from results.shelf import GET, Shelf, about, open_shelf, records, text_of, text_result

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

ERAS = pytest.mark.parametrize("version", [HANDSHAKE_VERSIONS[-1], MODERN])
LARGE = text_result(json.dumps({"items": records(), "total": 2000}))


async def read(client: Any, result_id: str, **wanted: Any) -> dict[str, Any]:
    """A page of a kept result."""
    result = await client.call("result_read", {"id": result_id, **wanted})
    assert result["structuredContent"]["success"], result
    return result["structuredContent"]["data"]


async def read_all(client: Any, result_id: str, **wanted: Any) -> str:
    """All of a text, page by page."""
    texts, offset = [], 0
    while offset is not None:
        page = await read(client, result_id, offset=offset, **wanted)
        texts.append(page["text"])
        offset = page["next"]
    return "".join(texts)


@pytest.mark.scenario("results: Under the cap nothing changes")
@ERAS
async def test_what_fits_is_not_touched_and_what_does_not_is_kept(version: str, tmp_path: Path) -> None:
    """To the last byte below the cap; above it a part is given, and all pages together are the whole."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        for text in ("x" * 40_000, json.dumps(records(700)), "\u2028" * 1000):
            result = text_result(text, isError=False, other={"big": 2**70})
            given = await client.call(GET, shelf.put(result))
            assert unstamped(given, client) == result
        for text in ("y" * 40_001, LARGE["content"][0]["text"]):
            given = await client.call(GET, shelf.put(text_result(text, isError=False)))
            assert len(text_of(given)) <= 40_000
            assert given["isError"] is False
            kept = about(given)["id"]
            assert text_of(given).startswith(f"[pegboard] {len(text):,} characters, shown ")
            assert f'whole: result_read("{kept}")' in text_of(given).partition("\n")[0]
            assert await read_all(client, kept, path="") == text


@ERAS
async def test_a_sample_of_all_shapes(version: str, tmp_path: Path) -> None:
    """Over the wire: what is above the cap fits, what is below is the same."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        for name, result in corpus()[::9]:
            given = await client.call(GET, shelf.put(result))
            if not about(given):
                assert unstamped(given, client) == result, name
                continue
            texts = [block for block in given["content"] if block["type"] == "text"]
            assert len(texts) == 1, name
            assert len(texts[0]["text"]) <= 40_000, name
            assert "structuredContent" not in given
            pictures = [block for block in result["content"] if block["type"] == "image"]
            assert [block for block in given["content"] if block["type"] == "image"] == pictures


@ERAS
async def test_a_kept_result_is_a_resource(version: str, tmp_path: Path) -> None:
    """A link leads to the whole, with its size; what is not there is an error that says what to do."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        given = await client.call(GET, shelf.put(LARGE))
        (link,) = [block for block in given["content"] if block["type"] == "resource_link"]
        text = LARGE["content"][0]["text"]
        assert (link["uri"], link["size"]) == (f"pegboard://result/{about(given)['id']}", len(text))
        assert link["mimeType"] == "application/json"
        (content,) = (await client.request("resources/read", {"uri": link["uri"]}))["contents"]
        assert content == {"uri": link["uri"], "mimeType": "application/json", "text": text}
        with pytest.raises(RpcError, match="call the tool again"):
            await client.request("resources/read", {"uri": "pegboard://result/r_none"})


async def test_clients_that_know_no_links_get_none(tmp_path: Path) -> None:
    """Links to resources came with 2025-06-18."""
    async with open_shelf(tmp_path) as (gateway, shelf):
        for version in HANDSHAKE_VERSIONS:
            async with http_client(gateway.mcp, version) as client:
                given = await client.call(GET, shelf.put(LARGE))
                kinds = [block["type"] for block in given["content"]]
                assert kinds == (["text", "resource_link"] if version >= "2025-06-18" else ["text"])


@pytest.mark.scenario("results: A kept result is its principal's and its session's")
async def test_a_session_reads_its_own_results_alone(tmp_path: Path) -> None:
    """In the handshake era a result is its session's; in the modern one its principal's."""
    async with (
        open_shelf(tmp_path) as (gateway, shelf),
        http_client(gateway.mcp) as first,
        http_client(gateway.mcp) as second,
        http_client(gateway.mcp, MODERN) as modern,
        http_client(gateway.mcp, MODERN, name="other") as other,
    ):
        arguments = shelf.put(LARGE)
        of_session, of_principal = [about(await each.call(GET, arguments))["id"] for each in (first, modern)]
        for kept, readers, strangers in (
            (of_session, [first], [second, modern]),
            (of_principal, [modern, other], [first]),
        ):
            for client in readers:
                assert (await read(client, kept, limit=1))["total"] == 2000
            for client in strangers:
                assert "no result" in text_of(await client.call("result_read", {"id": kept}))


@pytest.mark.scenario("results: A kept result is its principal's and its session's")
@ERAS
async def test_another_principal_finds_nothing(version: str, tmp_path: Path) -> None:
    """The same words as for an id that never was, by the tool and as a resource."""
    async with open_shelf(tmp_path, auth={"required": True}) as (gateway, shelf):
        # A rule that gives only a server gives what was left out of its results, too.
        one = await gateway.token("one", servers=["shelf"])
        two = await gateway.token("two")
        async with (
            http_client(gateway.mcp, version, headers=one) as client,
            http_client(gateway.mcp, version, headers=two) as stranger,
        ):
            kept = about(await client.call(GET, shelf.put(LARGE)))["id"]
            assert (await read(client, kept, limit=1))["total"] == 2000
            never = "r_" + "A" * (len(kept) - 2)
            told = [
                text_of(await stranger.call("result_read", {"id": each})).replace(each, "ID") for each in (kept, never)
            ]
            assert told[0] == told[1]
            assert "call the tool again" in told[0]
            with pytest.raises(RpcError, match="Resource not found"):
                await stranger.request("resources/read", {"uri": f"pegboard://result/{kept}"})


@ERAS
async def test_tool_call_obeys_the_same_cap(version: str, tmp_path: Path) -> None:
    """Whichever way a tool is called."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        arguments = {"name": GET, "arguments": shelf.put(LARGE)}
        given = await client.call("tool_call", arguments)
        assert (await read(client, about(given)["id"]))["total"] == 2000
        assert len(text_of(given)) <= 40_000


@pytest.mark.scenario("results: Which cap holds is said in one order")
@ERAS
async def test_a_request_says_its_own_cap(version: str, tmp_path: Path) -> None:
    """In `_meta`, before all others; it is for us alone. What is no cap is an error."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        call = {"name": GET, "arguments": shelf.put(LARGE)}
        for cap in (0, "off", 500, 150_000):
            given = await client.request("tools/call", {**call, "_meta": {"pegboard/cap": cap}})
            assert len(text_of(given)) <= (10**9 if cap in {0, "off"} else int(cap))
            assert bool(about(given)) == (cap == 500)
        kept = about(await client.call(GET, shelf.put(LARGE)))["id"]
        page = {"name": "result_read", "arguments": {"id": kept}, "_meta": {"pegboard/cap": 900}}
        assert 300 < len(text_of(await client.request("tools/call", page))) <= 900
        for wrong in (-1, 1, "many", 1.5, True):
            with pytest.raises(RpcError, match="pegboard/cap") as raised:
                await client.request("tools/call", {**call, "_meta": {"pegboard/cap": wrong}})
            assert raised.value.code == -32602


@pytest.mark.scenario("results: Which cap holds is said in one order")
@pytest.mark.parametrize(
    ("own", "entry", "tool", "cap"),
    [
        ({}, {}, {}, 40_000),
        ({"results": {"cap": 5000}}, {}, {}, 5000),
        ({"results": {"cap": 0}}, {}, {}, 0),
        ({"results": {"cap": "off"}}, {}, {}, 0),
        ({"expose": "all"}, {}, {}, 0),
        ({"expose": "all", "results": {"cap": 5000}}, {}, {}, 5000),
        ({"results": {"cap": 5000, "clients": {"raw": 6000}}}, {}, {}, 6000),
        ({"results": {"clients": {"raw": 6000}}}, {"results": {"cap": 7000}}, {}, 7000),
        ({"results": {"tools": {"shelf__*": 8000}}}, {"results": {"cap": 7000}}, {}, 8000),
        ({"results": {"tools": {"shelf__*": 8000, "shelf__get": 9000}}}, {}, {}, 9000),
        ({"results": {"cap": 5000, "tools": {"shelf__*": 0}}}, {}, {}, 0),
        ({}, {"results": {"cap": 0}}, {}, 0),
        ({}, {}, {"_meta": {"anthropic/maxResultSizeChars": 60_000}}, 60_000),
        ({}, {}, {"_meta": {"anthropic/maxResultSizeChars": 10**9}}, 0),
        ({}, {}, {"_meta": {"anthropic/maxResultSizeChars": "many"}}, 40_000),
        ({"results": {"tools": {"shelf__get": 9000}}}, {}, {"_meta": {"anthropic/maxResultSizeChars": 60_000}}, 9000),
        ({}, {"results": {"cap": 7000}}, {"_meta": {"anthropic/maxResultSizeChars": 60_000}}, 7000),
        ({"results": {"clients": {"raw": 6000}}}, {}, {"_meta": {"anthropic/maxResultSizeChars": 60_000}}, 60_000),
    ],
)
@ERAS
async def test_which_cap_holds(
    version: str, own: dict[str, Any], entry: dict[str, Any], tool: dict[str, Any], cap: int, tmp_path: Path
) -> None:
    """Of a tool before that of a server, a client, and all; off where every tool is listed, unless somebody sets it."""
    async with (
        open_shelf(tmp_path, entry, {"get": tool}, **own) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
    ):
        given = await client.call(GET, shelf.put(LARGE))
        assert (len(text_of(given)) > (cap or 10**6) * 0.9) if about(given) else not cap
        assert len(text_of(given)) <= (cap or 10**6)
        # Where there is no cap, there is nothing to read on, and the tool for it costs nobody anything.
        can_be = not (own.get("expose") == "all" or own.get("results", {}).get("cap", 1) in {0, "off"})
        listed = can_be or any(own.get("results", {}).get(key) for key in ("clients", "tools"))
        assert ("result_read" in await client.names()) == (listed or own.get("results", {}).get("cap", 0) == 5000)


@pytest.mark.scenario("results: Which cap holds is said in one order")
@pytest.mark.parametrize("tool", [{}, {"_meta": {"anthropic/maxResultSizeChars": 60_000}}])
async def test_known_clients_have_less_where_they_would_cut_themselves(tool: Any, tmp_path: Path) -> None:
    """What a client cuts by itself is lost, whatever a tool says of its results."""
    async with (
        open_shelf(tmp_path, {}, {"get": tool}) as (gateway, shelf),
        http_client(gateway.mcp, MODERN, name="codex-mcp-client") as client,
    ):
        assert 20_000 < len(text_of(await client.call(GET, shelf.put(LARGE)))) <= 30_000


@pytest.mark.scenario("results: Errors have their room, and what is no text passes")
@ERAS
async def test_errors_and_what_is_no_text(version: str, tmp_path: Path) -> None:
    """An error has ten thousand characters at least; pictures pass, however large."""
    picture = {"type": "image", "data": "iVBORw0KGgo=" * 9000, "mimeType": "image/png"}
    async with (
        open_shelf(tmp_path, results={"cap": 1000}) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
    ):
        for size, least in ((9_999, 9_999), (30_000, 9_000)):
            error = text_result("e" * size, isError=True)
            given = await client.call(GET, shelf.put(error))
            assert given["isError"] is True
            assert 10_000 >= len(text_of(given)) >= least
        shown = {"content": [picture, {"type": "text", "text": "a picture"}, picture]}
        assert unstamped(await client.call(GET, shelf.put(shown)), client) == shown
        long = {"content": [picture, {"type": "text", "text": "t" * 5000}, picture]}
        given = await client.call(GET, shelf.put(long))
        assert [block["type"] for block in given["content"]] == ["image", "text", "resource_link", "image"]
        assert (given["content"][0], given["content"][3]) == (picture, picture)


async def test_the_record_of_a_call_has_the_size_of_the_whole(tmp_path: Path) -> None:
    """In the audit a result is as large as its server gave it."""
    async with open_shelf(tmp_path, audit={}) as (gateway, shelf), http_client(gateway.mcp) as client:
        await client.call(GET, shelf.put(LARGE))
        await gateway.board.audit.settle()
        rows = await gateway.board.storage.database.read(
            lambda connection: connection.rows("SELECT result_bytes FROM audit WHERE tool = ?", GET)
        )
        assert len(rows) == 1
        assert rows[0][0] > len(LARGE["content"][0]["text"])


async def test_without_its_reader_nothing_is_cut_by_itself(tmp_path: Path) -> None:
    """A gateway without the tool gives everything, unless a cap was set; then the link leads to the rest."""
    shelf = Shelf(tmp_path / "shelf")
    for results, is_cut in (({}, False), ({"results": {"cap": 3000}}, True)):
        own = {"expose": "search", "toolsets": ["discovery", "results"], "tools": {"deny": ["result_read"]}, **results}
        async with (
            open_gateway(tmp_path, {"shelf": shelf.entry()}, storage=f"sqlite:{tmp_path}/kept.db", **own) as gateway,
            http_client(gateway.mcp) as client,
        ):
            given = await client.call(GET, shelf.put(LARGE))
            assert bool(about(given)) == is_cut
            assert "result_read" not in text_of(given)
            if is_cut:
                assert f"whole: the resource pegboard://result/{about(given)['id']}" in text_of(given)


@pytest.mark.scenario("results: No text is larger than its cap")
@ERAS
async def test_descriptions_of_links_are_text(version: str, tmp_path: Path) -> None:
    """They are shortened and kept with the rest; the links stay. A few short ones are left alone."""
    link = {"type": "resource_link", "mimeType": "text/plain"}
    short = [{**link, "uri": f"x://{number}", "name": f"file {number}", "title": "File"} for number in range(20)]
    long = [{**each, "description": f"{number} READ ME" * 500} for number, each in enumerate(short)]
    async with (
        open_shelf(tmp_path, results={"cap": 10_000}) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
    ):
        given = await client.call(GET, shelf.put({"content": [*text_result("a" * 20_000)["content"], *short]}))
        assert [block for block in given["content"] if block.get("uri", "").startswith("x:")] == short
        assert await read_all(client, about(given)["id"], path="") == "a" * 20_000
        given = await client.call(GET, shelf.put({"content": [*text_result("see")["content"], *long]}))
        links = [block for block in given["content"] if block.get("uri", "").startswith("x:")]
        assert links == [{**link, "uri": each["uri"], "name": each["name"]} for each in short]
        assert len(text_of(given)) <= 10_000
        assert "x://19" in text_of(given)
        whole = await read_all(client, about(given)["id"], path="")
        assert all(each["description"] in whole for each in long)


@pytest.mark.scenario("results: No text is larger than its cap")
@ERAS
async def test_addresses_of_links_are_text(version: str, tmp_path: Path) -> None:
    """The links that are short together stay; the whole has the addresses of all."""
    links = [
        {"type": "resource_link", "uri": f"x://{number}/{'a b ' * (500 if number % 2 else 10)}", "name": f"{number}"}
        for number in range(100)
    ]
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        given = await client.call(GET, shelf.put({"content": links}))
        assert sum(len(json.dumps(block)) for block in given["content"]) < 45_000
        kept = [block for block in given["content"] if block.get("uri", "").startswith("x:")]
        assert len(kept) > 20
        assert kept == links[: 2 * len(kept) : 2]
        whole = await read_all(client, about(given)["id"], path="")
        assert all(link["uri"] in whole for link in links)


@pytest.mark.scenario("results: No text is larger than its cap")
@ERAS
async def test_a_result_of_any_type_has_its_cap(version: str, tmp_path: Path) -> None:
    """Whatever its server calls it: only what asks for input is no result yet."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        for kind in ("complete", "other", 7, None):
            given = await client.call(GET, shelf.put(text_result("word " * 10_000, resultType=kind)))
            assert len(text_of(given)) <= 40_000
            assert await read_all(client, about(given)["id"]) == "word " * 10_000


async def hold_unread(gateway: Any, client: Any, uri: str, begun: asyncio.Semaphore, until: asyncio.Event) -> None:
    """Ask for a resource, and read nothing of the answer but its beginning."""
    params, own = client._stamped("resources/read", {"uri": uri})
    headers = {
        "accept": "application/json, text/event-stream",
        **client.link.transport._session_headers(),
        **(own or {}),
    }
    message = {"jsonrpc": "2.0", "id": f"unread {id(params)}", "method": "resources/read", "params": params}
    async with (
        httpx2.AsyncClient(timeout=60) as web,
        web.stream("POST", gateway.mcp, json=message, headers=headers) as answer,
    ):
        # Kept until the end: it closes the answer when it is forgotten.
        parts, size = answer.aiter_raw(), 0
        while size < 100_000:
            size += len(await anext(parts))
        begun.release()
        await until.wait()


@pytest.mark.scenario("results: What others send keeps nobody waiting")
@ERAS
async def test_whole_results_that_nobody_reads_have_their_room(version: str, tmp_path: Path) -> None:
    """Until they are read, or whoever asked has gone; the room is there again then."""
    async with open_shelf(tmp_path) as (gateway, shelf), http_client(gateway.mcp, version) as client:
        gateway.board.results._room = room = Room(25_000_000, 90_000_000)
        kept = about(await client.call(GET, shelf.put(text_result("word " * 2_000_000))))["id"]
        wanted, begun, done = {"uri": f"pegboard://result/{kept}"}, asyncio.Semaphore(0), asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(hold_unread(gateway, client, wanted["uri"], begun, done))
            for _ in range(2):
                await begun.acquire()
            with pytest.raises(RpcError, match="on their way already: try again"):
                await client.request("resources/read", wanted)
            done.set()
        async with asyncio.timeout(60):
            while room._taken:
                await asyncio.sleep(0.01)
        (content,) = (await client.request("resources/read", wanted))["contents"]
        assert len(content["text"]) == 10_000_000


@pytest.mark.scenario("results: Which cap holds is said in one order")
@pytest.mark.parametrize("count", [2, 40])
@ERAS
async def test_whoever_lists_tools_while_servers_start_can_read_on(version: str, count: int, tmp_path: Path) -> None:
    """Many tools may come, and results are cut then; many clients ask for the list only once."""
    closed = tmp_path / "closed"
    closed.touch()
    shelf = Shelf(tmp_path / "shelf", **{f"get{number}": {} for number in range(count - 1)})
    start = shelf.entry()
    wait = 'while test -e "$0"; do sleep 0.05; done; exec "$@"'
    entry = {"command": "sh", "args": ["-c", wait, str(closed), start["command"], *start["args"]]}
    own = {"toolsets": ["discovery", "results"], "storage": f"sqlite:{tmp_path}/kept.db"}
    async with (
        open_gateway(tmp_path, {"shelf": entry}, expose="auto", **own) as gateway,
        http_client(gateway.mcp, version) as client,
    ):
        assert "result_read" in await client.names()
        closed.unlink()
        given = await client.call("tool_call", {"name": GET, "arguments": shelf.put(LARGE)})
        assert bool(about(given)) == (count == 40)
        await client.until_listed(lambda names: ("result_read" in names) == (count == 40))
