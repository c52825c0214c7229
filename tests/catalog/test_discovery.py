"""Discovery: in parallel, when due, and never losing what was there."""

import asyncio
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from catalog.sources import Build, Clock, Hello, Source, tool
from pegboard.log import trace_id
from pegboard.result import ToolErrorCode, ToolResult, unavailable
from pegboard.storage import Storage, StorageError

pytestmark = pytest.mark.anyio

TTL = 300.0


def events(logs: list[Any], event: str) -> list[dict[str, Any]]:
    """The fields of every event of this name, besides its trace."""
    return [
        {key: value for key, value in entry.items() if key not in {"event", "log_level", "traceId"}}
        for entry in logs
        if entry["event"] == event
    ]


# Asking everyone


async def test_every_enabled_server_is_asked_and_its_tools_are_registered(house: Build) -> None:
    """The tools of all enabled servers are in one registry, and the result says how many."""
    here = house(Source("git", "log", "status"), Source("docs", "search"), Source("off", "x", enabled=False))
    assert here.names() == []
    result = await here.discovery.discover_all_tools()
    assert result == ToolResult[dict[str, int]].ok({"registered": 3})
    assert here.names() == ["docs__search", "git__log", "git__status"]
    assert here.sources["off"].asked == 0


@pytest.mark.scenario("registry: AC1 enabled servers are registered at start and not connected")
async def test_nothing_is_asked_before_it_is_needed(house: Build) -> None:
    """Having servers configured, loading the catalog and looking at the registry ask nobody."""
    here = house(Source("git", "log"))
    await here.discovery.load()
    here.discovery.refresh_stale()
    assert here.names() == []
    await here.settle()
    assert here.sources["git"].asked == 0


@pytest.mark.scenario("registry: Discovery: all servers at once")
async def test_servers_are_asked_in_parallel(house: Build) -> None:
    """Two servers that each answer only once the other has been asked both answer."""
    one, two = Source("one", "a"), Source("two", "b")
    one.gate.clear()
    two.gate.clear()
    one.on_ask, two.on_ask = two.gate.set, one.gate.set
    here = house(one, two)
    with anyio.fail_after(30):
        assert (await here.discovery.discover_all_tools()).data == {"registered": 2}


@pytest.mark.scenario("registry: AC5 a failed discovery keeps the tools and is a failed result")
async def test_one_failure_does_not_touch_the_others(house: Build) -> None:
    """A server that fails is the result, as its error; the others' tools are there all the same."""
    bad, good = Source("bad", "a"), Source("good", "b")
    bad.error = unavailable("connection refused")
    here = house(bad, good)
    result = await here.discovery.discover_all_tools()
    assert result.error == unavailable("connection refused").error
    assert here.names() == ["good__b"]


@pytest.mark.scenario("registry: AC7 every failure is a result with a fitting code")
@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (ConnectionRefusedError("Connection refused"), ToolErrorCode.UNAVAILABLE, True),
        (TimeoutError(), ToolErrorCode.UNAVAILABLE, True),
        (unavailable("gone", retryable=False), ToolErrorCode.UNAVAILABLE, False),
        (ValueError("odd"), ToolErrorCode.EXECUTION_FAILED, False),
    ],
)
async def test_a_failure_is_a_result_with_its_code(
    house: Build, error: Exception, code: ToolErrorCode, retryable: bool
) -> None:
    """Whatever a server raises comes back as a failed result, never as an exception."""
    source = Source("git")
    source.error = error
    result = await house(source).discovery.discover_all_tools()
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == (code, retryable)


@pytest.mark.scenario("registry: Discovery: all servers at once")
async def test_of_several_errors_the_first_servers_is_the_result(house: Build) -> None:
    """The result does not depend on who fails first in time, but on the servers' order."""
    slow, quick = Source("a_slow"), Source("b_quick")
    slow.error, quick.error = unavailable("slow one"), unavailable("quick one")
    slow.gate.clear()
    quick.on_ask = slow.gate.set
    result = await house(quick, slow).discovery.discover_all_tools()
    assert result.error is not None
    assert result.error.message == "slow one"


async def test_a_bad_tool_does_not_fail_its_servers_discovery(house: Build) -> None:
    """Tools that cannot be registered are left out; the server counts as discovered."""
    source = Source("git", "log")
    source.tools.append({"name": "bad", "inputSchema": 5})
    here = house(source)
    assert (await here.discovery.discover_all_tools()).data == {"registered": 1}
    assert not here.registry.is_discovery_stale("git")


