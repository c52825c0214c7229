"""The library as a program uses it: definitions, calls, own tools, and nothing that is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog.testing

from harness import toy, write_config
from pegboard import Pegboard, Tool, ToolErrorCode, ToolResult, formats
from pegboard.config import ConfigError
from pegboard.formats import Conversions, NameBook, ProviderFormat, RequestedCall
from pegboard.formats.format import Answers, ModelTools
from pegboard.function_tool import tool
from pegboard.library.retries import MOST_TRIES, with_retries
from pegboard.tool import RegisteredTool

pytestmark = pytest.mark.anyio

QUIET: dict[str, Any] = {"toolsets": []}
FINDING: dict[str, Any] = {"toolsets": ["discovery"]}


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@pytest.mark.scenario("registry: AC3 static and MCP tools come as one list in the provider's form")
async def test_static_and_servers_tools_are_one_sorted_list() -> None:
    """In Anthropic's form unless another one is asked for, whatever `expose` says."""
    for expose in ("all", "search", "auto"):
        async with Pegboard({"one": toy(), "two": toy()}, settings={**QUIET, "expose": expose}) as board:
            board.register(double)
            tools = await board.get_tool_definitions()
            names = [each["name"] for each in tools]
            assert names == sorted(names)
            assert {"double", "one__echo", "two__echo"} <= set(names)
            assert {key for each in tools for key in each} == {"name", "description", "input_schema"}
            for form, key in (("openai", "parameters"), ("openai-chat", "function"), ("json", "inputSchema")):
                others = await board.get_tool_definitions(format=form)  # type: ignore[arg-type]
                assert len(others) == len(tools)
                assert all(key in each for each in others)


@pytest.mark.scenario("registry: AC1 enabled servers are registered at start and not connected")
async def test_nothing_connects_before_it_is_needed() -> None:
    """Not when the board is made, opened, given tools or asked for what it has itself."""
    async with Pegboard({"one": toy()}, settings=QUIET) as board:
        board.register(double)
        assert (await board.call("double", {"number": 4})).unwrap()["structuredContent"]["data"] == 8
        assert board._board.servers["one"].state.value == "registered"
        await board.get_tool_definitions()
        assert board._board.servers["one"].state.value == "connected"


async def test_a_server_that_never_answers_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in every turn of a conversation; one that is switched on again gets another chance."""
    from pegboard.library import pegboard as module

    now = 100.0
    limits: list[float] = []

    async def meet(limit: float) -> None:
        limits.append(limit)

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    async with Pegboard({"mute": toy()}, settings=QUIET) as board:
        monkeypatch.setattr(board._board.discovery, "discover_new", meet)
        await board.get_tool_definitions(patience=5)
        now += 4
        await board.get_tool_definitions(patience=5)
        now += 4
        await board.get_tool_definitions(patience=5)
        await board.disable("mute")
        await board.get_tool_definitions(patience=5)
        await board.enable("mute")
        await board.get_tool_definitions(patience=5)
    assert limits == [5, 1, 0, 0, 5]


async def test_a_board_from_a_config_file(tmp_path: Path) -> None:
    """By path; a file that is not there, and servers that make no sense, are the program's mistakes."""
    path = write_config(tmp_path / "config.json", {"one": toy()})
    async with Pegboard.from_config(path) as board:
        result = await board.call("one__echo", {"text": "hello"})
        assert result.unwrap()["content"][0]["text"] == '{"text": "hello"}'
    with pytest.raises(ConfigError):
        Pegboard.from_config(tmp_path / "nowhere.json")
    with pytest.raises(ConfigError, match="command"):
        Pegboard({"one": {"command": 5}})


