"""Memories as they are, without their being looked at."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Memory
from pegboard.toolsets.memory.transaction import MemoryTransaction


async def peek(memories: Memories, key: str, namespace: str | None = None) -> Memory:
    """One of them."""
    return next(memory for memory in await peek_all(memories, namespace) if memory.key == key)


async def peek_all(memories: Memories, namespace: str | None = None) -> Sequence[Memory]:
    """All of a namespace, by key."""

    def work(desk: MemoryTransaction) -> Sequence[Memory]:
        return desk.memories(desk.table.after("", 1000))

    return await memories._read(namespace, work)
