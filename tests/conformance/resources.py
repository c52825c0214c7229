"""The fixture's resources: a text, an image, a watched one, and one template."""

import json
import re
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from conformance.content import PNG_BASE64
from conformance.state import Context, is_modern

TEXT_URI: Final = "test://static-text"
BINARY_URI: Final = "test://static-binary"
WATCHED_URI: Final = "test://watched-resource"
_TEMPLATE_URI: Final = re.compile(r"test://template/(?P<id>[^/]+)/data")
_HANDSHAKE_NOT_FOUND: Final = -32002  # the modern era gave this code up for invalid params

_RESOURCES: Final = (
    types.Resource(uri=TEXT_URI, name="static-text", description="A static text", mime_type="text/plain"),
    types.Resource(uri=BINARY_URI, name="static-binary", description="A static image", mime_type="image/png"),
    types.Resource(uri=WATCHED_URI, name="watched-resource", description="A text to watch", mime_type="text/plain"),
)
_TEMPLATES: Final = (
    types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template-data",
        description="Data made up for the id in the address",
        mime_type="application/json",
    ),
)


async def list_resources(_ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=list(_RESOURCES))


async def list_templates(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=list(_TEMPLATES))


def _contents(uri: str) -> types.TextResourceContents | types.BlobResourceContents | None:
    if uri == TEXT_URI:
        words = "This is the content of the static text resource."
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
    if uri == BINARY_URI:
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG_BASE64)
    if uri == WATCHED_URI:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text="Watched resource content")
    if found := _TEMPLATE_URI.fullmatch(uri):
        data = {"id": found["id"], "templateTest": True, "data": f"Data for ID: {found['id']}"}
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
    return None


async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    contents = _contents(params.uri)
    if contents is None:
        code = types.INVALID_PARAMS if is_modern(ctx) else _HANDSHAKE_NOT_FOUND
        raise MCPError(code, f"Resource not found: {params.uri}", {"uri": params.uri})
    return types.ReadResourceResult(contents=[contents])
