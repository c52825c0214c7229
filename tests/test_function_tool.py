"""A typed function as a tool: its schema, its typed arguments, its answer."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Required, TypedDict, assert_type

import pytest
from pydantic import BaseModel, Field

from pegboard import Pegboard
from pegboard.board import Board
from pegboard.function_tool import FunctionTool, tool
from pegboard.result import ToolError, ToolErrorCode, ToolResult, unavailable

pytestmark = pytest.mark.anyio


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place."""

    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    verbose: Required[bool]
    level: int


class Model(BaseModel):
    when: dt.date


def properties(made: FunctionTool[..., Any]) -> dict[str, Any]:
    return made.definition()["inputSchema"]["properties"]


async def answered(made: FunctionTool[..., Any], **arguments: Any) -> Any:
    """The data of a call that has to succeed."""
    result = await made.invoke(arguments)
    assert not result.is_error, result.content[0].value
    assert result.data is not None
    return result.data["data"]


async def refused(made: FunctionTool[..., Any], **arguments: Any) -> dict[str, Any]:
    """The error of a call that has to fail."""
    result = await made.invoke(arguments)
    assert result.is_error
    assert result.data is not None
    return result.data["error"]


async def test_a_function_is_a_tool_and_still_a_function() -> None:
    """Name and words from the function, parameters from its types."""

    @tool
    def add_numbers(a: int, b: Annotated[int, "The other one"] = 1) -> int:
        """Add two numbers.

        Both are whole.
        """
        return a + b

    assert add_numbers.definition() == {
        "name": "add_numbers",
        "description": "Add two numbers.\n\nBoth are whole.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "integer", "default": 1, "description": "The other one"},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
        "outputSchema": add_numbers.output_schema,
    }
    assert_type(add_numbers(2, b=3), int)
    assert add_numbers(2, b=3) == 5
    assert await answered(add_numbers, a=2) == 3


async def test_what_the_decorator_can_be_told() -> None:
    """Everything that a tool has."""

    @tool(
        name="sum",
        title="Sum",
        description="Sums.",
        annotations={"readOnlyHint": True},
        category="maths",
        keywords=["plus"],
    )
    async def some_name() -> None:
        """Not used."""

    listed = some_name.definition()
    assert (listed["name"], listed["title"], listed["description"]) == ("sum", "Sum", "Sums.")
    assert listed["annotations"] == {"readOnlyHint": True}
    assert (some_name.category, some_name.keywords) == ("maths", ["plus"])
    assert listed["inputSchema"]["properties"] == {}
    assert await answered(some_name) is None


async def test_types_of_every_kind_arrive_as_what_they_are() -> None:
    """Enums, literals, dataclasses, typed dicts, models, dates, containers, and what may be missing."""
    seen: dict[str, Any] = {}

    @tool
    async def everything(
        color: Color,
        mode: Literal["fast", "slow"],
        place: Point,
        options: Options,
        model: Model,
        at: dt.datetime,
        names: list[str],
        counts: dict[str, int],
        many: list[Options] | None = None,
        limit: Annotated[int, Field(ge=1, description="At most")] = 10,
        maybe: int | None = None,
    ) -> None:
        """Take all of it."""
        seen.update(locals())

    given = {
        "color": "red", "mode": "fast", "place": {"x": 1}, "options": {"verbose": True},
        "model": {"when": "2026-01-02"}, "at": "2026-01-02T03:04:05Z", "names": ["a"], "counts": {"a": 1},
        "many": [{"verbose": False, "level": 2}],
    }  # fmt: skip
    await answered(everything, **given)
    assert seen["color"] is Color.RED
    assert seen["place"] == Point(1.0)
    assert seen["options"] == {"verbose": True}
    assert seen["model"] == Model(when=dt.date(2026, 1, 2))
    assert seen["at"].year == 2026
    assert seen["many"] == [{"verbose": False, "level": 2}]
    assert (seen["limit"], seen["maybe"]) == (10, None)
    found = properties(everything)
    assert found["limit"] == {"type": "integer", "minimum": 1, "default": 10, "description": "At most"}
    assert found["mode"]["enum"] == ["fast", "slow"]
    assert everything.definition()["inputSchema"]["$defs"]["Options"]["required"] == ["verbose"]


