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
    if not isinstance(arguments, dict):
        return {}
    from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

    if find_invalid_x_mcp_header(dict(input_schema)) is not None:
        # What cannot be the name of a header must not be sent as one; the server sees the argument in the body.
        return {}
    return mcp_param_headers(x_mcp_header_map(dict(input_schema)), cast("dict[str, Any]", arguments))
