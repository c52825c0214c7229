"""Garbage collection in pauses that stay short, however much a gateway keeps.

Python looks at everything that is alive whenever it collects all generations: seconds, with thousands of sessions or
tools. Here what survives such a collection is frozen, so the next one looks only at what is new since. What becomes
garbage after it was frozen is found by a thorough collection, which is rare and waits for an idle moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import AsyncGenerator

# Python's own are 700, 10 and 10. A plain call leaves no garbage, but while more and more calls come at once their
# objects count as new ones: 700 are those of a dozen calls. All that is new after 12,000 objects is looked at in some
# 5 ms; what is replaced meanwhile does not count as new, so that it may be twice as many.
_THRESHOLDS = 2_000, 2, 1
_LOOK_EVERY = 5.0
# Up to this share of a core the gateway counts as idle.
_IDLE = 0.05
# By which factor memory grows until a thorough collection is due in an idle moment, and until it waits for none.
_DUE, _OVERDUE = 1.5, 4.0


@contextlib.asynccontextmanager
async def short_collections() -> AsyncGenerator[None]:
    """Keep collections short while this is open: for a process that is a gateway and nothing else."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    gc.callbacks.append(_freeze_survivors)
    gc.freeze()
    sweeping = asyncio.get_running_loop().create_task(_sweep())
    try:
        yield
    finally:
        sweeping.cancel()
        gc.callbacks.remove(_freeze_survivors)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


async def _sweep() -> None:
    """Collect thoroughly once after the start, and then whenever memory has grown by half since the last time."""
    left, used = 0, time.process_time()
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        blocks = sys.getallocatedblocks()
        before, used = used, time.process_time()
        is_idle = used - before < _IDLE * _LOOK_EVERY
        if blocks > _DUE * left and (is_idle or blocks > _OVERDUE * left > 0):
            gc.unfreeze()
            gc.collect()
            # Python puts a full collection off until what is new is a quarter of what the last one found. That was
            # everything; this one finds next to nothing.
            gc.collect()
            left = sys.getallocatedblocks()
