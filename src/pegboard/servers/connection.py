"""A connection: a JSON-RPC peer whose era is known, with the standing streams that belong to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from pegboard import exactjson
from pegboard.exactjson import as_object
from pegboard.log import logger
from pegboard.protocol import raw_json
from pegboard.protocol.codes import METHOD_NOT_FOUND
from pegboard.protocol.eras import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    VERSION_KEY,
    modern_params,
    severity,
)
from pegboard.protocol.headers import parameter_headers, request_headers
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.attribution import attribute
from pegboard.servers.errors import AnswerTooLarge, ListRefused, RpcError
from pegboard.servers.handshake import ServerHello
from pegboard.servers.http.client import Unreachable, WrongStatus
from pegboard.servers.http.refusal import AccessRefused
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.limit import Limit
from pegboard.servers.listener import ServerListener
from pegboard.servers.message import Message, Params
from pegboard.servers.pages import MAX_BYTES, Pages
from pegboard.servers.question_owners import InFlight, QuestionOwners
from pegboard.servers.raw_call import RawCall, RawRequest
from pegboard.servers.requester import Requester
from pegboard.servers.resource_updates import (
    ACKNOWLEDGED,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    STREAM_WORTH_TELLING,
    ResourceUpdates,
)
from pegboard.task_set import TaskSet
from pegboard.version import CLIENT_INFO

if TYPE_CHECKING:
    from pegboard.servers.server import Server

HEARTBEAT = 15.0
_HEARTBEAT_LIMIT = 5.0
_MAX_PAGES = 1000
_PAGE_LIMIT = 30.0
_LIST_LIMIT = 60.0
_MAX_TALKATIVE = 20_000
_LEVEL_PATIENCE = 1.0
_UNUSED_PAUSE = 0.1
_LIST_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything of one kind that a server offers, and for how long it said this holds."""

    items: list[dict[str, Any]]
    ttl: float | None = None
    # How long the first page took, in seconds.
    latency: float | None = None
    # Why the rest of it is left out, if it is.
    cut: str | None = None


class RequestOptions(TypedDict, total=False):
    """What a request may bring along besides its params."""

    on_progress: Callable[[Params], None] | None
    # What the client can do, which log lines it wants, and the input schema of the tool: for a modern server.
    capabilities: Mapping[str, Any] | None
    log_level: str | None
    input_schema: Mapping[str, Any] | None
    # Whether it was sent once already, and refused because of its credentials.
    is_repetition: bool


