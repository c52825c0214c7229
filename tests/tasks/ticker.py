"""A process that ticks tasks of change `a`: run with a place, a folder, the first, the step, the last."""

from __future__ import annotations

import asyncio
import sys

from pegboard.storage import open_storage
from pegboard.toolsets.tasks.registry import Registry


async def main(place: str, root: str, first: int, step: int, last: int) -> None:
    """Tick them."""
    storage = open_storage(place)
    await storage.open()
    registry = Registry(storage.database)
    for number in range(first, last + 1, step):
        await registry.update(f"a/{number}", status="completed", path=root)
    await storage.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