async def test_an_unknown_server_is_invalid_input(house: Build) -> None:
    """Asking a server that is not configured is TOOL_INVALID_INPUT naming it."""
    result = await house().discovery.refresh(["nobody"])
    assert result.error is not None
    assert result.error.code is ToolErrorCode.INVALID_INPUT
    assert "nobody" in result.error.message


# Time to live


@pytest.mark.scenario("registry: AC2 the first call discovers, and the tools are kept for five minutes")
async def test_a_fresh_server_is_not_asked_again_a_stale_one_is(house: Build) -> None:
    """Within the TTL tools come from the cache; after it the server is asked once more."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover_all_tools()
    here.clock.now += TTL
    assert (await here.discovery.discover_all_tools()).data == {"registered": 0}
    assert source.asked == 1
    here.clock.now += 1
    source.tools.append(tool("status"))
    assert (await here.discovery.discover_all_tools()).data == {"registered": 2}
    assert source.asked == 2
    assert here.names() == ["git__log", "git__status"]


@pytest.mark.parametrize(("configured", "own", "holds"), [(60.0, None, 60.0), (60.0, 5.0, 5.0), (60.0, 600.0, 600.0)])
async def test_a_servers_own_ttl_replaces_the_configured_one(
    house: Build, configured: float, own: float | None, holds: float
) -> None:
    """What a server says of how long its list holds counts more than the config, at the first answer and the next."""
    source = Source("git", "log", ttl=configured)
    source.ttl = own
    here = house(source)
    for _ in range(2):
        await here.discovery.discover_all_tools()
        here.clock.now += holds
        assert not here.registry.is_discovery_stale("git")
        here.clock.now += 1
        assert here.registry.is_discovery_stale("git")


async def test_the_same_list_again_is_fresh_and_no_change(house: Build) -> None:
    """A refresh that finds what is known already makes it fresh and tells nobody."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover("git")
    generation = here.registry.generation
    here.clock.now += TTL + 1
    assert await here.discovery.discover("git") == ToolResult[int].ok(1)
    assert here.registry.generation == generation
    assert not here.registry.is_discovery_stale("git")


async def test_the_same_list_under_another_config_is_a_change(house: Build) -> None:
    """When the config lets fewer tools through, the next answer counts, even if the server says the same."""
    source = Source("git", "log", "delete_all")
    here = house(source)
    await here.discovery.discover("git")
    source.change(deny=("delete_*",))
    await here.discovery.discover("git")
    assert here.names() == ["git__log"]


async def test_allow_deny_and_prefix_come_from_the_config(house: Build) -> None:
    """A server's `tools` and `prefix` settings decide what of its list is shown, and how."""
    source = Source("git", "get_a", "get_b", "delete_a", prefix=False, allow=("get_*",), deny=("*_b",))
    here = house(source)
    assert (await here.discovery.discover_all_tools()).data == {"registered": 1}
    assert here.names() == ["get_a"]


# Failing and recovering