@pytest.mark.scenario("registry: AC7 every failure is a result with a fitting code")
async def test_calls_never_raise() -> None:
    """A dead server, an unknown tool, bad arguments and a limit that runs out are four results."""
    servers = {"one": toy(), "dead": {"command": "/nonexistent/server"}}
    async with Pegboard(servers, settings=QUIET) as board:
        board.register(double)
        await board.get_tool_definitions()
        dead = await board.call("dead__anything")
        unknown = await board.call("one__ecko")
        bad = await board.call("double", {"number": "many"})
        slow = await board.call("one__sleep", {"seconds": 30}, timeout=0.2)
    assert dead.error is not None
    assert dead.error.code is ToolErrorCode.UNAVAILABLE
    assert unknown.error is not None
    assert unknown.error.code is ToolErrorCode.NOT_FOUND
    assert "one__echo" in unknown.error.message
    assert bad.error is not None
    assert (bad.error.code, bad.error.retryable) == (ToolErrorCode.INVALID_INPUT, False)
    assert "number" in bad.error.message
    assert slow.error is not None
    assert (slow.error.code, slow.error.retryable) == (ToolErrorCode.UNAVAILABLE, True)
    assert "0.2 s" in slow.error.message


async def test_a_long_name_is_called_by_what_a_provider_says(tmp_path: Path) -> None:
    """Providers take 64 characters, MCP clients get 48: both names lead to the tool."""
    long = "a_tool_with_a_name_that_is_longer_than_clients_take_it"
    async with Pegboard({"one": toy(tools=[long])}, settings=QUIET) as board:
        names = [each["name"] for each in await board.get_tool_definitions()]
        assert f"one__{long}" in names
        assert (await board.call(f"one__{long}")).success
        [short] = [each.name for each in board._board.registry.all() if each.original_name == long]
        assert len(short) <= 48
        assert (await board.call(short)).success


async def test_find_and_load() -> None:
    """What is found can be loaded; loaded tools are shown also where the rest is deferred."""
    async with Pegboard({"one": toy(), "two": toy()}, settings={**FINDING, "pinned": ["two__echo"]}) as board:
        board.register(double)
        found = (await board.find("echo a text", limit=3)).unwrap()
        assert "one__echo" in [each["name"] for each in found["tools"]]
        before = {each["function"]["name"] for each in await deferred(board, "openai-chat")}
        assert {"tool_find", "two__echo", "double"} <= before
        assert "one__echo" not in before
        [definition] = (await board.load("one__echo", format="openai-chat")).unwrap()
        assert definition["function"]["name"] == "one__echo"
        assert {each["function"]["name"] for each in await deferred(board, "openai-chat")} == before | {"one__echo"}
        missing = await board.load("one__echo", "one__nothing")
        assert missing.error is not None
        assert missing.error.code is ToolErrorCode.NOT_FOUND
        # The model's own tool does the same.
        assert (await board.call("tool_load", {"names": ["one__sleep"]})).unwrap()["isError"] is False
        assert "one__sleep" in {each["function"]["name"] for each in await deferred(board, "openai-chat")}


async def deferred(board: Pegboard, form: Any) -> list[dict[str, Any]]:
    return await board.get_tool_definitions(format=form, deferred=True)


async def test_deferred_tools_wait_to_be_found() -> None:
    """Claude gets every tool, most of them deferred; OpenAI gets a search that this side runs."""
    async with Pegboard({"one": toy()}, settings=FINDING) as board:
        board.register(double)
        claude = {each["name"]: each.get("defer_loading", False) for each in await deferred(board, "anthropic")}
        assert claude["one__echo"] is True
        assert (claude["tool_find"], claude["double"]) == (False, False)
        assert not claude.keys() & {"tool_load", "tool_call", "tool_describe", "tool_active", "tool_unload"}
        functions = await deferred(board, "openai")
        assert [each["type"] for each in functions] == ["function", "tool_search"]
        assert functions[-1]["execution"] == "client"


REPLY = {"content": [{"type": "tool_use", "id": "t1", "name": "tool_find", "input": {"query": "echo a text"}}]}


async def found(board: Pegboard, **how: Any) -> list[dict[str, Any]]:
    """The blocks that answer a search of Claude's."""
    [message] = await board.answer(REPLY, **how)
    return message["content"][0]["content"]


