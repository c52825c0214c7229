"""The discovery tools over the gateway: find, look, load, call, in both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness import (
    LIMIT,
    Gateway,
    RawClient,
    eventually,
    http_client,
    open_board,
    open_gateway,
    stdio_client,
    toy,
    write_config,
)
from pegboard.listing.view import ListKey
from pegboard.servers.errors import RpcError
from servers.toy import Settings
from servers.toy_http import http_toy

pytestmark = pytest.mark.anyio

DISCOVERY = ["tool_active", "tool_call", "tool_describe", "tool_find", "tool_load", "tool_unload"]
MANY = [f"tool_{number}" for number in range(31)]
VERSIONS = ("2025-11-25", "2026-07-28")
OWN = {"toolsets": ["discovery"]}


def described(name: str, words: str, **properties: Any) -> dict[str, Any]:
    """A tool that says what it does."""
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"name": name, "description": words, "inputSchema": schema}


TASKS = [
    described("registry_list", "List the tasks of the registry with their status.", status={"type": "string"}),
    described("registry_next", "Recommend the next tasks to work on from the registry."),
    described("create_issue", "Open a new issue in a repository.", repo={"type": "string"}, title={"type": "string"}),
    described("send_mail", "Send an e-mail to somebody.", to={"type": "string"}, body={"type": "string"}),
]


@asynccontextmanager
async def searching(tmp_path: Path, **own: Any) -> AsyncGenerator[Gateway]:
    """A gateway in front of two servers, where tools have to be found."""
    servers = {"work": toy(raw_tools=TASKS), "many": toy(tools=MANY)}
    async with open_gateway(tmp_path, servers, **{**OWN, "expose": "search", **own}) as gateway:
        await gateway.board.refresh()
        yield gateway


async def data(client: RawClient, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The data of a discovery tool's answer, which is the same as text and as structured content."""
    result = await client.call(tool, arguments or {})
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["isError"] is False, result
    return result["structuredContent"]["data"]


