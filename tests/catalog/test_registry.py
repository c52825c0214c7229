"""The registry: every tool under one roof, nothing that raises, nothing that depends on luck."""

import random
import re
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pegboard.catalog.definitions import tool_problem
from pegboard.catalog.registry import DEFAULT_TTL, Exposure, ToolRegistry
from pegboard.names import parse
from pegboard.result import ToolErrorCode, ToolResult
from pegboard.tool import RegisteredTool, Tool

pytestmark = pytest.mark.anyio

EXPOSED = re.compile(r"[a-zA-Z0-9_-]+")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Static(Tool):
    """A static tool."""

    name = "own"
    description = "Pegboard's own."

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        return {}


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A definition as a server sends it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


def names(registry: ToolRegistry) -> list[str]:
    return [entry.name for entry in registry.all()]


def only(registry: ToolRegistry) -> RegisteredTool:
    (entry,) = registry.all()
    return entry


def events(logs: list[Any], event: str) -> list[dict[str, Any]]:
    """The fields of every event of this name."""
    return [
        {key: value for key, value in entry.items() if key not in {"event", "log_level"}}
        for entry in logs
        if entry["event"] == event
    ]


# Naming


@pytest.mark.scenario("registry: AC4 a name with a server's prefix leads to that server")
def test_a_servers_tool_is_exposed_as_server_and_tool() -> None:
    """`status` of `git` is `git__status`, and the record knows server and original name for routing."""
    registry = ToolRegistry()
    assert registry.register_mcp_tools("git", [tool("status")]) == ToolResult[int].ok(1)
    found = registry.get_mcp_tool("git__status")
    assert found is not None
    assert (found.name, found.server_name, found.original_name) == ("git__status", "git", "status")
    assert found.definition["name"] == "git__status"
    assert parse(found.name) == ("git", "status")


@pytest.mark.scenario("registry: AC4 a name with a server's prefix leads to that server")
@pytest.mark.parametrize("own", ["b__c", "__x", "x__", "_", "a__b__c"])
def test_underscores_in_a_tools_own_name_do_not_confuse_routing(own: str) -> None:
    """A tool's own name may hold `__`: the record, not the splitting, says where a call goes."""
    registry = ToolRegistry()
    registry.register_mcp_tools("srv", [tool(own)])
    found = registry.get_mcp_tool(f"srv__{own}")
    assert found is not None
    assert (found.server_name, found.original_name) == ("srv", own)


def test_servers_whose_names_begin_alike_do_not_meet() -> None:
    """`a` + `b_c` and `a_b` + `c` are two tools, each with its own server."""
    registry = ToolRegistry()
    registry.register_mcp_tools("a", [tool("b_c")])
    registry.register_mcp_tools("a_b", [tool("c")])
    owners = {entry.name: entry.server_name for entry in registry.all()}
    assert owners == {"a__b_c": "a", "a_b__c": "a_b"}


@pytest.mark.scenario("registry: Names: a conflict with a static tool excludes, the same name on two servers does not")
@pytest.mark.parametrize("server", ["", "Git", "git-hub", "a__b", "_a", "a_", "a b", "größe", "a\n"])
def test_a_server_name_must_be_snake_case(server: str) -> None:
    """Another name is TOOL_INVALID_INPUT, not retryable, and nothing is registered."""
    registry = ToolRegistry()
    result = registry.register_mcp_tools(server, [tool("x")])
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == (ToolErrorCode.INVALID_INPUT, False)
    assert repr(server) in result.error.message
    assert registry.all() == []
    assert registry.servers() == []


STRANGE = ["search.docs", "a/b", "a b", "größe", "日本語", "a\nb", "x" * 47, "x" * 1024, "😀", "a:b"]


@pytest.mark.parametrize("limit", [48, 64])
@pytest.mark.parametrize("own", STRANGE)
def test_strange_and_long_names_are_made_fit(own: str, limit: int) -> None:
    """What is exposed fits pattern and length, is the same on every start, and the original goes to the server."""
    first, second = ToolRegistry(max_name_length=limit), ToolRegistry(max_name_length=limit)
    for registry in (first, second):
        assert registry.register_mcp_tools("git", [tool(own)]).data == 1
    assert EXPOSED.fullmatch(only(first).name)
    assert len(only(first).name) <= limit
    assert only(first).name.startswith("git__")
    assert only(first).original_name == own
    assert names(first) == names(second)


