"""Trying again: what may have failed by chance, with more and more time in between."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pegboard.log import logger
from pegboard.result import ToolResult

T = TypeVar("T")

MOST_TRIES = 3
_FIRST_PAUSE = 0.2


async def with_retries(
    attempt: Callable[[float | None], Awaitable[ToolResult[T]]],
    *,
    limit: float,
    first_limit: float | None = None,
    repeatable: bool,
    subject: str,
) -> ToolResult[T]:
    """The outcome of the first try that worked, or of the last one that the time limit had room for.

    Each try is told how many seconds it has. Those of the first are given, since it may have to start a server, which
    has limits of its own; any later one has what is left.
    """
    deadline = time.monotonic() + limit
    pause, left = _FIRST_PAUSE, first_limit
    for number in range(1, MOST_TRIES):
        result = await attempt(left)
        error = result.error
        if error is None or not error.retryable or not repeatable:
            return result
        wait = error.retry_after + pause * random.uniform(0.5, 1.5)  # noqa: S311  many callers do not come back at once
        if time.monotonic() + wait >= deadline:
            return result
        logger().info("tool.retry", tool=subject, attempt=number, code=error.code.value, pauseMs=round(wait * 1000))
        await asyncio.sleep(wait)
        pause, left = pause * 4, max(0.0, deadline - time.monotonic())
    return await attempt(left)