async def failure(client: RawClient, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The error of a discovery tool's answer."""
    result = await client.call(tool, arguments)
    assert result["isError"] is True
    return json.loads(result["content"][0]["text"])["error"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.scenario("discovery: Search for registry tools")
async def test_a_query_finds_the_tools_that_do_it(tmp_path: Path, version: str) -> None:
    """The best first, each with its server, score, parameters, and whether it is active, listed and available."""
    async with searching(tmp_path) as gateway, http_client(f"{gateway.mcp}/mine", version) as client:
        await data(client, "tool_load", {"names": ["work__registry_next"]})
        found = await data(client, "tool_find", {"query": "registry list tasks"})
        names = [hit["name"] for hit in found["tools"]]
        assert names[0] == "work__registry_list"
        assert "work__registry_next" in names[:5]
        first = found["tools"][0]
        assert (first["server"], first["active"], first["listed"]) == ("work", False, False)
        assert first["availability"] == {"status": "available"}
        assert first["parameters"] == ["status"]
        assert first["description"] == "List the tasks of the registry with their status."
        second = next(hit for hit in found["tools"] if hit["name"] == "work__registry_next")
        assert (second["active"], second["listed"]) == (True, True)
        scores = [hit["score"] for hit in found["tools"]]
        assert scores == sorted(scores, reverse=True)
        assert found["total"] >= len(names)
        found = await data(client, "tool_find", {"query": "recommend what to do next from the registry"})
        assert [hit["name"] for hit in found["tools"]][:2] == ["work__registry_next", "work__registry_list"]


@pytest.mark.scenario("discovery: Limit search results")
async def test_a_search_gives_as_many_as_it_was_asked_for(tmp_path: Path) -> None:
    """At most `limit`, the best of them; what is no limit is refused and names the parameter."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        every = await data(client, "tool_find", {"query": "the tool", "limit": 50})
        some = await data(client, "tool_find", {"query": "the tool", "limit": 3})
        assert some["tools"] == every["tools"][:3]
        assert some["total"] == every["total"]
        assert len((await data(client, "tool_find", {"query": "the tool"}))["tools"]) == 10
        for wrong in (0, -1, 51, "3", 1.5, None):
            assert "limit" in (await failure(client, "tool_find", {"query": "x", "limit": wrong}))["message"]
        assert "query" in (await failure(client, "tool_find", {}))["message"]


@pytest.mark.scenario("discovery: Describe a tool")
async def test_a_tool_is_described_in_full(tmp_path: Path) -> None:
    """Name, description, schema, whether it is active, category and keywords, its server and what that one says."""
    raw = {**TASKS[2], "_meta": {"category": "forge", "keywords": ["ticket"]}, "title": "New issue"}
    entry = toy({"keywords": {"create_issue": ["bug"]}}, raw_tools=[raw], instructions="Be brief.")
    async with open_gateway(tmp_path, {"work": entry}, **OWN) as gateway, http_client(gateway.mcp) as client:
        await gateway.board.refresh()
        about = await data(client, "tool_describe", {"name": "work__create_issue"})
        assert about["name"] == "work__create_issue"
        assert about["description"] == raw["description"]
        assert about["inputSchema"] == raw["inputSchema"]
        assert (about["active"], about["listed"]) == (False, True)
        assert (about["category"], about["keywords"]) == ("forge", ["ticket", "bug"])
        assert (about["server"], about["title"], about["serverInstructions"]) == ("work", "New issue", "Be brief.")
        assert about["availability"] == {"status": "available"}
        await data(client, "tool_load", {"names": ["work__create_issue"]})
        assert (await data(client, "tool_describe", {"name": "work__create_issue"}))["active"] is True
        # A word that only the config knows.
        assert (await data(client, "tool_find", {"query": "bug"}))["tools"][0]["name"] == "work__create_issue"


@pytest.mark.scenario("discovery: Tool not found")
async def test_an_unknown_tool_is_an_error_that_helps(tmp_path: Path) -> None:
    """The message names the nearest names and `tool_find`."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        error = await failure(client, "tool_describe", {"name": "work__create_isue"})
        assert error["code"] == "TOOL_NOT_FOUND"
        assert "work__create_issue" in error["message"]
        assert "tool_find" in error["message"]


@pytest.mark.scenario("discovery: Load multiple tools")
async def test_loaded_tools_become_real_tools_of_the_client(tmp_path: Path) -> None:
    """They are listed with their full schema, the client is told, and the answer has the schemas and the total."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        assert await client.names() == DISCOVERY
        answer = await data(client, "tool_load", {"names": ["work__create_issue", "work__send_mail"]})
        assert answer["loaded"] == ["work__create_issue", "work__send_mail"]
        assert answer["total"] == 2
        assert [tool["name"] for tool in (await data(client, "tool_active"))["tools"]] == answer["loaded"]
        for name, active in (("work__create_issue", True), ("work__send_mail", True), ("work__registry_list", False)):
            assert (await data(client, "tool_describe", {"name": name}))["active"] is active
        await client.until_changes(1)
        listed = {tool["name"]: tool for tool in await client.tools()}
        assert sorted(listed) == sorted([*DISCOVERY, "work__create_issue", "work__send_mail"])
        assert answer["tools"] == [listed["work__create_issue"], listed["work__send_mail"]]
        assert listed["work__create_issue"]["inputSchema"] == TASKS[2]["inputSchema"]
        assert await client.text("work__send_mail") == "toy:send_mail"


@pytest.mark.scenario("discovery: Load already active tool")
async def test_loading_twice_is_loading_once(tmp_path: Path) -> None:
    """No error, no second notice, the same total."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        for _ in range(2):
            answer = await data(client, "tool_load", {"names": ["work__send_mail", "work__send_mail"]})
            assert (answer["loaded"], answer["total"]) == (["work__send_mail"], 1)
        await client.until_changes(1)
        await data(client, "tool_load", {"names": ["work__create_issue"]})
        await client.until_changes(2)
        assert client.changes() == 2


@pytest.mark.scenario("discovery: Load non-existent tool")
async def test_one_unknown_name_and_nothing_is_loaded(tmp_path: Path) -> None:
    """The error names each unknown one with its nearest names, and the list stays as it was."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        error = await failure(client, "tool_load", {"names": ["work__send_mail", "work__creat_issue", "nothing"]})
        assert error["code"] == "TOOL_NOT_FOUND"
        assert '"work__creat_issue"' in error["message"]
        assert "work__create_issue" in error["message"]
        assert '"nothing"' in error["message"]
        assert (await data(client, "tool_active"))["count"] == 0
        assert await client.names() == DISCOVERY


@pytest.mark.scenario("discovery: List active tools")
@pytest.mark.scenario("discovery: No active tools")
async def test_what_is_active_is_told(tmp_path: Path) -> None:
    """Names, descriptions and their count; with nothing loaded, words that say so."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        nothing = await data(client, "tool_active")
        assert (nothing["tools"], nothing["count"]) == ([], 0)
        assert "No tools are active" in nothing["message"]
        await data(client, "tool_load", {"names": ["work__send_mail", "work__create_issue"]})
        active = await data(client, "tool_active")
        assert active["tools"] == [
            {"name": "work__send_mail", "description": TASKS[3]["description"]},
            {"name": "work__create_issue", "description": TASKS[2]["description"]},
        ]
        assert active["count"] == 2
        gone = await data(client, "tool_unload", {"names": ["work__send_mail", "work__never_there"]})
        assert (gone["unloaded"], gone["total"]) == (["work__send_mail"], 1)
        assert "work__send_mail" not in await client.names()


@pytest.mark.parametrize("version", VERSIONS)
async def test_any_tool_can_be_called_by_name(tmp_path: Path, version: str) -> None:
    """`tool_call` relays arguments and result exactly, errors too; listed or not, and by its plain name as well."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp, version) as client:
        through = await client.call("tool_call", {"name": "many__rich", "arguments": {}})
        assert through == await client.call("many__rich", {})
        echoed = await client.call("tool_call", {"name": "many__echo", "arguments": {"big": 2**80, "none": None}})
        assert echoed["structuredContent"]["params"]["arguments"] == {"big": 2**80, "none": None}
        with pytest.raises(RpcError) as refused:
            await client.call("tool_call", {"name": "many__refuses"})
        assert refused.value.code == -32099
        assert "many__echo" in (await failure(client, "tool_call", {"name": "many__ecoh"}))["message"]
        assert "itself" in (await failure(client, "tool_call", {"name": "tool_call"}))["message"]
        assert "arguments" in (await failure(client, "tool_call", {"name": "many__echo", "arguments": [1]}))["message"]


async def test_what_is_listed_depends_on_the_setting(tmp_path: Path) -> None:
    """`all` lists everything, `search` what was chosen, `auto` goes by the number of servers' tools."""
    few, many = toy(raw_tools=TASKS), toy(tools=MANY)
    for expose, servers, everything in (
        ("all", {"work": few, "many": many}, True),
        ("search", {"work": few}, False),
        ("auto", {"work": few}, True),
        ("auto", {"work": few, "many": many}, False),
    ):
        own = {**OWN, "expose": expose, "pinned": ["work__send_mail"]}
        async with open_gateway(tmp_path, servers, **own) as gateway, http_client(gateway.mcp) as client:
            await gateway.board.refresh()
            names = await client.names()
            assert ("work__create_issue" in names) is everything, (expose, list(servers))
            assert "work__send_mail" in names
            assert set(DISCOVERY) <= set(names)


async def test_thirty_tools_of_servers_are_few_and_one_more_is_many(tmp_path: Path) -> None:
    """`auto` lists up to thirty; tools of our own do not count."""
    async with open_board(tmp_path, {}, **OWN, expose="auto") as board:
        for count, scope in ((30, "servers"), (31, "chosen")):
            board.registry.register_mcp_tools("one", [described(f"tool_{at}", "Does it.") for at in range(count)])
            assert board.lists.scope(ListKey()) == scope


async def test_auto_changes_over_when_servers_bring_more_tools(tmp_path: Path) -> None:
    """The thirty-first tool of a server makes the list short, and the client is told."""
    async with open_gateway(tmp_path, {"work": toy(raw_tools=TASKS)}, **OWN, expose="auto") as gateway:
        async with http_client(gateway.mcp) as client:
            await client.until_listed(lambda names: "work__send_mail" in names)
            await gateway.configure({"work": toy(raw_tools=TASKS), "many": toy(tools=MANY)}, **OWN, expose="auto")
            await client.until_listed(lambda names: names == set(DISCOVERY))


async def test_a_filtered_list_has_every_match(tmp_path: Path) -> None:
    """Whatever the setting: a client that filters gets its filter, and finds, sees, loads and calls nothing else."""
    async with searching(tmp_path) as gateway, http_client(f"{gateway.mcp}?server=work") as client:
        names = await client.names()
        assert {"work__create_issue", "work__echo"} <= set(names)
        assert all(name.startswith("work__") for name in names)
        # The tools that find others are not in the list; called all the same, they are bound by the filter.
        found = await data(client, "tool_find", {"query": "send e-mail echo tool 5", "limit": 50})
        assert found["tools"]
        assert {hit["server"] for hit in found["tools"]} == {"work"}
        for tool, arguments in (
            ("tool_describe", {"name": "many__echo"}),
            ("tool_load", {"names": ["many__echo"]}),
            ("tool_call", {"name": "many__echo"}),
        ):
            assert (await failure(client, tool, arguments))["code"] == "TOOL_NOT_FOUND"
        with pytest.raises(RpcError):
            await client.call("many__echo", {})
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        narrowed = await client.names({"_meta": {"pegboard/prefix": "work__registry"}})
        assert narrowed == ["work__registry_list", "work__registry_next"]


async def test_two_sessions_never_see_each_others_tools(tmp_path: Path) -> None:
    """What one session loads, the other neither lists nor hears of; after the session it is gone."""
    async with searching(tmp_path) as gateway:
        async with http_client(gateway.mcp) as one, http_client(gateway.mcp) as other:
            await one.names()
            await other.names()
            await data(one, "tool_load", {"names": ["work__send_mail"]})
            await one.until_changes(1)
            assert await other.names() == DISCOVERY
            assert (await data(other, "tool_active"))["count"] == 0
            await data(other, "tool_load", {"names": ["work__create_issue"]})
            await other.until_changes(1)
            assert (one.changes(), other.changes()) == (1, 1)
            assert "work__create_issue" not in await one.names()
        async with http_client(gateway.mcp) as third:
            assert await third.names() == DISCOVERY


async def test_named_boards_keep_their_tools_over_a_restart(tmp_path: Path) -> None:
    """In 2026-07-28 a board's list is its own, with its own notices, and survives the gateway."""
    async with searching(tmp_path) as gateway:
        async with (
            http_client(f"{gateway.mcp}/red", "2026-07-28") as red,
            http_client(f"{gateway.mcp}/blue", "2026-07-28") as blue,
        ):
            await data(red, "tool_load", {"names": ["work__send_mail"]})
            await red.until_changes(1)
            assert "work__send_mail" in await red.names()
            assert await blue.names() == DISCOVERY
            await data(blue, "tool_load", {"names": ["work__create_issue"]})
            await blue.until_changes(1)
            assert (red.changes(), blue.changes()) == (1, 1)
    async with searching(tmp_path) as gateway, http_client(f"{gateway.mcp}/red", "2026-07-28") as red:
        assert "work__send_mail" in await red.names()
        assert [tool["name"] for tool in (await data(red, "tool_active"))["tools"]] == ["work__send_mail"]
        await data(red, "tool_unload", {"names": ["work__send_mail"]})
        assert await red.names() == DISCOVERY


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_board_over_stdio(tmp_path: Path, version: str) -> None:
    """`pegboard stdio --board NAME` is that board, alone and beside a running gateway."""
    config = write_config(tmp_path / "pegboard.json", {"work": toy(raw_tools=TASKS)}, **OWN, expose="search")
    async with stdio_client(config, version, args=("--board", "green")) as client:
        await data(client, "tool_load", {"names": ["work__send_mail"]})
        assert "work__send_mail" in await client.names()
    async with open_gateway(tmp_path, {"work": toy(raw_tools=TASKS)}, **OWN, expose="search") as gateway:
        async with http_client(f"{gateway.mcp}/green", version) as client:
            assert "work__send_mail" in await client.names()


async def test_a_board_needs_a_sensible_name(tmp_path: Path) -> None:
    """An address with anything else is not found."""
    import httpx2

    async with searching(tmp_path) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        for name in ("a%20b", ".hidden", "x" * 65, "a%2Fb"):
            assert (await http.post(f"{gateway.mcp}/{name}", json={})).status_code == 404


_FORMER = """
    spec_init spec_create spec_update spec_delete spec_list spec_show spec_validate spec_archive
    registry_init registry_list registry_next registry_update registry_sync registry_deps
    workflow_start workflow_approve workflow_status loop_start loop_cancel loop_get loop_set
    generate generate_component generate_from_spec list_archetypes agent_execute
"""
FORMER = _FORMER.split()


@pytest.mark.scenario("discovery: Tool name migration")
async def test_renamed_tools_are_registered_and_documented_by_their_short_names_alone(tmp_path: Path) -> None:
    """No tool and no document has the long prefix any more, and the change log calls that breaking."""
    async with open_gateway(tmp_path, {}, toolsets=["tasks", "discovery", "memory", "chats"]) as gateway:
        async with http_client(gateway.mcp) as client:
            names = await client.names()
    assert {name for name in names if name.startswith(("registry_", "spec_"))} <= set(FORMER)
    assert {"registry_list", "registry_next", "spec_show"} <= set(names)
    assert not [name for name in names if name.startswith("go_ent_")]
    root = Path(__file__).parents[2]
    for path in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))):
        assert "go_ent_" not in path.read_text("utf-8"), path
    _, heading, breaking = (root / "CHANGELOG.md").read_text("utf-8").partition("### Breaking\n")
    assert heading
    breaking = breaking.partition("\n#")[0]
    assert "`registry_list`" in breaking
    assert "an old name is an error" in " ".join(breaking.split())