def test_names_that_become_alike_stay_apart() -> None:
    """Names that differ only in what had to be cut or replaced are still two tools."""
    registry = ToolRegistry()
    owns = ["a.b", "a/b", "a_b", "x" * 60 + "1", "x" * 60 + "2"]
    assert registry.register_mcp_tools("git", [tool(own) for own in owns]).data == 5
    assert sorted(entry.original_name for entry in registry.all()) == sorted(owns)


def test_without_a_prefix_a_servers_own_names_are_exposed() -> None:
    """`prefix: false` exposes the names as the server has them, and they are still the server's."""
    registry = ToolRegistry()
    registry.register_mcp_tools("git", [tool("status"), tool("a b")], exposure=Exposure(prefix=False))
    found = registry.get_mcp_tool("status")
    assert found is not None
    assert (found.server_name, found.original_name) == ("git", "status")
    assert all(EXPOSED.fullmatch(name) and not name.startswith("git__") for name in names(registry))


def test_a_name_that_two_servers_claim_is_always_the_same_ones() -> None:
    """Should a bare name meet another server's full one, the full one counts, whichever came first."""
    owners: set[str | None] = set()
    for order in (1, -1):
        registry = ToolRegistry()
        for server, own, prefix in [("a", "b__c", False), ("b", "c", True)][::order]:
            registry.register_mcp_tools(server, [tool(own)], exposure=Exposure(prefix=prefix))
        owners.add(only(registry).server_name)
        bare = registry.server("a")
        assert bare is not None
        assert "one of server b's" in bare.rejected["b__c"]
    assert owners == {"b"}


def test_a_bare_name_that_begins_with_another_server_is_a_conflict() -> None:
    """`good__secret` of a server without prefix belongs to `good`, whether that server has, denies or lacks it."""
    registry = ToolRegistry(configured=lambda: ["bare", "good"])
    registry.register_mcp_tools(
        "bare", [tool("good__secret"), tool("bare__own"), tool("other__x")], exposure=Exposure(prefix=False)
    )
    assert names(registry) == ["bare__own", "other__x"]
    known = registry.server("bare")
    assert known is not None
    assert list(known.rejected) == ["good__secret"]
    assert "one of server good's" in known.rejected["good__secret"]


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (1, 1.0)])
def test_a_change_that_python_takes_for_none_is_one(before: Any, after: Any) -> None:
    """A definition is listed as it was sent last."""
    registry = ToolRegistry()
    for value in (before, after):
        registry.register_mcp_tools("git", [tool("a", _meta={"x": value})])
        assert repr(only(registry).definition["_meta"]["x"]) == repr(value)


