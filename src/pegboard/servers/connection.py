"""A connection: a JSON-RPC peer whose era is known, with the standing streams that belong to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from pegboard import exactjson
from pegboard.exactjson import as_object
from pegboard.log import logger
from pegboard.protocol import raw_json
from pegboard.protocol.eras import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    VERSION_KEY,
    modern_params,
)
from pegboard.protocol.headers import parameter_headers, request_headers
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.attribution import attribute
from pegboard.servers.handshake import ServerHello
from pegboard.servers.http.client import NeedsAuth, Unreachable, WrongStatus
from pegboard.servers.jsonrpc import METHOD_NOT_FOUND, AnswerTooLarge, JsonRpcPeer, Message, Params, Pending, RpcError
from pegboard.servers.limit import Limit
from pegboard.servers.pages import MAX_BYTES, Pages
from pegboard.servers.question_owners import InFlight, QuestionOwners
from pegboard.servers.raw_call import RawCall, RawRequest
from pegboard.servers.requester import NoRequester, Requester
from pegboard.servers.transports.sse import SseTransport
from pegboard.servers.transports.streamable_http import StreamableHttpTransport
from pegboard.version import CLIENT_INFO

HEARTBEAT = 15.0
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_HEARTBEAT_LIMIT = 5.0
_RELISTEN_PAUSE = 1.0
_MAX_PAGES = 1000
_PAGE_LIMIT = 30.0
_LIST_LIMIT = 60.0
_STREAM_WORTH_TELLING = 0.5
_LONGEST_PAUSE = 60.0
_MAX_TALKATIVE = 20_000


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything of one kind that a server offers, and for how long it said this holds."""

    items: list[dict[str, Any]]
    ttl: float | None = None
    # How long the first page took, in seconds.
    latency: float | None = None
    # Why the rest of it is left out, if it is.
    cut: str | None = None


class ConnectionListener(Protocol):
    """Who wants to know what a server says outside of any request."""

    def on_list_changed(self) -> None:
        """A list of the server's is another one now, or may be."""
        ...

    def on_resource_updated(self, params: Params) -> None:
        """A resource that was subscribed to has changed."""
        ...

    def on_notification(self, method: str, params: Params, only: str | None) -> None:
        """Something that belongs to no request under way; `only` is the one client that ever made any."""
        ...

    async def on_request(self, method: str, params: Params) -> Message:
        """A question that belongs to no request under way."""
        ...


_LIST_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))


