"""The HTTP headers of the modern era, by the SDK's own rules for what may stand in one."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from pegboard import exactjson
from pegboard.result import invalid

# The digits before or behind the point of a number that is sent without its exponent; of 1e308 there are 309.
_MOST_DIGITS = 400


def request_headers(version: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """What a POST of the modern era says of its body: version, method, and the name of what is asked for."""
    from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value

    headers = {"mcp-protocol-version": version, "mcp-method": method}
    key = NAME_BEARING_METHODS.get(method)
    if key is not None and isinstance(name := params.get(key), str):
        headers["mcp-name"] = encode_header_value(_unicode(name, key))
    return headers


def parameter_headers(input_schema: Mapping[str, Any], arguments: object) -> dict[str, str]:
    """The `Mcp-Param-*` headers of a call: one for each argument that the tool's schema marks with `x-mcp-header`.

    A server compares them with the body, so they have the value that stands there, digit by digit; one that no header
    can have is refused.
    """
    if not isinstance(arguments, dict):
        return {}
    from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

    if find_invalid_x_mcp_header(dict(input_schema)) is not None:
        # What cannot be the name of a header must not be sent as one; the server sees the argument in the body.
        return {}
    headers: dict[str, str] = {}
    for path, token in x_mcp_header_map(dict(input_schema)).items():
        value = _header_value(_value_at(cast("dict[str, Any]", arguments), path), ".".join(path))
        headers |= mcp_param_headers({path[-1:]: token}, {path[-1]: value})
    return headers


def _value_at(arguments: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for step in path:
        value = (exactjson.as_object(value) or {}).get(step)
    return value


def _header_value(value: Any, name: str) -> Any:
    """A value as the SDK can write it into a header without a change."""
    if isinstance(value, str):
        return _unicode(value, name)
    if not isinstance(value, float):
        return value
    digits = value.digits if isinstance(value, exactjson.Number) else repr(value)
    return digits if digits.lower().find("e") < 0 else _without_exponent(digits, name)


def _unicode(text: str, name: str) -> str:
    if not exactjson.is_well_formed(text):
        raise invalid(f"{name}: no HTTP header can have half of a surrogate pair")
    return text


def _without_exponent(digits: str, name: str) -> str:
    """A number as servers compare it with the one in the body: its digits and a point at most."""
    try:
        number = Decimal(digits)
    except InvalidOperation:
        number = Decimal("Infinity")
    is_short = number.is_finite() and max(abs(number.adjusted()), len(number.as_tuple().digits)) <= _MOST_DIGITS
    if not is_short:
        raise invalid(f"{name}: the number is too long for an HTTP header")
    return format(number, "f")