def test_a_tool_that_stays_the_same_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long list in which one tool changed, that one is looked at."""
    judged: list[str] = []

    def problem(raw: dict[str, Any], **options: Any) -> str | None:
        judged.append(raw["name"])
        return tool_problem(raw, **options)

    registry = ToolRegistry()
    registry.register_mcp_tools("git", [tool(f"t{number}") for number in range(9)])
    monkeypatch.setattr("pegboard.catalog.registry.tool_problem", problem)
    registry.register_mcp_tools("git", [tool(f"t{number}") for number in range(8)] + [tool("t8", title="New")])
    assert judged == ["t8"]
    assert len(registry.all()) == 9


def test_a_name_given_up_goes_to_whoever_else_has_it() -> None:
    """Names that come and go leave exactly those of the servers that are there, in order."""
    registry = ToolRegistry()
    rng = random.Random(1)
    servers: dict[str, list[str]] = {}
    for _ in range(200):
        server = rng.choice("abcd")
        if rng.random() < 0.3:
            servers.pop(server, None)
            registry.remove_server_tools(server)
        else:
            servers[server] = rng.sample(["x", "y", "z", "w"], rng.randint(0, 4))
            raw = [tool(own) for own in servers[server]]
            registry.register_mcp_tools(server, raw, exposure=Exposure(prefix=server > "b"))
        bare = {
            own: min(other for other in "ab" if own in servers.get(other, []))
            for own in "xyzw"
            if any(own in servers.get(other, []) for other in "ab")
        }
        full = {f"{other}__{own}": other for other in "cd" for own in servers.get(other, [])}
        assert {each.name: each.server_name for each in registry.all()} == {**bare, **full}
        assert names(registry) == sorted(names(registry))
        assert registry.server_tools == len(registry.all())


# Definitions


def test_a_definition_is_left_as_it_is() -> None:
    """Title, annotations, schemas with `$ref`, icons, `_meta` and fields nobody knows all reach the client."""
    rich = tool(
        "status",
        title="Status",
        annotations={"readOnlyHint": True, "unknownHint": 5},
        inputSchema={
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/n"}, "x": {"type": "number", "maximum": 2**70}},
            "$defs": {"n": {"type": "string", "format": "uri", "minLength": 1}},
            "anyOf": [{"required": ["n"]}, {"required": ["x"]}],
            "x-vendor": None,
        },
        outputSchema={"type": "object"},
        icons=[{"src": "https://example.com/i.png", "sizes": ["any"], "new": 1}],
        _meta={"a/b": {"n": 2**70}},
        futureField=[None, {"z": 1, "a": 2}],
    )
    registry = ToolRegistry()
    registry.register_mcp_tools("git", [rich])
    definition = only(registry).definition
    assert definition == {**rich, "name": "git__status"}
    assert list(definition) == list(rich)
    assert rich["name"] == "status"


@pytest.mark.parametrize(
    ("more", "description"),
    [
        ({"description": "Shows it."}, "Shows it."),
        ({"description": "Shows it.", "title": "Status"}, "Shows it."),
        ({"title": "Status"}, "Status"),
        ({"description": None, "title": "Status"}, "Status"),
        ({"description": "", "title": "Status"}, "Status"),
        ({}, "status of git"),
        ({"description": None, "title": None}, "status of git"),
    ],
)
def test_only_a_missing_description_is_filled_in(more: dict[str, Any], description: str) -> None:
    """Without a description the title stands in for it, else `NAME of SERVER`; every tool has one for clients."""
    registry = ToolRegistry()
    registry.register_mcp_tools("git", [{"name": "status", "inputSchema": {"type": "object"}, **more}])
    definition = only(registry).definition
    assert definition["description"] == description
    assert {**definition, "description": 0, "name": 0} == {
        "inputSchema": {"type": "object"},
        **more,
        "description": 0,
        "name": 0,
    }
    assert registry.get_tools_for_claude()[0]["description"] == description


BAD = [
    {"name": "bad"},
    {"name": "bad", "inputSchema": None},
    {"name": "bad", "inputSchema": {"type": "string"}},
    {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "nothing"}}}},
    {"name": "bad", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}},
    {"name": "bad", "inputSchema": {"type": "object"}, "extra": object()},
]


@pytest.mark.parametrize("bad", BAD, ids=["none", "null", "type", "deep", "hint", "no json"])
def test_a_bad_tool_is_left_out_and_its_siblings_stay(bad: dict[str, Any]) -> None:
    """An invalid definition is logged as an error and not registered; the others of the same server are."""
    registry = ToolRegistry()
    with capture_logs() as logs:
        result = registry.register_mcp_tools("git", [tool("a"), bad, tool("z")])
    assert result == ToolResult[int].ok(2)
    assert names(registry) == ["git__a", "git__z"]
    (entry,) = [entry for entry in logs if entry["event"] == "tools.schema.invalid"]
    assert (entry["log_level"], entry["serverName"], entry["tool"]) == ("error", "git", "bad")
    assert entry["reason"]
    known = registry.server("git")
    assert known is not None
    assert known.rejected == {"bad": entry["reason"]}


def test_of_two_tools_with_one_name_the_first_stays() -> None:
    """A server that sends a name twice gets one tool, always the same one, and a line in the log."""
    registry = ToolRegistry()
    with capture_logs() as logs:
        result = registry.register_mcp_tools("git", [tool("a", title="one"), tool("a", title="two"), tool("b")])
    assert result == ToolResult[int].ok(2)
    found = registry.get("git__a")
    assert found is not None
    assert found.definition["title"] == "one"
    assert events(logs, "tools.duplicate") == [{"serverName": "git", "tool": "a"}]


# Merging


@pytest.mark.scenario("registry: AC3 static and MCP tools come as one list in the provider's form")
def test_several_servers_and_static_tools_are_one_sorted_list() -> None:
    """All tools are one list, sorted by name, in the order of nobody's arrival."""
    arrivals = [("zeta", ["b", "a"]), ("alpha", ["z", "Y"]), ("git", ["status"])]
    lists: list[list[dict[str, Any]]] = []
    for order in (1, -1):
        registry = ToolRegistry()
        for server, owns in arrivals[::order]:
            registry.register_mcp_tools(server, [tool(own) for own in owns[::order]])
        registry.register_tool("memory_search", Static())
        lists.append(registry.get_tools_for_claude())
    assert lists[0] == lists[1]
    listed = [entry["name"] for entry in lists[0]]
    assert listed == ["alpha__Y", "alpha__z", "git__status", "memory_search", "zeta__a", "zeta__b"]
    assert listed == sorted(listed)


