"""What a model asks for: calls out of a provider's reply, whether that is an object of its SDK or plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pegboard.exactjson import NotJson, parse_object
from pegboard.result import ToolError, ToolErrorCode, ToolResult

# What models write where there is nothing to say.
_NOTHING = ("", b"", "null", b"null")


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call that a model wants to have made; `id` pairs it with its result."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # OpenAI's: the server, where a tool was offered inside of it.
    namespace: str | None = None
    # Not a call of a tool, but a search for some (OpenAI's `tool_search`).
    is_search: bool = False
    # Why it cannot be made.
    problem: ToolError | None = None

    @property
    def refusal(self) -> ToolResult[Any] | None:
        """The result of a call that cannot be made; `None` if it can."""
        return None if self.problem is None else ToolResult[Any].failed(self.problem)


def parse_call(
    call_id: object,
    name: object,
    arguments: object,
    namespace: object = None,
    *,
    is_search: bool = False,
) -> RequestedCall:
    """A call with whatever a provider says of it; what is wrong becomes its problem."""
    problem: str | None = None
    given: dict[str, Any] = {}
    if isinstance(arguments, Mapping):
        given = dict(cast("Mapping[str, Any]", arguments))
    elif isinstance(arguments, (str, bytes)) and arguments.strip() not in _NOTHING:
        try:
            given = parse_object(arguments)
        except NotJson as exc:
            problem = f"the arguments of {name} are not a JSON object: {exc}"
    elif arguments is not None and not isinstance(arguments, (str, bytes)):
        problem = f"the arguments of {name} are not a JSON object: {type(arguments).__name__}"
    if not isinstance(name, str) or not name:
        problem = "the call names no tool"
    return RequestedCall(
        id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
        arguments=given,
        namespace=namespace if isinstance(namespace, str) and namespace else None,
        is_search=is_search,
        problem=None if problem is None else ToolError(ToolErrorCode.INVALID_INPUT, problem),
    )


def part(value: object, key: str) -> Any:
    """A field of an SDK's object or of a dict; `None` where there is none."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(key)
    return getattr(value, key, None)


def items(value: object, *path: str) -> Iterator[Any]:
    """The items of a list, or of the list that a reply holds under one of some keys."""
    for key in path:
        if not isinstance(value, (list, tuple)) and (inner := part(value, key)) is not None:
            value = inner
    if isinstance(value, (list, tuple)):
        yield from cast("Sequence[Any]", value)
