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


async def tried(
    attempt: Callable[[], Awaitable[ToolResult[T]]], *, limit: float, repeatable: bool, subject: str
) -> ToolResult[T]:
    """The outcome of the first try that worked, or of the last one that the time limit had room for."""
    deadline = time.monotonic() + limit
    pause = _FIRST_PAUSE
    for number in range(1, MOST_TRIES):
        result = await attempt()
        wait = pause * random.uniform(0.5, 1.5)  # noqa: S311  so that many callers do not come back at once
        error = result.error
        if error is None or not error.retryable or not repeatable or time.monotonic() + wait >= deadline:
            return result
        logger().info("tool.retry", tool=subject, attempt=number, code=error.code.value, pauseMs=round(wait * 1000))
        await asyncio.sleep(wait)
        pause *= 4
    return await attempt()
