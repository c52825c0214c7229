"""The HTTP headers of the modern era, by the SDK's own rules for what may stand in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def request_headers(version: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """What a POST of the modern era says of its body: version, method, and the name of what is asked for."""
    from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value

    headers = {"mcp-protocol-version": version, "mcp-method": method}
    key = NAME_BEARING_METHODS.get(method)
    if key is not None and isinstance(name := params.get(key), str):
        headers["mcp-name"] = encode_header_value(name)
    return headers


def parameter_headers(input_schema: Mapping[str, Any], arguments: object) -> dict[str, str]:
    """The `Mcp-Param-*` headers of a call: one for each argument that the tool's schema marks with `x-mcp-header`."""
    if not _may_be_marked(input_schema) or not isinstance(arguments, dict):
        return {}
    from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map

    return mcp_param_headers(x_mcp_header_map(dict(input_schema)), cast("dict[str, Any]", arguments))


def header_problem(input_schema: Mapping[str, Any]) -> str | None:
    """Why a schema's `x-mcp-header` marks break the rules; a client must not use such a tool over HTTP."""
    if not _may_be_marked(input_schema):
        return None
    from mcp.shared.inbound import find_invalid_x_mcp_header

    return find_invalid_x_mcp_header(dict(input_schema))


def _may_be_marked(input_schema: Mapping[str, Any]) -> bool:
    # Hardly any schema is marked, and a look at its text costs less than walking it.
    return "x-mcp-header" in str(input_schema)