@pytest.mark.scenario("registry: AC5 a failed discovery keeps the tools and is a failed result")
async def test_a_failed_refresh_keeps_the_tools_and_says_since_when(house: Build) -> None:
    """Cached tools stay, marked stale since the first failure; a success clears the mark."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover("git")
    assert here.discovery.stale_since == {}
    source.error = unavailable("slow")
    assert not (await here.discovery.discover("git")).success
    assert here.names() == ["git__log"]
    first = here.discovery.stale_since["git"]
    await here.discovery.discover("git")
    assert here.discovery.stale_since == {"git": first}
    source.error = None
    assert (await here.discovery.discover("git")).success
    assert here.discovery.stale_since == {}


async def test_a_failing_server_is_not_asked_at_every_need(house: Build) -> None:
    """In the background a server that failed is left alone for a while that doubles, up to five minutes."""
    source = Source("git", "log")
    source.is_connected = True
    here = house(source)
    await here.discovery.discover("git")
    source.error = unavailable("tools/list is broken")
    here.clock.now += TTL + 1
    pauses: list[float] = []
    for _ in range(11):
        asked, since = source.asked, here.clock.now
        while source.asked == asked:
            here.discovery.refresh_stale()
            await here.settle()
            here.clock.now += 0.5
        pauses.append(here.clock.now - 0.5 - since)
    assert pauses[1:] == [0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 63.5, 127.5, 255.5, 299.5]
    source.error = None
    assert (await here.discovery.discover("git")).success
    here.clock.now += TTL + 1
    asked = source.asked
    here.discovery.refresh_stale()
    await here.settle()
    assert source.asked == asked + 1


async def test_a_server_never_seen_that_failed_is_left_alone_too(house: Build) -> None:
    """A list request does not wait again for a new server that has just failed; a while later it does."""
    source = Source("git", "log")
    source.error = unavailable("not yet")
    here = house(source)
    await here.discovery.discover_new(5)
    await here.discovery.discover_new(5)
    assert source.asked == 1
    here.clock.now += 1
    source.error = None
    await here.discovery.discover_new(5)
    assert here.names() == ["git__log"]


async def test_a_server_configured_anew_starts_with_a_clean_slate(house: Build) -> None:
    """Taking a changed config over forgives earlier failures: it may be what mends them."""
    source = Source("git", "log")
    source.error = unavailable("wrong address")
    here = house(source)
    await here.discovery.discover_new(5)
    assert "git" in here.discovery.stale_since
    source.error = None
    await here.discovery.restore("git")
    assert here.discovery.stale_since == {}
    await here.discovery.discover_new(5)
    assert here.names() == ["git__log"]


# Enabling, disabling, removing


@pytest.mark.scenario("registry: AC6 a disabled server's tools are removed at the next refresh")
@pytest.mark.parametrize("how", ["disabled", "removed"])
async def test_a_server_that_is_gone_loses_its_tools_at_the_next_refresh(house: Build, how: str) -> None:
    """Tools of a server that was disabled or taken out of the config leave the registry, the others' stay."""
    git, docs = Source("git", "log"), Source("docs", "search")
    here = house(git, docs)
    await here.discovery.discover_all_tools()
    if how == "disabled":
        git.change(enabled=False)
    else:
        del here.sources["git"]
    with capture_logs() as logs:
        assert (await here.discovery.discover_all_tools()).success
    assert here.names() == ["docs__search"]
    assert here.registry.server("git") is None
    assert events(logs, "tools.registry.server.removed") == [{"serverName": "git", "removedCount": 1}]
    assert (git.asked, docs.asked) == (1, 1)


@pytest.mark.scenario("registry: AC6 a disabled server's tools are removed at the next refresh")
async def test_disabled_and_enabled_again_within_the_ttl_has_its_tools(house: Build) -> None:
    """A server that comes back within the TTL has its tools at once from storage, and is not asked."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover_all_tools()
    source.change(enabled=False)
    await here.discovery.discover_all_tools()
    assert here.names() == []
    source.change(enabled=True)
    await here.discovery.restore("git")
    assert here.names() == ["git__log"]
    assert (await here.discovery.discover_all_tools()).data == {"registered": 0}
    assert source.asked == 1


async def test_enabled_again_without_a_restore_is_asked_again(house: Build) -> None:
    """The discovery time goes with the tools: coming back without them is never fresh."""
    source = Source("git", "log")
    here = house(source)
    await here.discovery.discover_all_tools()
    source.change(enabled=False)
    await here.discovery.discover_all_tools()
    source.change(enabled=True)
    assert (await here.discovery.discover_all_tools()).data == {"registered": 1}
    assert here.names() == ["git__log"]


@pytest.mark.parametrize("how", ["disabled", "removed", "moved", "replaced"])
async def test_an_answer_that_comes_too_late_does_not_count(house: Build, sqlite_storage: Storage, how: str) -> None:
    """What a server says after it was disabled, removed or sent elsewhere is neither registered nor kept."""
    source = Source("git", "log")
    source.gate.clear()
    here = house(source)
    asking = asyncio.create_task(here.discovery.discover("git"))
    while not source.asked:
        await asyncio.sleep(0)
    match how:
        case "disabled":
            source.change(enabled=False)
        case "removed":
            del here.sources["git"]
        case "moved":
            source.change(command="another")
        case _:
            here.sources["git"] = Source("git", "other")
    source.gate.set()
    assert await asking == ToolResult[int].ok(0)
    assert here.registry.server("git") is None
    assert await sqlite_storage.catalog.load() == []


async def test_forgetting_a_server_leaves_nothing_of_it(house: Build, sqlite_storage: Storage) -> None:
    """A server taken out of the config is gone from registry, storage and everything that was said of it."""
    git, docs = Source("git", "log"), Source("docs", "search")
    git.hello = Hello(instructions="Use git.")
    here = house(git, docs)
    await here.discovery.discover_all_tools()
    git.error = unavailable("x")
    await here.discovery.discover("git")
    await here.discovery.forget(git.spec)
    assert here.names() == ["docs__search"]
    assert [record.server for record in await sqlite_storage.catalog.load()] == ["docs"]
    assert here.discovery.instructions == {}
    assert here.discovery.stale_since == {}


# One at a time, and once more


async def test_two_who_ask_at_once_get_one_answer(house: Build) -> None:
    """However many need a server at once, it is asked once, and all get its answer."""
    source = Source("git", "log")
    source.gate.clear()
    here = house(source)
    asking = [asyncio.create_task(here.discovery.discover("git")) for _ in range(5)]
    while not source.asked:
        await asyncio.sleep(0)
    source.gate.set()
    assert await asyncio.gather(*asking) == [ToolResult[int].ok(1)] * 5
    assert source.asked == 1


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others(house: Build) -> None:
    """Cancelling one who waits neither ends the question nor the others' waiting."""
    source = Source("git", "log")
    source.gate.clear()
    here = house(source)
    first, second = (asyncio.create_task(here.discovery.discover("git")) for _ in range(2))
    while not source.asked:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.gate.set()
    assert (await second).data == 1
    assert source.asked == 1


