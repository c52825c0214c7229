"""The tools that answer by themselves, without asking the client anything."""

from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged

from conformance.asking import Call
from conformance.content import audio, embedded, image, text, tool_text
from conformance.resources import WATCHED_URI
from conformance.state import announce, log
from conformance.toolbox import ToolBox

JSON_SCHEMA_2020_12: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
MIRRORED_ARGUMENTS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "dry_run": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "note": {"type": "string"},
    },
    "required": ["region"],
}


TOOLBOX: Final = ToolBox()


# First in the list, because the header checks call whatever is first, without arguments.
@TOOLBOX.tool("test_simple_text", "Returns one text block.")
async def simple_text(_call: Call) -> types.CallToolResult:
    return tool_text("This is a simple text response for testing.")


@TOOLBOX.tool("test_image_content", "Returns one image block.")
async def image_content(_call: Call) -> types.CallToolResult:
    return types.CallToolResult(content=[image()])


@TOOLBOX.tool("test_audio_content", "Returns one audio block.")
async def audio_content(_call: Call) -> types.CallToolResult:
    return types.CallToolResult(content=[audio()])


@TOOLBOX.tool("test_embedded_resource", "Returns one embedded resource.")
async def embedded_resource(_call: Call) -> types.CallToolResult:
    block = embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    return types.CallToolResult(content=[block])


@TOOLBOX.tool("test_multiple_content_types", "Returns text, an image and an embedded resource.")
async def multiple_content_types(_call: Call) -> types.CallToolResult:
    resource = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return types.CallToolResult(content=[text("Multiple content types test:"), image(), resource])


@TOOLBOX.tool("test_error_handling", "Always fails, as a tool result.")
async def error_handling(_call: Call) -> types.CallToolResult:
    return types.CallToolResult(content=[text("This tool intentionally returns an error for testing")], is_error=True)


async def _log_three_lines(call: Call) -> None:
    await log(call.ctx, "info", "Tool execution started")
    await anyio.sleep(0.05)
    await log(call.ctx, "info", "Tool processing data")
    await anyio.sleep(0.05)
    await log(call.ctx, "info", "Tool execution completed")


@TOOLBOX.tool("test_tool_with_logging", "Sends three log lines while it runs.")
async def with_logging(call: Call) -> types.CallToolResult:
    await _log_three_lines(call)
    return tool_text("Tool with logging executed successfully")


@TOOLBOX.tool("test_logging_tool", "Sends log lines only to a request that asked for them.")
async def logging_tool(call: Call) -> types.CallToolResult:
    await _log_three_lines(call)
    return tool_text("Logging tool executed")


@TOOLBOX.tool("test_tool_with_progress", "Reports progress at 0, 50 and 100 of 100.")
async def with_progress(call: Call) -> types.CallToolResult:
    for done in (0, 50, 100):
        await call.ctx.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(0.05)
    return tool_text("Tool with progress executed successfully")


@TOOLBOX.tool("test_reconnection", "Closes its response stream halfway, so that the client has to resume it.")
async def reconnection(call: Call) -> types.CallToolResult:
    if call.ctx.close_sse_stream is not None:
        await call.ctx.close_sse_stream()
        # Long enough that the answer can only reach the client by the event store.
        await anyio.sleep(0.1)
    return tool_text("Reconnection test completed")


@TOOLBOX.tool(
    "json_schema_2020_12_tool", "Its schema uses the wider JSON Schema 2020-12 vocabulary.", JSON_SCHEMA_2020_12
)
async def json_schema_tool(call: Call) -> types.CallToolResult:
    return tool_text(f"Called with: {dict(call.arguments)}")


@TOOLBOX.tool(
    "test_mirrored_arguments", "Its annotated arguments are mirrored in Mcp-Param headers.", MIRRORED_ARGUMENTS
)
async def mirrored_arguments(call: Call) -> types.CallToolResult:
    return tool_text(f"Called with: {dict(call.arguments)}")


@TOOLBOX.tool("test_trigger_tool_change", "Adds or removes one tool and announces it.")
async def trigger_tool_change(call: Call) -> types.CallToolResult:
    # A real change: whoever stands in front may list again and only pass on what differs.
    call.ctx.lifespan_context.extra_tool ^= True
    await announce(call.ctx, ToolsListChanged())
    return tool_text("Tool list changed")


@TOOLBOX.tool("test_trigger_prompt_change", "Adds or removes one prompt and announces it.")
async def trigger_prompt_change(call: Call) -> types.CallToolResult:
    call.ctx.lifespan_context.extra_prompt ^= True
    await announce(call.ctx, PromptsListChanged())
    return tool_text("Prompt list changed")


@TOOLBOX.tool("test_trigger_resource_update", f"Announces that {WATCHED_URI} was updated.")
async def trigger_resource_update(call: Call) -> types.CallToolResult:
    await announce(call.ctx, ResourceUpdated(WATCHED_URI))
    return tool_text("Resource updated")


@TOOLBOX.tool(
    "test_extra_tool",
    "Comes and goes with test_trigger_tool_change.",
    stands=lambda state: state.extra_tool,
)
async def extra_tool(_call: Call) -> types.CallToolResult:
    return tool_text("The extra tool is here")