@pytest.mark.scenario("discovery: Backward compatibility")
async def test_an_old_name_is_an_error_that_names_the_new_one(tmp_path: Path) -> None:
    """Each shortened name out of the box and configured ones; nothing is forwarded, and it is said what is missing."""
    own = {**OWN, "renamed": {"mail": "work__send_mail"}}
    async with open_gateway(tmp_path, {"work": toy(raw_tools=TASKS)}, **own) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            for old, new, missing in (
                ("mail", "work__send_mail", False),
                *((f"go_ent_{name}", name, True) for name in FORMER),
            ):
                with pytest.raises(RpcError) as unknown:
                    await client.call(old, {})
                assert unknown.value.code == -32602
                assert f'"{new}"' in unknown.value.message
                assert ("not installed" in unknown.value.message) is missing
                assert f'"{new}"' in (await failure(client, "tool_describe", {"name": old}))["message"]


async def test_answers_are_small_and_fit_their_schemas(tmp_path: Path) -> None:
    """Ten hits in under 1,500 tokens and the six definitions in under 1,200, a token being four bytes."""
    parameters: dict[str, Any] = {f"parameter_number_{index}": {} for index in range(40)}
    wordy = [described(f"wordy_{number}", "Does something. " * 200, **parameters) for number in range(12)]
    async with open_gateway(tmp_path, {"work": toy(raw_tools=wordy)}, **OWN, expose="search") as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            tools = {tool["name"]: tool for tool in await client.tools()}
            assert len(json.dumps(list(tools.values()), ensure_ascii=False).encode()) / 4 < 1200
            result = await client.call("tool_find", {"query": "wordy something"})
            assert len(result["structuredContent"]["data"]["tools"]) == 10
            assert len(json.dumps(result, ensure_ascii=False).encode()) / 4 < 1500
            for name, arguments in (
                ("tool_find", {"query": "wordy"}),
                ("tool_find", {"query": 5}),
                ("tool_describe", {"name": "work__wordy_1"}),
                ("tool_load", {"names": ["work__wordy_1"]}),
                ("tool_unload", {"names": ["work__wordy_1"]}),
                ("tool_active", {}),
            ):
                answer = await client.call(name, arguments)
                jsonschema_rs.validate(tools[name]["outputSchema"], answer["structuredContent"])
            assert "outputSchema" not in tools["tool_call"]
            assert tools["tool_call"]["annotations"]["destructiveHint"] is True
            assert tools["tool_find"]["annotations"]["readOnlyHint"] is True


