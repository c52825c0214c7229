"""Error codes of JSON-RPC and of MCP."""

from __future__ import annotations

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# The first of the codes that JSON-RPC leaves to servers, for failures that have no code of their own.
SERVER_ERROR = -32000
RESOURCE_NOT_FOUND = -32002
UNSUPPORTED_VERSION = -32022
# A server wants its user to visit a page before it answers.
URL_ELICITATION_REQUIRED = -32042
REQUEST_CANCELLED = -32800
