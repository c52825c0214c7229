"""An event store per session, so that a client can resume a response stream where it broke off."""

from itertools import count
from typing import NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage


class StoredEvent(NamedTuple):
    number: int
    stream_id: str
    message: JSONRPCMessage | None


class MemoryEventStore(EventStore):
    def __init__(self) -> None:
        self._numbers = count(1)
        self._events: list[StoredEvent] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        event = StoredEvent(next(self._numbers), stream_id, message)
        self._events.append(event)
        return str(event.number)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = next((event for event in self._events if str(event.number) == last_event_id), None)
        if last is None:
            return None
        missed = [event for event in self._events if event.number > last.number and event.stream_id == last.stream_id]
        for event in missed:
            # A priming event carries no message: it only marks where a stream begins.
            if event.message is not None:
                await send_callback(EventMessage(event.message, str(event.number)))
        return last.stream_id


class ResumableSessions(StreamableHTTPSessionManager):
    """Gives every session its own store.

    The SDK shares one store among all sessions and names streams by request id alone, so a shared store
    would replay one client's events to another that happens to count its requests alike.
    """

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        self.event_store = MemoryEventStore()
        return super()._admit_session(requestor)
