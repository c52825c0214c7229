"""The reader: makes of a file what is to be known of it, and goes on where it was before if the file has grown."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pegboard.log import logger
from pegboard.toolsets.chats.reading import NEVER, ChatFileStamp, Reading, UnreadableChat, open_to_read
from pegboard.toolsets.chats.session import Chat, ChatRequest, ChatSession
from pegboard.toolsets.chats.source import ChatFile
from pegboard.toolsets.chats.table import Packed

# How many logs are held open in mind, to be read on when they grow.
_HELD = 4
# A file can change twice within one tick of its clock; what was read so soon after a change is not yet trusted.
_TICK = 100_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a file turned out to be."""

    file: ChatFile
    stamp: ChatFileStamp
    session: ChatSession
    # `None`: it could not be read, and what was known of it stays.
    requests: Sequence[Packed] | None
    # Whether it was not the file's fault: the next try may go better, so nobody should remember this one for long.
    passing: bool = False


@dataclass(frozen=True, slots=True)
class _CachedLog:
    """A log that was read, with its requests as they were, and as they are kept."""

    reading: Reading
    requests: Sequence[ChatRequest]
    packed: Sequence[Packed]


class Reader:
    """Reads files, one after the other. It is used from one thread, and never raises."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, _CachedLog] = OrderedDict()

    def forget(self, path: str) -> None:
        """Hold nothing of a file."""
        self._held.pop(path, None)

    def outcome(self, file: ChatFile, before: ChatSession | None) -> Outcome:
        """What a file is now; with what was known of it before."""
        held = self._held.pop(file.path, None)
        try:
            return self._read(file, held, before)
        except UnreadableChat as exc:
            return failure_outcome(file, before, str(exc))
        except OSError as exc:
            return failure_outcome(file, before, exc.strerror or type(exc).__name__, passing=True)
        except Exception as exc:
            # Whatever a file does to us, fill the memory for instance, the others are still to be read.
            return failure_outcome(file, before, type(exc).__name__, passing=True)

    def _read(self, file: ChatFile, held: _CachedLog | None, before: ChatSession | None) -> Outcome:
        started = time.time_ns()
        with open_to_read(file.path) as stream:
            stamp = ChatFileStamp.of(os.fstat(stream.fileno()))
            if held is not None and not held.reading.goes_on(stream, stamp.size):
                held = None
            reading = file.source.reading(file) if held is None else held.reading
            chat = reading.read(stream)
        if not chat.folders:
            chat = replace(chat, folders=tuple(file.source.folders(file) or ()))
        packed = _pack(chat, held)
        if reading.grows:
            self._hold(file.path, _CachedLog(reading, chat.requests, packed))
        if chat.problem is not None and (before is None or before.problem != chat.problem):
            logger().warning("chats.file.damaged", path=file.path, reason=chat.problem)
        name = file.session_id or chat.session_id or Path(file.path).stem
        session = ChatSession.of(chat, name, file.source.name, file.path, stamp.changed // 1_000_000)
        trusted = abs(started - stamp.changed) >= _TICK
        return Outcome(file, stamp if trusted else NEVER, session, packed)

    def _hold(self, path: str, held: _CachedLog) -> None:
        self._held[path] = held
        while len(self._held) > _HELD:
            self._held.popitem(last=False)


def failure_outcome(file: ChatFile, before: ChatSession | None, reason: str, *, passing: bool = False) -> Outcome:
    """A file of which nothing new is known but what is wrong with it."""
    if before is None or before.problem != reason:
        logger().warning("chats.file.unreadable", path=file.path, reason=reason)
    if before is not None and before.chat_json_path is not None:
        # Perhaps somebody is writing it: what was good a moment ago is better than nothing.
        return Outcome(file, file.stamp, replace(before, problem=reason), None, passing)
    moment = file.stamp.changed // 1_000_000
    session = ChatSession(file.session_id or "", file.source.name, first_seen=moment, last_seen=moment, problem=reason)
    return Outcome(file, file.stamp, session, (), passing)


def _pack(chat: Chat, held: _CachedLog | None) -> list[Packed]:
    """The requests as they are kept. To pack is what takes time: those that are as before are not packed again."""
    known = () if held is None else held.requests
    return [
        held.packed[at] if held is not None and at < len(known) and known[at] == request else Packed.of(request)
        for at, request in enumerate(chat.requests)
    ]