async def test_references_only_to_what_was_offered_as_deferred() -> None:
    """A reference to any other tool makes Anthropic refuse the request, so a model that has all tools gets words."""
    async with Pegboard({"one": toy()}, settings=FINDING) as board:
        await board.get_tool_definitions()
        assert [each["type"] for each in await found(board)] == ["text"]
        assert {"type": "tool_reference", "tool_name": "one__echo"} in await found(board, deferred=True)
        await deferred(board, "anthropic")
        assert {"type": "tool_reference", "tool_name": "one__echo"} in await found(board)
        assert [each["type"] for each in await found(board, deferred=False)] == ["text"]


async def test_what_a_conversation_refers_to_stays_defined() -> None:
    """Also if its server is switched off, or if it is loaded: else every later request would be refused."""
    long = "echo_a_text_with_a_name_that_is_longer_than_clients_take_it"
    async with Pegboard({"one": toy(tools=[long])}, settings=FINDING) as board:
        await deferred(board, "anthropic")
        referred = {each["tool_name"] for each in await found(board)}
        assert {"one__echo", f"one__{long}"} <= referred
        await board.load("one__echo")
        await board.disable("one")
        offered = {each["name"]: each.get("defer_loading") for each in await deferred(board, "anthropic")}
        assert offered == {"tool_find": None, **dict.fromkeys(referred, True)}
        assert list(offered) == sorted(offered)
        off = await board.call(f"one__{long}")
        assert off.error is not None
        assert "disabled" in off.error.message


async def test_without_a_search_nothing_is_deferred() -> None:
    """What nobody could find would never be seen; Anthropic refuses a request with deferred tools alone."""
    async with Pegboard({"one": toy()}, settings=QUIET) as board:
        for form in ("anthropic", "openai", "openai-chat", "json"):
            everything = await board.get_tool_definitions(format=form)
            assert await deferred(board, form) == everything
            assert everything


async def test_definitions_are_sorted_by_the_names_they_carry() -> None:
    """A provider's names may be longer than those of the catalog, and come in another order."""
    names = ["z" * 50 + "a", "z" * 50 + "b", "z" * 39, "z" * 38 + "_", "Z" * 59]
    async with Pegboard({"one": toy(tools=names)}, settings=QUIET) as board:
        listed = [each["name"] for each in await board.get_tool_definitions()]
        assert listed == sorted(listed)
        assert {f"one__{name}" for name in names} <= set(listed)


async def test_mistakes_of_the_program_are_raised_in_words() -> None:
    """A board that was never opened, a format that there is not, servers twice."""
    from pegboard.config import Settings

    board = Pegboard({"one": toy()}, settings=QUIET)
    for use in (board.call("x"), board.get_tool_definitions(), board.find("x"), board.refresh(), board.disable("one")):
        with pytest.raises(RuntimeError, match="async with"):
            await use
    async with board:
        with pytest.raises(ValueError, match="there is no format 'xml'"):
            await board.answer(REPLY, format="xml")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="servers"):
        Pegboard({"one": toy()}, settings=Settings())


async def test_servers_in_code_may_have_paths(tmp_path: Path) -> None:
    """As objects: a program has them so."""
    entry = toy()
    async with Pegboard(
        {"one": {**entry, "command": Path(entry["command"]), "cwd": tmp_path}}, settings=QUIET
    ) as board:
        assert (await board.call("one__echo", {"text": "x"})).success


async def test_servers_are_switched_and_refreshed() -> None:
    """For this program alone; a server that there is not is told."""
    async with Pegboard({"one": toy(), "two": toy()}, settings=QUIET) as board:
        assert (await board.refresh()).unwrap()["registered"] > 0
        assert (await board.disable("one")).success
        names = [each["name"] for each in await board.get_tool_definitions()]
        assert not [name for name in names if name.startswith("one__")]
        off = await board.call("one__echo", {"text": "x"})
        assert off.error is not None
        assert "disabled" in off.error.message
        assert (await board.enable("one")).success
        assert (await board.refresh("one")).success
        assert (await board.call("one__echo", {"text": "x"})).success
        for outcome in (await board.enable("no"), await board.disable("no"), await board.refresh("no")):
            assert outcome.error is not None
            assert outcome.error.code is ToolErrorCode.NOT_FOUND


