"""The base class of static tools, and how one is registered: spec 5, to the letter."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from catalog.ear import listening
from pegboard import exactjson
from pegboard.catalog.registry import ToolRegistry
from pegboard.result import ToolError, ToolErrorCode, ToolResult, unavailable
from pegboard.tool import Disposable, LanguageModelTextPart, LanguageModelToolResult, ResultTool, Tool

pytestmark = pytest.mark.anyio

INDEX_SCHEMA = {
    "type": "object",
    "properties": {"index": {"type": "integer", "minimum": 1}, "sessionId": {"type": "string"}},
    "required": ["index"],
    "additionalProperties": False,
}
NESTED_SCHEMA = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "$defs": {"item": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}


class Sessions:
    """A service, as a tool gets one."""

    def __init__(self, *requests: str) -> None:
        self.requests = requests


class GetRequest(Tool):
    """A tool with a service and a schema; it notes what reached it."""

    name = "copilot_chat_secretary_get_request"
    description = "Gives a request."
    input_schema = INDEX_SCHEMA

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self.calls: list[Mapping[str, Any]] = []

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        self.calls.append(arguments)
        return {"success": True, "request": self.sessions.requests[arguments["index"] - 1]}


class Saying(Tool):
    """A tool that answers with whatever it was given."""

    name = "say"
    description = "Says it."

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class SayingResult(ResultTool):
    """The same, as a tool whose answers are `ToolResult` objects."""

    name = "say"
    description = "Says it."

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class UnspeakableError(Exception):
    """An exception that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def said(result: LanguageModelToolResult) -> Any:
    """The JSON of a result, which is one part of text."""
    (part,) = result.content
    assert isinstance(part, LanguageModelTextPart)
    return json.loads(part.value)


def test_a_tool_without_call_cannot_be_made() -> None:
    """`Tool` is abstract: `call()` is what a concrete tool must write."""

    class Unfinished(Tool):
        name = "unfinished"
        description = "…"

    with pytest.raises(TypeError, match="call"):
        Unfinished()  # pyright: ignore[reportAbstractUsage]


async def test_a_call_that_succeeds_is_one_text_part_of_json() -> None:
    """`invoke()` answers with `LanguageModelToolResult([LanguageModelTextPart(json)])`."""
    tool = GetRequest(Sessions("first", "second"))
    result = await tool.invoke({"index": 2})
    assert result == LanguageModelToolResult([LanguageModelTextPart('{"success":true,"request":"second"}')])
    assert result.is_error is False
    assert result.data == {"success": True, "request": "second"}
    assert tool.calls == [{"index": 2}]


@pytest.mark.parametrize("answer", [None, [1, 2], "text", {"n": 2**70, "z": None, "a": "\u2028😀"}])
async def test_any_answer_is_written_exactly(answer: Any) -> None:
    """An answer of any kind is written without loss; only an object is structured content as well."""
    result = await Saying(answer).invoke()
    assert said(result) == answer
    assert result.data == (answer if isinstance(answer, dict) else None)


@pytest.mark.parametrize(
    ("exc", "message"),
    [
        (ValueError("index out of range"), "index out of range"),
        (unavailable("the disk is away"), "the disk is away"),
        (KeyError(), "KeyError"),
        (FileNotFoundError(2, "No such file", "a\udcff"), "[Errno 2] No such file: 'a\\udcff'"),
        (ValueError("a\udcff"), "a\ufffd"),
        (UnspeakableError(), "UnspeakableError"),
    ],
    ids=["plain", "failure", "no words", "strange path", "strange words", "unspeakable"],
)
async def test_an_exception_becomes_the_error_object(exc: Exception, message: str) -> None:
    """Whatever `call()` throws is caught and answered as exactly `{"isError": true, "message": …}`."""
    result = await Saying(exc).invoke({})
    assert said(result) == {"isError": True, "message": message}
    assert result.is_error is True


async def test_an_answer_that_is_no_json_is_an_error() -> None:
    """A tool that answers with something JSON cannot say fails like one that throws."""
    result = await Saying(object()).invoke()
    assert result.is_error
    assert said(result)["isError"] is True
    assert "object" in said(result)["message"]


