"""The memory tools over the gateway, as an agent uses them, in both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, RawClient, http_client, open_gateway, stdio_client, toy, write_config

pytestmark = pytest.mark.anyio

NAMES = [
    "memory_add",
    "memory_delete",
    "memory_fulltext_search",
    "memory_get",
    "memory_list",
    "memory_read_linked",
    "memory_rename",
    "memory_search",
    "memory_update",
]
SEARCHES = ("memory_search", "memory_fulltext_search")
VERSIONS = ("2025-11-25", "2026-07-28")
OWN: dict[str, Any] = {"toolsets": ["memory"]}

MEMORIES: tuple[dict[str, Any], ...] = (
    {
        "key": "shop:pay:decision:stripe",
        "summary": "Payments run through Stripe",
        "text": "We chose Stripe because its invoices fit ours.",
        "links": [
            {"key": "shop:pay:bug:twice", "type": "bug", "weight": 0.2},
            {"key": "shop:pay:design:refunds", "type": "design", "weight": 0.9},
            {"key": "shop:pay:idea:later", "type": "assumption"},
        ],
    },
    {
        "key": "shop:pay:bug:twice",
        "summary": "Customers were charged twice",
        "text": "A retry after a timeout charged the card again; invoices were wrong.",
    },
    {"key": "shop:pay:design:refunds", "summary": "Refunds", "text": "Money goes back the way it came."},
    {"key": "shop:db:note:pool", "summary": "連接池", "text": "数据库连接池在高峰时耗尽。"},
)


@asynccontextmanager
async def filled(tmp_path: Path, version: str = "2025-11-25", **own: Any) -> AsyncGenerator[RawClient]:
    """A client of a gateway with some memories."""
    async with open_gateway(tmp_path, {}, **{**OWN, **own}) as gateway, http_client(gateway.mcp, version) as client:
        for memory in MEMORIES:
            await data(client, "memory_add", memory)
        yield client


async def data(client: RawClient, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an answer, which is the same as text and as structured content."""
    result = await client.call(tool, arguments)
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["isError"] is False, result
    return result["structuredContent"]["data"]