async def test_a_program_brings_its_own_tools() -> None:
    """As a class, as a function, or decorated where it stands; taken out again by what registering gave."""

    class Greet(Tool):
        """Says hello."""

        name = "greet"
        description = "Say hello"

        async def call(self, arguments: Mapping[str, Any]) -> Any:
            return {"hello": arguments.get("who", "world")}

    async with Pegboard(settings=QUIET) as board:

        @board.tool
        def shout(text: str) -> str:
            """Say it louder."""
            return text.upper()

        registered = board.register(Greet())
        assert (await board.call("greet")).unwrap()["structuredContent"] == {"hello": "world"}
        assert (await board.call("shout", {"text": "hey"})).unwrap()["structuredContent"]["data"] == "HEY"
        assert shout("plain") == "PLAIN"
        with pytest.raises(ValueError, match="already"):
            board.register(Greet())
        registered.dispose()
        gone = await board.call("greet")
        assert gone.error is not None
        with pytest.raises(ValueError, match="snake_case"):
            board.register(type("Bad", (Greet,), {"name": "no-good"})())
        with pytest.raises(ValueError, match="greet_all cannot be registered"):
            board.register(type("Bad", (Greet,), {"name": "greet_all", "input_schema": {"properties": 5}})())


async def outcomes(*results: ToolResult[str], limit: float = 60.0, repeatable: bool = True) -> tuple[Any, int]:
    """What trying comes to when the tries end like this, and how many there were."""
    left = list(results)

    async def attempt(_: float | None) -> ToolResult[str]:
        return left.pop(0)

    result = await with_retries(attempt, limit=limit, repeatable=repeatable, subject="x")
    return result.data if result.success else result.error, len(results) - len(left)


async def test_only_what_may_work_the_next_time_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times at most, with pauses that grow, while the limit has room, and only where that is safe."""
    from pegboard.result import ToolError

    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    by_chance = ToolResult[str].failed(ToolError(ToolErrorCode.UNAVAILABLE, "gone", retryable=True))
    for_good = ToolResult[str].failed(ToolError(ToolErrorCode.INVALID_INPUT, "wrong", retryable=False))
    fine = ToolResult[str].ok("fine")
    assert await outcomes(fine) == ("fine", 1)
    assert await outcomes(by_chance, fine) == ("fine", 2)
    assert await outcomes(by_chance, by_chance, by_chance) == (by_chance.error, MOST_TRIES)
    assert pauses[1] < pauses[2]
    assert await outcomes(for_good) == (for_good.error, 1)
    assert await outcomes(by_chance, repeatable=False) == (by_chance.error, 1)
    assert await outcomes(by_chance, limit=0.01) == (by_chance.error, 1)


async def test_a_server_that_asks_for_a_pause_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried again before that, and not at all if the time limit has no room for it."""
    from pegboard.result import ToolError

    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    slower = ToolResult[str].failed(ToolError(ToolErrorCode.RATE_LIMITED, "slower", retryable=True, retry_after=20))
    assert await outcomes(slower, ToolResult[str].ok("fine")) == ("fine", 2)
    assert len(pauses) == 1
    assert pauses[0] >= 20
    assert await outcomes(slower, limit=15) == (slower.error, 1)


