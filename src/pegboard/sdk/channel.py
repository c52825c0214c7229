"""The channel to a client through the SDK: while one of its requests is under way, or as long as its session lasts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, Protocol, cast

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError

from pegboard.log import logger
from pegboard.protocol.codes import METHOD_NOT_FOUND
from pegboard.protocol.weight import MAX_WEIGHT, weight
from pegboard.servers.errors import RpcError

_MAX_WAITING = 1024
_WITHDRAWING = 2.0

Params = Mapping[str, Any]


class Outbound(Protocol):
    """The SDK's channel to a client: of one request, or of the whole connection."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]: ...

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None: ...


class ClientChannel:
    """Sends notifications in order, all of them before the answer, without making the teller wait; and asks."""

    def __init__(self, outbound: Outbound, progress_token: object = None) -> None:
        self._outbound = outbound
        self._token = progress_token
        # What is sent here is written as this request's answers are, whoever tells it.
        self._context = copy_context()
        # What waits to be sent, each with its weight, and the weight of it all.
        self._queue: asyncio.Queue[tuple[str, Params, int] | None] | None = None
        self._weight = 0
        self._dropped = 0
        self._pump: asyncio.Task[None] | None = None
        self._asking: set[asyncio.Task[Any]] = set()
        self._finishing = False

    @property
    def on_progress(self) -> Callable[[Params], None] | None:
        """Takes progress, if the client asked for it."""
        return self._send_progress if self._token is not None else None

    def notify(self, method: str, params: Params) -> None:
        """Send a notification in its turn."""
        if self._finishing:
            return
        if self._queue is None:
            self._queue = asyncio.Queue()
            self._pump = asyncio.get_running_loop().create_task(self._carry(self._queue), context=self._context)
        weighs = weight(params)
        self._weight += weighs
        # A client that does not read gets the newest, not all of it.
        while self._queue.qsize() and (self._queue.qsize() >= _MAX_WAITING or self._weight > MAX_WEIGHT):
            if (oldest := self._queue.get_nowait()) is not None:
                self._weight -= oldest[2]
                self._dropped += 1
        self._queue.put_nowait((method, params, weighs))

    async def ask(self, method: str, params: Params, on_progress: Callable[[Params], None] | None) -> dict[str, Any]:
        """Put a question to the client; its result, or `RpcError`."""
        options: CallOptions = {}
        if on_progress is not None:
            options["on_progress"] = _adapt_progress(on_progress)
        task = asyncio.current_task()
        assert task is not None
        self._asking.add(task)
        try:
            return await self._outbound.send_raw_request(method, params, options)
        except NoBackChannelError:
            raise RpcError(METHOD_NOT_FOUND, f"{method}: this client cannot be asked anything") from None
        except MCPError as exc:
            raise RpcError(exc.error.code, exc.error.message, exc.error.data) from None
        finally:
            self._asking.discard(task)

    async def finish(self) -> None:
        """Send all that is waiting."""
        await self._cancel_questions()
        self._finishing = True
        if self._queue is not None and self._pump is not None:
            self._queue.put_nowait(None)
            await self._pump

    async def abandon(self) -> None:
        """Nobody waits for the answer any more; whoever is still being asked is told so."""
        await self._cancel_questions()
        self.drop()

    def drop(self) -> None:
        """Nobody listens any more."""
        if self._pump is not None:
            self._pump.cancel()

    async def _cancel_questions(self) -> None:
        """Questions end with their request; the word of it goes out on the request's own stream, so it goes first."""
        leaving = {task for task in self._asking if task.cancelling()}
        if leaving:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(leaving, timeout=_WITHDRAWING)

    def _send_progress(self, params: Params) -> None:
        self.notify("notifications/progress", {**params, "progressToken": self._token})

    async def _carry(self, queue: asyncio.Queue[tuple[str, Params, int] | None]) -> None:
        while (item := await queue.get()) is not None:
            method, params, weighs = item
            with contextlib.suppress(Exception):
                await self._outbound.notify(method, params)
            self._weight -= weighs
            if self._dropped and not queue.qsize():
                dropped, self._dropped = self._dropped, 0
                logger().warning("client.notifications.dropped", leftOut=dropped)


def progress_token(params: Mapping[str, Any] | None) -> object:
    """The token under which a client wants to hear of progress, if it does."""
    meta = (params or {}).get("_meta")
    token = cast("dict[str, Any]", meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, (str, int)) and not isinstance(token, bool) else None


def _adapt_progress(on_progress: Callable[[Params], None]) -> Any:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        said = {"progress": progress, "total": total, "message": message}
        on_progress({key: value for key, value in said.items() if value is not None})

    return report
