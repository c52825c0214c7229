"""What was acknowledged survives the death of whoever wrote it."""

import os
import random
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memory.consistency import assert_consistent
from pegboard.storage import open_storage
from pegboard.toolsets.memory.memories import Memories

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("writer.py")
WRITERS, KILLS = 4, 50


@dataclass
class Writer:
    """A process that writes, and what it said."""

    name: str
    place: str
    said: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        command = [sys.executable, str(WRITER), self.place, self.name, "add", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.out = self.process.stdout
        self._rest = b""

    def hear(self) -> None:
        """Take what it has said by now."""
        self._take(os.read(self.out.fileno(), 65536))

    def kill(self) -> None:
        """End it, wherever it is, and take what it said last."""
        self.process.kill()
        self._take(self.out.read())
        self.process.wait()
        self.out.close()

    @property
    def acknowledged(self) -> list[tuple[str, str]]:
        """Key and unique word of each memory that it said was written."""
        return [(key, word) for key, _, word in (line.partition(" ") for line in self.said) if word]

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.said += [line.decode() for line in lines]


def killed_writers(place: str, chance: random.Random) -> list[Writer]:
    """Four at a time, until fifty of them were killed in the middle of their work."""
    ended: list[Writer] = []
    with selectors.DefaultSelector() as selector:

        def start(number: int) -> None:
            writer = Writer(f"w{number}", place)
            selector.register(writer.out, selectors.EVENT_READ, writer)

        def hear(timeout: float) -> None:
            for key, _ in selector.select(timeout):
                key.data.hear()

        for number in range(WRITERS):
            start(number)
        while len(ended) < KILLS:
            # A writer that is at work, after a moment that only chance knows.
            moment = time.monotonic() + chance.uniform(0, 0.1)
            while (left := moment - time.monotonic()) > 0:
                hear(left)
            while not (at_work := [key.data for key in selector.get_map().values() if key.data.acknowledged]):
                hear(10)
            victim: Writer = chance.choice(at_work)
            selector.unregister(victim.out)
            victim.kill()
            ended.append(victim)
            start(WRITERS + len(ended))
        for writer in [key.data for key in selector.get_map().values()]:
            writer.kill()
            ended.append(writer)
    return ended


async def test_acknowledged_memories_survive(tmp_path: Path) -> None:
    """Four writers, fifty kills: each memory that was acknowledged is there and found, and the index is consistent."""
    place = f"sqlite:{tmp_path / 'pegboard.db'}"
    writers = killed_writers(place, random.Random(20_260))
    acknowledged = [each for writer in writers for each in writer.acknowledged]
    assert len(acknowledged) > KILLS
    storage = open_storage(place)
    await storage.open()
    memories = Memories(storage.database)
    await assert_consistent(storage.database)
    for key, word in acknowledged:
        assert word in (await memories.get(key)).text
        assert [hit.key for hit in (await memories.fulltext([word])).items] == [key]
    there = await memories.list()
    # Beyond what was acknowledged, each writer may have finished one that it could not tell of any more.
    assert len(acknowledged) <= there.total <= len(acknowledged) + len(writers)
    await storage.close()