@pytest.mark.scenario("registry: Names: a conflict with a static tool excludes, the same name on two servers does not")
def test_the_same_name_on_two_servers_is_two_tools() -> None:
    """Two servers may both have a `search`; each is reached by its own name."""
    registry = ToolRegistry()
    registry.register_mcp_tools("docs", [tool("search", title="D")])
    registry.register_mcp_tools("web", [tool("search", title="W")])
    titles = {entry.name: entry.definition["title"] for entry in registry.all()}
    assert titles == {"docs__search": "D", "web__search": "W"}


@pytest.mark.scenario("registry: AC3 static and MCP tools come as one list in the provider's form")
def test_the_providers_form_is_name_description_and_input_schema() -> None:
    """For a model provider a tool is exactly `{name, description, input_schema}`."""
    registry = ToolRegistry()
    registry.register_tool("say", Static())
    registry.register_mcp_tools("git", [tool("status", title="S", _meta={"a": 1})])
    assert registry.get_tools_for_claude() == [
        {"name": "git__status", "description": "Does status.", "input_schema": {"type": "object"}},
        {"name": "say", "description": "Pegboard's own.", "input_schema": {"type": "object", "properties": {}}},
    ]


def test_registering_again_replaces_the_whole_set() -> None:
    """A server's new list takes the place of its old one and touches nobody else's."""
    registry = ToolRegistry()
    registry.register_mcp_tools("docs", [tool("search")])
    registry.register_mcp_tools("git", [tool("a"), tool("b")])
    registry.register_mcp_tools("git", [tool("b", title="new"), tool("c")])
    assert names(registry) == ["docs__search", "git__b", "git__c"]
    found = registry.get("git__b")
    assert found is not None
    assert found.definition["title"] == "new"
    registry.register_mcp_tools("git", [])
    assert names(registry) == ["docs__search"]
    assert registry.servers() == ["docs", "git"]


def test_removing_a_server_removes_its_tools_only() -> None:
    """A server's tools go at once, with their discovery time; removing what is not there removes nothing."""
    registry = ToolRegistry()
    registry.register_mcp_tools("docs", [tool("search")])
    registry.register_mcp_tools("git", [tool("a"), tool("b")])
    assert registry.remove_server_tools("git") == ToolResult[int].ok(2)
    assert names(registry) == ["docs__search"]
    assert registry.get("git__a") is None
    assert registry.server("git") is None
    assert registry.is_discovery_stale("git")
    assert registry.remove_server_tools("git") == ToolResult[int].ok(0)
    assert registry.remove_server_tools("never_there") == ToolResult[int].ok(0)


@pytest.mark.scenario("registry: AC4 a name with a server's prefix leads to that server")
@pytest.mark.parametrize("name", ["say", "git__nothing", "nothing__status", "status", "", "git__", "__status"])
def test_what_is_no_servers_tool_is_none(name: str) -> None:
    """`get_mcp_tool` knows neither static tools nor names that nobody has."""
    registry = ToolRegistry()
    registry.register_tool("say", Static())
    registry.register_mcp_tools("git", [tool("status")])
    assert registry.get_mcp_tool(name) is None
    assert (registry.get(name) is not None) == (name == "say")