async def test_cancellation_is_not_answered() -> None:
    """Only cancellation goes through `invoke()`; what a tool raises by itself is none, whatever it is."""

    class Endless(Saying):
        """Never answers."""

        async def call(self, arguments: Mapping[str, Any]) -> Any:
            await asyncio.Event().wait()

    task = asyncio.create_task(Endless(None).invoke())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await Saying(asyncio.CancelledError()).invoke()).is_error


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=8)))
def test_invoke_never_raises(arguments: dict[str, Any]) -> None:
    """Any arguments at all are answered with one part of JSON."""
    tool = GetRequest(Sessions())
    assert isinstance(said(asyncio.run(tool.invoke(arguments))), dict)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, '"index" is a required property'),
        (None, '"index" is a required property'),
        ({"index": 0}, "index: 0 is less than the minimum of 1"),
        ({"index": "2"}, "index: "),
        ({"index": 1.5}, "index: "),
        ({"index": None}, "index: "),
        ({"index": 1, "sessionId": 5}, "sessionId: "),
        ({"index": 1, "other": 5}, "other"),
        ({"index": -(2**70)}, "index: "),
        (exactjson.parse('{"index": 1e400}'), "index: the number 1e400… is too large"),
        (exactjson.parse('{"index": %s}' % ("7" * 5000)), "index: the number 77777777777777777777… is too large"),
    ],
)
async def test_input_is_checked_before_the_call(arguments: dict[str, Any] | None, words: str) -> None:
    """Input that does not fit the schema is refused with the parameter's name, and `call()` is not reached."""
    tool = GetRequest(Sessions("one"))
    result = await tool.invoke(arguments)
    assert result.is_error
    assert said(result)["isError"] is True
    assert words in said(result)["message"]
    assert tool.calls == []


async def test_a_nested_parameter_is_named_by_its_path() -> None:
    """An error inside of a parameter says where."""

    class Deep(Saying):
        input_schema = NESTED_SCHEMA

    result = await Deep("fine").invoke({"items": [{"n": 1}, {"n": "x"}]})
    assert said(result)["message"].startswith("items.1.n: ")
    assert said(await Deep("fine").invoke({"items": [{"n": 2**70}]})) == "fine"


async def test_arguments_of_more_values_than_a_tool_takes_are_refused_unread() -> None:
    """A tool says how many that is; one that does not is given as many as there are."""

    class Small(Saying):
        max_values = 10

    for tool, is_error in ((Small, True), (Saying, False)):
        answer = await tool({}).invoke({"items": [[number] for number in range(20_000)]})
        assert answer.is_error is is_error
        assert ("the arguments have more than 10 values" in answer.content[0].value) is is_error


async def test_no_arguments_are_an_empty_object() -> None:
    """A tool without parameters can be invoked without arguments."""
    assert said(await Saying({"ok": 1}).invoke()) == {"ok": 1}
    assert said(await Saying({"ok": 1}).invoke({"unasked": 1})) == {"ok": 1}


async def test_what_is_left_out_has_the_default_of_the_schema() -> None:
    """A default is written once: `call` finds it among the arguments, save where something else was given."""

    class Paging(Saying):
        input_schema = {  # noqa: RUF012
            "type": "object",
            "properties": {"limit": {"type": "integer", "default": 10}, "offset": {"type": "integer"}, "any": True},
        }

    tool = Paging(None)
    assert await tool.accept({}) == {"limit": 10}
    assert await tool.accept({"limit": 3, "offset": 1}) == {"limit": 3, "offset": 1}


async def test_a_programs_function_gets_what_was_given() -> None:
    """Where a handler is registered with a definition, what is left out stays so."""
    seen: list[dict[str, Any]] = []
    schema = {"type": "object", "properties": {"limit": {"type": "integer", "default": 10}}}
    registry = ToolRegistry()
    registry.register_static_tool("note", seen.append, {"description": "Notes.", "inputSchema": schema}).unwrap()
    registered = registry.get("note")
    assert registered is not None
    assert registered.tool is not None
    await registered.tool.invoke({})
    assert seen == [{}]


async def test_services_come_through_the_constructor() -> None:
    """Two tools of one class with different services answer differently: nothing is looked up from outside."""
    one, two = GetRequest(Sessions("a")), GetRequest(Sessions("b"))
    assert said(await one.invoke({"index": 1}))["request"] == "a"
    assert said(await two.invoke({"index": 1}))["request"] == "b"


@pytest.mark.parametrize("place", ["ref", "dialect", "file"])
async def test_a_remote_schema_is_never_fetched(place: str) -> None:
    """A schema that points elsewhere is an error of its tool; nobody goes there."""
    with listening() as ear:
        schema = {
            "ref": {"type": "object", "properties": {"a": {"$ref": f"{ear.url}/x.json"}}},
            "dialect": {"$schema": f"{ear.url}/draft-07/schema", "type": "object"},
            "file": {"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}},
        }[place]
        tool = type("Remote", (Saying,), {"input_schema": schema})("reached")
        result = await tool.invoke({"a": 1})
    assert ear.visits == []
    assert said(result)["isError"] is True


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        ({"a": 1}, {"a": 1}),
        (None, None),
        ([], []),
        (ToolResult[int].ok(3), 3),
    ],
)
async def test_a_result_tool_wraps_its_answer(answer: Any, data: Any) -> None:
    """A result tool answers `{"success": true, "data": …}`, as text and as structured content."""
    result = await SayingResult(answer).invoke()
    assert said(result) == result.data == {"success": True, "data": data}
    assert result.is_error is False


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ValueError("no"), {"code": "TOOL_EXECUTION_FAILED", "message": "ValueError: no", "retryable": False}),
        (unavailable("away"), {"code": "TOOL_UNAVAILABLE", "message": "away", "retryable": True}),
        (
            ToolResult[int].failed(ToolError(ToolErrorCode.RATE_LIMITED, "slow", retryable=True)),
            {"code": "RATE_LIMITED", "message": "slow", "retryable": True},
        ),
        (ValueError("\udcff"), {"code": "TOOL_EXECUTION_FAILED", "message": "ValueError: \ufffd", "retryable": False}),
    ],
    ids=["exception", "failure", "failed result", "strange words"],
)
async def test_a_result_tool_wraps_its_failure(answer: Any, error: dict[str, Any]) -> None:
    """A result tool that throws, or returns a failure, answers `{"success": false, "error": …}`."""
    result = await SayingResult(answer).invoke()
    assert said(result) == {"success": False, "error": error}
    assert result.is_error is True


