"""Replies: our answers to what a server asks, each made by a task of its own, and no more of them than is sensible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pegboard.log import logger
from pegboard.protocol.codes import INTERNAL_ERROR, REQUEST_CANCELLED
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message
from pegboard.servers.transports.transport import Transport

# Questions of a server that wait for their answers, besides one for each request of ours that is open.
MAX_QUESTIONS = 200

Answer = Callable[[], Awaitable[Message]]


class Replies(dict[Any, asyncio.Task[None]]):
    """The questions that are being answered, by their ids."""

    def __init__(self, transport: Transport, label: str, is_over: Callable[[], bool]) -> None:
        super().__init__()
        self._transport = transport
        self._label = label
        # Whether the conversation is over: then nobody waits for a reply.
        self._is_over = is_over

    def start(self, request_id: Any, method: str, answer: Answer) -> None:
        """Answer a question with what this gives, or with the error that it raises."""
        task = self[request_id] = asyncio.get_running_loop().create_task(self._reply(request_id, method, answer))
        task.add_done_callback(lambda _: self.pop(request_id, None))

    def withdraw(self, request_id: Any) -> None:
        """The server takes a question back."""
        task = self.get(request_id) if isinstance(request_id, (str, int)) else None
        if task is not None and not task.cancelling():
            task.cancel()

    def cancel(self) -> None:
        """Answer none of them."""
        for task in list(self.values()):
            task.cancel()

    async def _reply(self, request_id: Any, method: str, answer: Answer) -> None:
        reply: Message = {"jsonrpc": "2.0", "id": request_id}
        try:
            reply["result"] = await answer()
        except RpcError as exc:
            reply["error"] = {"code": exc.code, "message": exc.message}
            if exc.data is not None:
                reply["error"]["data"] = exc.data
        except asyncio.CancelledError:
            # Taken back by the server, or over with its request; a server that still waits has to know.
            if self._is_over():
                raise
            reply["error"] = {"code": REQUEST_CANCELLED, "message": "the request that asked is over"}
        except Exception as exc:
            logger().warning("server.question.failed", server=self._label, method=method, error=type(exc).__name__)
            reply["error"] = {"code": INTERNAL_ERROR, "message": "the client could not answer"}
        try:
            await self._transport.send(reply, None)
        except Exception as exc:
            logger().debug("server.reply.lost", server=self._label, error=type(exc).__name__)