# Conflicts with static tools


@pytest.mark.scenario("registry: Names: a conflict with a static tool excludes, the same name on two servers does not")
@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("static_first", [True, False])
def test_a_tool_with_a_static_tools_name_is_not_registered(prefix: bool, static_first: bool) -> None:
    """A server's tool whose own name is a static tool's is excluded, whichever came first; the others stay."""
    registry = ToolRegistry()
    if static_first:
        registry.register_tool("search", Static())
    with capture_logs() as logs:
        registry.register_mcp_tools("git", [tool("search"), tool("log")], exposure=Exposure(prefix=prefix))
        if not static_first:
            registry.register_tool("search", Static())
    assert names(registry) == (["git__log", "search"] if prefix else ["log", "search"])
    assert registry.get_mcp_tool("git__search") is None
    found = registry.get("search")
    assert found is not None
    assert found.server_name is None
    known = registry.server("git")
    assert known is not None
    assert known.conflicts == ("search",)
    assert len(known.tools) == 1
    assert events(logs, "tools.registry.conflict") == [
        {"serverName": "git", "tool": "search", "reason": "a static tool has this name"}
    ]


def test_a_conflict_ends_with_the_static_tool() -> None:
    """When the static tool goes, the server's tool of that name is there."""
    registry = ToolRegistry()
    static = registry.register_tool("search", Static())
    registry.register_mcp_tools("git", [tool("search")])
    static.dispose()
    assert names(registry) == ["git__search"]
    known = registry.server("git")
    assert known is not None
    assert known.conflicts == ()


# Allow and deny


def test_what_is_not_permitted_is_not_registered() -> None:
    """Tools that the config keeps out are judged by their own names, and stay out when a static tool comes or goes."""
    registry = ToolRegistry()
    exposure = Exposure(permits=lambda name: name.startswith("get_"))
    owns = ["get_a", "delete_a", "get_b", "say"]
    assert registry.register_mcp_tools("git", [tool(own) for own in owns], exposure=exposure).data == 2
    assert names(registry) == ["git__get_a", "git__get_b"]
    registry.register_tool("say", Static()).dispose()
    registry.register_tool("get_b", Static())
    assert names(registry) == ["get_b", "git__get_a"]
    known = registry.server("git")
    assert known is not None
    assert [raw["name"] for raw in known.raw] == owns


# Freshness


@pytest.mark.scenario("registry: AC2 the first call discovers, and the tools are kept for five minutes")
@pytest.mark.parametrize(
    ("ttl", "age", "stale"),
    [
        (None, 0.0, False),
        (None, 299.9, False),
        (None, 300.0, False),
        (None, 300.1, True),
        (None, 1e9, True),
        (60.0, 59.0, False),
        (60.0, 60.0, False),
        (60.0, 61.0, True),
        (3600.0, 3599.0, False),
        (3600.0, 3601.0, True),
        (None, -1.0, True),
    ],
)
def test_stale_is_older_than_the_ttl(ttl: float | None, age: float, stale: bool) -> None:
    """Tools are stale once older than the TTL: 5 minutes, or the server's own; a time to come is stale too."""
    clock = Clock()
    registry = ToolRegistry(clock=clock)
    registry.register_mcp_tools("git", [tool("a")], ttl=ttl)
    clock.now += age
    assert registry.is_discovery_stale("git") is stale


@pytest.mark.scenario("registry: AC2 the first call discovers, and the tools are kept for five minutes")
def test_a_server_never_discovered_is_stale() -> None:
    """Nothing known is never fresh, and each server has a time of its own."""
    clock = Clock()
    registry = ToolRegistry(clock=clock)
    assert registry.is_discovery_stale("git")
    registry.register_mcp_tools("docs", [])
    clock.now += DEFAULT_TTL
    registry.register_mcp_tools("git", [])
    clock.now += 1
    assert registry.is_discovery_stale("docs")
    assert not registry.is_discovery_stale("git")