async def test_types_that_are_local_to_a_function() -> None:
    """Their names mean something only where the decorator stands."""

    class Here(TypedDict):
        a: Color

    class There(TypedDict):
        here: Here

    @tool
    async def local(there: There) -> str:
        """Use a local type."""
        return there["here"]["a"].name

    assert await answered(local, there={"here": {"a": "blue"}}) == "BLUE"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({}, "a"),
        ({"a": "5"}, "a"),
        ({"a": 5, "color": "green"}, "color"),
        ({"a": 5, "when": "tomorrow"}, "when"),
        ({"a": 5, "other": 1}, "other"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], where: str) -> None:
    """Naming the parameter, before the function is called."""

    @tool
    def picky(a: int, color: Color = Color.RED, when: dt.date | None = None) -> None:
        """Never called."""
        raise AssertionError(a, color, when)

    error = await refused(picky, **arguments)
    assert error["code"] == "TOOL_INVALID_INPUT"
    assert where in error["message"]


async def test_a_function_that_is_not_async_runs_in_a_thread() -> None:
    """It may wait for something without holding up everybody else."""
    loop_thread = threading.get_ident()

    @tool
    def blocking() -> bool:
        """Tell whether this is another thread."""
        return threading.get_ident() != loop_thread

    assert await answered(blocking) is True


async def test_answers_of_any_kind_are_json() -> None:
    """Objects of Python's and of pydantic's; a result of one's own is taken as it is."""

    @tool
    def objects() -> dict[str, Any]:
        """Give many kinds."""
        return {
            "p": Point(1, 2),
            "c": Color.RED,
            "m": Model(when=dt.date(2026, 1, 2)),
            "s": {1},
        }

    @tool
    def own() -> ToolResult[Point]:
        """Give a result."""
        return ToolResult[Point].ok(Point(3))

    @tool
    def own_failure() -> ToolResult[Point]:
        """Give a failure."""
        return ToolResult[Point].failed(ToolError(ToolErrorCode.RATE_LIMITED, "slower", retryable=True))

    assert await answered(objects) == {
        "p": {"x": 1, "y": 2}, "c": "red", "m": {"when": "2026-01-02"}, "s": [1],
    }  # fmt: skip
    assert await answered(own) == {"x": 3, "y": 0.0}
    assert await refused(own_failure) == {"code": "RATE_LIMITED", "message": "slower", "retryable": True}


async def test_what_a_function_raises_is_its_result() -> None:
    """Never an exception of the tool's."""

    @tool
    async def failing(how: int) -> object:
        """Fail."""
        if how == 0:
            raise ValueError("broken")
        if how == 1:
            raise unavailable("later")
        return object() if how == 2 else float("nan")

    assert (await refused(failing, how=0))["message"] == "ValueError: broken"
    assert await refused(failing, how=1) == {"code": "TOOL_UNAVAILABLE", "message": "later", "retryable": True}
    assert (await refused(failing, how=2))["code"] == "TOOL_EXECUTION_FAILED"
    assert await refused(failing, how=3) == {
        "code": "TOOL_EXECUTION_FAILED",
        "message": "what the tool answered is not JSON: NaN and Infinity are not JSON",
        "retryable": False,
    }


