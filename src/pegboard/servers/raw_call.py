"""A raw call: a request that is expected to be answered soon, and with nothing but a result.

It goes to its server as bytes and its result comes back as bytes. Should it turn out otherwise (the server says or
asks something meanwhile, or takes its time), a requester that can deal with that takes it over, and it goes on as any
other call: what was said so far is passed on, what was asked is put, and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.access.limits import Slot
from pegboard.pace import Pace
from pegboard.protocol.eras import Era
from pegboard.protocol.raw_json import Part
from pegboard.protocol.weight import MAX_WEIGHT, weight
from pegboard.result import unavailable
from pegboard.servers.errors import RpcError, unusable_answer
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Message, Params
from pegboard.servers.pending import Pending
from pegboard.servers.question_owners import InFlight, QuestionOwners
from pegboard.servers.requester import Requester

_LOG_LINE = "notifications/message"
# How long a call that is released may take to be resumed: the SDK may have to be loaded for it.
_ORPHANED = 30.0
_MAX_SAID = 1024


def _do_nothing() -> None:
    """Nobody has to know."""


class NotPlain(Exception):  # noqa: N818  it says what became of the call
    """The call is not plain after all."""


class CallCancelled(Exception):  # noqa: N818  it says what became of the call
    """The client took the call back."""


@dataclass(frozen=True, slots=True)
class RawRequest:
    """What a call consists of: the tool by its server's own name, and the rest as the bytes that the client sent."""

    tool: str
    arguments: bytes | None
    # The client's `_meta` without what belongs to its own hop, and what it can do.
    meta: bytes | None
    capabilities: bytes
    # From which level on the client is told what the server logs; a modern server has to hear it with each request.
    log_level: str | None = None


