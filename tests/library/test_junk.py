"""Whatever a program hands to the tool layer, it gets a result: nothing is raised, and a message says what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import toy
from pegboard import Pegboard, ToolErrorCode, ToolResult
from pegboard.catalog.registry import ToolRegistry
from pegboard.tool import Tool

pytestmark = pytest.mark.anyio

QUIET = {"toolsets": ["discovery"]}


class _Odd:
    def __repr__(self) -> str:
        return "an odd thing"


def _endless_trouble() -> Iterator[Any]:
    yield {"name": "x"}
    raise OSError("no more")


unhashable = st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
junk = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | unhashable
    | st.sets(st.integers(), max_size=2)
    | st.builds(_Odd)
    | st.builds(_endless_trouble)
    | st.sampled_from([print, Tool, ToolRegistry, "__tool", "one__", "__", "\ud800", "one__echo", "tool_find"])
)


def check(outcome: Any) -> None:
    """A result, and a failure with a code and with words for a person."""
    assert isinstance(outcome, ToolResult)
    if outcome.error is not None:
        assert outcome.error.message
        assert "object has no attribute" not in outcome.error.message
        assert "unhashable" not in outcome.error.message


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(junk, junk, junk)
def test_the_registry_takes_anything(first: Any, second: Any, third: Any) -> None:
    """Every operation of the registry that can fail gives a result; the others say that there is no such thing."""
    registry = ToolRegistry()
    check(registry.register_static_tool(first, second, third))
    check(registry.register_static_tool("good", print, {"input_schema": third, "description": first}))
    check(registry.register_mcp_tools(first, second, ttl=third))
    check(registry.register_mcp_tools("one", second, ttl=first, discovered_at=third))
    check(registry.register_mcp_tools("one", [first, second, {"name": third, "inputSchema": first}], exposure=third))
    check(registry.remove_server_tools(first))
    assert registry.get_mcp_tool(first) is None or isinstance(first, str)
    assert registry.is_discovery_stale(second) in {True, False}
    assert registry.get(second) is None or isinstance(second, str)
    assert isinstance(registry.get_tools_for_claude(), list)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(junk, junk, junk)
def test_the_board_takes_anything(first: Any, second: Any, third: Any) -> None:
    """Every operation of `Pegboard` and of the board behind it that gives a result gives one."""

    async def use() -> None:
        async with Pegboard({"off": {**toy(), "enabled": False}}, settings=QUIET) as board:
            check(await board.call(first, second))
            check(await board.call("tool_find", second, timeout=third))
            check(await board.call("tool_find", {"query": "x"}, trace_id=third))
            check(await board.find(first, second))
            check(await board.load(first, second, format=third))
            check(await board.load(first, second))
            check(await board.refresh(first))
            check(await board.discover_all_tools(second))
            check(await board.enable(second))
            check(await board.disable(third))
            check(board.register_static_tool(first, second, third))
            assert board.is_discovery_stale(first)
            assert board.get_mcp_tool(first) is None
            check(await board._board.call(first, second))
            check(await board._board.refresh(first))
            check(await board._board.refresh([first]))
            check(await board._board.discover_all_tools(third))

    asyncio.run(use())


class _Echo(Tool):
    name = "echo"
    description = "Gives back what it is given."
    input_schema = {"type": "object", "properties": {"n": {"type": "integer"}}}  # noqa: RUF012

    async def call(self, arguments: Any) -> Any:
        return dict(arguments)


@settings(max_examples=60, deadline=None)
@given(junk | st.dictionaries(junk.filter(lambda key: getattr(type(key), "__hash__", None) is not None), junk))
def test_a_tool_takes_anything(arguments: Any) -> None:
    """`invoke` never raises."""
    result = asyncio.run(_Echo().invoke(arguments))
    assert result.content[0].value


@pytest.mark.parametrize("arguments", ["text", [1], 5, b"x", "", [], 0, False])
async def test_arguments_that_are_no_object(arguments: Any) -> None:
    """They are refused, also where they are empty."""
    async with Pegboard(settings=QUIET) as board:
        error = (await board.call("tool_find", arguments)).error
        assert error is not None
        assert error.code is ToolErrorCode.INVALID_INPUT
        assert error.message == f"the arguments must be an object, found {type(arguments).__name__}"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("__tool", "TOOL_INVALID_INPUT"),
        ("server__", "TOOL_INVALID_INPUT"),
        ("__", "TOOL_INVALID_INPUT"),
        (None, "TOOL_INVALID_INPUT"),
        ([], "TOOL_INVALID_INPUT"),
        ("server__tool", "TOOL_NOT_FOUND"),
        ("tool", "TOOL_NOT_FOUND"),
        ("a__b__", "TOOL_NOT_FOUND"),
    ],
)
async def test_names_that_no_tool_can_have(name: Any, code: str) -> None:
    """What is no name at all is wrong input; a name that nobody has is not found."""
    async with Pegboard(settings=QUIET) as board:
        for result in (await board.call(name), await board._board.call(name), await board.load(name)):
            assert result.error is not None
            assert result.error.code.value == code


async def test_a_static_tool_in_the_words_of_either(tmp_path: Any) -> None:
    """A definition as MCP has it, and as Anthropic has it; both are the program's own, and are called alike."""
    del tmp_path
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with Pegboard(settings=QUIET) as board:
        for key in ("inputSchema", "input_schema"):
            name = key.lower()
            made = board.register_static_tool(name, lambda given: given["n"] + 1, {"description": "Adds.", key: schema})
            assert made.unwrap() == name
            (tool,) = [each for each in await board.get_tool_definitions(deferred=True) if each["name"] == name]
            assert "defer_loading" not in tool
            assert (await board.call(name, {"n": 2.0})).unwrap()["structuredContent"]["data"] == 3
        assert (await board.discover_all_tools("a-trace")).unwrap() == {"registered": 0}