async def failure(client: RawClient, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The error of an answer."""
    result = await client.call(tool, arguments)
    assert result["isError"] is True, result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]["error"]


def targets(memory: Mapping[str, Any]) -> list[str]:
    """Where the links of a result lead."""
    return [link["key"].rpartition(":")[2] for link in memory["links"]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.scenario("memory: memory_search MCP tool")
async def test_a_question_finds_memories(tmp_path: Path, version: str) -> None:
    """Key, summary, relevance, score and links of each, the best first, page by page."""
    async with filled(tmp_path, version) as client:
        found = await data(client, "memory_search", {"query": "which invoices did Stripe get wrong?"})
        keys = [result["key"] for result in found["results"]]
        assert keys[:2] == ["shop:pay:decision:stripe", "shop:pay:bug:twice"]
        assert found["pagination"] == {"total": len(keys), "limit": 10, "offset": 0, "hasMore": False}
        relevances = [result["relevance"] for result in found["results"]]
        assert relevances == sorted(relevances, reverse=True)
        assert all(0 < relevance <= 1 for relevance in relevances)
        assert found["results"][0]["summary"] == "Payments run through Stripe"
        assert "<mark>Stripe</mark>" in found["results"][0]["excerpt"]
        second = await data(client, "memory_search", {"query": "Stripe invoices", "limit": 1, "offset": 1})
        assert [result["key"] for result in second["results"]] == ["shop:pay:bug:twice"]
        assert second["pagination"] == {"total": 2, "limit": 1, "offset": 1, "hasMore": False}
        unsorted = await data(client, "memory_search", {"query": "Stripe", "sortLinks": False})
        assert targets(unsorted["results"][0]) == ["twice", "refunds", "later"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.scenario("memory: memory_fulltext_search MCP tool")
async def test_keywords_find_memories(tmp_path: Path, version: str) -> None:
    """All of them or any, phrases, marked in the excerpt."""
    async with filled(tmp_path, version) as client:

        async def keys(**arguments: Any) -> list[str]:
            found = await data(client, "memory_fulltext_search", arguments)
            assert all("<mark>" in result["excerpt"] for result in found["results"])
            return sorted(result["key"].rpartition(":")[2] for result in found["results"])

        assert await keys(keywords="stripe, charged") == ["stripe", "twice"]
        assert await keys(keywords=["stripe", "charged"], operator="OR") == ["stripe", "twice"]
        assert await keys(keywords="stripe, invoices", operator="AND") == ["stripe"]
        assert await keys(keywords=["the card again"]) == ["twice"]
        assert await keys(keywords=["again card the"]) == []
        assert await keys(keywords="据库连") == ["pool"]
        unsorted = await data(client, "memory_fulltext_search", {"keywords": "stripe", "sortLinks": "false"})
        assert targets(unsorted["results"][0]) == ["twice", "refunds", "later"]


@pytest.mark.scenario("memory: MCP tool parameter validation")
async def test_wrong_parameters_are_named(tmp_path: Path) -> None:
    """In the error form of every tool, and nothing is changed."""
    async with filled(tmp_path) as client:
        for wrong in ("yes", "True", 1, 0, None, [], "", {}):
            for tool, query in zip(SEARCHES, ({"query": "x"}, {"keywords": "x"}), strict=True):
                error = await failure(client, tool, {**query, "sortLinks": wrong})
                assert error["code"] == "TOOL_INVALID_INPUT"
                assert error["message"].startswith("sortLinks: "), error
                assert error["retryable"] is False
        for tool, arguments, name in (
            ("memory_search", {}, "query"),
            ("memory_search", {"query": 5}, "query"),
            ("memory_search", {"query": "x", "limit": 0}, "limit"),
            ("memory_search", {"query": "x", "limit": 101}, "limit"),
            ("memory_search", {"query": "x", "offset": -1}, "offset"),
            ("memory_search", {"query": "x", "speed": 1}, "speed"),
            ("memory_fulltext_search", {}, "keywords"),
            ("memory_fulltext_search", {"keywords": [5]}, "keywords"),
            ("memory_fulltext_search", {"keywords": " , "}, "keywords"),
            ("memory_fulltext_search", {"keywords": ["", " "]}, "keywords"),
            ("memory_fulltext_search", {"keywords": "x", "operator": "XOR"}, "operator"),
            ("memory_read_linked", {"key": "x", "depth": 7}, "depth"),
            ("memory_add", {"key": "bad\x00key", "text": "t"}, "key"),
            ("memory_add", {"key": "k", "links": [{"key": "x", "weight": 2}]}, "weight"),
        ):
            error = await failure(client, tool, arguments)
            assert error["code"] == "TOOL_INVALID_INPUT"
            assert name in error["message"]
        assert (await data(client, "memory_list", {}))["pagination"]["total"] == len(MEMORIES)


async def test_a_list_counts_links(tmp_path: Path) -> None:
    """Each memory says how many links lead from it and to it, so that nobody has to open it for that."""
    async with filled(tmp_path) as client:
        rows = {row["key"]: row for row in (await data(client, "memory_list", {}))["memories"]}
        stripe, twice = rows["shop:pay:decision:stripe"], rows["shop:pay:bug:twice"]
        assert (stripe["out_degree"], stripe["in_degree"]) == (3, 0)
        assert (twice["out_degree"], twice["in_degree"]) == (0, 1)


def untold(schema: Mapping[str, Any], value: Any, path: str = "") -> list[str]:
    """What an answer has that its schema does not speak of."""
    if isinstance(value, list):
        return [each for item in cast("list[Any]", value) for each in untold(schema.get("items", {}), item, path)]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    for name, inner in cast("dict[str, Any]", value).items():
        described = schema.get("properties", {}).get(name)
        found += [f"{path}.{name}"] if described is None else untold(described, inner, f"{path}.{name}")
    return found


@pytest.mark.scenario("memory: MCP tool output format")
async def test_answers_fit_their_schemas(tmp_path: Path) -> None:
    """Good ones and bad, of every tool; links are in the order that was asked for."""
    key = MEMORIES[0]["key"]
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("memory_add", {"key": "new", "text": "words"}),
        ("memory_add", {"key": "new"}),
        ("memory_get", {"key": key}),
        ("memory_get", {"key": "nowhere"}),
        ("memory_update", {"key": "new", "text": "other words", "version": 1}),
        ("memory_update", {"key": "new", "text": "other words", "version": 1}),
        ("memory_rename", {"old_key": "new", "new_key": "newer"}),
        ("memory_delete", {"key": "newer"}),
        ("memory_list", {"prefix": "shop:"}),
        ("memory_search", {"query": "invoices"}),
        ("memory_fulltext_search", {"keywords": "invoices", "sortLinks": "true"}),
        ("memory_read_linked", {"key": key}),
    )
    async with filled(tmp_path) as client:
        tools = {tool["name"]: tool for tool in await client.tools()}
        assert {name for name, _ in calls} == set(NAMES)
        for name, arguments in calls:
            answer = await client.call(name, arguments)
            jsonschema_rs.validate(tools[name]["outputSchema"], answer["structuredContent"])
            if not answer["isError"]:
                assert untold(tools[name]["outputSchema"], answer["structuredContent"]) == []
            assert answer["structuredContent"]["success"] is not answer["isError"]


@pytest.mark.parametrize("given", [{}, {"sortLinks": True}])
@pytest.mark.scenario("memory: Search results with sorted links")
@pytest.mark.scenario("memory: Default sorting behavior")
@pytest.mark.scenario("memory: MCP tool output format")
async def test_links_are_sorted_by_weight_times_the_score_of_their_target(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    """A lighter link to a memory that is read goes before a heavier one to a memory that is not; REST does the same."""
    links = [{"key": "heavy", "weight": 0.52}, {"key": "light", "weight": 0.5}]
    async with open_gateway(tmp_path, {}, **OWN) as gateway:
        async with http_client(gateway.mcp) as client, httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for key in ("heavy", "light"):
                await data(client, "memory_add", {"key": key, "text": f"It is {key}."})
            for key in ("first", "second"):
                await data(client, "memory_add", {"key": key, "text": "Both of these are walruses.", "links": links})

            async def orders(given: Mapping[str, Any]) -> set[tuple[str, ...]]:
                """The order of every result's links, over MCP and over REST."""
                by_tool = [
                    await data(client, "memory_search", {"query": "walruses", **given}),
                    await data(client, "memory_fulltext_search", {"keywords": "walruses", **given}),
                ]
                query = {name: str(value).lower() for name, value in given.items()}
                by_rest = [
                    (await http.get("/api/memory/search", params={"q": "walruses", **query})).json()["data"],
                    (await http.get("/api/memory/fulltext", params={"keywords": "walruses", **query})).json()["data"],
                ]
                # Time passes between the two, and a score goes by it.
                for each in (each for found in (*by_tool, *by_rest) for each in found["results"]):
                    del each["score"]
                assert by_tool == by_rest
                assert all(len(found["results"]) == 2 for found in by_tool)
                return {tuple(targets(each)) for found in by_tool for each in found["results"]}

            assert await orders(given) == {("heavy", "light")}
            for _ in range(3):
                await data(client, "memory_get", {"key": "light"})
            assert await orders(given) == {("light", "heavy")}
            assert await orders({"sortLinks": False}) == {("heavy", "light")}


@pytest.mark.scenario("memory: Search results with sorted links")
@pytest.mark.scenario("memory: Default sorting behavior")
async def test_links_come_with_the_most_useful_first(tmp_path: Path) -> None:
    """By weight times the target's score, unless it is switched off; the same in every answer."""
    async with filled(tmp_path) as client:
        key = MEMORIES[0]["key"]
        best_first = ["refunds", "later", "twice"]
        for given in ({}, {"sortLinks": True}, {"sortLinks": "true"}):
            for tool, query in (
                ("memory_search", {"query": "Stripe"}),
                ("memory_fulltext_search", {"keywords": "Stripe"}),
            ):
                assert targets((await data(client, tool, {**query, **given}))["results"][0]) == best_first
            assert targets(await data(client, "memory_get", {"key": key, **given})) == best_first
            walk = await data(client, "memory_read_linked", {"key": key, **given})
            assert targets(walk["memories"][0]) == best_first


@pytest.mark.scenario("memory: Search results with unsorted links")
async def test_links_can_stay_as_they_were_written(tmp_path: Path) -> None:
    """In the order in which they were given."""
    async with filled(tmp_path) as client:
        key = MEMORIES[0]["key"]
        as_written = ["twice", "refunds", "later"]
        for given in (False, "false"):
            for tool, query in (
                ("memory_search", {"query": "Stripe"}),
                ("memory_fulltext_search", {"keywords": "Stripe"}),
            ):
                assert targets((await data(client, tool, {**query, "sortLinks": given}))["results"][0]) == as_written
            assert targets(await data(client, "memory_get", {"key": key, "sortLinks": given})) == as_written


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.scenario("memory: Tool registration")
async def test_the_tools_are_there_unless_switched_off(tmp_path: Path, version: str) -> None:
    """Listed with `sortLinks` in their schemas; the two searches stay in a list that is otherwise found."""
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp, version) as client:
        tools = {tool["name"]: tool for tool in await client.tools()}
        assert sorted(tools) == NAMES
        for name in SEARCHES:
            assert "sortLinks" in tools[name]["inputSchema"]["properties"]
    async with open_gateway(tmp_path, {}, toolsets=["memory"], expose="search") as gateway:
        async with http_client(gateway.mcp, version) as client:
            assert await client.names() == sorted(SEARCHES)
    async with open_gateway(tmp_path, {}, toolsets=[]) as gateway, http_client(gateway.mcp, version) as client:
        assert await client.names() == []