class Connection:
    """One live connection to a server."""

    def __init__(
        self, peer: JsonRpcPeer, hello: ServerHello, server: Server, key: str | None, listener: ServerListener
    ) -> None:
        self.peer = peer
        self.hello = hello
        # The shared one (`None`), or somebody's own.
        self.key = key
        self._server, self._listener = server, listener
        # How many requests are under way, and since when it is idle if there are none.
        self.active = 0
        self.opened = self.last_used = asyncio.get_running_loop().time()
        self.idle_timer: asyncio.TimerHandle | None = None
        self._on_gap = partial(listener.on_list_changed, server, key)
        self._tasks = TaskSet()
        on_update = partial(listener.on_resource_updated, server, key)
        self._updates = ResourceUpdates(peer, self._tasks, self.request, on_update)
        self.log_level: str | None = None
        # Tools that say or ask something while they are at it: their calls are not plain.
        self._talkative: set[str] = set()
        self._stamp = {
            VERSION_KEY: raw_json.quote(hello.version),
            CLIENT_INFO_KEY: exactjson.dump(dict(CLIENT_INFO)),
        }
        transport = peer.transport
        # A modern server asks nothing; over HTTP it is told which request a question belongs to.
        self._question_owners = QuestionOwners(
            origins=hello.era == "modern" or not transport.is_duplex,
            streams=not transport.is_duplex,
            drained=lambda: transport.is_drained or peer.lost.done(),
        )
        peer.on_notification, peer.on_request = self._on_notification, self._on_request
        transport.on_negotiated(hello.era, hello.version)

    async def begin(self) -> None:
        """Finish the handshake and open the standing streams."""
        if self.hello.era == "modern":
            if wanted := self._list_changes():
                self._tasks.spawn(self._listen(wanted))
        else:
            await self.peer.notify("notifications/initialized")
            self.peer.transport.listen(self._on_gap)
        if self.peer.transport.needs_heartbeat:
            self._tasks.spawn(self._heartbeat())

    @property
    def is_open(self) -> bool:
        """Whether requests can go over it."""
        return not self.peer.lost.done()

    def offers(self, capability: str, feature: str | None = None) -> bool:
        """Whether the server said that it can do this."""
        declared = self.hello.capabilities.get(capability)
        if feature is None or not isinstance(declared, dict):
            return isinstance(declared, dict)
        return bool(cast("dict[str, Any]", declared).get(feature))

    async def request_for(
        self,
        requester: Requester,
        subject: str,
        method: str,
        params: Params | None,
        timeout: float,
        **options: Unpack[RequestOptions],
    ) -> Message:
        """Send a request on a client's behalf, which hears and answers what the server says and asks meanwhile."""
        busy = unavailable(f"{self.peer.label} timed out: another client's question held it up for {timeout:g} s")
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self._use())
            try:
                async with Limit(timeout):
                    in_flight = await stack.enter_async_context(self._question_owners.admit(requester, subject))
            except TimeoutError:
                raise busy from None
            in_flight.is_repetition = options.get("is_repetition", False)
            try:
                result = await self.request(method, params, timeout=timeout, in_flight=in_flight, **options)
            except RpcError:
                in_flight.answered = True
                raise
            in_flight.answered = True
            return result

    @contextlib.contextmanager
    def _use(self) -> Generator[None]:
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            self.last_used = asyncio.get_running_loop().time()

    async def wait_unused(self) -> None:
        """Wait until nothing is under way on it."""
        while self.active and self.is_open:
            await asyncio.sleep(_UNUSED_PAUSE)

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        timeout: float | None,
        in_flight: InFlight | None = None,
        most: int | None = None,
        **options: Unpack[RequestOptions],
    ) -> Any:
        """Send a request as the server's era wants it; `most` is said in `JsonRpcPeer.request`."""
        headers: dict[str, str] | None = None
        if self.hello.era == "modern":
            params = self._stamp_params(params, options.get("capabilities"), options.get("log_level"))
            if self.peer.transport.takes_headers:
                headers = request_headers(self.hello.version, method, params)
                if (input_schema := options.get("input_schema")) is not None:
                    headers |= parameter_headers(input_schema, params.get("arguments"))
        on_progress = options.get("on_progress")
        return await self.peer.request(
            method, params, timeout=timeout, headers=headers, on_progress=on_progress, in_flight=in_flight, most=most
        )

    def _stamp_params(
        self, params: Params | None, capabilities: Mapping[str, Any] | None = None, log_level: str | None = None
    ) -> dict[str, Any]:
        """The params with what every message of the modern era says of its sender."""
        return modern_params(
            params,
            version=self.hello.version,
            client_info=CLIENT_INFO,
            capabilities=capabilities or {},
            log_level=log_level,
        )

    def start(self, call: RawCall, asked: RawRequest, timeout: float) -> bool:
        """Send a plain call at once, as the server's era wants it; false where it has to take the full path."""
        transport, subject = self.peer.transport, f"tools/call {asked.tool}"
        if not transport.is_ready or subject in self._talkative:
            return False
        in_flight = self._question_owners.admit_now(call, subject)
        if in_flight is None:
            return False
        era = self.hello.era
        number = call.begin(
            self.peer, self._question_owners, in_flight, timeout, era, lambda: self._mark_talkative(subject)
        )
        modern = era == "modern"
        meta = self._modern_meta(asked) if modern else asked.meta
        text = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%b%b%b}}' % (
            number,
            raw_json.quote(asked.tool),
            b"" if asked.arguments is None else b',"arguments":' + asked.arguments,
            b"" if meta is None else b',"_meta":' + meta,
        )
        transport.send_raw(number, text, asked.tool if modern else None)
        return True

    def _mark_talkative(self, subject: str) -> None:
        """A call was not plain after all: the next ones of its kind take the full path at once."""
        if len(self._talkative) < _MAX_TALKATIVE:
            self._talkative.add(subject)

    def _modern_meta(self, asked: RawRequest) -> bytes | None:
        """The `_meta` that every request of the modern era carries."""
        own = {**self._stamp, CLIENT_CAPABILITIES_KEY: asked.capabilities}
        if asked.log_level is not None:
            own[LOG_LEVEL_KEY] = raw_json.quote(asked.log_level)
        return raw_json.join({**(raw_json.members(asked.meta) or {}), **own} if asked.meta is not None else own)

    async def notify(self, method: str, params: Params | None) -> None:
        """Send a notification as the server's era wants it."""
        headers: dict[str, str] | None = None
        if self.hello.era == "modern":
            params = self._stamp_params(params)
            headers = request_headers(self.hello.version, method, params)
        await self.peer.notify(method, params, headers)

    def is_quieter_than(self, level: str) -> bool:
        """Whether the server has to be told that somebody wants log lines from this level on; a modern one is told
        with each request."""
        if self.hello.era == "modern":
            return False
        return self.log_level is None or severity(level) < severity(self.log_level)

    async def heed_level(self, level: str, timeout: float) -> None:
        """A request wants log lines from this level on; a server that says less has to be told."""
        if self.is_quieter_than(level):
            # One that does not answer this must not keep calls waiting.
            await asyncio.wait({self._tasks.spawn(self.want_level(level, timeout))}, timeout=_LEVEL_PATIENCE)

    async def want_level(self, level: str, timeout: float) -> None:
        """Have the server log from this level on, if it has to be told."""
        if self.hello.era != "handshake" or not self.offers("logging") or self.log_level == level:
            return
        self.log_level = level
        try:
            await self.request("logging/setLevel", {"level": level}, timeout=timeout)
        except (RpcError, ToolFailure) as exc:
            logger().info("server.level.refused", server=self.peer.label, wanted=level, reason=self.peer.excerpt(exc))

    async def subscribe(self, uri: str, wanted: Sequence[str], timeout: float) -> None:
        """Hear of changes of a resource; `wanted` are all that are subscribed to now."""
        if not self.offers("resources", "subscribe"):
            raise RpcError(METHOD_NOT_FOUND, f"{self.peer.label} does not support subscriptions to resources")
        if self.hello.era == "handshake":
            await self.request("resources/subscribe", {"uri": uri}, timeout=timeout)
        else:
            await self._updates.follow(wanted, timeout)

    async def unsubscribe(self, uri: str, wanted: Sequence[str], timeout: float) -> None:
        """Hear no more of a resource; `wanted` are those that are still subscribed to."""
        if self.hello.era == "handshake":
            await self.request("resources/unsubscribe", {"uri": uri}, timeout=timeout)
        else:
            await self._updates.follow(wanted, timeout)

    @property
    def has_no_tools(self) -> bool:
        """Whether the server has something else to offer, and said so."""
        return not self.offers("tools") and (self.offers("prompts") or self.offers("resources"))

    async def list_all(self, method: str, key: str) -> Listing:
        """Every page of a list, in a limited time."""
        label = self.peer.label
        # It is not closed meanwhile; but a look at a list is no use that would keep it from idling.
        self.active += 1
        try:
            async with Limit(_LIST_LIMIT):
                return await self._list_all(method, key)
        except TimeoutError:
            raise unavailable(f"{label} timed out: no end of {method} within {_LIST_LIMIT:g} s") from None
        except RpcError as exc:
            raise exc.refusal or ListRefused(f"{label} answered {method} with error {exc.code}: {exc}") from None
        finally:
            self.active -= 1

    async def _list_all(self, method: str, key: str) -> Listing:
        pages = Pages(self.peer.label, method, key)
        params: dict[str, Any] = {}
        latency: float | None = None
        started = asyncio.get_running_loop().time()
        for _ in range(_MAX_PAGES):
            try:
                answer = await self.request(method, params or None, timeout=_PAGE_LIMIT, most=MAX_BYTES)
            except AnswerTooLarge:
                pages.end_large()
                break
            latency = latency or asyncio.get_running_loop().time() - started
            cursor = await pages.add(answer)
            if cursor is None:
                break
            params = {"cursor": cursor}
        else:
            raise pages.endless()
        return Listing(pages.items, pages.ttl, latency, pages.cut)

    async def close(self) -> None:
        """End the standing streams and the conversation."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        await self._tasks.close()
        await self.peer.close()

    def _list_changes(self) -> dict[str, Any]:
        kinds = ("tools", "prompts", "resources")
        return {f"{kind}ListChanged": True for kind in kinds if self.offers(kind, "listChanged")}

    def _on_notification(self, method: str, params: Params, origin: int | None) -> None:
        if method in _LIST_CHANGES:
            self._listener.on_list_changed(self._server, self.key)
            return
        if method == "notifications/resources/updated":
            self._listener.on_resource_updated(self._server, self.key, params)
            return
        in_flight = self.peer.in_flight(origin)
        if in_flight is None and origin is not None:
            # With a request of our own, or with one that is over: it concerns no client's request.
            if self.peer.waits_for(origin):
                if method != ACKNOWLEDGED:
                    self._pass_on(method, params)
            else:
                logger().debug("server.said.unattributed", server=self.peer.label, method=method)
            return
        hearer = self._question_owners.listener_of(in_flight)
        if hearer is not None:
            hearer.on_notification(method, params)
        else:
            # It may be about anybody who ever used this connection.
            self._pass_on(method, params)

    def _pass_on(self, method: str, params: Params) -> None:
        self._listener.on_notification(self._server, self.key, method, params, self._question_owners.only)

    async def _on_request(self, method: str, params: Params, origin: int | None) -> Message:
        question = asyncio.current_task()
        assert question is not None
        in_flight = self.peer.in_flight(origin)
        if in_flight is None and origin is not None:
            raise RpcError(METHOD_NOT_FOUND, f"{method}: no client's request is under way that this could belong to")
        in_flight = await self._question_owners.owner(in_flight, question)
        if in_flight is None:
            return await self._listener.on_request(self._server, self.key, method, params)
        # Whoever answers has the call's whole time limit for it, and the server has it again afterwards.
        self._question_owners.extend(question)
        token = (as_object(params.get("_meta")) or {}).get("progressToken")
        try:
            asked = attribute(method, params, self.peer.label)
            return await in_flight.requester.on_request(method, asked, self._progress_of(token))
        finally:
            self._question_owners.extend(question)
            self._question_owners.close_question(question)

    def _progress_of(self, token: object) -> Callable[[Params], None] | None:
        """Carries a client's progress with a question to the server that asked."""
        if token is None:
            return None

        def send_progress(params: Params) -> None:
            self._tasks.spawn(self.peer.notify("notifications/progress", {**params, "progressToken": token}))

        return send_progress

    async def _listen(self, wanted: Mapping[str, Any]) -> None:
        """Keep a `subscriptions/listen` stream open; whenever it had to be opened anew, something may be missed."""
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while not self.peer.lost.done():
            opened = loop.time()
            try:
                await self.request("subscriptions/listen", {"notifications": dict(wanted)}, timeout=None)
            except (RpcError, AccessRefused, WrongStatus) as exc:
                if not (isinstance(exc, WrongStatus) and exc.error.retryable):
                    logger().info("server.listen.refused", server=self.peer.label, reason=self.peer.excerpt(exc))
                    return
            except Unreachable as exc:
                if exc.refused:
                    self.peer.close_with(str(exc))
                    return
            except ToolFailure as exc:
                logger().debug("server.listen.ended", server=self.peer.label, reason=self.peer.excerpt(exc))
            lived = loop.time() - opened > STREAM_WORTH_TELLING
            pause = FIRST_PAUSE if lived else min(pause * 2, LONGEST_PAUSE)
            await asyncio.sleep(pause)
            if lived:
                self._on_gap()

    async def _heartbeat(self) -> None:
        """An address has no connection that could break, so it is asked now and then whether it is still there."""
        method = "ping" if self.hello.era == "handshake" else "server/discover"
        while not self.peer.lost.done():
            await asyncio.sleep(HEARTBEAT)
            try:
                await self.request(method, None, timeout=_HEARTBEAT_LIMIT)
            except Unreachable as exc:
                self.peer.close_with(str(exc))
            except (ToolFailure, RpcError) as exc:
                # It answered, or is slow: it is there.
                logger().debug("server.heartbeat.odd", server=self.peer.label, reason=self.peer.excerpt(exc))
