"""The six tools with which a model finds its way among thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.catalog.starting import starting_text
from pegboard.clients.caller import Caller, current
from pegboard.clients.client import Client
from pegboard.exactjson import as_object
from pegboard.listing.loaded import is_shared
from pegboard.listing.view import EVERYTHING
from pegboard.result import ToolError, ToolErrorCode, ToolFailure, invalid
from pegboard.text import one_line
from pegboard.tool import MAX_VALUES, RegisteredTool, RelayingTool, ResultTool, answers, takes
from pegboard.toolsets.discovery.hit import Sighting, hits
from pegboard.toolsets.toolset import BoardApi

_MOST = 50
# Of so many names that are wrong each is told what is wrong with it.
_MOST_PROBLEMS = 5
# With an address at which somebody signs in.
_LONGEST_REMARK = 300
# So many servers that wait for a sign-in are told how to get it, where a hit has no room for that.
_MOST_SIGN_INS = 3
_TEXT = {"type": "string"}
_NAMES = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": _MOST}
_READS = {"readOnlyHint": True, "openWorldHint": False}
_CHANGES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


_LIST = {"type": "array"}
_COUNT = {"type": "integer"}


class DiscoveryTool(ResultTool):
    """What all of them have in common: the board, and whoever calls."""

    category = "discovery"
    max_values = MAX_VALUES
    quick = True

    def __init__(self, board: BoardApi) -> None:
        self._board = board

    def _remark(self, tool: RegisteredTool, client: Client) -> str | None:
        """Why a tool cannot be used now, if so."""
        available = self._board.availability(tool, client)
        if available.status == "available":
            return None
        return one_line(
            f"{tool.name} is {available.status} now: {available.reason or 'no reason is known'}", _LONGEST_REMARK
        )

    def _may_see(self, name: str, caller: Caller) -> bool:
        """Whether a client may know that a tool is loaded, which somebody else on the same board may have done."""
        wanted = caller.client.filter
        if not wanted.admits_name(name):
            return False
        if not wanted.remote and wanted.access is None:
            return True
        tool = self._board.lookup_tool(name, EVERYTHING)
        # Whose one was that is gone nobody knows: on a shared board it may have been somebody else's alone.
        return not is_shared(caller.client.board) if tool is None else wanted.admits(tool)

    def _count_loaded(self, caller: Caller) -> int:
        """How many tools a client knows to be loaded."""
        return sum(1 for name in self._board.loaded.on(caller.client.board) if self._may_see(name, caller))

    @staticmethod
    def caller() -> Caller:
        """Who calls; from Python nobody in particular."""
        return current.get(None) or Caller()


class ToolFind(DiscoveryTool):
    """Search."""

    name = "tool_find"
    description = (
        "Search all tools of all servers by what you want to do. Returns the best matches with their parameters; "
        "then tool_load them, or tool_call one at once."
    )
    input_schema = takes(
        ["query"],
        query={
            **_TEXT,
            "description": "What the tool should do, in plain words",
            "examples": ["create a pull request"],
        },
        limit={"type": "integer", "minimum": 1, "maximum": _MOST, "default": 10},
    )
    output_schema = answers(tools=_LIST, total=_COUNT, starting=_LIST, message=_TEXT)
    annotations = {"title": "Find tools", **_READS}  # noqa: RUF012

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        caller = self.caller()
        found, total = await self._board.find(arguments["query"], arguments["limit"], caller.client.filter)
        active = frozenset(self._board.loaded.on(caller.client.board))
        seen = [
            Sighting(
                each,
                self._board.availability(each.tool, caller.client),
                each.tool.name in active,
                self._board.lists.is_listed(each.tool.name, caller.client.list_key),
            )
            for each in found
        ]
        answer: dict[str, Any] = {"tools": hits(seen), "total": total}
        said = _say_sign_ins(seen, answer["tools"])
        if starting := self._board.list_starting(caller.client.filter):
            answer["starting"] = starting
            said.append(starting_text(starting))
        return {**answer, "message": " ".join(said)} if said else answer


def _say_sign_ins(seen: Sequence[Sighting], shown: Sequence[Mapping[str, Any]]) -> list[str]:
    """How to sign in to the servers of hits, where that was cut: a part of an address is of no use."""
    reasons = {
        str(each.found.tool.server_name): each.available.reason or ""
        for each, hit in zip(seen, shown, strict=True)
        if each.available.status == "needs_auth" and hit["availability"].get("reason") != each.available.reason
    }
    return [f"{name} {reason}." for name, reason in list(reasons.items())[:_MOST_SIGN_INS]]


class ToolDescribe(DiscoveryTool):
    """Everything about one tool."""

    name = "tool_describe"
    description = "Show one tool in full: description, input schema, server, availability."
    input_schema = takes(["name"], name=_TEXT)
    output_schema = answers(name=_TEXT, description=_TEXT, inputSchema={"type": "object"})
    annotations = {"title": "Describe a tool", **_READS}  # noqa: RUF012

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        caller = self.caller()
        tool = await self._board.find_tool(arguments["name"], caller.client.filter)
        active = tool.name in self._board.loaded.on(caller.client.board)
        return {
            **self._board.describe(tool, caller.client),
            "active": active,
            "listed": self._board.lists.is_listed(tool.name, caller.client.list_key),
        }


class ToolLoad(DiscoveryTool):
    """Add tools to the client's list."""

    name = "tool_load"
    description = (
        "Activate tools by name: they join your tool list, and their full schemas are returned, so that you can also "
        "use them with tool_call. All or none."
    )
    boardless_description = (
        "Show the full schemas of tools by name, so that you can use them with tool_call. All or none."
    )
    input_schema = takes(["names"], names=_NAMES)
    output_schema = answers(loaded=_LIST, tools=_LIST, total=_COUNT, unloaded=_LIST, message=_TEXT)
    annotations = {"title": "Load tools", **_CHANGES}  # noqa: RUF012

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        caller = self.caller()
        tools = await self._all(list(dict.fromkeys(arguments["names"])), caller)
        names = [tool.name for tool in tools]
        remarks = [remark for tool in tools if (remark := self._remark(tool, caller.client))]
        is_listed = self._board.lists.is_listed
        new = [name for name in names if not is_listed(name, caller.client.list_key)]
        unloaded = await self._board.loaded.add(caller.client.board, names) if caller.client.board is not None else []
        # Others on the same board may have loaded what this client may not know of.
        gone = [name for name in unloaded if self._may_see(name, caller)]
        return {
            "loaded": names,
            "tools": [dict(tool.definition) for tool in tools],
            "total": self._count_loaded(caller),
            **({"unloaded": gone} if gone else {}),
            "message": " ".join([self._next_step(caller.client, new), *_say_unloaded(gone), *remarks]),
        }

    def _next_step(self, client: Client, new: list[str]) -> str:
        """How these tools can be used now, as this client will see it."""
        if client.board is None:
            # Of such a client nothing is remembered between its requests.
            return "Your tool list stays as it is, since your client gives no name: use these with tool_call."
        if not new:
            return "They are in your tool list already: call them directly."
        if self._board.lists.tools.has_listener(client.list_key):
            return "They are in your tool list from your next request but one on; until then use tool_call."
        return "They are in your tool list when your client asks for it again; until then use tool_call."

    async def _all(self, names: list[str], caller: Caller) -> list[RegisteredTool]:
        """Every tool, or an error that names each one that is not there."""
        tools: list[RegisteredTool] = []
        problems: list[ToolError] = []
        for name in names:
            try:
                tools.append(await self._board.find_tool(name, caller.client.filter))
            except ToolFailure as exc:
                problems.append(exc.error)
            if len(problems) == _MOST_PROBLEMS:
                break
        if problems:
            codes = {problem.code for problem in problems}
            message = f"Nothing was loaded. {' '.join(problem.message for problem in problems)}"
            raise ToolFailure(
                codes.pop() if len(codes) == 1 else ToolErrorCode.NOT_FOUND,
                message,
                retryable=all(problem.retryable for problem in problems),
            )
        return tools