@pytest.mark.scenario("memory: Tool schema definition")
async def test_every_parameter_explains_itself(tmp_path: Path) -> None:
    """With a description and examples that fit it; `sortLinks` is true unless said otherwise."""
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp) as client:
        for tool in await client.tools():
            for name, schema in tool["inputSchema"]["properties"].items():
                assert schema["description"], (tool["name"], name)
                assert schema["examples"], (tool["name"], name)
                for example in schema["examples"]:
                    jsonschema_rs.validate(schema, example)
            hints = tool["annotations"]
            reads = tool["name"] not in {"memory_add", "memory_update", "memory_rename", "memory_delete"}
            assert hints["readOnlyHint"] is reads
            assert hints["destructiveHint"] is (tool["name"] in {"memory_add", "memory_update", "memory_delete"})
            assert hints["idempotentHint"] is (reads or tool["name"] == "memory_delete")
        tools = {tool["name"]: tool for tool in await client.tools()}
        for name in (*SEARCHES, "memory_get", "memory_read_linked"):
            schema = tools[name]["inputSchema"]["properties"]["sortLinks"]
            assert schema["default"] is True
            assert schema["enum"] == [True, False, "true", "false"]


@pytest.mark.parametrize(
    ("tool", "name", "most"),
    [
        ("memory_add", "key", 512),
        ("memory_add", "summary", 4000),
        ("memory_add", "text", 200_000),
        ("memory_add", "namespace", 128),
        ("memory_list", "prefix", 512),
    ],
)
async def test_limits_stand_in_the_schemas(tmp_path: Path, tool: str, name: str, most: int) -> None:
    """The longest text that a schema allows is taken, and one character more is refused with the limit."""
    async with open_gateway(tmp_path, {}, **OWN) as gateway, http_client(gateway.mcp) as client:
        tools = {each["name"]: each for each in await client.tools()}
        assert tools[tool]["inputSchema"]["properties"][name]["maxLength"] == most
        given = {"key": "k"} if tool == "memory_add" else {}
        await data(client, tool, {**given, name: "日" * most})
        error = await failure(client, tool, {**given, name: "x" * (most + 1)})
        assert error["message"] == f"{name}: has more than {most:,} characters"


