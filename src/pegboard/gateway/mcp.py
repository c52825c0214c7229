"""What a client asks over MCP, answered by the board."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from pegboard import exactjson
from pegboard.access.principal import LOCAL
from pegboard.audit.audit import acting_principal
from pegboard.audit.composer import network_class
from pegboard.audit.request_record import RequestRecord
from pegboard.board import Board
from pegboard.catalog.starting import STARTING_KEY, starting_text
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.gateway.sign_in_offers import SignInOffers
from pegboard.listing.view import Filter
from pegboard.log import logger
from pegboard.names import nearest
from pegboard.protocol.codes import INVALID_PARAMS, RESOURCE_NOT_FOUND, SERVER_ERROR
from pegboard.protocol.eras import LOG_LEVELS
from pegboard.resolver import UnknownTool
from pegboard.result import ToolError, ToolErrorCode, ToolFailure, ToolResult
from pegboard.results.keeper import URI
from pegboard.results.results import is_result_uri
from pegboard.servers.errors import RpcError
from pegboard.text import truncate

PAGE = 1000
_FOLLOWING = 3.0
# So many resources are subscribed to before everybody else has a turn.
_AT_A_TIME = 32
_KINDS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "templates"}
_FIELDS = {"prompts": "prompts", "resources": "resources", "templates": "resourceTemplates"}
_MAX_INSTRUCTIONS = 4000
# Of so many servers that are not there it is said, with so much of their names.
_NAMED, _SHOWN = 5, 80
_JOINED = "Pegboard joins the tools of many MCP servers"
_LISTED = f"""{_JOINED}; a tool's name tells its server (server__tool). \
The list changes while servers come and go, so call a tool by the name that the list gives it now."""
# What is not in the list, where nothing but what was chosen is in it, and where all tools of servers are.
_MOST_UNLISTED = f"{_JOINED}, and most of them are not in your list"
_OWN_UNLISTED = f"{_JOINED}, and its own tools (%s) are not in your list"
# How to get at the others, as far as there are the tools for it, for clients with a board and without.
_WAYS = {
    "tool_find": ": find what you need with tool_find",
    "tool_load": ". Then tool_load puts tools into your list",
    "tool_call": ", or tool_call calls one at once",
}
_BOARDLESS_WAYS = {
    **_WAYS,
    "tool_load": ". Then tool_load gives their full schemas",
    "tool_call": ", and tool_call calls one",
}


