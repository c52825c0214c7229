"""HTTP bodies to and from the SDK, whose parser knows neither a number beyond a float nor half of a surrogate pair."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard import exactjson
from pegboard.clients.request_context import ANSWERING, EXACT, Answering
from pegboard.protocol.message import MAX_BODY, NotAMessage, fault, is_batch, parse_error, refusal
from pegboard.protocol.portions import LARGE, portions


class ExactBody:
    """An ASGI middleware that gives the SDK what it can read, with the exact value beside it, and has it write
    placeholders for such values, which it fills in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            messages = await _receive_body(receive)
            try:
                messages, exact = _readable(messages)
            except exactjson.NotJson as exc:
                await _refuse(send, parse_error(str(exc)))
                return
            except NotAMessage as exc:
                await _refuse(send, refusal(str(exc)))
                return
            receive = _replay(messages, receive)
            if exact is not None:
                scope = {**scope, EXACT: exact}
        placeholders, answering = exactjson.Placeholders(), Answering()
        try:
            with placeholders.activate():
                await self._app({**scope, ANSWERING: answering}, receive, _Filling(send, placeholders))
        finally:
            answering.end()


class _Filling:
    """Sends what the SDK answers, with what its placeholders stand for."""

    def __init__(self, send: Send, placeholders: exactjson.Placeholders) -> None:
        self._send = send
        self._placeholders = placeholders
        # The head of an answer that says how long it is, until that is known.
        self._head: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and b"content-length" in dict(message["headers"]):
            self._head = message
            return
        if message["type"] == "http.response.body" and message.get("body") and self._placeholders:
            given = message["body"]
            filled = self._placeholders.fill(bytes(given))
            if len(filled) != len(given):
                message = {**message, "body": filled}
                self._head = _reduce_length(self._head, len(given) - len(filled))
        if self._head is not None:
            head, self._head = self._head, None
            await self._send(head)
        if len(body := message.get("body", b"")) <= LARGE:
            await self._send(message)
            return
        for portion in portions(body):
            await self._send({**message, "body": portion, "more_body": True})
            # Everybody else has a turn, also if the client reads at once.
            await asyncio.sleep(0)
        if not message.get("more_body"):
            await self._send({**message, "body": b""})


def _reduce_length(head: Message | None, by: int) -> Message | None:
    if head is None:
        return None
    headers = [
        (name, b"%d" % (int(value) - by) if name == b"content-length" else value) for name, value in head["headers"]
    ]
    return {**head, "headers": headers}


async def _receive_body(receive: Receive) -> list[Message]:
    """The messages of a body, up to its end, or to where it is longer than a message may be."""
    message = await receive()
    messages, size = [message], len(message.get("body", b""))
    while message.get("more_body") and size <= MAX_BODY:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
    return messages


def _readable(messages: list[Message]) -> tuple[list[Message], Any]:
    """What the SDK can read of a body, and its exact value if that is another; `NotJson`, or `NotAMessage` with the
    reason."""
    if messages[-1]["type"] != "http.request" or messages[-1].get("more_body"):
        return messages, None
    body = b"".join(message.get("body", b"") for message in messages)
    readable, exact = exactjson.approximation(body)
    # Those who take a batch take it apart themselves.
    if readable is body or is_batch(body):
        return messages, None
    if (reason := fault(body)) is not None:
        raise NotAMessage(reason)
    return [{"type": "http.request", "body": readable, "more_body": False}], exact


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = list(reversed(messages))

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
