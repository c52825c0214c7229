"""The parameters of an address as a tool's arguments, and those of a body with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from starlette.requests import Request

from pegboard.exactjson import as_object
from pegboard.names import nearest
from pegboard.result import invalid
from pegboard.tool import Tool

# A number with more digits is none that any parameter allows.
_MOST_DIGITS = 15
# The type of a parameter that may be given several times.
_LIST = ["string", "array"]


def query_arguments(request: Request, tool: Tool, **names: str) -> dict[str, Any]:
    """What an address asks for, each as the tool's schema wants it; some under other names than the tool has."""
    properties = as_object(tool.input_schema["properties"]) or {}
    found: dict[str, Any] = {}
    for given in dict.fromkeys(request.query_params):
        name = names.get(given, given)
        if name in found:
            raise invalid(f"{given}: {name} is given under two names")
        schema = as_object(properties.get(name)) or {}
        values, kind = request.query_params.getlist(given), schema.get("type")
        if len(values) > 1 and kind != _LIST:
            raise invalid(f"{given} is given {len(values)} times")
        found[name] = _parse_value(values, kind)
    return found


def check_query(request: Request, names: Collection[str]) -> None:
    """Refuse a parameter that an address does not have: a misspelt filter would let everything through."""
    for given in request.query_params:
        if given not in names:
            close = nearest(given[:80], names, 1)
            hint = f": did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"
            raise invalid(f"{given[:80]!r} is not a parameter of this address{hint}")


def read_number(request: Request, name: str, usual: int) -> int:
    """A whole number of an address."""
    given = request.query_params.get(name) or str(usual)
    if not (given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS):
        raise invalid(f"{name} must be a whole number, found {given[:40]!r}")
    return int(given)


def read_flag(request: Request, name: str) -> bool:
    """Whether an address says yes; without a word it says no."""
    given = request.query_params.get(name) or "false"
    if given not in {"true", "false"}:
        raise invalid(f"{name} must be true or false, found {given[:40]!r}")
    return given == "true"


def merge_arguments(given: Mapping[str, Any], also: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments from two places; where both say something, it has to be the same."""
    for name in given.keys() & also.keys():
        if given[name] != also[name]:
            raise invalid(f"{name}: the address and the body have different values")
    return {**given, **also}


def _parse_value(values: list[str], kind: object) -> Any:
    """A parameter's value; what cannot be read as its kind stays a text, for the schema to refuse."""
    if len(values) > 1:
        return values
    (value,) = values
    if kind == "integer":
        digits = value.removeprefix("-")
        return int(value) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else value
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value