async def test_a_result_tool_refuses_bad_input_with_its_code() -> None:
    """Input that does not fit is TOOL_INVALID_INPUT, not retryable."""

    class Strict(SayingResult):
        input_schema = INDEX_SCHEMA

    error = said(await Strict("fine").invoke({"index": 0}))["error"]
    assert (error["code"], error["retryable"]) == ("TOOL_INVALID_INPUT", False)


def test_a_definition_holds_what_there_is() -> None:
    """A tool is listed with name, description and schema, and with the rest only where it has it."""
    assert Saying(1).definition() == {
        "name": "say",
        "description": "Says it.",
        "inputSchema": {"type": "object", "properties": {}},
    }

    class Rich(Saying):
        title = "Say"
        output_schema: ClassVar[Mapping[str, Any] | None] = {"type": "object"}
        annotations: ClassVar[Mapping[str, Any] | None] = {"readOnlyHint": True}
        meta: ClassVar[Mapping[str, Any] | None] = {"x/y": 1}

    assert Rich(1).definition() == {
        "name": "say",
        "description": "Says it.",
        "title": "Say",
        "inputSchema": {"type": "object", "properties": {}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"x/y": 1},
    }


async def test_a_registered_tool_can_be_found_and_invoked() -> None:
    """Once registered, a tool is listed under its name, and what is listed is what is invoked."""
    registry, tool = ToolRegistry(), GetRequest(Sessions("one"))
    registry.register_tool(tool.name, tool)
    found = registry.get(tool.name)
    assert found is not None
    assert (found.name, found.server_name, found.original_name) == (tool.name, None, tool.name)
    assert found.definition == tool.definition()
    assert found.tool is tool
    assert found.claude_tool == {"name": tool.name, "description": "Gives a request.", "input_schema": INDEX_SCHEMA}
    assert said(await tool.invoke({"index": 1}))["request"] == "one"


def test_registration_is_logged() -> None:
    """Registering logs the message `MCP tool registered: {toolName}`."""
    with capture_logs() as logs:
        ToolRegistry().register_tool("say_it", Saying(1))
    assert [entry["event"] for entry in logs].count("MCP tool registered: say_it") == 1


def test_registration_gives_a_disposable_that_unregisters_once() -> None:
    """Disposing takes the tool out; a second time does nothing, even when the name is in use again."""
    registry = ToolRegistry()
    first = registry.register_tool("say", Saying(1))
    assert isinstance(first, Disposable)
    first.dispose()
    assert registry.get("say") is None
    again = Saying(2)
    registry.register_tool("say", again)
    generation = registry.generation
    first.dispose()
    found = registry.get("say")
    assert found is not None
    assert found.tool is again
    assert registry.generation == generation


def test_a_disposable_ends_with_its_block() -> None:
    """A registration can be kept for the length of a block, however that ends."""
    registry = ToolRegistry()
    with suppress(KeyError), registry.register_tool("say", Saying(1)):
        assert registry.get("say") is not None
        raise KeyError
    assert registry.get("say") is None


@pytest.mark.parametrize("name", ["say", "memory_search", "copilot_chat_secretary_get_first_request", "a1_2"])
def test_snake_case_names_are_taken(name: str) -> None:
    """A static tool's name is plain snake_case, and it is listed under exactly that."""
    registry = ToolRegistry()
    registry.register_tool(name, Saying(1))
    assert [tool.definition["name"] for tool in registry.all()] == [name]


@pytest.mark.parametrize(
    "name", ["", "Say", "say-it", "say__it", "_say", "say_", "say it", "say.it", "größe", "say\n", "server__tool"]
)
def test_other_names_are_refused(name: str) -> None:
    """A static name that is not snake_case, or could be taken for `server__tool`, is refused, and nothing changes."""
    registry = ToolRegistry()
    with pytest.raises(ValueError, match="snake_case"):
        registry.register_tool(name, Saying(1))
    assert registry.all() == []
    assert registry.generation == 0


def test_a_name_is_taken_once() -> None:
    """Two static tools cannot have one name; the first one stays."""
    registry, first = ToolRegistry(), Saying(1)
    registry.register_tool("say", first)
    with pytest.raises(ValueError, match="'say' already"):
        registry.register_tool("say", Saying(2))
    found = registry.get("say")
    assert found is not None
    assert found.tool is first