async def test_soon_asks_in_the_background(house: Build) -> None:
    """`soon` returns at once, and the tools are there later."""
    here = house(Source("git", "log"))
    here.discovery.soon("git")
    assert here.names() == []
    await here.settle()
    assert here.names() == ["git__log"]


async def test_soon_during_a_run_asks_once_more_afterwards(house: Build) -> None:
    """A change announced while the server is answering is not lost: one more question, however often it was said."""
    source = Source("git", "log")
    source.gate.clear()
    here = house(source)
    here.discovery.soon("git")
    while not source.asked:
        await asyncio.sleep(0)
    for _ in range(3):
        here.discovery.soon("git")
    source.on_ask = lambda: source.tools.append(tool("status"))
    source.gate.set()
    await here.settle()
    assert source.asked == 2
    assert here.names() == ["git__log", "git__status"]


async def test_closing_ends_what_is_under_way(house: Build) -> None:
    """After closing nobody is being asked, and nobody will be, not even who was to be asked once more."""
    waiting, done = Source("waiting", "a"), Source("done", "b")
    waiting.gate.clear()
    here = house(waiting, done)
    for name in ("waiting", "done", "waiting", "done"):
        here.discovery.soon(name)
    # Until the one has its answer but nobody has looked at it yet.
    while not here.discovery._running["done"].done():
        await asyncio.sleep(0)
    await here.discovery.close()
    await asyncio.sleep(0)
    assert here.discovery._running == {}
    assert (waiting.asked, done.asked) == (1, 1)


# In the background


@pytest.mark.parametrize(
    ("transport", "connected", "asked"),
    [("stdio", False, 1), ("stdio", True, 2), ("http", False, 2), ("http", True, 2), ("sse", False, 2)],
)
async def test_time_alone_starts_no_process(house: Build, transport: str, connected: bool, asked: int) -> None:
    """Past the TTL a connected server or an address is asked again in the background; a process is not started."""
    source = Source("git", "log", transport=transport)
    source.is_connected = connected
    here = house(source)
    await here.discovery.discover("git")
    here.discovery.refresh_stale()
    await here.settle()
    assert source.asked == 1
    here.clock.now += TTL + 1
    here.discovery.refresh_stale()
    await here.settle()
    assert source.asked == asked


@pytest.mark.parametrize("why", ["never seen", "disabled", "may not be tried"])
async def test_some_servers_are_left_alone(house: Build, why: str) -> None:
    """A stale server that is disabled or waits for its next try is not asked, nor is one never seen."""
    source = Source("git", "log")
    source.is_connected = True
    here = house(source)
    if why != "never seen":
        await here.discovery.discover("git")
    here.clock.now += TTL + 1
    if why == "disabled":
        source.change(enabled=False)
    elif why == "may not be tried":
        here.refused.add("git")
    asked = source.asked
    here.discovery.refresh_stale()
    await here.settle()
    assert source.asked == asked


