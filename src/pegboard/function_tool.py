"""A typed Python function as a static tool: its schema from its annotations, its words from its docstring.

@tool
async def add(a: int, b: Annotated[int, "The other number"] = 1) -> int:
    "Add two numbers."
    return a + b

board.register(add)
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    overload,
)  # fmt: skip

from pegboard import exactjson
from pegboard.docstrings import parameters, summary
from pegboard.names import is_snake_case
from pegboard.result import ToolResult, invalid
from pegboard.tool import LanguageModelToolResult, ResultTool

P = ParamSpec("P")
R = TypeVar("R")

_PASSED_ONE_BY_ONE = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
}
_ANSWERS = {
    "type": "object",
    "properties": {"success": {"type": "boolean"}, "data": {}, "error": {"type": "object"}},
    "required": ["success"],
}


class Said(TypedDict, total=False):
    """What a decorator can be told of a tool; the rest comes from the function."""

    name: str | None
    title: str | None
    description: str | None
    # MCP's: `{"readOnlyHint": True, "idempotentHint": True}` and the like.
    annotations: Mapping[str, Any] | None
    category: str | None
    keywords: Sequence[str]


class FunctionTool(ResultTool, Generic[P, R]):
    """A function that is a tool, and still the function."""

    output_schema = _ANSWERS
    # Python fills in its own, which need not be JSON.
    fills_defaults = False

    def __init__(self, function: Callable[P, R], namespace: Mapping[str, Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self._signature = inspect.signature(function)
        for parameter in self._signature.parameters.values():
            _check(parameter, function)
        # Read now: what is wrong with a function should be said where it stands.
        self._hints = {
            name: _adapt_hint(hint, namespace) for name, hint in _parameter_types(function, namespace).items()
        }
        self.input_schema = self._readable_schema()  # pyright: ignore[reportAttributeAccessIssue]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self._function(*args, **kwargs)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function with typed values; one that is not async runs in a thread."""
        args, kwargs = self._convert_arguments(arguments)
        function = cast("Callable[..., Any]", self._function)
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        answer = await asyncio.to_thread(_run, function, args, kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    def render(self, answer: Any) -> LanguageModelToolResult:
        """The answer as JSON, whatever objects it is made of; a function may answer with a `ToolResult` of its own."""
        if isinstance(answer, ToolResult):
            found = cast("ToolResult[Any]", answer)
            return super().render(ToolResult[Any].ok(_json(found.data)) if found.success else found)
        return super().render(_json(answer))

    def _convert_arguments(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        from pydantic import ValidationError

        try:
            model = self._model.model_validate(dict(arguments))
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise invalid(f"{where}: {first['msg']}" if where else first["msg"]) from None
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for number, parameter in enumerate(self._signature.parameters.values()):
            value = getattr(model, f"p{number}")
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                args.append(value)
            else:
                kwargs[parameter.name] = value
        return args, kwargs

    def _readable_schema(self) -> dict[str, Any]:
        from pydantic.errors import PydanticUserError

        try:
            return self._schema()
        except PydanticUserError as exc:
            reason = str(exc).partition("\n")[0]
            raise TypeError(f"{self._function.__name__} cannot be a tool: {reason}") from exc

    def _schema(self) -> dict[str, Any]:
        from pydantic.json_schema import GenerateJsonSchema

        class Plain(GenerateJsonSchema):
            """Without titles that only repeat names, and without a word on defaults that JSON cannot say."""

            ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

            def field_title_should_be_set(self, schema: Any) -> bool:
                del schema
                return False

        schema = self._model.model_json_schema(schema_generator=Plain)
        schema.pop("title", None)
        schema.setdefault("properties", {})
        return schema

    @cached_property
    def _model(self) -> Any:
        """The parameters as a model; its fields are numbered, since a parameter may have any name."""
        import pydantic

        field: Any = pydantic.Field
        told = parameters(self._function.__doc__ or "")
        fields: dict[str, Any] = {}
        for number, (name, parameter) in enumerate(self._signature.parameters.items()):
            hint = self._hints[name]
            words = _words(hint) or told.get(name)
            default: Any = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[f"p{number}"] = (hint, field(default, alias=name, **({"description": words} if words else {})))
        return pydantic.create_model(self._function.__name__, __config__={"extra": "forbid"}, **fields)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(**said: Unpack[Said]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **said: Unpack[Said]) -> Any:
    """Make a static tool of a typed function; with arguments, or with none and no brackets."""

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _make_tool(function, said)

    return decorate if function is None else decorate(function)


def _make_tool(function: Callable[..., Any], said: Said) -> FunctionTool[..., Any]:
    if not (inspect.isfunction(inspect.unwrap(function)) or inspect.ismethod(function)):
        raise TypeError(f"{function!r} cannot be a tool: only functions and methods can, so put it into one")
    own = said.get("name") or function.__name__
    if not is_snake_case(own) or "__" in own:
        raise TypeError(f"a tool's name must be snake_case without '__': {own!r}")
    told: dict[str, Any] = {
        "title": None,
        "annotations": None,
        "category": None,
        "keywords": (),
        **said,
        "name": own,
        "description": said.get("description") or summary(function.__doc__ or "") or own.replace("_", " "),
        "__module__": function.__module__,
    }
    kind = cast("type[FunctionTool[..., Any]]", type(own, (FunctionTool,), told))
    return kind(function, _names_around(function))


def _names_around(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The names in the functions and classes around one: types may be local to any of them, and text until now."""
    found: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if function.__qualname__.startswith(frame.f_code.co_qualname + "."):
            found = {**frame.f_locals, **found}
        frame = frame.f_back
    return found


def _parameter_types(function: Callable[..., Any], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """What the parameters are. What comes back is not asked for: it may be a name for type checkers alone."""
    plain: Any = inspect.unwrap(function)

    def parameters_only() -> None: ...

    parameters_only.__annotations__ = {
        name: hint for name, hint in inspect.get_annotations(plain).items() if name != "return"
    }
    return typing.get_type_hints(
        parameters_only, globalns=plain.__globals__, localns=dict(namespace), include_extras=True
    )


def _run(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run in a thread: before Python 3.12 a `StopIteration` never comes out of one, and its caller waits for ever."""
    try:
        return function(*args, **kwargs)
    except StopIteration as exc:
        raise RuntimeError("StopIteration was raised") from exc


def _check(parameter: inspect.Parameter, function: Callable[..., Any]) -> None:
    if parameter.kind not in _PASSED_ONE_BY_ONE:
        raise TypeError(f"{function.__name__} cannot be a tool: {parameter} has no schema")
    if parameter.annotation is inspect.Parameter.empty:
        raise TypeError(f"{function.__name__} cannot be a tool: parameter {parameter.name} has no type")


def _json(value: Any) -> Any:
    return exactjson.parse(exactjson.dump(value))


def _words(hint: Any) -> str | None:
    """The text in `Annotated[int, "text"]`, or in a `Field` there."""
    if get_origin(hint) is not Annotated:
        return None
    said = [each if isinstance(each, str) else getattr(each, "description", None) for each in get_args(hint)[1:]]
    return next((each for each in said if isinstance(each, str)), None)


def _adapt_hint(hint: Any, names: Mapping[str, Any]) -> Any:
    """A type with every `typing.TypedDict` in it as pydantic takes it before Python 3.12."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return _adapt_typed_dict(hint, names)
    origin, args = get_origin(hint), get_args(hint)
    if origin is None or not args or origin is typing.Literal:
        return hint
    if origin is Annotated:
        return Annotated[_adapt_hint(args[0], names), *args[1:]]  # pyright: ignore[reportInvalidTypeForm]
    inner: Any = tuple(_adapt_hint(each, names) for each in args)
    if inner == args:
        return hint
    return Union[inner] if origin in {Union, types.UnionType} else origin[inner]  # noqa: UP007


def _adapt_typed_dict(hint: Any, names: Mapping[str, Any]) -> Any:
    from typing_extensions import TypedDict

    fields: dict[str, Any] = {}
    for name, inner in typing.get_type_hints(hint, localns=dict(names), include_extras=True).items():
        mark: Any = get_origin(inner)
        if mark in {typing.Required, typing.NotRequired}:
            inner = get_args(inner)[0]  # noqa: PLW2901
        else:
            mark = typing.Required if name in hint.__required_keys__ else typing.NotRequired
        fields[name] = mark[_adapt_hint(inner, names)]
    make: Any = TypedDict
    made = make(hint.__name__, fields)
    made.__doc__ = hint.__doc__
    return made