class Connection:
    """One live connection to a server."""

    def __init__(self, peer: JsonRpcPeer, hello: ServerHello, listener: ConnectionListener) -> None:
        self.peer = peer
        self.hello = hello
        self._listener = listener
        self._tasks: set[asyncio.Task[None]] = set()
        self._updates: asyncio.Task[None] | None = None
        self.log_level: str | None = None
        # Tools that say or ask something while they are at it: their calls are not plain.
        self._talkative: set[str] = set()
        self._stamp = {
            VERSION_KEY: raw_json.quote(hello.version),
            CLIENT_INFO_KEY: exactjson.dump(dict(CLIENT_INFO)),
        }
        transport = peer.transport
        # A modern server asks nothing; over HTTP it is told which request a question belongs to.
        streams = isinstance(transport, StreamableHttpTransport)
        self._question_owners = QuestionOwners(
            origins=streams or hello.era == "modern",
            streams=streams,
            drained=lambda: transport.is_drained or peer.lost.done(),
        )
        peer.on_notification, peer.on_request = self._on_notification, self._on_request
        if isinstance(transport, StreamableHttpTransport):
            transport.modern = hello.era == "modern"
            transport.version = None if transport.modern else hello.version
        elif isinstance(transport, SseTransport):
            transport.version = hello.version

    async def begin(self) -> None:
        """Finish the handshake and open the standing streams."""
        on_gap = self._listener.on_list_changed
        if self.hello.era == "modern":
            if wanted := self._list_changes():
                self._spawn(self._listen(wanted, on_gap))
        else:
            await self.peer.notify("notifications/initialized")
            if isinstance(self.peer.transport, StreamableHttpTransport):
                self.peer.transport.listen(on_gap)
        if isinstance(self.peer.transport, StreamableHttpTransport):
            self._spawn(self._heartbeat())

    def offers(self, capability: str, feature: str | None = None) -> bool:
        """Whether the server said that it can do this."""
        declared = self.hello.capabilities.get(capability)
        if feature is None or not isinstance(declared, dict):
            return isinstance(declared, dict)
        return bool(cast("dict[str, Any]", declared).get(feature))

    async def request_for(
        self, requester: Requester, subject: str, method: str, params: Params | None, *, timeout: float, **options: Any
    ) -> Message:
        """Send a request on a client's behalf, which hears and answers what the server says and asks meanwhile."""
        busy = unavailable(f"{self.peer.label} timed out: another client's question held it up for {timeout:g} s")
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with Limit(timeout):
                    in_flight = await stack.enter_async_context(self._question_owners.admit(requester, subject))
            except TimeoutError:
                raise busy from None

            def present(pending: Pending) -> InFlight:
                in_flight.extend = pending.extend
                return in_flight

            try:
                result = await self.request(method, params, timeout=timeout, present=present, **options)
            except RpcError:
                in_flight.answered = True
                raise
            in_flight.answered = True
            return result

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        timeout: float | None,
        on_progress: Callable[[Params], None] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        log_level: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        present: Callable[[Pending], object] | None = None,
        most: int | None = None,
    ) -> Any:
        """Send a request as the server's era wants it; `most` is said in `JsonRpcPeer.request`."""
        if self.hello.era == "handshake":
            return await self.peer.request(
                method, params, timeout=timeout, on_progress=on_progress, present=present, most=most
            )
        version = self.hello.version
        stamped = modern_params(
            params, version=version, client_info=CLIENT_INFO, capabilities=capabilities or {}, log_level=log_level
        )
        headers: dict[str, str] | None = None
        if isinstance(self.peer.transport, StreamableHttpTransport):
            headers = request_headers(version, method, stamped)
            if input_schema is not None:
                headers |= parameter_headers(input_schema, stamped.get("arguments"))
        return await self.peer.request(
            method,
            stamped,
            timeout=timeout,
            headers=headers,
            on_progress=on_progress,
            present=present,
            most=most,
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

    async def notify(self, method: str, params: Params | None, capabilities: Mapping[str, Any] | None = None) -> None:
        """Send a notification as the server's era wants it."""
        if self.hello.era == "handshake":
            await self.peer.notify(method, params)
            return
        version = self.hello.version
        stamped = modern_params(params, version=version, client_info=CLIENT_INFO, capabilities=capabilities or {})
        await self.peer.notify(method, stamped, request_headers(version, method, stamped))

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
            await self._follow(wanted, timeout)

    async def unsubscribe(self, uri: str, wanted: Sequence[str], timeout: float) -> None:
        """Hear no more of a resource; `wanted` are those that are still subscribed to."""
        if self.hello.era == "handshake":
            await self.request("resources/unsubscribe", {"uri": uri}, timeout=timeout)
        else:
            await self._follow(wanted, timeout)

    async def list_all(self, method: str, key: str) -> Listing:
        """Every page of a list, in a limited time."""
        try:
            async with Limit(_LIST_LIMIT):
                return await self._list_all(method, key)
        except TimeoutError:
            raise unavailable(f"{self.peer.label} timed out: no end of {method} within {_LIST_LIMIT:g} s") from None

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
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.peer.close()

    def _list_changes(self) -> dict[str, Any]:
        kinds = ("tools", "prompts", "resources")
        return {f"{kind}ListChanged": True for kind in kinds if self.offers(kind, "listChanged")}

    def _on_notification(self, method: str, params: Params, origin: int | None) -> None:
        if method in _LIST_CHANGES:
            self._listener.on_list_changed()
            return
        if method == "notifications/resources/updated":
            self._listener.on_resource_updated(params)
            return
        in_flight: InFlight | None = self.peer.in_flight(origin)
        if in_flight is None and origin is not None:
            # With a request of our own, or with one that is over: it concerns no client's request.
            if self.peer.waits_for(origin):
                if method != _ACKNOWLEDGED:
                    self._listener.on_notification(method, params, self._question_owners.only)
            else:
                logger().debug("server.said.unattributed", server=self.peer.label, method=method)
            return
        hearer = self._question_owners.listener_of(in_flight)
        if hearer is not None:
            hearer.on_notification(method, params)
        else:
            # It may be about anybody who ever used this connection.
            self._listener.on_notification(method, params, self._question_owners.only)

    async def _on_request(self, method: str, params: Params, origin: int | None) -> Message:
        question = asyncio.current_task()
        assert question is not None
        in_flight: InFlight | None = self.peer.in_flight(origin)
        if in_flight is None and origin is not None:
            raise RpcError(METHOD_NOT_FOUND, f"{method}: no client's request is under way that this could belong to")
        in_flight = await self._question_owners.owner(in_flight, question)
        if in_flight is None:
            return await self._listener.on_request(method, params)
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
            self._spawn(self.peer.notify("notifications/progress", {**params, "progressToken": token}))

        return send_progress

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, wanted: Mapping[str, Any], on_gap: Callable[[], None]) -> None:
        """Keep a `subscriptions/listen` stream open; whenever it had to be opened anew, something may be missed."""
        pause = _RELISTEN_PAUSE
        loop = asyncio.get_running_loop()
        while not self.peer.lost.done():
            opened = loop.time()
            try:
                await self.request("subscriptions/listen", {"notifications": dict(wanted)}, timeout=None)
            except (RpcError, NeedsAuth, WrongStatus) as exc:
                if not (isinstance(exc, WrongStatus) and exc.error.retryable):
                    logger().info("server.listen.refused", server=self.peer.label, reason=self.peer.excerpt(exc))
                    return
            except Unreachable as exc:
                if exc.refused:
                    self.peer.close_with(str(exc))
                    return
            except ToolFailure as exc:
                logger().debug("server.listen.ended", server=self.peer.label, reason=self.peer.excerpt(exc))
            lived = loop.time() - opened > _STREAM_WORTH_TELLING
            pause = _RELISTEN_PAUSE if lived else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)
            if lived:
                on_gap()

    async def _follow(self, uris: Sequence[str], timeout: float) -> None:
        """A stream of updates for these resources in place of the one before, which ends once the new one stands."""
        before = self._updates
        self._updates = await self._open_updates(list(uris), timeout) if uris else None
        if before is not None:
            before.cancel()

    async def _open_updates(self, uris: list[str], timeout: float) -> asyncio.Task[None]:
        acknowledged = _Acknowledged()
        stream = asyncio.get_running_loop().create_task(self._keep_updates(uris, acknowledged))
        self._tasks.add(stream)
        stream.add_done_callback(self._tasks.discard)
        waiting = asyncio.get_running_loop().create_task(acknowledged.event.wait())
        try:
            await asyncio.wait({waiting, stream}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not acknowledged.event.is_set():
                stream.cancel()
        if acknowledged.event.is_set():
            return stream
        if stream.done() and not stream.cancelled() and (exc := stream.exception()) is not None:
            raise exc
        raise unavailable(f"{self.peer.label} timed out: it did not confirm a subscription within {timeout:g} s")

    async def _keep_updates(self, uris: list[str], acknowledged: _Acknowledged) -> None:
        wanted = {"notifications": {"resourceSubscriptions": uris}}
        pause = _RELISTEN_PAUSE
        loop = asyncio.get_running_loop()
        in_flight = InFlight(acknowledged, "subscriptions/listen")
        while not self.peer.lost.done():
            opened = loop.time()
            try:
                await self.request("subscriptions/listen", wanted, timeout=None, present=lambda _, who=in_flight: who)
            except (RpcError, ToolFailure) as exc:
                if not acknowledged.event.is_set():
                    raise
                logger().debug("server.updates.ended", server=self.peer.label, reason=self.peer.excerpt(exc))
            pause = _RELISTEN_PAUSE if loop.time() - opened > _STREAM_WORTH_TELLING else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)
            # What changed meanwhile cannot be had again: whoever wants it has to look, once the stream stands.
            acknowledged.then = lambda: [self._listener.on_resource_updated({"uri": uri}) for uri in uris]

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


class _Acknowledged(NoRequester):
    """Waits for the first frame of a stream of updates."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.then: Callable[[], object] = lambda: None

    def on_notification(self, method: str, params: Params) -> None:
        """The stream stands."""
        del params
        if method == _ACKNOWLEDGED:
            self.event.set()
            self.then()