async def test_a_server_being_refreshed_is_not_asked_twice(house: Build) -> None:
    """Several list requests while a refresh is under way are no reason for another one."""
    source = Source("git", "log")
    source.is_connected = True
    here = house(source)
    await here.discovery.discover("git")
    here.clock.now += TTL + 1
    source.gate.clear()
    for _ in range(3):
        here.discovery.refresh_stale()
        await asyncio.sleep(0)
    source.gate.set()
    await here.settle()
    assert source.asked == 2


async def test_one_stale_server_can_be_refreshed_alone(house: Build) -> None:
    """A call is a need of its own server only: the other stale ones are left alone, and nobody unknown is asked."""
    git, docs = Source("git", "log", transport="http"), Source("docs", "search", transport="http")
    here = house(git, docs)
    await here.discovery.discover_all_tools()
    here.discovery.refresh_if_stale("git")
    here.clock.now += TTL + 1
    here.discovery.refresh_if_stale("git")
    here.discovery.refresh_if_stale("nobody")
    await here.settle()
    assert (git.asked, docs.asked) == (2, 1)


# The first meeting


async def test_new_servers_get_a_moment_to_introduce_themselves(house: Build) -> None:
    """Servers never seen are met at once, all together; known and disabled ones and those in a pause are not asked."""
    new, known = Source("new", "a"), Source("known", "b")
    off, paused = Source("off", "c", enabled=False), Source("paused", "d")
    here = house(new, known, off, paused)
    here.refused.add("paused")
    await here.discovery.discover("known")
    await here.discovery.discover_new(5)
    assert here.names() == ["known__b", "new__a"]
    assert [source.asked for source in (new, known, off, paused)] == [1, 1, 0, 0]


async def test_a_slow_new_server_is_not_waited_for(house: Build) -> None:
    """The wait ends at its limit with the quick ones there; the slow one goes on and arrives later, asked once."""
    quick, slow = Source("quick", "a"), Source("slow", "b")
    slow.gate.clear()
    here = house(quick, slow)
    await here.discovery.discover("quick")
    with anyio.fail_after(30):
        await here.discovery.discover_new(0.01)
        await here.discovery.discover_new(0.01)
    assert here.names() == ["quick__a"]
    slow.gate.set()
    await here.settle()
    assert here.names() == ["quick__a", "slow__b"]
    assert slow.asked == 1


async def test_nobody_new_is_no_wait(house: Build) -> None:
    """With every server known there is nothing to wait for, however long the limit."""
    here = house(Source("git", "log"))
    await here.discovery.discover("git")
    with anyio.fail_after(30):
        await here.discovery.discover_new(3600)


# Over a restart


@pytest.mark.scenario("registry: AC1 enabled servers are registered at start and not connected")
async def test_a_restart_has_everything_without_asking(house: Build, sqlite_storage: Storage) -> None:
    """Tools, age, TTL, era, version, capabilities and instructions come back from disk; no server is asked."""
    source = Source("git", "log", deny=("secret",))
    source.tools += [tool("secret"), tool("rich", _meta={"n": 2**70, "z": None}, title="\u2028😀"), {"name": "bad"}]
    source.ttl = 900.0
    source.hello = Hello("modern", "2026-07-28", {"tools": {}}, {"name": "git", "n": 2**70}, "Be gentle.")
    before = house(source)
    await before.discovery.discover_all_tools()

    again = Source("git", deny=("secret",))
    after = house(again, clock=Clock(before.clock.now + 899))
    records = await after.discovery.load()
    assert again.asked == 0
    assert after.registry.get_tools_for_claude() == before.registry.get_tools_for_claude()
    assert [entry.definition for entry in after.registry.all()] == [entry.definition for entry in before.registry.all()]
    assert after.names() == ["git__log", "git__rich"]
    record = records["git"]
    assert (record.era, record.version, record.ttl) == ("modern", "2026-07-28", 900.0)
    assert (record.capabilities, record.server_info) == ({"tools": {}}, {"name": "git", "n": 2**70})
    assert record.tools == source.tools
    assert after.discovery.instructions == {"git": "Be gentle."}
    assert not after.registry.is_discovery_stale("git")
    after.clock.now += 2
    assert after.registry.is_discovery_stale("git")


async def test_a_server_at_another_address_is_another_server(house: Build) -> None:
    """What was kept of a server whose command changed is not taken over, at a start and at a restore."""
    before = house(Source("git", "log"))
    await before.discovery.discover_all_tools()
    moved = Source("git", "log")
    moved.change(command="another")
    after = house(moved)
    assert await after.discovery.load() == {}
    await after.discovery.restore("git")
    assert after.names() == []