class McpHandlers:
    """The board behind the protocol."""

    def __init__(self, board: Board, offers: SignInOffers | None = None) -> None:
        self._board = board
        self._relay = board.relay
        # Where there is a page at which users sign in to servers.
        self._offers = offers

    async def list(self, client: Client, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The client's view of one kind, narrowed by the filters of this request."""
        wanted = client.filter.within(_request_filter(params))
        cursor = params.get("cursor")
        if method == "tools/list":
            if cursor is not None:
                raise RpcError(INVALID_PARAMS, "Invalid cursor: the whole list is on one page")
            view = await self._board.list_tools(replace(client.list_key, filter=wanted), is_check=client.is_check)
            tools = view.definitions if client.era == "modern" else view.handshake_definitions
            starting = self._board.list_starting(wanted)
            return {"tools": tools, **({"_meta": {STARTING_KEY: starting}} if starting else {})}
        kind = _KINDS[method]
        entries = (await self._board.list_entries(kind, wanted)).items
        start = _position(cursor, [entry.name for entry in entries])
        page = entries[start : start + PAGE]
        listed: dict[str, Any] = {_FIELDS[kind]: [entry.definition for entry in page]}
        if start + PAGE < len(entries):
            listed["nextCursor"] = _cursor(start + PAGE, page[-1].name)
        return listed

    async def answer(self, caller: Caller, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Relay a request; a server's error is an error, and so is a failure of our own, except a tool's."""
        try:
            if method == "tools/call":
                return await self.call_tool(params, caller)
            return await self._answer(method, params, caller)
        except ToolFailure as exc:
            error = self._board.sign_in_advice.reword(exc, caller.client).error
            raise RpcError(SERVER_ERROR, error.message, error.to_dict()) from None

    async def _answer(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        match method:
            case "prompts/get":
                return await self._relay.get_prompt(params, caller)
            case "resources/read" if is_result_uri(params.get("uri")):
                return await self._read_result(str(params["uri"]), caller)
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
                await self._relay.set_level(caller, params["level"])
            case _:
                return await self._relay.pass_on(method, params, caller)
        return {}

    async def _read_result(self, uri: str, caller: Caller) -> dict[str, Any]:
        """A result that was too large for whoever asks, whole; somebody else's is not there."""
        async with RequestRecord(self._board.audit, "resource", caller.client) as record:
            record.target = URI + "…"
            try:
                return await self._board.results.read_resource(uri, caller)
            except ToolFailure as exc:
                if exc.error.code is not ToolErrorCode.NOT_FOUND:
                    raise
                code = RESOURCE_NOT_FOUND if caller.client.era == "handshake" else INVALID_PARAMS
                raise RpcError(code, f"Resource not found: {exc}", {"uri": uri}) from None

    async def call_tool(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Call a tool; what goes wrong with it is its result, what is wrong with the request is not."""
        if not isinstance(params.get("name"), str):
            raise RpcError(INVALID_PARAMS, "tools/call needs the name of a tool")
        if not isinstance(params.get("arguments"), (dict, type(None))):
            raise RpcError(INVALID_PARAMS, "the arguments of a tool must be an object")
        try:
            if self._offers is not None:
                params = await self._offers.resume(params, caller)
            return await self._board.calls.call(params["name"], params, caller)
        except UnknownTool as exc:
            raise RpcError(INVALID_PARAMS, str(exc)) from None
        except ToolFailure as exc:
            offer = None if self._offers is None else self._offers.answer(exc, caller)
            return error_result(exc.error) if offer is None else offer
        finally:
            if caller.started_call is not None and not caller.started_call.is_resumed:
                # Its tool is gone, or not for this client any more.
                caller.started_call.cancel_upstream("cancelled by the client")

    async def notify(self, caller: Caller, method: str, params: Mapping[str, Any]) -> None:
        """A notification that is for a server."""
        await self._relay.relay_notification(method, params, caller)

    async def follow(
        self, caller: Caller, uris: Sequence[str], tell: Callable[[Mapping[str, Any]], None]
    ) -> tuple[list[str], Callable[[], None]]:
        """Have a stream told of changes of these resources; those that can be followed, and what ends it."""
        followed: dict[str, Callable[[], None]] = {}
        over, turn = False, _turns_of(caller)

        async def take(uri: str) -> None:
            # What is not acknowledged is not followed: that is how the client learns of it.
            with contextlib.suppress(RpcError, ToolFailure):
                async with turn:
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
        # The SDK does not say for whom. What a rule hides is not there.
        principal = acting_principal.get() or LOCAL
        tool = self._board.gate.tool(name, Filter(access=principal.access))
        return None if tool is None else tool.definition["inputSchema"]

    def watch(self, client: Client, kind: str, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a client told when its own view of a kind changes."""

        def notify_client() -> None:
            self._board.metrics.notices += 1
            listener()

        lists = self._board.lists
        if kind == "tools":
            return lists.tools.subscribe(client.list_key, notify_client)
        notices = lists.prompts if kind == "prompts" else lists.resources
        return notices.subscribe(client.filter, notify_client)

    def session_began(self, client: Client) -> None:
        """A handshake client can be notified, and asked."""
        self._relay.sessions.enter(client)
        self._note_session("session.started", client)

    def session_bound(self, client: Client) -> None:
        """Other rules hold for a session."""
        self._relay.session_subscriptions.drop_hidden(client)

    async def session_ended(self, client: Client) -> None:
        """Let go of what this session alone had."""
        if client.session is not None:
            self._note_session("session.ended", client)
            await self._board.leave_session(client.session)

    def _note_session(self, kind: str, client: Client) -> None:
        network = network_class(client.endpoint)
        name = f"{client.name}/{client.version}" if client.version else client.name
        self._board.audit.note(kind, client.principal, client=name, session=client.session or "", network=network)

    def log_level(self, client: Client) -> str | None:
        """From which level on a session is sent log lines."""
        return self._relay.sessions.level_of(client)

    def instructions(self, client: Client) -> str:
        """What a model should know of all this; where every tool is listed, also what their servers say."""
        starting = self._board.list_starting(client.filter)
        said = [*self._missing(client.filter), self._instructions(client)]
        return " ".join([*said, starting_text(starting)] if starting else said)

    def _missing(self, chosen: Filter) -> list[str]:
        """What to say of servers that an address names and that are not there; they may be added later."""
        known = [name for name in self._board.servers if chosen.access is None or chosen.access.admits_server(name)]
        names = sorted((chosen.servers or frozenset()) - set(known))[:_NAMED]
        if names:
            logger().warning("client.filter.unknown", servers=names)
        close = {name: nearest(name, known, 1) for name in names}
        return [
            f'There is no server "{name[:_SHOWN]}" here, which ?server= asks for'
            f"{f'; did you mean {known[0]}?' if known else '.'}"
            for name, known in close.items()
        ]

    def _instructions(self, client: Client) -> str:
        scope, own = self._board.lists.scope(client.list_key), self._board.registry.static()
        if scope == "chosen" or (scope == "servers" and self._toolsets(client.filter)):
            ways = _WAYS if client.board is not None else _BOARDLESS_WAYS
            known = [words for tool, words in ways.items() if tool in own]
            toolsets = self._toolsets(client.filter)
            beginning = _MOST_UNLISTED if scope == "chosen" else _OWN_UNLISTED % ", ".join(toolsets)
            return f"{beginning if known else _JOINED}{''.join(known)}."
        said = [
            f"{name}: {words}"
            for name, words in sorted(self._board.discovery.instructions.items())
            if name in self._board.servers
            and client.filter.admits_resources(name)
            and client.filter.knows_whole_server(name)
        ]
        return truncate("\n\n".join([_LISTED, *said]), _MAX_INSTRUCTIONS)

    def _toolsets(self, wanted: Filter) -> list[str]:
        """Pegboard's own toolsets that a client has, save the one that finds tools."""
        own = [name for name in self._board.settings.toolsets if name != "discovery"]
        return [name for name in own if wanted.access is None or wanted.access.admits_toolset(name)]

    def capabilities(self, client: Client) -> Mapping[str, Any]:
        """What the servers behind us can do that we only pass on."""
        return self._relay.capabilities(client.filter)


def _turns_of(caller: Caller) -> AbstractAsyncContextManager[Any]:
    """One resource after the other for whoever has limits: all at once they would take each other's places."""
    access = caller.client.principal.access
    return asyncio.Lock() if access is not None and access.limits_calls else contextlib.nullcontext()


def error_result(error: ToolError) -> dict[str, Any]:
    """A failure of Pegboard's own, as the result of a call."""
    text = exactjson.dump(ToolResult[Any].failed(error).to_dict()).decode()
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _position(cursor: object, names: Sequence[str]) -> int:
    """Where a page begins: behind the last entry of the one before, wherever that stands by now."""
    if cursor is None:
        return 0
    try:
        number, _, last = base64.urlsafe_b64decode(str(cursor)).decode().partition(" ")
        position = int(number)
    except ValueError:
        raise RpcError(INVALID_PARAMS, "Invalid cursor") from None
    return names.index(last) + 1 if last in names else max(position, 0)


def _cursor(position: int, last: str) -> str:
    return base64.urlsafe_b64encode(f"{position} {last}".encode()).decode()


def _request_filter(params: Mapping[str, Any]) -> Filter:
    meta = exactjson.as_object(params.get("_meta")) or {}
    try:
        return Filter.of(meta.get("pegboard/server"), meta.get("pegboard/prefix"))
    except ToolFailure as exc:
        raise RpcError(INVALID_PARAMS, f"_meta: {exc}") from None
