"""What a client asks over MCP, answered by the board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from pegboard import exactjson
from pegboard.board import Caller, Pegboard, UnknownTool
from pegboard.protocol.gateway import INVALID_PARAMS, Client
from pegboard.result import ToolError, ToolFailure, ToolResult
from pegboard.servers.link import RpcError
from pegboard.view import Filter

_INSTRUCTIONS = (
    "Pegboard joins the tools of many MCP servers; a tool's name tells its server (server__tool). "
    "The list changes while servers come and go, so call a tool by the name that the list gives it now."
)


class McpFront:
    """The board behind the protocol."""

    def __init__(self, board: Pegboard) -> None:
        self._board = board

    async def list_tools(self, client: Client, params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The client's view, narrowed by the filters of this request."""
        wanted = _address_filter(client).within(_request_filter(params))
        return (await self._board.list_tools(wanted)).definitions()

    async def call_tool(
        self, client: Client, params: Mapping[str, Any], on_progress: Callable[[Mapping[str, Any]], None] | None
    ) -> dict[str, Any]:
        """Relay a call; a failure of our own is a result, an unknown name and a server's error are errors."""
        caller = Caller(
            era=client.era,
            session=client.session,
            filter=_address_filter(client),
            capabilities=client.capabilities,
            on_progress=on_progress,
        )
        try:
            return await self._board.call_tool(params["name"], params, caller)
        except UnknownTool as exc:
            raise MCPError(INVALID_PARAMS, str(exc)) from None
        except RpcError as exc:
            raise MCPError(exc.code, exc.message, exc.data) from None
        except ToolFailure as exc:
            return failed_result(exc.error)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """A tool's schema, for the headers that must agree with its arguments."""
        tool = self._board.registry.get(name)
        return None if tool is None else tool.definition["inputSchema"]

    def watch(self, client: Client, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a client told when its own view changes."""

        def told() -> None:
            self._board.metrics.notices += 1
            listener()

        return self._board.notices.subscribe(_address_filter(client), told)

    async def session_ended(self, client: Client) -> None:
        """Let go of what this session alone had."""
        if client.session is not None:
            await self._board.leave_session(client.session)

    def instructions(self) -> str:
        """What a model should know of all this."""
        return _INSTRUCTIONS


def failed_result(error: ToolError) -> dict[str, Any]:
    """A failure of Pegboard's own, as the result of a call."""
    text = exactjson.dump(ToolResult[Any].failed(error).to_dict()).decode()
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _address_filter(client: Client) -> Filter:
    return Filter.of(client.query.get("server"), client.query.get("prefix"))


def _request_filter(params: Mapping[str, Any]) -> Filter:
    meta = exactjson.as_object(params.get("_meta")) or {}
    return Filter.of(meta.get("pegboard/server"), meta.get("pegboard/prefix"))
