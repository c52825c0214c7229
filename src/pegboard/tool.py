"""Tools: the base class of Pegboard's own (static tools), and the registry's record of any.

A concrete tool writes `call()`; `invoke()` checks the input against the tool's schema, fills in the schema's defaults,
calls, and wraps whatever comes back, an exception included, as text. What a tool needs it gets through its constructor.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

import jsonschema_rs

from pegboard import exactjson
from pegboard.result import ToolError, ToolErrorCode, ToolFailure, ToolResult, error_of, invalid, words_of

_SHOWN = 300
# So many values are checked in a few milliseconds. What Pegboard's own tools take is less.
MAX_VALUES = 5_000
# What a token is counted as, in bytes of UTF-8.
BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class LanguageModelTextPart:
    """A piece of text for a model."""

    value: str


@dataclass(frozen=True, slots=True)
class LanguageModelToolResult:
    """What a tool answers: parts of text, each a JSON document."""

    content: Sequence[LanguageModelTextPart]
    is_error: bool = False
    data: Mapping[str, Any] | None = field(default=None, compare=False)
    # What went wrong, for whoever does not read the text.
    error: ToolError | None = field(default=None, compare=False)


@dataclass(slots=True)
class Disposable:
    """Undoes a registration, once."""

    _undo: Callable[[], None] | None

    def dispose(self) -> None:
        """Undo it; a second time does nothing."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> Disposable:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


