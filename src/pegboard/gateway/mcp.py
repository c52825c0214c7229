"""What a client asks over MCP, answered by the board."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard import exactjson
from pegboard.board import Board, UnknownTool
from pegboard.listing.loaded import board_key, session_board_key
from pegboard.listing.view import Filter, ListKey
from pegboard.log import logger
from pegboard.names import nearest
from pegboard.protocol.client import INVALID_PARAMS, Address, Client, Refused
from pegboard.protocol.eras import LOG_LEVELS, Era
from pegboard.relay.caller import Caller, OnProgress
from pegboard.relay.client_sessions import ClientSession
from pegboard.result import ToolError, ToolFailure, ToolResult
from pegboard.servers.jsonrpc import RpcError

PAGE = 1000
_FOLLOWING = 3.0
# So many resources are subscribed to before everybody else has a turn.
_AT_A_TIME = 32
_SERVER_ERROR = -32000
_KINDS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "templates"}
_FIELDS = {"prompts": "prompts", "resources": "resources", "templates": "resourceTemplates"}
_MAX_INSTRUCTIONS = 4000
# Of so many servers that are not there it is said, with so much of their names.
_NAMED, _SHOWN = 5, 80
_LISTED = (
    "Pegboard joins the tools of many MCP servers; a tool's name tells its server (server__tool). "
    "The list changes while servers come and go, so call a tool by the name that the list gives it now."
)
_JOINED = "Pegboard joins the tools of many MCP servers"
# How to get at the others, as far as there are the tools for it.
_WAYS = {
    "tool_find": ": find what you need with tool_find",
    "tool_load": ". Then tool_load puts tools into your list",
    "tool_call": ", or tool_call calls one at once",
}


class McpFront:
    """The board behind the protocol."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._relay = board.relay

    async def list(self, client: Client, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The client's view of one kind, narrowed by the filters of this request."""
        sight = self._sight(client)
        wanted = sight.filter.within(_request_filter(params))
        cursor = params.get("cursor")
        if method == "tools/list":
            if cursor is not None:
                raise Refused(INVALID_PARAMS, "Invalid cursor: the whole list is on one page")
            view = await self._board.list_tools(ListKey(wanted, sight.board))
            return {"tools": view.definitions if client.era == "modern" else view.handshake_definitions}
        kind = _KINDS[method]
        entries = (await self._board.list_entries(kind, wanted)).items
        start = _position(cursor, [entry.name for entry in entries])
        page = entries[start : start + PAGE]
        listed: dict[str, Any] = {_FIELDS[kind]: [entry.definition for entry in page]}
        if start + PAGE < len(entries):
            listed["nextCursor"] = _cursor(start + PAGE, page[-1].name)
        return listed

    async def answer(self, client: Client, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Relay a request; a server's error is an error, and so is a failure of our own, except a tool's."""
        caller = self.caller(client)
        try:
            if method == "tools/call":
                return await self.call_tool(params, caller)
            return await self._answer(method, params, caller)
        except RpcError as exc:
            raise Refused(exc.code, exc.message, exc.data) from None
        except ToolFailure as exc:
            raise Refused(_SERVER_ERROR, exc.error.message, exc.error.to_dict()) from None

    async def _answer(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        match method:
            case "prompts/get":
                return await self._relay.get_prompt(params, caller)
            case "resources/read":
                return await self._relay.read_resource(params, caller)
            case "completion/complete":
                return await self._relay.complete(params, caller)
            case "resources/subscribe":
                await self._relay.subscribe_session(params.get("uri"), caller)
            case "resources/unsubscribe":
                self._relay.unsubscribe_session(params.get("uri"), caller)
            case "logging/setLevel":
                if params.get("level") not in LOG_LEVELS:
                    raise RpcError(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
                await self._relay.set_level(caller.session, params["level"])
            case _:
                return await self._relay.pass_on(method, params, caller)
        return {}

    async def call_tool(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Call a tool; what goes wrong with it is its result, what is wrong with the request is not."""
        if not isinstance(params.get("name"), str):
            raise RpcError(INVALID_PARAMS, "tools/call needs the name of a tool")
        if not isinstance(params.get("arguments"), (dict, type(None))):
            raise RpcError(INVALID_PARAMS, "the arguments of a tool must be an object")
        try:
            return await self._board.call_tool(params["name"], params, caller)
        except UnknownTool as exc:
            raise RpcError(INVALID_PARAMS, str(exc)) from None
        except ToolFailure as exc:
            return error_result(exc.error)
        finally:
            if caller.started_call is not None and not caller.started_call.is_resumed:
                # Its tool is gone, or not for this client any more.
                caller.started_call.cancel_upstream("cancelled by the client")

    async def notify(self, client: Client, method: str, params: Mapping[str, Any]) -> None:
        """A notification that is for a server."""
        await self._relay.relay_notification(method, params, self.caller(client))

    async def follow(
        self, client: Client, uris: Sequence[str], tell: Callable[[Mapping[str, Any]], None]
    ) -> tuple[list[str], Callable[[], None]]:
        """Have a stream told of changes of these resources; those that can be followed, and what ends it."""
        caller = self.caller(client)
        followed: dict[str, Callable[[], None]] = {}
        over = False

        async def take(uri: str) -> None:
            # What is not acknowledged is not followed: that is how the client learns of it.
            with contextlib.suppress(RpcError, ToolFailure):
                end = await self._relay.subscribe(uri, caller, tell)
                if over:
                    end()
                else:
                    followed[uri] = end

        def release() -> None:
            nonlocal over
            over = True
            for end in followed.values():
                end()

        tasks: list[asyncio.Task[None]] = []
        try:
            for uri in dict.fromkeys(uris):
                tasks.append(asyncio.get_running_loop().create_task(take(uri)))
                if len(tasks) % _AT_A_TIME == 0:
                    await asyncio.sleep(0)
            if tasks:
                await asyncio.wait(tasks, timeout=_FOLLOWING)
        except BaseException:
            release()
            raise
        finally:
            for task in tasks:
                task.cancel()
        return [uri for uri in dict.fromkeys(uris) if uri in followed], release

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """A tool's schema, for the headers that must agree with its arguments."""
        tool = self._board.registry.get(name)
        return None if tool is None else tool.definition["inputSchema"]

    def watch(self, client: Client, kind: str, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a client told when its own view of a kind changes."""

        def notify_client() -> None:
            self._board.metrics.notices += 1
            listener()

        lists = self._board.lists
        if kind == "tools":
            return lists.tools.subscribe(self._sight(client), notify_client)
        notices = lists.prompts if kind == "prompts" else lists.resources
        return notices.subscribe(self._filter(client.address), notify_client)

    def session_began(self, client: Client) -> None:
        """A handshake client can be told things, and asked."""
        if client.session is not None:
            self._relay.sessions.enter(
                ClientSession(
                    client.session,
                    self._filter(client.address),
                    client.channel.notify,
                    _asking(client),
                    client.capabilities,
                )
            )

    async def session_ended(self, client: Client) -> None:
        """Let go of what this session alone had."""
        if client.session is not None:
            await self._board.leave_session(client.session)

    def instructions(self, address: Address) -> str:
        """What a model should know of all this; where every tool is listed, also what their servers say."""
        missing = self._missing(self.address_filter(address))
        return " ".join([*missing, self._instructions(address)])

    def _missing(self, chosen: Filter) -> list[str]:
        """What to say of servers that an address names and that are not there; they may be added later."""
        names = sorted((chosen.servers or frozenset()) - self._board.servers.keys())[:_NAMED]
        if names:
            logger().warning("client.filter.unknown", servers=names)
        close = {name: nearest(name, self._board.servers, 1) for name in names}
        return [
            f'There is no server "{name[:_SHOWN]}" here, which ?server= asks for'
            f"{f'; did you mean {known[0]}?' if known else '.'}"
            for name, known in close.items()
        ]

    def _instructions(self, address: Address) -> str:
        wanted, own = self._filter(address), self._board.registry.static()
        if not wanted.narrows and self._board.lists.searching():
            known = [words for tool, words in _WAYS.items() if tool in own]
            return f"{_JOINED}{', and most of them are not in your list' if known else ''}{''.join(known)}."
        said = [
            f"{name}: {words}"
            for name, words in sorted(self._board.discovery.instructions.items())
            if name in self._board.servers and wanted.admits_server(name)
        ]
        text = "\n\n".join([_LISTED, *said])
        return text if len(text) <= _MAX_INSTRUCTIONS else text[: _MAX_INSTRUCTIONS - 1].rstrip() + "…"

    def capabilities(self, address: Address) -> Mapping[str, Any]:
        """What the servers behind us can do that we only pass on."""
        return self._relay.capabilities(self._filter(address))

    def caller(self, client: Client) -> Caller:
        """The client as the relay knows it."""
        client_session = self._relay.sessions.get(client.session)
        return replace(
            self.silent_caller(client.era, client.session, client.address, client.capabilities, client.principal),
            log_level=self.level(client_session) if client_session is not None else client.log_level,
            on_progress=client.channel.on_progress,
            notify=client.channel.notify,
            ask=_asking(client) if client.era == "handshake" else None,
            started_call=client.started_call,
        )

    def silent_caller(
        self, era: Era, session: str | None, address: Address, capabilities: Mapping[str, Any], principal: str = ""
    ) -> Caller:
        """The same of a request that nothing is said to before its answer."""
        return Caller(
            era=era,
            session=session,
            filter=self._filter(address),
            capabilities=capabilities,
            principal=principal,
            board=_board(address, session),
            workspace=address.query.get("workspace") or None,
            remote=address.remote,
        )

    def _filter(self, address: Address) -> Filter:
        """What the client chose in its address, less what is not for clients that are elsewhere."""
        return self._board.restrict_to_local(self.address_filter(address), remote=address.remote)

    def address_filter(self, address: Address) -> Filter:
        """What an address chooses."""
        return Filter.of(address.query.get("server"), address.query.get("prefix"))

    def _sight(self, client: Client) -> ListKey:
        return ListKey(self._filter(client.address), _board(client.address, client.session))

    def level(self, client_session: ClientSession) -> str | None:
        """From which level on a session hears; one that said nothing hears no more because another one wants it."""
        return client_session.log_level or ("info" if self._relay.server_log_level is not None else None)


def error_result(error: ToolError) -> dict[str, Any]:
    """A failure of Pegboard's own, as the result of a call."""
    text = exactjson.dump(ToolResult[Any].failed(error).to_dict()).decode()
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _asking(client: Client) -> Callable[[str, Mapping[str, Any], OnProgress | None], Any]:
    async def ask(method: str, params: Mapping[str, Any], on_progress: OnProgress | None) -> dict[str, Any]:
        try:
            return await client.channel.ask(method, params, on_progress)
        except Refused as exc:
            raise RpcError(exc.code, exc.message, exc.data) from None

    return ask


def _position(cursor: object, names: Sequence[str]) -> int:
    """Where a page begins: behind the last entry of the one before, wherever that stands by now."""
    if cursor is None:
        return 0
    try:
        number, _, last = base64.urlsafe_b64decode(str(cursor)).decode().partition(" ")
        position = int(number)
    except ValueError:
        raise Refused(INVALID_PARAMS, "Invalid cursor") from None
    return names.index(last) + 1 if last in names else max(position, 0)


def _cursor(position: int, last: str) -> str:
    return base64.urlsafe_b64encode(f"{position} {last}".encode()).decode()


def _board(address: Address, session: str | None) -> str | None:
    """Where the tools are that a client loaded: on the board that it named, or its session's own. In the modern era a
    list depends on what a request carries and on nothing else, so without a board in the address there is none."""
    if address.board is not None:
        return board_key(address.board)
    return session_board_key(session) if session is not None else None


def _request_filter(params: Mapping[str, Any]) -> Filter:
    meta = exactjson.as_object(params.get("_meta")) or {}
    try:
        return Filter.of(meta.get("pegboard/server"), meta.get("pegboard/prefix"))
    except ToolFailure as exc:
        raise Refused(INVALID_PARAMS, f"_meta: {exc}") from None
