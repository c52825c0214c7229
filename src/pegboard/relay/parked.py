"""Parked calls: a handshake server waits for an answer that its client, of the modern era, gives with a later request.

The call goes on here while nobody is connected. What the client holds of it is a sealed token; its retry
brings the answers, picks the call up, and either ends it or parks it again. A call whose client never comes
back ends with its own time limit.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.clients.caller import Caller, question_for
from pegboard.clients.channel import OnProgress
from pegboard.protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params
from pegboard.servers.requester import Requester, inability

MAX_PARKED = 4096
# How long the outcome of a call is kept that came to its end while it was parked.
_KEPT = 60.0
# Questions asked at the same time go out together.
_TOGETHER = 0.05
_MAX_BACKLOG = 256
_MAX_REASONS = 1024
_ASKABLE = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
ROUND_KEYS = frozenset({"inputResponses", "requestState"})

Start = Callable[[Requester, OnProgress | None], Coroutine[Any, Any, Message]]


@dataclass(slots=True)
class _Question:
    method: str
    params: Params
    answer: asyncio.Future[Message]


class _ParkedCall:
    """One call, and the request of its client that waits for it, if one does."""

    def __init__(self, subject: bytes, caller: Caller) -> None:
        self.key = secrets.token_bytes(16)
        self.subject = subject
        self.client_key, self.principal_key = caller.client_key, caller.principal_key
        self.principal_id = caller.principal_id
        # A parked call is in flight for its server, though nobody waits for it here.
        access = caller.client.filter.access
        limits = [] if access is None else [quota.in_flight for quota in access.quotas() if quota.in_flight]
        self.most_parked = min(limits, default=MAX_PARKED)
        self.caller: Caller | None = caller
        self.capabilities = caller.client.capabilities
        self.task: asyncio.Task[Message] | None = None
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._news = asyncio.Event()
        self._backlog: deque[tuple[str, Params]] = deque(maxlen=_MAX_BACKLOG)

    def on_notification(self, method: str, params: Params) -> None:
        """What the server says waits for the next request, if none is there."""
        if self.caller is not None:
            self.caller.on_notification(method, params)
        else:
            self._backlog.append((method, params))

    def forward_progress(self, params: Params) -> None:
        """Progress is news only to a request that is there."""
        if self.caller is not None and self.caller.on_progress is not None:
            self.caller.on_progress(params)

    async def on_request(self, method: str, params: Params, on_progress: OnProgress | None) -> Message:
        """Hold a question until a request of the client answers it."""
        del on_progress
        if method not in _ASKABLE:
            raise RpcError(METHOD_NOT_FOUND, f"a client of 2026-07-28 cannot be asked {method}")
        if refusal := inability(self.capabilities, method, params):
            raise refusal
        self._asked += 1
        key = f"question-{self._asked}"
        question = _Question(
            method, question_for(self.capabilities, params), asyncio.get_running_loop().create_future()
        )
        self._questions[key] = question
        self._news.set()
        try:
            return await question.answer
        finally:
            del self._questions[key]

    def attach(self, caller: Caller, responses: Mapping[str, Any]) -> None:
        """A request of the client is here, with answers."""
        self.caller = caller
        while self._backlog:
            caller.on_notification(*self._backlog.popleft())
        for key, answer in responses.items():
            if key in self._questions and not self._questions[key].answer.done():
                self._questions[key].answer.set_result(answer)

    def open_questions(self) -> dict[str, Any]:
        """What still has to be answered, as the client is asked for it."""
        return {
            key: {"method": question.method, "params": question.params}
            for key, question in self._questions.items()
            if not question.answer.done()
        }

    async def outcome(self) -> Message | None:
        """The call's result, or `None` as soon as it needs an answer."""
        assert self.task is not None
        while not self.task.done():
            if self.open_questions():
                await asyncio.wait({self.task}, timeout=_TOGETHER)
                if self.open_questions() and not self.task.done():
                    return None
                continue
            self._news.clear()
            news = asyncio.get_running_loop().create_task(self._news.wait())
            try:
                await asyncio.wait({self.task, news}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
        return self.task.result()


class ParkedCalls:
    """Every call of a modern client to a handshake server that could ask something."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._calls: OrderedDict[bytes, _ParkedCall] = OrderedDict()
        # How many of them each principal has.
        self._counts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Message]] = set()
        # Why calls ended that nobody waited for, for whoever comes back too late.
        self._reasons: OrderedDict[bytes, tuple[bytes, str]] = OrderedDict()
        self._closed = False
        self._ended: dict[bytes, asyncio.TimerHandle] = {}

    @property
    def count(self) -> int:
        """How many calls are parked."""
        return len(self._calls)

    async def call(self, method: str, params: Params, caller: Caller, start: Start) -> Message:
        """Begin a call, or go on with a parked one; the result, or a wish for input."""
        subject = _subject(method, params, caller.client.sender)
        state = params.get("requestState")
        if state is None:
            call = _ParkedCall(subject, caller)
            progress = call.forward_progress if caller.on_progress is not None else None
            call.task = asyncio.get_running_loop().create_task(start(call, progress))
            self._tasks.add(call.task)
            call.task.add_done_callback(lambda task: self._over(call, task))
        else:
            call = self._resume(state, subject, params, caller)
        return await self._wait(call)

    async def close(self) -> None:
        """Let go of everything."""
        self._closed = True
        for handle in self._ended.values():
            handle.cancel()
        self._calls.clear()
        self._counts.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self, call: _ParkedCall) -> Message:
        assert call.task is not None
        try:
            result = await call.outcome()
        except BaseException:
            # The client has gone away in the middle of a request, or the call failed: it is over.
            call.task.cancel()
            raise
        return self._park(call) if result is None else result

    def _park(self, call: _ParkedCall) -> Message:
        if self._closed and call.task is not None:
            call.task.cancel()
            raise RpcError(INVALID_PARAMS, "the gateway is stopping")
        call.caller = None
        # Each round has a token of its own: one that has been used is worth nothing.
        call.key = secrets.token_bytes(16)
        self._calls[call.key] = call
        self._counts[call.principal_id] += 1
        self._make_room(call)
        return {
            "resultType": "input_required",
            "inputRequests": call.open_questions(),
            "requestState": self._seal(call.key),
        }

    def end_calls_of(self, principals: Collection[str]) -> None:
        """End what is parked for principals that are not let in any more."""
        for call in [each for each in self._calls.values() if each.principal_id in principals]:
            self._drop(call)

    def _make_room(self, newest: _ParkedCall) -> None:
        """End the oldest call of whoever has parked more than it may have in flight, or the most of all: nobody's calls
        go for another's."""
        who = newest.principal_id
        if self._counts[who] > newest.most_parked:
            self._drop(next(call for call in self._calls.values() if call.principal_id == who))
        elif len(self._calls) > MAX_PARKED:
            (most, _), *_ = self._counts.most_common(1)
            self._drop(next(call for call in self._calls.values() if call.principal_id == most))

    def _drop(self, call: _ParkedCall) -> None:
        self._take(call.key)
        if call.task is not None:
            call.task.cancel()

    def _take(self, key: bytes) -> _ParkedCall | None:
        """A parked call, which is not parked any more."""
        call = self._calls.pop(key, None)
        if call is not None:
            self._counts[call.principal_id] -= 1
            if not self._counts[call.principal_id]:
                del self._counts[call.principal_id]
        return call

    def _over(self, call: _ParkedCall, task: asyncio.Task[Message]) -> None:
        """A call ended while its client was away: a result is kept for a while, a failure is forgotten at once."""
        self._tasks.discard(task)
        failed = task.cancelled() or task.exception() is not None
        if call.caller is not None or self._calls.get(call.key) is not call:
            return
        if failed:
            self._take(call.key)
            reason = "it was cancelled" if task.cancelled() else str(task.exception())
            self._reasons[call.key] = (call.subject, reason)
            while len(self._reasons) > _MAX_REASONS:
                self._reasons.popitem(last=False)
            return
        self._ended[call.key] = asyncio.get_running_loop().call_later(_KEPT, self._forget, call.key)

    def _forget(self, key: bytes) -> None:
        self._ended.pop(key, None)
        self._take(key)

    def _resume(self, state: Any, subject: bytes, params: Params, caller: Caller) -> _ParkedCall:
        key = self._unseal(state)
        call = self._calls.get(key)
        if call is None:
            ended = self._reasons.get(key)
            why = f": {ended[1]}" if ended is not None and hmac.compare_digest(ended[0], subject) else ""
            raise RpcError(INVALID_PARAMS, f"requestState: this call is no longer waiting for an answer{why}")
        if not hmac.compare_digest(call.subject, subject):
            raise RpcError(INVALID_PARAMS, "requestState belongs to another request than this one")
        responses = params.get("inputResponses")
        answers = {} if responses is None else exactjson.as_object(responses)
        if answers is None or not all(isinstance(answer, dict) for answer in answers.values()):
            raise RpcError(INVALID_PARAMS, "inputResponses must be an object of objects")
        self._take(key)
        if handle := self._ended.pop(key, None):
            handle.cancel()
        call.attach(caller, answers)
        return call

    def _seal(self, key: bytes) -> str:
        return base64.urlsafe_b64encode(key + self._mac(key)).decode()

    def _unseal(self, state: Any) -> bytes:
        try:
            raw = base64.b64decode(state, altchars=b"-_", validate=True)
        except (ValueError, TypeError):
            raw = b""
        key, seal = raw[:16], raw[16:]
        if not hmac.compare_digest(seal, self._mac(key)):
            raise RpcError(INVALID_PARAMS, "requestState was not issued by this gateway")
        return key

    def _mac(self, key: bytes) -> bytes:
        return hmac.digest(self._secret, key, "sha256")


def _subject(method: str, params: Params, sender: str) -> bytes:
    """What a request asks for, and who asks; a retry has to be the same."""
    asked = {key: value for key, value in params.items() if key not in ROUND_KEYS and key != "_meta"}
    # Not every client keeps the order of an object's keys.
    return hashlib.sha256(f"{method} {sender} {json.dumps(asked, sort_keys=True)}".encode()).digest()