@pytest.mark.scenario("registry: AC2 the first call discovers, and the tools are kept for five minutes")
def test_the_ttl_is_five_minutes() -> None:
    """Spec 4 says for how long discovered tools hold."""
    assert DEFAULT_TTL == 5 * 60


def test_tools_from_disk_keep_their_age() -> None:
    """What was discovered in an earlier run is as old as it is."""
    clock = Clock()
    registry = ToolRegistry(clock=clock)
    registry.register_mcp_tools("git", [tool("a")], discovered_at=clock.now - 301)
    assert registry.is_discovery_stale("git")


def test_touching_makes_fresh_and_changes_nothing() -> None:
    """The same tools found again are fresh from now on; nobody is told of a change."""
    clock, changes = Clock(), list[None]()
    registry = ToolRegistry(clock=clock, on_change=lambda: changes.append(None))
    registry.register_mcp_tools("git", [tool("a")])
    generation = registry.generation
    clock.now += 1000
    registry.touch("git", 60)
    assert not registry.is_discovery_stale("git")
    clock.now += 61
    assert registry.is_discovery_stale("git")
    assert (registry.generation, len(changes)) == (generation, 1)
    registry.touch("nobody")
    assert registry.server("nobody") is None


# Changes and their events


def test_every_change_is_counted_and_told() -> None:
    """Each registration and removal counts one generation up and tells whoever wants to know."""
    seen: list[int] = []
    registry = ToolRegistry(on_change=lambda: seen.append(registry.generation))
    static = registry.register_tool("say", Static())
    registry.register_mcp_tools("git", [tool("a")])
    registry.remove_server_tools("git")
    registry.remove_server_tools("git")
    static.dispose()
    assert seen == [1, 2, 3, 4]
    registry.register_mcp_tools("Not-A-Name", [])
    registry.register_static_tool("Not-A-Name", print, {})
    assert registry.generation == 4


@pytest.mark.scenario("registry: Observability: the named events with their fields and the trace id")
def test_updates_are_logged_with_their_counts() -> None:
    """`tools.registry.updated` says how many static and how many servers' tools there are now."""
    registry = ToolRegistry()
    with capture_logs() as logs:
        registry.register_tool("say", Static())
        registry.register_mcp_tools("git", [tool("a"), tool("b"), tool("say"), {"name": "bad"}])
        registry.register_mcp_tools("docs", [tool("a")])
        registry.remove_server_tools("git")
    assert events(logs, "tools.registry.updated") == [
        {"staticCount": 1, "mcpCount": 0},
        {"staticCount": 1, "mcpCount": 2},
        {"staticCount": 1, "mcpCount": 3},
        {"staticCount": 1, "mcpCount": 1},
    ]


@pytest.mark.scenario("registry: Observability: the named events with their fields and the trace id")
def test_a_removal_is_logged_with_its_count() -> None:
    """`tools.registry.server.removed` names the server and how many tools went; nothing removed is no event."""
    registry = ToolRegistry()
    registry.register_mcp_tools("git", [tool("a"), tool("b")])
    with capture_logs() as logs:
        registry.remove_server_tools("git")
        registry.remove_server_tools("git")
    assert events(logs, "tools.registry.server.removed") == [{"serverName": "git", "removedCount": 2}]


# Static tools from plain functions


async def test_a_function_can_be_a_static_tool() -> None:
    """A plain function, or one that must be awaited, is registered with its definition and answers a `ToolResult`."""

    def add(arguments: dict[str, Any]) -> int:
        return arguments["a"] + 1

    async def later(arguments: dict[str, Any]) -> ToolResult[int]:
        return ToolResult[int].ok(add(arguments))

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    registry = ToolRegistry()
    for name, handler in (("add", add), ("add_later", later)):
        definition = {"description": "Adds.", "inputSchema": schema, "_meta": {"x": 1}}
        assert registry.register_static_tool(name, handler, definition) == ToolResult[str].ok(name)
        found = registry.get(name)
        assert found is not None
        assert found.definition == {**definition, "name": name}
        assert found.tool is not None
        assert (await found.tool.invoke({"a": 2**70})).data == {"success": True, "data": 2**70 + 1}
        refused = (await found.tool.invoke({"a": "x"})).data
        assert refused is not None
        assert refused["error"]["code"] == "TOOL_INVALID_INPUT"