async def test_instructions_say_how_to_find_tools(tmp_path: Path) -> None:
    """In two sentences; where everything is listed the servers' own words follow, within bounds."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        assert "tool_find" in client.hello["instructions"]
        assert client.hello["instructions"].count(". ") == 1
    entry = toy(raw_tools=TASKS, instructions="Only on weekdays. " * 1000)
    async with open_gateway(tmp_path, {"work": entry}, **OWN, expose="all") as gateway:
        await gateway.board.refresh()
        for version in VERSIONS:
            async with http_client(gateway.mcp, version) as client:
                assert "Only on weekdays." in client.hello["instructions"]
                assert len(client.hello["instructions"]) <= 4000


async def test_a_switched_off_toolset_is_not_there(tmp_path: Path) -> None:
    """Without `discovery` its tools do not exist, and `auto` lists everything."""
    async with open_gateway(tmp_path, {"many": toy(tools=MANY)}, toolsets=[], expose="auto") as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            names = await client.names()
            assert len(names) > 31
            assert not set(DISCOVERY) & set(names)


async def test_an_unavailable_tool_is_found_with_the_reason(tmp_path: Path) -> None:
    """A server that was lost keeps its tools in the index, and the hit says why they cannot be used."""
    with http_toy(Settings(raw_tools=TASKS)) as listening:
        servers = {"work": {"type": "http", "url": listening.url}}
        async with open_gateway(tmp_path, servers, **OWN, expose="search") as gateway:
            await gateway.board.refresh()
            async with http_client(gateway.mcp) as client:
                gateway.board.servers["work"]._connections[None].peer.close_with("it went away")
                hit = (await data(client, "tool_find", {"query": "send an e-mail"}))["tools"][0]
                assert hit["name"] == "work__send_mail"
                assert hit["availability"] == {"status": "unavailable", "reason": "it went away"}
                assert hit["listed"] is False


@pytest.mark.scenario("discovery: Index tool metadata")
@pytest.mark.scenario("discovery: Search with TF-IDF scoring")
async def test_a_score_is_term_frequency_times_inverse_document_frequency(tmp_path: Path) -> None:
    """Terms of names and descriptions count; more where a tool says them more often, and where fewer tools say them."""
    raw = [
        described("alpha_lantern", "Shows one thing and then another thing of all."),
        described("beta", "Copies a lantern and then another thing of all."),
        # The same words in texts of the same length: only how often one of them is said differs.
        described("gamma", "Copies a zebra, another zebra, and then a zebra thing."),
        described("delta", "Copies a zebra, another thing, and then a thing thing."),
        *(described(f"plain_{number}", "Copies a thing and then another thing of all.") for number in range(8)),
    ]
    async with open_gateway(tmp_path, {"work": toy(raw_tools=raw)}, **OWN, expose="search") as gateway:
        await gateway.board.refresh()
        # Built before anybody searches.
        await gateway.board.finder.warm_up()
        assert gateway.board.finder._made is not None
        assert len(gateway.board.finder._made) == gateway.board.configured.tool_count("work")
        async with http_client(gateway.mcp) as client:

            async def scores(query: str) -> dict[str, float]:
                found = (await data(client, "tool_find", {"query": query, "limit": 50}))["tools"]
                assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
                return {hit["name"].removeprefix("work__"): hit["score"] for hit in found}

            named = await scores("lantern")
            assert set(named) == {"alpha_lantern", "beta"}, "a term of the name and one of a description"
            often = await scores("zebra")
            assert set(often) == {"gamma", "delta"}
            assert often["gamma"] > often["delta"], "term frequency"
            rare, common = (await scores("zebra"))["delta"], (await scores("copies"))["delta"]
            assert rare > 2 * common > 0, "inverse document frequency"
            both = await scores("zebra copies")
            assert both["delta"] == pytest.approx(rare + common, abs=0.3), "the sum over the query's terms"
            assert list(both)[:2] == ["gamma", "delta"]


@pytest.mark.scenario("discovery: Index tool metadata")
@pytest.mark.scenario("discovery: Search with TF-IDF scoring")
async def test_the_index_is_there_from_the_start_and_follows_changes(tmp_path: Path) -> None:
    """After a restart everything is found with no connection open; a server's new tool is found, an old one is not."""
    async with searching(tmp_path):
        pass
    servers = {"work": toy(raw_tools=TASKS), "many": toy(tools=MANY)}
    async with open_gateway(tmp_path, servers, **OWN, expose="search") as gateway:
        async with http_client(gateway.mcp) as client:
            found = await data(client, "tool_find", {"query": "open a new issue"})
            assert found["tools"][0]["name"] == "work__create_issue"
            assert not any(server.is_connected for server in gateway.board.servers.values())

            def is_found() -> bool:
                return bool(gateway.board.finder.find("polish silver", 1)[0])

            await client.call("work__change", {"add": ["polish_the_silver"]})
            await eventually(is_found)
            found = await data(client, "tool_find", {"query": "polish silver"})
            assert [hit["name"] for hit in found["tools"]] == ["work__polish_the_silver"]
            await client.call("work__change", {"remove": ["polish_the_silver"]})
            await eventually(lambda: not is_found())
            assert (await data(client, "tool_find", {"query": "polish silver"}))["tools"] == []