async def test_memories_stay_over_a_restart_and_over_stdio(tmp_path: Path) -> None:
    """What was written over HTTP is found over stdio, by another process."""
    async with filled(tmp_path):
        pass
    config = write_config(tmp_path / "pegboard.json", {}, **OWN)
    async with stdio_client(config) as client:
        found = await data(client, "memory_search", {"query": "charged twice"})
        assert found["results"][0]["key"] == "shop:pay:bug:twice"


async def test_settings_are_taken_over_while_running(tmp_path: Path) -> None:
    """The default namespace and the size of answers follow the config file."""
    async with open_gateway(tmp_path, {}, **OWN, memory={"namespace": "red", "answerSize": 12_500}) as gateway:
        async with http_client(gateway.mcp) as client:
            await data(client, "memory_add", {"key": "one", "text": "x" * 20_000})
            cut = await client.call("memory_get", {"key": "one"})
            assert len(cut["content"][0]["text"]) <= 12_500
            assert "offset" in cut["structuredContent"]["data"]["text"]
            await gateway.configure({}, **OWN)
            assert (await failure(client, "memory_get", {"key": "one"}))["code"] == "TOOL_NOT_FOUND"
            whole = await data(client, "memory_get", {"key": "one", "namespace": "red"})
            assert whole["text"] == "x" * 20_000


async def test_memory_tools_are_found_by_everyday_words(tmp_path: Path) -> None:
    """Beside a server's tools, `tool_find` knows what an agent would ask for."""
    own = {"toolsets": ["discovery", "memory"], "expose": "search"}
    async with open_gateway(tmp_path, {"one": toy(tools=[f"thing_{n}" for n in range(60)])}, **own) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            for query, wanted in (
                ("remember this decision for later", "memory_add"),
                ("look something up in my notes", "memory_search"),
                ("forget a memory", "memory_delete"),
                ("read related memories", "memory_read_linked"),
            ):
                found = (await data(client, "tool_find", {"query": query}))["tools"]
                assert wanted in [hit["name"] for hit in found[:3]], (query, [hit["name"] for hit in found])