async def test_a_function_that_raises_is_a_failed_result() -> None:
    """Whatever a handler throws is answered as a failure."""
    registry = ToolRegistry()
    registry.register_static_tool("divide", lambda _: 1 / 0, {"description": "d", "inputSchema": {"type": "object"}})
    found = registry.get("divide")
    assert found is not None
    assert found.tool is not None
    answer = (await found.tool.invoke()).data
    assert answer is not None
    assert answer["error"]["code"] == "TOOL_EXECUTION_FAILED"


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("Bad-Name", tool("x")),
        ("git__x", tool("x")),
        ("", tool("x")),
        ("taken", tool("x")),
        ("x", {}),
        ("x", None),
        ("x", []),
        ("x", {"inputSchema": {"type": "object", "required": 5}}),
        ("x", {"inputSchema": {"type": "object"}, "title": 5}),
        ("x", {"inputSchema": {"type": "object"}, "extra": object()}),
    ],
)
def test_a_wrong_static_registration_is_a_failed_result(name: str, definition: Any) -> None:
    """A bad name, a name in use or a bad definition is TOOL_INVALID_INPUT; nothing is raised, nothing registered."""
    registry = ToolRegistry()
    registry.register_static_tool("taken", print, tool("taken"))
    result = registry.register_static_tool(name, print, definition)
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == (ToolErrorCode.INVALID_INPUT, False)
    assert result.error.message
    assert names(registry) == ["taken"]


# Garbage

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
toolish = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(min_size=1) | st.sampled_from(["a", "say", "a.b"]) | json_values,
        "inputSchema": st.dictionaries(
            st.sampled_from(["type", "properties", "$ref", "$schema", "required", "$id", "x"]), json_values
        )
        | st.just({"type": "object"})
        | json_values,
        "description": st.text() | json_values,
        "title": st.text() | json_values,
        "annotations": json_values,
        "_meta": json_values,
        "icons": json_values,
        "outputSchema": json_values | st.just({"type": "object"}),
    },
)


@pytest.mark.scenario("registry: AC7 every failure is a result with a fitting code")
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(offered=st.lists(toolish | json_values, max_size=8) | json_values, prefix=st.booleans())
@example(
    offered=[tool("\ud800", title="\ud800"), tool("a"), tool("a", inputSchema={"type": "object", "\ud800": 1})],
    prefix=True,
)
@example(offered=[tool("a", inputSchema={"type": "object", "$schema": "draft-07"})], prefix=True)
def test_no_garbage_makes_the_registry_raise(offered: Any, prefix: bool) -> None:
    """Whatever a server sends as its list, the answer is a result, what is listed is fit, and good tools are there."""
    registry = ToolRegistry()
    registry.register_tool("say", Static())
    registry.register_mcp_tools("other", [tool("kept")])
    listed = [*cast("list[Any]", offered), tool("good")] if isinstance(offered, list) else offered
    result = registry.register_mcp_tools("srv", listed, exposure=Exposure(prefix=prefix))
    assert result.success == isinstance(offered, list)
    for entry in registry.all():
        assert EXPOSED.fullmatch(entry.name)
        assert len(entry.name) <= 48
        assert isinstance(entry.definition["description"], str)
        assert entry.definition["inputSchema"]["type"] == "object"
    owners = {(entry.server_name, entry.original_name) for entry in registry.all()}
    assert {(None, "say"), ("other", "kept")} <= owners
    assert (("srv", "good") in owners) == result.success
    removed = registry.remove_server_tools("srv")
    assert removed == ToolResult[int].ok(result.data or 0)


@pytest.mark.parametrize("garbage", [None, 5, "tools", {"tools": []}, True])
def test_what_is_no_list_does_not_replace_the_tools(garbage: Any) -> None:
    """An answer that is no list of tools is TOOL_INVALID_INPUT, and the server keeps what it had."""
    registry = ToolRegistry()
    registry.register_mcp_tools("git", [tool("a")])
    result = registry.register_mcp_tools("git", garbage)
    assert result.error is not None
    assert result.error.code is ToolErrorCode.INVALID_INPUT
    assert names(registry) == ["git__a"]
