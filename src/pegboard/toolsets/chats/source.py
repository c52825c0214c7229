"""A source of chats: one kind of program that keeps them, wherever it does. An editor more is one of these more."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.toolsets.chats.reading import ChatFileStamp, Reading
from pegboard.toolsets.chats.session import ChatSession


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A file that should hold a chat, as it looks from outside."""

    path: str
    source: ChatSource
    stamp: ChatFileStamp
    # The name of its chat; `None` if only its content tells.
    session_id: str | None
    # What the source needs to know of where it lies.
    home: str = ""


class ChatSource(Protocol):
    """Finds and reads chats. It is asked from threads, never changes a file, and `files` and `hint` never raise."""

    @property
    def name(self) -> str:
        """What people call the program."""
        ...

    def files(self) -> Iterator[ChatFile]:
        """Every file that should hold a chat; none of them is opened."""
        ...

    def reading(self, file: ChatFile) -> Reading:
        """A new reading of one of its files."""
        ...

    def folders(self, file: ChatFile) -> Sequence[str] | None:
        """The folders that were open around the chats of this file; `None` if only its content tells.

        Then `home` is the folder's path as `flattened` has it.
        """
        ...

    def hint(self, session_id: str) -> ChatSession | None:
        """A session that is spoken of somewhere, though there is no file of it."""
        ...


def entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing if it cannot be seen."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def stamp_of(entry: os.DirEntry[str]) -> ChatFileStamp | None:
    """How an ordinary file looks from outside, wherever a link leads to it."""
    try:
        found = entry.stat()
    except (OSError, ValueError):
        return None
    return ChatFileStamp.of(found) if stat.S_ISREG(found.st_mode) else None