async def test_every_try_ends_within_the_limit_of_the_whole_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has all of it, each later one what is left: three tries do not take three limits."""
    from pegboard.library import retries
    from pegboard.result import unavailable

    now = 100.0
    given: list[float | None] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def attempt(left: float | None) -> ToolResult[str]:
        nonlocal now
        given.append(left)
        now += 10
        return ToolResult[str].failed(unavailable("gone").error)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(retries, "time", SimpleNamespace(monotonic=lambda: now))
    await with_retries(attempt, limit=60.0, first_limit=60.0, repeatable=True, subject="x")
    first, second, third = given
    assert first == 60.0
    assert second is not None
    assert third is not None
    assert 49 < second < 50
    assert 37 < third < 40


async def test_a_static_tools_failure_is_a_failed_result_and_tried_again() -> None:
    """With the code that it gave itself; what a server's tool reports stays data, whatever it looks like."""
    from pegboard.result import unavailable

    calls = 0

    async with Pegboard({"one": toy()}, settings=QUIET) as board:

        @board.tool(annotations={"readOnlyHint": True})
        async def flaky() -> int:
            """Work the second time."""
            nonlocal calls
            calls += 1
            if calls == 1:
                raise unavailable("not yet")
            return calls

        @board.tool
        async def broken() -> None:
            """Never work."""
            raise ValueError("no")

        assert (await board.call("flaky")).unwrap()["structuredContent"]["data"] == 2
        failed = await board.call("broken")
        assert failed.error is not None
        assert (failed.error.code, failed.error.message) == (ToolErrorCode.EXECUTION_FAILED, "ValueError: no")
        reported = await board.call("one__fails")
        assert reported.success
        assert reported.unwrap()["isError"] is True


@pytest.mark.parametrize(
    ("annotations", "tries"),
    [
        ({"readOnlyHint": True}, 3),
        ({"idempotentHint": True}, 3),
        ({"readOnlyHint": False}, 1),
        ({"readOnlyHint": "yes"}, 1),
        (None, 1),
    ],
)
async def test_a_tool_has_to_say_that_it_can_be_tried_again(annotations: dict[str, Any] | None, tries: int) -> None:
    """One that may have done its work before its answer got lost is not called twice."""
    from pegboard.result import unavailable

    calls = 0
    board = Pegboard(settings=QUIET)

    async def fail(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        return ToolResult[Any].failed(unavailable("lost").error)

    @tool(annotations=annotations)
    async def work() -> None:
        """Do something."""

    board._board.call = fail  # type: ignore[method-assign]
    async with board:
        board._board.register(work)
        assert (await board.call("work")).error is not None
    assert calls == tries


async def test_one_trace_goes_through_every_line_of_a_call() -> None:
    """The one that is given, or a new one for each call."""
    async with Pegboard({"one": toy()}, settings=QUIET) as board:
        with structlog.testing.capture_logs() as logs:
            await board.call("one__echo", {"text": "x"}, trace_id="abc")
            await board.call("one__echo", {"text": "x"})
    called = [entry["traceId"] for entry in logs if entry["event"] == "tool.called"]
    assert called[0] == "abc"
    assert called[1] != "abc"
    assert {entry.get("traceId") for entry in logs} <= set(called)


class OneMore(ProviderFormat):
    """A provider that takes names and gives calls by name."""

    def definitions(
        self, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
    ) -> list[dict[str, Any]]:
        return [{"function": names.name(tool.name)} for tool in tools]

    def parse_calls(self, reply: object) -> list[RequestedCall]:
        return [RequestedCall("", str(reply), {"number": 4})]

    def results(self, answers: Answers, tools: ModelTools, *, deferred: bool | None) -> list[dict[str, Any]]:
        return [{"response": result.success} for _, result in answers if isinstance(result, ToolResult)]


async def test_a_new_format_is_one_class_in_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The board knows no provider: definitions, deferred ones included, calls and results are the format's."""
    classes = {**formats._CLASSES, "one-more": OneMore}
    monkeypatch.setattr(formats, "_CLASSES", classes)
    monkeypatch.setattr(formats, "FORMATS", tuple(classes))
    form: Any = "one-more"
    async with Pegboard(settings=FINDING) as board:
        board.register(double)
        assert {"function": "double"} in await board.get_tool_definitions(format=form)
        assert {"function": "tool_load"} in await deferred(board, form)
        assert (await board.load("double", format=form)).unwrap() == [{"function": "double"}]
        assert await board.answer("double", format=form) == [{"response": True}]
