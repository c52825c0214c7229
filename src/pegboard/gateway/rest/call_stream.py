"""A call whose progress is seen while it runs: the answer is a stream (SSE) of `progress` and at the end `result`.

A server may ask something meanwhile (elicitation). Then the stream ends with `input`, which has the questions and a
state; whoever has the answers sends the call again with both, as clients of 2026-07-28 do. Whoever goes away cancels
the call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from pegboard import exactjson
from pegboard.calls import FailedResult
from pegboard.clients.caller import Caller
from pegboard.clients.client import REST_CLIENT, identify
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest.responses import Failed
from pegboard.protocol.eras import CLIENT_INFO_KEY
from pegboard.protocol.weight import weight
from pegboard.result import ToolResult, error_of
from pegboard.servers.errors import RpcError, failure_of, unusable_answer

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

EVENT_STREAM = "text/event-stream"
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
# Seconds without news after which a comment shows that the stream stands.
_SILENCE = 15.0
# What somebody at a page can be asked.
_CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
_META = {CLIENT_INFO_KEY: {"name": REST_CLIENT}}
_ASKS = "input_required"
# Progress that waits for a reader who is slow; what comes beyond is not told.
_MOST_WAITING = 100
_HEAVIEST = 64 * 1024


def wants_stream(request: Request) -> bool:
    """Whether whoever calls wants to see how it goes."""
    return EVENT_STREAM in request.headers.get("accept", "")


class CallStream:
    """One call, and what is told of it."""

    def __init__(self, rest: Rest, request: Request, name: str, params: Mapping[str, Any]) -> None:
        self._rest = rest
        self._name = name
        self._params = params
        self._news: asyncio.Queue[bytes] = asyncio.Queue()
        client = identify(endpoint_of(request.scope), "modern", capabilities=_CAPABILITIES, meta=_META)
        client.name = REST_CLIENT
        self._caller = replace(Caller(client), on_progress=self._tell_progress)

    def response(self) -> StreamingResponse:
        """The answer to whoever calls."""
        return StreamingResponse(self._events(), 200, _HEADERS, EVENT_STREAM)

    async def _events(self) -> AsyncGenerator[bytes]:
        call = asyncio.get_running_loop().create_task(self._call())
        try:
            # That it has begun: whoever waits sees it at once.
            yield b": \n\n"
            while not (call.done() and self._news.empty()):
                try:
                    async with asyncio.timeout(_SILENCE):
                        yield await self._news.get()
                except TimeoutError:
                    yield b": \n\n"
        finally:
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call

    def _tell_progress(self, params: Mapping[str, Any]) -> None:
        if self._news.qsize() >= _MOST_WAITING or weight(params) > _HEAVIEST:
            return
        if said := _read_progress(params):
            self._tell("progress", said)

    def _tell(self, kind: str, data: Mapping[str, Any]) -> None:
        self._news.put_nowait(f"event: {kind}\ndata: ".encode() + exactjson.dump(dict(data)) + b"\n\n")

    async def _call(self) -> None:
        try:
            result = await self._rest.board.calls.call(self._name, self._params, self._caller)
        except RpcError as exc:
            self._tell("result", ToolResult[None].failed(failure_of(exc, self._name).error).to_dict())
        except Exception as exc:
            self._tell("result", ToolResult[None].failed(error_of(exc)).to_dict())
        else:
            if isinstance(result, FailedResult):
                self._tell("result", Failed(result.error, result).to_dict())
            else:
                self._tell_result(result)

    def _tell_result(self, result: Mapping[str, Any]) -> None:
        if result.get("resultType") != _ASKS:
            self._tell("result", ToolResult[Any].ok(result).to_dict())
        elif _asks_something(result):
            self._tell("input", ToolResult[Any].ok(result).to_dict())
        else:
            failure = unusable_answer(self._name, "it asks for input, and nothing that can be answered")
            self._tell("result", ToolResult[None].failed(failure.error).to_dict())


def _read_progress(params: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody can be shown of a server's progress; nothing, if it is none."""
    said = {name: params[name] for name in ("progress", "total") if _is_number(params.get(name))}
    if "progress" not in said:
        return {}
    return {**said, "message": params["message"]} if isinstance(params.get("message"), str) else said


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _asks_something(result: Mapping[str, Any]) -> bool:
    """Whether there are questions, each of which has the shape of one."""
    asked = exactjson.as_object(result.get("inputRequests")) or {}
    questions = [exactjson.as_object(each) or {} for each in asked.values()]
    return bool(questions) and all(isinstance(each.get("method"), str) for each in questions)