class Tool(ABC):
    """A static tool: described by class attributes, answered by `call()`."""

    name: ClassVar[str]
    # What the name of every tool of its kind begins with, whatever it is registered as.
    name_prefix: ClassVar[str] = ""
    description: ClassVar[str]
    # What it says to clients that have no board to load tools on, where that is something else.
    boardless_description: ClassVar[str | None] = None
    title: ClassVar[str | None] = None
    input_schema: ClassVar[Mapping[str, Any]] = {"type": "object", "properties": {}}
    output_schema: ClassVar[Mapping[str, Any] | None] = None
    annotations: ClassVar[Mapping[str, Any] | None] = None
    meta: ClassVar[Mapping[str, Any] | None] = None
    # What else it may be found by.
    category: ClassVar[str | None] = None
    keywords: ClassVar[Sequence[str]] = ()
    # Whether it is for clients on this machine alone, and whether it may ask its client something before it answers.
    local_only: ClassVar[bool] = False
    asks: ClassVar[bool] = False
    # Whether it answers at once, whatever it is given, so that nobody would ever cancel a call.
    quick: ClassVar[bool] = False
    # Whether `call` gets the schema's defaults for what is left out.
    fills_defaults: ClassVar[bool] = True
    # How many values its arguments may have in all, where that is known; one more, and nobody looks at them.
    max_values: ClassVar[int | None] = None

    def is_local_only(self) -> bool:
        """Whether it is for clients on this machine alone, as things are now."""
        return self.local_only

    @abstractmethod
    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Do the work and give something that can be written as JSON; raise whatever is wrong."""

    async def call_for_data(self, arguments: Mapping[str, Any]) -> Any:
        """The same for programs: data alone; what is wrong is raised also where a model finds it in the answer."""
        return await self.call(arguments)

    async def invoke(self, arguments: Mapping[str, Any] | None = None) -> LanguageModelToolResult:
        """Check the input, call, and wrap the outcome; only cancellation is raised."""
        try:
            answer = await self.call(await self.accept({} if arguments is None else arguments))
            return self.render(answer)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return self.render_failure(RuntimeError("something that the tool waited for was cancelled"))
        except SystemExit as exc:
            # A command line's parser does this to say no. It would end the event loop, and whoever waits waits on.
            return self.render_failure(RuntimeError(f"the tool tried to end the program ({exc.code})"))
        except exactjson.NotJson as exc:
            words = f"what the tool answered is not JSON: {_truncate(str(exc))}"
            return self.render_failure(ToolFailure(ToolErrorCode.EXECUTION_FAILED, words, retryable=False))
        except Exception as exc:
            return self.render_failure(exc)

    async def accept(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The checked input with defaults for what was left out; in a thread where others would wait for it."""
        is_much = self.max_values is None and _has_more_values(arguments, MAX_VALUES)
        given = await asyncio.to_thread(self.check, arguments) if is_much else self.check(arguments)
        return {**self._defaults, **given}

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The input as `call` takes it; one that does not fit the schema is refused, naming the parameter."""
        if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise invalid(f"the arguments must be an object, found {type(arguments).__name__}")
        if self.max_values is not None and _has_more_values(arguments, self.max_values):
            raise invalid(f"the arguments have more than {self.max_values:,} values")
        given: dict[str, Any] = {}
        for name, value in arguments.items():
            try:
                given[name] = exactjson.as_floats(value)
            except exactjson.NotJson as exc:
                raise invalid(f"{exactjson.well_formed(name)}: {exc}") from None
            if not (exactjson.is_well_formed(name) and exactjson.is_well_formed(value)):
                raise invalid(f"{exactjson.well_formed(name)}: it is not valid Unicode: half of a surrogate pair")
        given = _with_integers(given, self.input_schema)
        self._validate(given)
        return given

    def _validate(self, given: dict[str, Any]) -> None:
        try:
            # The first error is enough: to make all of 100,000 takes seconds.
            self._validator.validate(given)
        except jsonschema_rs.ValidationError as error:
            where = ".".join(str(step) for step in error.instance_path)[:_SHOWN]
            words = self._in_words(error.schema_path) or _truncate(error.message)
            raise invalid(f"{where}: {words}" if where else words) from None
        except (TypeError, ValueError, RecursionError) as exc:
            raise invalid(f"the arguments are not JSON: {_truncate(words_of(exc))}") from None

    def _in_words(self, path: Sequence[str | int]) -> str | None:
        """For a value that is none of a few, or too long: what it may be."""
        if not path or path[-1] not in {"enum", "maxLength", "maxItems"}:
            return None
        schema: Any = self.input_schema
        for step in path:
            schema = schema[step]
        if path[-1] == "maxLength":
            return f"has more than {schema:,} characters"
        if path[-1] == "maxItems":
            return f"has more than {schema:,} items"
        return f"must be one of {', '.join(exactjson.dump(value).decode() for value in schema)}"

    def render(self, answer: Any) -> LanguageModelToolResult:
        """An answer as the tool's result."""
        text = exactjson.dump(answer).decode()
        return LanguageModelToolResult([LanguageModelTextPart(text)], data=exactjson.as_object(answer))

    def render_failure(self, exc: Exception) -> LanguageModelToolResult:
        """An exception as the tool's result."""
        data = {"isError": True, "message": words_of(exc) or type(exc).__name__}
        text = exactjson.dump(data).decode()
        return LanguageModelToolResult([LanguageModelTextPart(text)], is_error=True, data=data, error=error_of(exc))

    def definition(self) -> dict[str, Any]:
        """The tool as MCP lists it."""
        listed: dict[str, Any] = {"name": self.name, "description": self.description}
        if self.title is not None:
            listed["title"] = self.title
        listed["inputSchema"] = dict(self.input_schema)
        if self.output_schema is not None:
            listed["outputSchema"] = dict(self.output_schema)
        if self.annotations is not None:
            listed["annotations"] = dict(self.annotations)
        if self.meta is not None:
            listed["_meta"] = dict(self.meta)
        return listed

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        """What the schema says of parameters that are left out."""
        properties = exactjson.as_object(self.input_schema.get("properties")) if self.fills_defaults else None
        described = {name: exactjson.as_object(schema) or {} for name, schema in (properties or {}).items()}
        return {name: schema["default"] for name, schema in described.items() if "default" in schema}

    @cached_property
    def _validator(self) -> Any:
        return jsonschema_rs.validator_for(dict(self.input_schema), retriever=_refuse_to_fetch)