async def test_what_is_no_longer_configured_is_not_taken_over(house: Build) -> None:
    """A record of a server that is gone from the config is left alone."""
    before = house(Source("git", "log"), Source("docs", "search"))
    await before.discovery.discover_all_tools()
    after = house(Source("docs"))
    assert list(await after.discovery.load()) == ["docs"]
    assert after.names() == ["docs__search"]


async def test_restoring_touches_one_server(house: Build) -> None:
    """Only the server that is asked for is taken over; one that is not configured is none at all."""
    before = house(Source("git", "log"), Source("docs", "search"))
    await before.discovery.discover_all_tools()
    after = house(Source("git"), Source("docs"))
    await after.discovery.restore("git")
    await after.discovery.restore("nobody")
    assert after.names() == ["git__log"]


async def test_instructions_follow_the_server(house: Build) -> None:
    """When a server no longer has instructions, the old ones are not shown as its own."""
    source = Source("git", "log")
    source.hello = Hello(instructions="Old advice.")
    here = house(source)
    await here.discovery.discover("git")
    assert here.discovery.instructions == {"git": "Old advice."}
    source.hello = Hello()
    await here.discovery.discover("git")
    assert here.discovery.instructions == {}


async def test_a_storage_that_fails_does_not_fail_discovery(house: Build, sqlite_storage: Storage) -> None:
    """When the catalog cannot be kept, the tools can be used all the same, and the log says so."""
    here = house(Source("git", "log"))
    await sqlite_storage.close()
    with capture_logs() as logs:
        result = await here.discovery.discover_all_tools()
    assert result.data == {"registered": 1}
    assert here.names() == ["git__log"]
    told = events(logs, "catalog.save.failed")
    assert told[0] == {"serverName": "git", "reason": "the storage is closed"}
    assert all(each == told[0] for each in told)
    with pytest.raises(StorageError):
        await here.discovery.load()


# Events


@pytest.mark.scenario("registry: Observability: the named events with their fields and the trace id")
async def test_a_discovery_tells_what_it_does(house: Build) -> None:
    """Start, each success and each failure are events with exactly the fields of spec 4."""
    good, bad = Source("good", "a", "b"), Source("bad")
    bad.error = unavailable("connection refused")
    here = house(good, bad, Source("off", enabled=False))
    with capture_logs() as logs:
        await here.discovery.discover_all_tools()
    assert events(logs, "tools.discovery.started") == [{"serverCount": 2}]
    assert events(logs, "tools.discovery.server.success") == [{"serverName": "good", "toolCount": 2}]
    assert events(logs, "tools.discovery.server.failed") == [
        {"serverName": "bad", "errorMessage": "connection refused"}
    ]
    assert events(logs, "tools.registry.updated") == [{"staticCount": 0, "mcpCount": 2}]


@pytest.mark.scenario("registry: Observability: the named events with their fields and the trace id")
async def test_every_event_of_a_discovery_carries_its_trace_id(house: Build) -> None:
    """The id that was given is on every event, those of the registry and of removals included."""
    good, bad, gone = Source("good", "a"), Source("bad"), Source("gone", "x")
    bad.error = unavailable("no")
    here = house(good, bad, gone)
    await here.discovery.discover("gone")
    gone.change(enabled=False)
    with capture_logs() as logs:
        await here.discovery.discover_all_tools("trace-1")
    assert {entry["event"] for entry in logs} == {
        "tools.registry.server.removed",
        "tools.registry.updated",
        "tools.discovery.started",
        "tools.discovery.server.success",
        "tools.discovery.server.failed",
    }
    assert {entry.get("traceId") for entry in logs} == {"trace-1"}
    assert trace_id.get() is None


async def test_without_an_id_a_discovery_makes_or_inherits_one(house: Build) -> None:
    """Two discoveries of their own have two ids; one inside of an operation has the operation's."""
    source = Source("git", "log")
    here = house(source)
    seen: list[set[str | None]] = []
    for outer in (None, None, "outer"):
        token = trace_id.set(outer)
        with capture_logs() as logs:
            await here.discovery.refresh(["git"])
        trace_id.reset(token)
        seen.append({entry.get("traceId") for entry in logs})
    assert all(len(ids) == 1 for ids in seen)
    assert None not in seen[0] | seen[1]
    assert seen[0] != seen[1]
    assert seen[2] == {"outer"}