def _say_unloaded(names: list[str]) -> list[str]:
    return [f"Unloaded to make room, since used least recently: {', '.join(names)}."] if names else []


class ToolUnload(DiscoveryTool):
    """Take tools down again."""

    name = "tool_unload"
    description = "Deactivate loaded tools by name, to keep your tool list short."
    input_schema = takes(["names"], names=_NAMES)
    output_schema = answers(unloaded=_LIST, total=_COUNT)
    annotations = {"title": "Unload tools", **_CHANGES}  # noqa: RUF012

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        caller = self.caller()
        # What a client may not see it cannot take down.
        names = [name for name in arguments["names"] if self._may_see(name, caller)]
        gone = await self._board.loaded.remove(caller.client.board, names) if caller.client.board is not None else []
        return {"unloaded": gone, "total": self._count_loaded(caller)}


class ToolActive(DiscoveryTool):
    """What is loaded."""

    name = "tool_active"
    description = "List the tools that you have loaded."
    input_schema = takes([])
    output_schema = answers(tools=_LIST, count=_COUNT, message=_TEXT)
    annotations = {"title": "Active tools", **_READS}  # noqa: RUF012

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        del arguments
        caller = self.caller()
        tools: list[dict[str, str]] = []
        for name in self._board.loaded.on(caller.client.board):
            if not self._may_see(name, caller):
                continue
            tool = self._board.lookup_tool(name, caller.client.filter)
            words = "" if tool is None else one_line(str(tool.definition.get("description") or ""), 160)
            remark = "it is not there now" if tool is None else self._remark(tool, caller.client)
            tools.append({"name": name, "description": " ".join(filter(None, [words, remark and f"({remark})"]))})
        return {"tools": tools, "count": len(tools), "message": _say_active(caller.client, len(tools))}


def _say_active(client: Client, count: int) -> str:
    if client.board is None:
        return "Your client gives no name, so it cannot load tools. Use tool_find, then tool_call."
    if count:
        return f"{count} tool{'' if count == 1 else 's'} active."
    return "No tools are active. Use tool_find, then tool_load."


class ToolCall(RelayingTool):
    """Call any tool by its name; its result is relayed as it is."""

    name = "tool_call"
    category = "discovery"
    max_values = MAX_VALUES
    description = "Call any tool by name, loaded or not. See tool_describe for its arguments."
    input_schema = takes(["name"], name=_TEXT, arguments={"type": "object", "description": "The tool's own arguments"})
    annotations = {"title": "Call a tool", "readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}  # noqa: RUF012

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What is given to the other tool is for that one to judge."""
        inner = as_object(arguments.get("arguments"))
        if inner is None:
            return super().check(arguments)
        return {**super().check({**arguments, "arguments": {}}), "arguments": inner}

    def target(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if arguments["name"] == self.name:
            raise invalid("tool_call cannot call itself")
        return arguments["name"], dict(arguments.get("arguments") or {})


NAMES = ("tool_find", "tool_describe", "tool_load", "tool_unload", "tool_active", "tool_call")


def discovery_tools(board: BoardApi) -> list[ResultTool | RelayingTool]:
    """All of them."""
    return [ToolFind(board), ToolDescribe(board), ToolLoad(board), ToolUnload(board), ToolActive(board), ToolCall()]
