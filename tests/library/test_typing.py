"""What a type checker knows of the library; `make types` is the judge, and running it shows that it is true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

import pytest

from pegboard import Pegboard, Tool, ToolErrorCode, ToolResult
from pegboard.library.blocking import BlockingPegboard
from pegboard.tool import Disposable

pytestmark = pytest.mark.anyio


class Greet(Tool):
    """Says hello."""

    name = "greet"
    description = "Say hello"

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        return {"hello": arguments.get("who")}


async def test_what_comes_back_has_its_type() -> None:
    """Definitions are dicts, calls are results, a decorated function keeps its own signature."""
    async with Pegboard(settings={"toolsets": []}) as board:
        assert_type(board, Pegboard)
        assert_type(await board.get_tool_definitions(format="openai"), list[dict[str, Any]])
        assert_type(board.register(Greet()), Disposable)
        result = assert_type(await board.call("greet"), ToolResult[dict[str, Any]])
        assert_type(result.unwrap(), dict[str, Any])
        assert_type(await board.find("hello"), ToolResult[dict[str, Any]])
        assert_type(await board.load("greet"), ToolResult[list[dict[str, Any]]])
        assert_type(await board.refresh(), ToolResult[dict[str, int]])
        assert_type(await board.answer({"content": []}), list[dict[str, Any]])

        @board.tool
        def double(number: int) -> int:
            """Double a number."""
            return 2 * number

        assert_type(double(number=4), int)

        @board.tool(annotations={"readOnlyHint": True})
        def half(number: int) -> float:
            """Half of a number."""
            return number / 2

        assert_type(half(number=4), float)
        missing = await board.call("nothing")
        if missing.error is not None:
            assert_type(missing.error.code, ToolErrorCode)


def test_the_same_without_an_event_loop() -> None:
    """Nothing there is awaited."""
    with Pegboard.sync(settings={"toolsets": []}) as board:
        assert_type(board, BlockingPegboard)
        assert_type(board.call("nothing"), ToolResult[dict[str, Any]])
        assert_type(board.get_tool_definitions(), list[dict[str, Any]])

        @board.tool(title="Triple")
        def triple(number: int) -> int:
            """Three times a number."""
            return 3 * number

        assert_type(triple(number=4), int)