class RawCall:
    """One such call, and the requester it is made for until another one resumes it."""

    peer: JsonRpcPeer
    _question_owners: QuestionOwners
    _in_flight: InFlight
    _pending: Pending
    # What the fast path waits for: the result, or that the call has turned.
    _soon: asyncio.Future[Any]
    _number: int
    _on_talk: Callable[[], None]
    # Of its server, as it was when the call was sent.
    era: Era
    began: float
    _loop: asyncio.AbstractEventLoop
    _timer: asyncio.TimerHandle

    def __init__(self, identity: str, kin: str, *, patience: float, hears_log: bool, principal_id: str = "") -> None:
        self.client_key, self.principal_key, self.principal_id = identity, kin, principal_id
        # How long it may take before it counts as no plain one any more.
        self._patience = patience
        # Whether the client is told what servers log.
        self._wants_log = hears_log
        self._on_end: Callable[[], None] = _do_nothing
        # Its place within the limits of its principal, until it is over or somebody goes on with it.
        self._slot: Slot | None = None
        self._is_not_plain = self._over = False
        # Whether it ended with an answer.
        self.is_answered = False
        # Whether the client has taken it back.
        self.is_cancelled = False
        self._requester: Requester | None = None
        self._resumed: asyncio.Future[None] | None = None
        # What the server said so far, which is not all if that is too much.
        self._notifications: list[tuple[str, Params]] = []
        self._weight = 0

    def begin(
        self,
        peer: JsonRpcPeer,
        question_owners: QuestionOwners,
        in_flight: InFlight,
        timeout: float,
        era: Era,
        on_talk: Callable[[], None],
    ) -> int:
        """Take a place among the open requests of a connection; the number of it. `on_talk` is told if the server
        has something to say or to ask before its answer."""
        self.peer, self._question_owners, self._in_flight, self._on_talk = peer, question_owners, in_flight, on_talk
        self.era = era
        # Of the peer: asking for the running loop is a system call in Python 3.11.
        self._loop, self.began = peer.loop, peer.loop.time()
        self._number, self._pending = peer.open(timeout, in_flight=in_flight, verbatim=True)
        self._soon = self._pending.future
        # From here on it ends by itself, even if whoever began it never comes to wait for it.
        self._timer = self._loop.call_later(min(self._patience, timeout), self._took_too_long)
        return self._number

    @property
    def age(self) -> float:
        """For how long it has been under way."""
        return self._loop.time() - self.began

    def on_end(self, told: Callable[[], None]) -> None:
        """Who has to know when it is over."""
        self._on_end = told

    def hold(self, slot: Slot) -> None:
        """Have its place until it is over."""
        self._slot = slot

    def take_slot(self) -> Slot | None:
        """Its place, for whoever goes on with it: a server that wants input is called again after this."""
        slot, self._slot = self._slot, None
        return slot

    async def result(self) -> Part | Message:
        """The result, if it comes soon and alone; raises `NotPlain`, `CallCancelled`, or what went wrong."""
        try:
            return await self._soon
        except asyncio.CancelledError:
            self.cancel_upstream("cancelled by the client")
            raise

    def release(self, on_orphaned: Callable[[], None] = _do_nothing) -> None:
        """Somebody is to resume it; should nobody come, it is cancelled, and `on_orphaned` is told."""
        self._timer.cancel()
        if self._requester is None and not self._over:
            self._timer = self._loop.call_later(_ORPHANED, self._abandon, on_orphaned)

    @property
    def is_resumed(self) -> bool:
        """Whether somebody goes on with it."""
        return self._requester is not None

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._over

    def end(self, *, answered: bool = True) -> None:
        """It is over; nobody waits for it any more. A second time changes nothing."""
        if not self._over:
            self.peer.finish(self._number, self._pending)
            self._leave(answered=answered)

    def cancel(self) -> None:
        """The client cancels it; if it has just proved not to be plain, whoever waited for it finds that out next."""
        self.is_cancelled = True
        if not self._is_not_plain and not self._pending.future.done():
            self._pending.future.set_exception(CallCancelled())

    def cancel_upstream(self, reason: str) -> None:
        """Tell the server that nobody waits any more, and end it."""
        if not self._over:
            self.peer.transport.cancel(self._number, reason)
            self.end(answered=False)

    async def resume_as(self, requester: Requester) -> Message:
        """Go on with it on behalf of somebody who can hear and be asked; its result, or what went wrong."""
        if self._over:
            raise unavailable(f"{self.peer.label}: the call was cancelled before it was answered", retryable=False)
        self._timer.cancel()
        self._requester = requester
        if self._resumed is not None:
            self._resumed.set_result(None)
        for said in self._notifications:
            requester.on_notification(*said)
        left = None
        if self._pending.timeout is not None:
            # What it took beyond that was our own doing: a busy loop, or the SDK that had to be loaded.
            spent = min(self._loop.time() - self.began, self._patience)
            left = max(self._pending.timeout - spent, 0.0)
        answered = True
        try:
            return await self._read(await self.peer.outcome(self._number, self._pending, "tools/call", left))
        except RpcError:
            raise
        except BaseException:
            answered = False
            raise
        finally:
            self._leave(answered=answered)
            # What says that it is no plain call has this call in its traceback: the answer, which may be large, would
            # stay until garbage is collected.
            self._soon = self._pending.future = self._loop.create_future()

    def on_notification(self, method: str, params: Params) -> None:
        """The server says something: then this is no plain call."""
        if self._requester is not None:
            self._requester.on_notification(method, params)
        elif self._wants_log or method != _LOG_LINE:
            self._weight += weight(params)
            if len(self._notifications) < _MAX_SAID and self._weight <= MAX_WEIGHT:
                self._notifications.append((method, params))
            self._on_talk()
            self._stop_waiting()

    async def on_request(self, method: str, params: Params, on_progress: Callable[[Params], None] | None) -> Message:
        """The server asks something: it is put to whoever resumes the call."""
        if self._requester is None:
            self._on_talk()
            self._resumed = self._resumed or self._loop.create_future()
            self._stop_waiting()
            await asyncio.wait({self._resumed})
            assert self._requester is not None
        return await self._requester.on_request(method, params, on_progress)

    def _stop_waiting(self) -> None:
        """Have whoever waits for the result stop waiting; the answer will be another's."""
        if not self._is_not_plain and not self._pending.future.done():
            self._is_not_plain = True
            self._pending.future = self._loop.create_future()
            self._soon.set_exception(NotPlain())
            # Perhaps nobody waits, which is no fault that asyncio should report.
            self._soon.exception()

    def _abandon(self, on_orphaned: Callable[[], None]) -> None:
        self.cancel_upstream("cancelled by the client")
        on_orphaned()

    def _took_too_long(self) -> None:
        self._stop_waiting()
        self.release()

    def _leave(self, *, answered: bool) -> None:
        self._over = True
        self._timer.cancel()
        self._in_flight.answered = self.is_answered = answered
        self._question_owners.leave(self._in_flight)
        if self._slot is not None:
            self._slot.release()
        self._on_end()
        # It refers to itself through these: it would be left to the garbage collector, thousands of times a second.
        self._on_end = self._on_talk = self._in_flight.extend = _do_nothing
        self._pending.in_flight = None
        del self._in_flight

    async def _read(self, result: Part | Message) -> Message:
        if isinstance(result, dict):
            return result
        try:
            value = exactjson.as_object(await Pace().outcome(exactjson.parse_in_steps(bytes(result))))
        except exactjson.NotJson as exc:
            raise unusable_answer(self.peer.label, f"not valid JSON ({exc})") from None
        # Only what begins as an object is taken for a result.
        assert value is not None
        return value