def takes(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's input: these parameters and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def answers(**data: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a `ResultTool`'s answers: success and failure in one."""
    return {
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "data": {"type": "object", "properties": data},
            "error": {"type": "object"},
        },
        "required": ["success"],
    }


class ResultTool(Tool):
    """A static tool whose answers are `ToolResult` objects: only the rendering differs."""

    def render(self, answer: Any) -> LanguageModelToolResult:
        """The answer as `{"success": true, "data": …}`."""
        return _wrap(cast("ToolResult[Any]", answer) if isinstance(answer, ToolResult) else ToolResult[Any].ok(answer))

    def render_failure(self, exc: Exception) -> LanguageModelToolResult:
        """The exception as `{"success": false, "error": …}`."""
        return _wrap(ToolResult[Any].failed(error_of(exc)))


class RelayingTool(Tool):
    """A static tool that stands for a call of another tool, whose result is its own, exactly."""

    @abstractmethod
    def target(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The name of the other tool, and its arguments."""

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Nothing by itself: whoever has the other tools makes the call."""
        raise NotImplementedError(f"{self.name} is answered by the board")


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool as the registry knows it: what clients see, and where a call goes."""

    name: str
    server_name: str | None
    original_name: str
    definition: Mapping[str, Any]
    digest: int = 0
    tool: Tool | None = None
    # Whether arguments of this tool have to stand in HTTP headers, too (`x-mcp-header`).
    marked: bool = False
    # The definition as JSON.
    text: bytes = field(default=b"", repr=False, compare=False)
    # The definition for the handshake era, and as JSON, where that is another.
    handshake: tuple[Mapping[str, Any], bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def local_only(self) -> bool:
        """Whether it is for clients on this machine alone."""
        return self.tool is not None and self.tool.is_local_only()

    @property
    def toolset(self) -> str | None:
        """Of a tool of Pegboard's own: the toolset that it is of."""
        return None if self.tool is None else self.tool.category

    @property
    def tokens(self) -> int:
        """What its definition costs in a prompt, about."""
        return len(self.text) // BYTES_A_TOKEN

    @property
    def claims_read_only(self) -> bool:
        """Whether it says of itself that it changes nothing."""
        return (exactjson.as_object(self.definition.get("annotations")) or {}).get("readOnlyHint") is True

    @property
    def claude_tool(self) -> dict[str, Any]:
        """The provider's form: name, description and input schema."""
        return {
            "name": self.name,
            "description": self.definition.get("description", ""),
            "input_schema": self.definition["inputSchema"],
        }


def handshake_definition(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """A definition for the handshake era, where what a tool puts out can only be an object."""
    schema = definition.get("outputSchema")
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") == "object":
        return definition
    return {key: value for key, value in definition.items() if key != "outputSchema"}


def _is_cancelled() -> bool:
    """Whether somebody cancelled this call, and not only something inside of it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _with_integers(value: Any, schema: Any) -> Any:
    """The value with an integer for each float without a fraction where the schema wants one, as JSON Schema has it."""
    if not isinstance(schema, Mapping):
        return value
    known = cast("Mapping[str, Any]", schema)
    if isinstance(value, float):
        kinds = known.get("type")
        wanted = "integer" in kinds if isinstance(kinds, (str, list)) else False
        return int(value) if wanted and value.is_integer() else value
    if isinstance(value, dict):
        properties: Mapping[Any, Any] = known.get("properties") or {}
        members = cast("dict[Any, Any]", value).items()
        return {name: _with_integers(item, properties.get(name)) for name, item in members}
    if isinstance(value, list):
        return [_with_integers(item, known.get("items")) for item in cast("list[Any]", value)]
    return value


def _has_more_values(value: object, most: int) -> bool:
    """Whether there are more values in a value than so many, without a look at the rest."""
    known: list[object] = [value]
    for each in known:
        if isinstance(each, (Mapping, list)):
            inner = cast("Mapping[Any, object] | list[object]", each)
            if len(known) + len(inner) > most:
                return True
            known += inner.values() if isinstance(inner, Mapping) else inner
    return False


def _truncate(message: str) -> str:
    """A validator repeats the value that its message is about, however long that is."""
    return message if len(message) <= _SHOWN else f"{message[: _SHOWN // 2]} … {message[-_SHOWN // 2 :]}"


def _wrap(result: ToolResult[Any]) -> LanguageModelToolResult:
    data = result.to_dict()
    part = LanguageModelTextPart(exactjson.dump(data).decode())
    return LanguageModelToolResult([part], is_error=not result.success, data=data, error=result.error)


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{ToolErrorCode.INVALID_INPUT.value}: a schema must not need {uri}")