async def test_people_and_programs_get_the_same_answers(tmp_path: Path) -> None:
    """`GET /api/tools/search` answers as `tool_find` does, and refuses what it refuses."""
    import httpx2

    async with (
        searching(tmp_path) as gateway,
        http_client(gateway.mcp) as client,
        httpx2.AsyncClient(timeout=LIMIT) as http,
    ):
        found = await data(client, "tool_find", {"query": "send mail", "limit": 4})
        answer = await http.get(f"{gateway.url}/api/tools/search", params={"q": "send mail", "limit": 4})
        shown = answer.json()
        # For people there is what each costs in a prompt, too.
        assert all(hit.pop("tokens") > 0 for hit in shown["data"]["tools"])
        assert shown == {"success": True, "data": found}
        for wrong in (
            {},
            {"q": "x", "limit": "0"},
            {"q": "x", "limit": "many"},
            {"q": "x", "limit": "51"},
            {"q": "x", "limit": "9" * 5000},
        ):
            refused = await http.get(f"{gateway.url}/api/tools/search", params=wrong)
            assert refused.status_code == 400, wrong
            assert refused.json()["error"]["code"] == "TOOL_INVALID_INPUT"


async def test_people_find_tools_whatever_the_toolsets(tmp_path: Path) -> None:
    """A board without discovery tools can still be searched from outside of MCP."""
    import httpx2

    async with (
        open_gateway(tmp_path, {"work": toy(raw_tools=TASKS)}) as gateway,
        httpx2.AsyncClient(timeout=LIMIT) as http,
    ):
        await gateway.board.refresh()
        answer = await http.get(f"{gateway.url}/api/tools/search", params={"q": "send mail"})
        assert answer.json()["data"]["tools"][0]["name"] == "work__send_mail"


