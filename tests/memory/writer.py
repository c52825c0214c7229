"""A process that writes memories until it ends, and says so of each after it was written.

Run with a place, a name, what to do, and how often: `add` new memories one after the other, for ever; `count` adds 1 to
a number in one memory, each time from the version that it read; `grow` adds memories and links.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys

from pegboard.result import Conflict
from pegboard.storage import open_storage
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link


async def add(memories: Memories, name: str) -> None:
    """New memories, some with links, some changed or renamed at once; each has a word of its own."""
    # Those that are only starting come first, or it takes long until all are at work.
    os.nice(5)
    for number in itertools.count():
        key, word = f"{name}:{number}", unique(name, number)
        links = [Link(f"{name}:{number - 1}", "design"), Link("hub", "bug")]
        await memories.add(key, f"summary of {word}", f"{word} 日本語 common words " * 5, links)
        if number % 3 == 0:
            await memories.update(key, text=f"{word} another text GitHub")
        say(f"{key} {word}")


async def count(memories: Memories, times: int) -> None:
    """One more, so many times."""
    for _ in range(times):
        while True:
            memory = await memories.get("counter")
            try:
                await memories.update("counter", text=str(int(memory.text) + 1), version=memory.version)
                break
            except Conflict:
                continue


async def grow(memories: Memories, name: str, times: int) -> None:
    """Memories of one's own, and changes of a shared one without looking at its version."""
    for number in range(times):
        await memories.add(f"{name}:{number}", "shared words", unique(name, number), [Link("shared", "bug")])
        await memories.update("shared", summary=f"by {name} {number}")


def unique(name: str, number: int) -> str:
    """A word that no other memory has, of letters alone, and of none that an ending is made of."""
    digits = str.maketrans("0123456789", "bcfhkmpvxz")
    return f"{name}q{number}".translate(digits)


def say(line: str) -> None:
    """Tell it, at once."""
    print(line, flush=True)


async def main(place: str, name: str, what: str, times: int) -> None:
    """Do it."""
    storage = open_storage(place)
    await storage.open()
    memories = Memories(storage.database)
    say("ready")
    if what == "add":
        await add(memories, name)
    elif what == "count":
        await count(memories, times)
    else:
        await grow(memories, name, times)
    await storage.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
