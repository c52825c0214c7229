"""Tools as the registry has them, and the SDKs' own types to check what is made of them."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter
from typing_extensions import get_type_hints, is_typeddict

from pegboard.catalog.registry import Exposure, ToolRegistry
from pegboard.tool import RegisteredTool

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def registered(
    name: str,
    server: str | None = None,
    schema: dict[str, Any] | None = None,
    *,
    prefix: bool = True,
    max_length: int = 64,
    **said: Any,
) -> RegisteredTool:
    """One tool, registered."""
    definition = {"name": name, "description": f"Does {name[:20]}", "inputSchema": schema or {"type": "object"}, **said}
    if server is None:
        return RegisteredTool(name, None, name, definition)
    registry = ToolRegistry(max_name_length=max_length)
    registry.register_mcp_tools(server, [definition], exposure=Exposure(prefix=prefix)).unwrap()
    return registry.all()[0]


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Made once for a type."""
    return TypeAdapter(kind)


def fits(value: object, kind: Any) -> None:
    """Check a value against an SDK's type, and that it has no key that the type does not know."""
    adapter(kind).validate_python(value)
    assert _known_keys(value, kind), value


def _known_keys(value: Any, kind: Any) -> bool:
    """TypedDicts take unknown keys in silence. An input schema is one that may have any."""
    origin, args = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        if kind.__name__ == "InputSchemaTyped":
            return isinstance(value, dict) and value.get("type") == "object"
        hints = get_type_hints(kind, include_extras=False)
        return (
            isinstance(value, dict)
            and value.keys() <= hints.keys()
            and all(_known_keys(each, hints[key]) for key, each in value.items())
        )
    if origin is None:
        return True
    if origin is dict or not args:
        return isinstance(value, dict) or origin is not dict
    if origin.__name__ in {"Union", "UnionType"}:
        return any(_takes(value, each) and _known_keys(value, each) for each in args)
    if isinstance(value, list):
        # What is declared as an iterable is not looked into until somebody goes through it.
        return all(_takes(each, args[0]) and _known_keys(each, args[0]) for each in value)
    if origin.__name__ in {"Required", "NotRequired", "Annotated"}:
        return _known_keys(value, args[0])
    return True


def _takes(value: Any, kind: Any) -> bool:
    try:
        adapter(kind).validate_python(value)
    except ValueError:
        return False
    return True
