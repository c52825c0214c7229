"""The REST route of events: one stream (SSE) of small facts, for pages that show what happens as it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pegboard import exactjson
from pegboard.access.principal import Principal
from pegboard.audit.query import RULE, UNKNOWN
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.event_feed import EventFeed, Fact
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.event_place import FeedPlace, read_place, write_place
from pegboard.gateway.rest.event_sight import OnlookerSight
from pegboard.gateway.rest.operations import plain_operation
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.rows import state_for
from pegboard.listing.view import Filter
from pegboard.version import VERSION

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_EVENT_STREAM = "text/event-stream"
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
# Seconds without a fact after which a comment shows that the stream stands.
_SILENCE = 15.0
# Milliseconds after which a browser comes back.
_RETRY = 2000


class EventStream:
    """What one onlooker is told."""

    def __init__(self, rest: Rest, feed: EventFeed, request: Request) -> None:
        self._rest = rest
        self._feed = feed
        self._principal = endpoint_of(request.scope).principal
        self._wanted: Filter = rest.caller(request).client.filter
        self._known = request.headers.get("last-event-id", "")
        self._at = 0
        self._is_over = False
        self._sight = OnlookerSight(rest.board, rest.caller(request).client)

    async def events(self) -> AsyncGenerator[bytes]:
        """The stream, until its reader goes away or the gateway stops."""
        forget = self._principal.on_end(self._end)
        try:
            async with self._feed.watch(self._principal.id):
                await self._sight.look()
                yield f"retry: {_RETRY}\n".encode()
                yield self._begin()
                while news := await self._wait_for_news():
                    yield news
        finally:
            forget()

    async def _wait_for_news(self) -> bytes:
        """What this reader may know of, or after a silence a comment; nothing at the end. That there was something else
        does not show."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _SILENCE
        while (left := until - loop.time()) > 0:
            if not await self._feed.wait_after(self._at, left) or self._is_over:
                return b""
            if news := await self._news():
                return news
        return b": \n\n"

    def _end(self, _: Principal | None) -> None:
        """Who reads it may have other rights from now on: they come back with those."""
        self._is_over = True
        self._feed.wake()

    def _begin(self) -> bytes:
        """The first event: where the stream stands. Whoever was here a moment ago goes on from there, unless they would
        see something else than then: what they had seen of it is not known any more."""
        known = read_place(self._feed.key, self._known)
        is_resumed = known is not None and known.sight == self._sight.digest
        is_resumed = is_resumed and known is not None and self._feed.since(known.number) is not None
        self._at = known.number if known is not None and is_resumed else self._feed.last
        hello = self._write("hello", {"version": VERSION, "resumed": is_resumed}, self._at)
        # Whoever was here before has missed something, or may have.
        return hello + (self._write("resync", {}, self._at) if self._known and not is_resumed else b"")

    async def _news(self) -> bytes:
        facts, self._at = self._feed.since(self._at), self._feed.last
        if facts is None:
            await self._sight.look()
            return self._write("resync", {}, self._at)
        news = [self._write(fact.kind, self._data(fact), fact.number) for fact in facts if await self._is_news(fact)]
        return b"".join(news)

    async def _is_news(self, fact: Fact) -> bool:
        if not fact.is_for(self._principal, self._wanted):
            return False
        if fact.kind == "tools":
            # That other tools changed is for whoever may see them.
            return await self._sight.has_other_tools()
        return fact.kind != "server" or await self._sight.has_other_server(fact.server or "")

    def _data(self, fact: Fact) -> dict[str, Any]:
        data = dict(fact.data)
        if data.get("outcome") == RULE and not self._principal.admin:
            # Whoever may not see a tool is not told that there is one.
            data["outcome"] = UNKNOWN
        server = self._rest.board.servers.get(fact.server or "")
        if fact.kind == "server" and server is not None and data.get("state") == server.state:
            data["state"] = state_for(self._rest.board, server, self._wanted).value
        return data

    def _write(self, kind: str, data: dict[str, Any], number: int) -> bytes:
        place = f"id: {write_place(self._feed.key, FeedPlace(number, self._sight.digest))}\nevent: {kind}\ndata: "
        return place.encode() + exactjson.dump(data) + b"\n\n"


async def _events(rest: Rest, request: Request) -> Response:
    check_query(request, ())
    if request.method == "HEAD":
        return Response(headers=_HEADERS, media_type=_EVENT_STREAM)
    rest.feed.check_room(endpoint_of(request.scope).principal.id)
    return StreamingResponse(EventStream(rest, rest.feed, request).events(), 200, _HEADERS, _EVENT_STREAM)


ROUTES = (
    ApiRoute(
        "GET",
        "/api/events",
        _events,
        plain_operation("What changes, as it does: a stream of small facts with names and numbers", _EVENT_STREAM),
    ),
)
