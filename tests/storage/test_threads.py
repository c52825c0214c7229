"""Threads of a database's own: what is given up while it runs."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from pegboard.storage.threads import Threads

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("patience", [None, 60.0])
async def test_work_that_fails_after_nobody_waits_for_it_is_not_reported(patience: float | None) -> None:
    """A probe of the storage fails while the gateway ends: nobody has to hear of it."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    threads, begun, may_end = Threads("test", 1), threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        may_end.wait(30)
        raise OSError("the disk is full")

    work = asyncio.create_task(threads.run(fail, patience))
    assert await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    await asyncio.wait({work})
    assert work.cancelled()
    del work
    may_end.set()
    assert await threads.end(30)
    await asyncio.sleep(0)
    gc.collect()
    assert reported == []