async def test_each_own_tool_can_be_switched_off_while_running(tmp_path: Path) -> None:
    """`tools` of the `pegboard` section denies and allows, a changed file is taken over, and clients are told."""
    servers = {"work": toy(raw_tools=TASKS)}
    own: dict[str, Any] = {**OWN, "expose": "search"}
    async with open_gateway(tmp_path, servers, **own, tools={"deny": ["tool_call"]}) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            assert await client.names() == [name for name in DISCOVERY if name != "tool_call"]
            assert "tool_call" not in client.hello["instructions"]
            with pytest.raises(RpcError):
                await client.call("tool_call", {"name": "work__send_mail"})
            await gateway.configure(servers, **own)
            await client.until_changes(1)
            assert await client.names() == DISCOVERY
            await gateway.configure(servers, **own, tools={"allow": ["tool_f*"]})
            await client.until_changes(2)
            assert await client.names() == ["tool_find"]
            await gateway.configure(servers, expose="search")
            await client.until_changes(3)
            assert await client.names() == []


async def test_a_setting_adds_meaning_to_the_search(tmp_path: Path) -> None:
    """`search` as `semantic` finds what shares no word with the query; back at `lexical` it does not."""
    servers, own = {"work": toy(raw_tools=TASKS)}, {**OWN, "expose": "search"}
    async with open_gateway(tmp_path, servers, **own, search="semantic") as gateway, http_client(gateway.mcp) as client:
        await gateway.board.refresh()
        found = await data(client, "tool_find", {"query": "write a letter to my boss"})
        assert found["tools"][0]["name"] == "work__send_mail"
        await gateway.configure(servers, **own)
        assert (await data(client, "tool_find", {"query": "letter boss"}))["tools"] == []


