"""A response as a coroutine reads it: its head first, then its body part by part, no faster than it is read."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping

from pegboard.servers.http.pool import ConnectionFailed, Exchange

# What may wait to be read before the other end has to wait, too.
_AHEAD = 1024 * 1024


class Response:
    """Takes what comes by callbacks, and gives it to whoever awaits it."""

    def __init__(self, principal_id: str = "") -> None:
        self.principal_id = principal_id
        self.status_code = 0
        self.headers: Mapping[str, str] = {}
        # The exchange that this is the answer of, once it is under way.
        self.exchange: Exchange | None = None
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._error: ConnectionFailed | None = None
        self._ended = False
        self._news: asyncio.Future[None] | None = None

    def on_head(self, status: int, headers: dict[str, str]) -> None:
        """The head is there."""
        self.status_code, self.headers = status, headers
        self._wake()

    def on_data(self, part: bytes) -> Iterable[object]:
        """A part of the body is there."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > _AHEAD and self.exchange is not None:
            self.exchange.pause()
        self._wake()
        return ()

    def on_complete(self) -> None:
        """All of it is there."""
        self._ended = True
        self._wake()

    def on_failure(self, error: ConnectionFailed) -> None:
        """No more of it will come."""
        self._error = error
        self._wake()

    async def wait_for_head(self) -> None:
        """Wait for the head; raises `ConnectionFailed`."""
        while not self.status_code:
            if self._error is not None:
                raise self._error
            await self._change()

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        """The parts of the body as they come; raises `ConnectionFailed` where it breaks off."""
        while True:
            while self._parts:
                part = self._parts.popleft()
                self._size -= len(part)
                if self._size <= _AHEAD and self.exchange is not None:
                    self.exchange.resume()
                yield part
                if self._parts:
                    # Whoever reads them does not wait for anything between two parts that are there.
                    await asyncio.sleep(0)
            if self._error is not None:
                raise self._error
            if self._ended:
                return
            await self._change()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _change(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        await self._news