async def test_a_cancelled_call_is_cancelled() -> None:
    """Cancellation is the one thing that goes through."""
    started = asyncio.Event()

    @tool
    async def endless() -> None:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(endless.invoke({}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_something_cancelled_inside_of_a_tool_is_a_failed_result() -> None:
    """Nobody cancelled the call itself, so whoever waits for it must not be told so."""

    @tool
    async def waits_in_vain() -> None:
        """Wait for something that is cancelled."""
        inner = asyncio.create_task(asyncio.Event().wait())
        inner.cancel()
        await inner

    error = await refused(waits_in_vain)
    assert error["code"] == "TOOL_EXECUTION_FAILED"
    assert "was cancelled" in error["message"]


def google(path: str, limit: int = 1) -> None:
    """Read.

    Args:
        path (str): Where it is,
            from the top.
        limit: How much.

    Returns:
        Nothing: really.
    """


def numpy(path: str, limit: int = 1) -> None:
    """Read.

    Parameters
    ----------
    path : str
        Where it is,
        from the top.
    limit : int, optional
        How much.

    Returns
    -------
    None
        Nothing.
    """


def sphinx(path: str, limit: int = 1) -> None:
    """Read.

    :param path: Where it is,
        from the top.
    :param int limit: How much.
    :returns: Nothing.
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_docstrings_describe_parameters(function: Callable[..., None]) -> None:
    """In three manners; the tool's own description ends before them."""
    made = tool(function)
    assert made.description == "Read."
    found = properties(made)
    assert found["path"]["description"] == "Where it is, from the top."
    assert found["limit"]["description"] == "How much."


def test_parameters_may_have_any_name() -> None:
    """Also those that pydantic keeps for itself."""

    @tool
    def odd(schema: str, model_config: int, _hidden: bool, json: str, /, self: str, *, copy: int = 0) -> None:
        """Take odd names."""

    assert list(properties(odd)) == ["schema", "model_config", "_hidden", "json", "self", "copy"]
    given = {"schema": "", "model_config": 1, "_hidden": True, "json": "", "self": ""}
    assert not asyncio.run(odd.invoke(given)).is_error


def no_type(a) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
    """Untyped."""


def any_names(**rest: int) -> None:
    """Any."""


def any_number(*rest: int) -> None:
    """Any."""


def CamelCase() -> None:  # noqa: N802
    """Not snake_case."""


@pytest.mark.parametrize("function", [no_type, any_names, any_number, CamelCase])
def test_what_cannot_be_a_tool_is_said_at_once(function: Callable[..., None]) -> None:
    """A programming error, where it stands."""
    with pytest.raises(TypeError, match=r"rest|type|snake_case"):
        tool(function)


def test_a_default_that_json_cannot_say() -> None:
    """It is left out of the schema, and the parameter is optional all the same."""

    @tool
    def odd(a: Any = print) -> None:
        """Take anything."""

    assert "default" not in properties(odd)["a"]
    assert "required" not in odd.definition()["inputSchema"]


async def test_it_hangs_on_a_board() -> None:
    """Registered, called by name, and taken down again."""

    @tool(annotations={"readOnlyHint": True})
    async def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    async with Board() as board:
        with board.register(shout):
            result = await board.call("shout", {"text": "hey"})
            assert result.unwrap()["structuredContent"] == {"success": True, "data": "HEY"}
        assert (await board.call("shout", {})).error is not None


async def test_types_that_are_local_to_any_function_around() -> None:
    """Also two functions further out, and where the decorator is a board's."""

    @dataclass
    class Near:
        a: int

    def inside() -> FunctionTool[..., Any]:
        @tool
        def local(near: Near) -> int:
            """Use a type of the function around."""
            return near.a

        return local

    assert await answered(inside(), near={"a": 5}) == 5
    async with Pegboard(settings={"toolsets": []}) as board:

        @board.tool
        def on_a_board(near: Near) -> int:
            """Use a type of the function around."""
            return near.a

        assert await answered(on_a_board, near={"a": 6}) == 6


async def test_a_local_variable_elsewhere_is_not_taken_for_a_type() -> None:
    """Only functions around the decorated one are looked into, not those that happen to call it."""

    def decorated() -> FunctionTool[..., Any]:
        return tool(uses_color)

    Color = "no type at all"  # noqa: N806
    assert await answered(decorated(), color="red") == "RED", Color


def uses_color(color: Color) -> str:
    """Name a colour."""
    return color.name


def test_what_comes_back_may_be_a_name_for_type_checkers_alone() -> None:
    """It is not part of the schema, so nobody has to know it."""

    @tool
    def somewhere(a: int) -> Nowhere:  # type: ignore[name-defined]  # pyright: ignore  # noqa: F821
        """Give something."""

    assert list(properties(somewhere)) == ["a"]


async def test_a_function_that_runs_out_of_items_is_a_failed_result() -> None:
    """A `StopIteration` out of a thread must not leave its caller waiting for ever."""

    @tool
    def exhausted() -> int:
        """Take the next of nothing."""
        return next(iter([]))

    async with asyncio.timeout(10):
        assert "StopIteration" in (await refused(exhausted))["message"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_that_ends_the_program_is_a_failed_result(is_async: bool) -> None:
    """As parsers of command lines do it; the event loop goes on."""

    def parse() -> None:
        """Parse nothing."""
        raise SystemExit(2)

    async def parse_later() -> None:
        """Parse nothing."""
        parse()

    error = await refused(tool(parse_later) if is_async else tool(parse))
    assert error["code"] == "TOOL_EXECUTION_FAILED"
    assert "end the program (2)" in error["message"]


class Called:
    """Can be called, and is no function."""

    def __call__(self, a: int) -> int:
        return a


def takes_function(a: Callable[[int], int]) -> None:
    """Take what JSON cannot say."""


@pytest.mark.parametrize("thing", [Called(), functools.partial(google, limit=2), takes_function])
def test_what_has_no_schema_is_refused_in_words(thing: Any) -> None:
    """A `TypeError` that says what cannot be a tool, and not one of pydantic's or Python's own."""
    with pytest.raises(TypeError, match="cannot be a tool"):
        tool(thing)


async def test_methods_and_wrapped_functions_are_tools_too() -> None:
    """Bound to their object, or behind a decorator that says what it wraps."""

    class Shop:
        """Knows prices."""

        price = 3

        def total(self, count: int) -> int:
            """What so many cost."""
            return count * self.price

    @functools.cache
    def cached(count: int) -> int:
        """Count."""
        return count

    assert await answered(tool(Shop().total), count=2) == 6
    assert await answered(tool(cached), count=2) == 2