async def test_a_call_by_name_counts_for_the_tool_that_was_called(tmp_path: Path) -> None:
    """In the metrics it is the server's call, however it came."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        await client.call("tool_call", {"name": "work__send_mail"})
        counted = gateway.board.metrics.text({}, 0, 0, 0)
        assert 'pegboard_calls_total{server="work",outcome="ok"} 1' in counted


async def test_among_thousands_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    """Where there are too many names to compare with each, the index says which ones come near."""
    servers = {"work": toy(raw_tools=TASKS), "many": toy(tools=[f"thing_{number}" for number in range(400)])}
    async with open_gateway(tmp_path, servers, **OWN) as gateway, http_client(gateway.mcp) as client:
        await gateway.board.refresh()
        for wrong, right in (("work__send_mial", "work__send_mail"), ("tool_fnd", "tool_find")):
            error = await failure(client, "tool_describe", {"name": wrong})
            assert right in error["message"]


@pytest.mark.parametrize("gone", ["disabled", "removed"])
async def test_what_is_gone_is_not_found_and_takes_no_place(tmp_path: Path, gone: str) -> None:
    """A server that is disabled or removed leaves the index with all its tools, and comes back with them."""
    many = toy(raw_tools=[described(f"mail_{number}", "Send an e-mail to somebody.") for number in range(12)])
    servers = {"old": many, "work": toy(raw_tools=TASKS)}
    async with open_gateway(tmp_path, servers, **OWN) as gateway, http_client(gateway.mcp) as client:
        await gateway.board.refresh()
        assert (await data(client, "tool_find", {"query": "send e-mail"}))["total"] >= 13
        left = {"work": servers["work"]}
        await gateway.configure({"old": {**many, "enabled": False}, **left} if gone == "disabled" else left, **OWN)
        found = await data(client, "tool_find", {"query": "send e-mail"})
        assert {hit["server"] for hit in found["tools"]} == {"work"}
        assert found["total"] == len(found["tools"])
        await gateway.configure(servers, **OWN)
        await gateway.board.refresh()
        assert (await data(client, "tool_find", {"query": "send e-mail"}))["total"] >= 13


async def test_a_client_that_never_said_it_is_ready_leaves_nothing_behind(tmp_path: Path) -> None:
    """What it loaded goes with its session, over HTTP as over a line."""
    import httpx2

    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}},
    }
    load = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "tool_load", "arguments": {"names": ["work__send_mail"]}},
    }
    accepted = {"accept": "application/json, text/event-stream"}
    async with searching(tmp_path) as gateway, httpx2.AsyncClient(headers=accepted, timeout=LIMIT) as http:
        greeting = await http.post(gateway.mcp, json=hello)
        session = {"mcp-session-id": greeting.headers["mcp-session-id"]}
        assert "send_mail" in (await http.post(gateway.mcp, json=load, headers=session)).text
        boards = gateway.board.loaded.boards
        assert len(boards) == 1
        await http.delete(gateway.mcp, headers=session)
        await eventually(lambda: not boards)


async def test_one_strange_tool_does_not_spoil_the_others_hits(tmp_path: Path) -> None:
    """A tool with endless names and words is cut; beside it the others keep their descriptions and parameters."""
    strange = described("strange_mail", "Send mail. " * 20_000, **{"p" * 3000: {}, "q": {}})
    plain = [described(f"mail_{number}", "Send mail to somebody, by post.", to={}, body={}) for number in range(9)]
    with http_toy(Settings(raw_tools=[strange, *plain])) as listening:
        servers = {"work": {"type": "http", "url": listening.url}}
        async with open_gateway(tmp_path, servers, **OWN) as gateway, http_client(gateway.mcp) as client:
            await gateway.board.refresh()
            result = await client.call("tool_find", {"query": "send mail", "limit": 10})
    hits = {hit["name"]: hit for hit in result["structuredContent"]["data"]["tools"]}
    assert len(json.dumps(result, ensure_ascii=False).encode()) / 4 < 1500
    others = [hit for name, hit in hits.items() if name.startswith("work__mail")]
    assert len(others) >= 8
    assert {hit["description"] for hit in others} == {"Send mail to somebody, by post."}
    assert all(hit["parameters"] == ["to", "body"] for hit in others)
    assert all(len(name) <= 40 for name in hits["work__strange_mail"]["parameters"])


async def test_a_tool_is_found_by_its_real_name(tmp_path: Path) -> None:
    """Also where clients see a cut name, or one of underscores; and pinned by it."""
    long = "synchronise_every_calendar_of_all_employees_with_the_payroll_ledger"
    tools = [described(long, "Runs nightly."), described("日本語ツール", "Runs daily.")]
    own = {**OWN, "expose": "search", "pinned": [f"work__{long}"]}
    async with open_gateway(tmp_path, {"work": toy(raw_tools=tools)}, **own) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            for query, words in (("payroll ledger", "Runs nightly."), ("日本語", "Runs daily.")):
                assert (await data(client, "tool_find", {"query": query}))["tools"][0]["description"] == words
            assert len(await client.names()) == len(DISCOVERY) + 1
            error = await failure(client, "tool_describe", {"name": f"work__{long}"})
            assert next(name for name in await client.names() if name not in DISCOVERY) in error["message"]


async def test_what_a_filter_hides_is_not_told(tmp_path: Path) -> None:
    """Neither by names of disabled servers, nor by old names, nor by what is active on a shared board."""
    servers = {"work": toy(raw_tools=TASKS), "off": {**toy(), "enabled": False}, "other": toy(tools=["secret"])}
    own = {**OWN, "expose": "search", "renamed": {"old": "other__secret"}}
    async with open_gateway(tmp_path, servers, **own) as gateway:
        await gateway.board.refresh()
        async with (
            http_client(f"{gateway.mcp}/shared") as free,
            http_client(f"{gateway.mcp}/shared?prefix=work__") as bound,
        ):
            await data(free, "tool_load", {"names": ["other__secret"]})
            assert (await data(bound, "tool_active"))["tools"] == []
            assert (await data(bound, "tool_unload", {"names": ["other__secret"]}))["unloaded"] == []
            assert (await data(free, "tool_active"))["count"] == 1
            assert "disabled" not in (await failure(bound, "tool_describe", {"name": "off__echo"}))["message"]
            assert "not installed" in (await failure(bound, "tool_describe", {"name": "old"}))["message"]
            assert "not installed" not in (await failure(free, "tool_describe", {"name": "old"}))["message"]


async def test_an_old_name_of_a_tool_that_was_never_seen_leads_to_it(tmp_path: Path) -> None:
    """Its server is met first; of a disabled one the reason is told."""
    servers = {"work": toy(raw_tools=TASKS), "off": {**toy(), "enabled": False}}
    own = {**OWN, "renamed": {"mail": "work__send_mail", "gone": "off__echo"}}
    async with open_gateway(tmp_path, servers, **own) as gateway, http_client(gateway.mcp) as client:
        error = await failure(client, "tool_describe", {"name": "mail"})
        assert '"work__send_mail" now.' in error["message"]
        assert "disabled" in (await failure(client, "tool_describe", {"name": "gone"}))["message"]


async def test_tools_of_a_lost_server_are_loaded_with_a_remark(tmp_path: Path) -> None:
    """What is loaded, and what is active, says so where it cannot be used now; no server is waited for."""
    with http_toy(Settings(raw_tools=TASKS)) as listening:
        servers = {"work": {"type": "http", "url": listening.url}}
        async with open_gateway(tmp_path, servers, **OWN, expose="search") as gateway:
            await gateway.board.refresh()
            async with http_client(gateway.mcp) as client:
                gateway.board.servers["work"]._connections[None].peer.close_with("it went away")
                loaded = await data(client, "tool_load", {"names": ["work__send_mail"]})
                assert "it went away" in loaded["message"]
                active = (await data(client, "tool_active"))["tools"][0]
                assert active["description"].startswith("Send an e-mail")
                assert "it went away" in active["description"]


async def test_instructions_name_only_tools_that_exist(tmp_path: Path) -> None:
    """Where discovery is switched off, nobody is sent to it."""
    for own in ({"expose": "search"}, {**OWN, "expose": "search", "tools": {"deny": ["tool_*"]}}):
        async with open_gateway(tmp_path, {"work": toy()}, **own) as gateway, http_client(gateway.mcp) as client:
            assert "tool_" not in client.hello["instructions"]


async def test_errors_do_not_echo_whole_inputs(tmp_path: Path) -> None:
    """However long a wrong name or value is, the answer is short."""
    async with searching(tmp_path) as gateway, http_client(gateway.mcp) as client:
        for tool, arguments in (
            ("tool_describe", {"name": "x" * 200_000}),
            ("tool_find", {"query": ["y" * 100_000]}),
            ("tool_load", {"names": [f"unknown_{number}" for number in range(50)]}),
        ):
            assert len(json.dumps(await client.call(tool, arguments))) < 5000


async def test_an_emptied_board_is_forgotten(tmp_path: Path) -> None:
    """Nothing is kept for a board on which nothing is loaded."""
    async with searching(tmp_path) as gateway:
        for number in range(3):
            async with http_client(f"{gateway.mcp}/board{number}", "2026-07-28") as client:
                await data(client, "tool_load", {"names": ["work__send_mail"]})
                await data(client, "tool_unload", {"names": ["work__send_mail"]})
        assert gateway.board.loaded.boards == {}
