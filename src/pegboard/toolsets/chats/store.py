"""The chat store: what is known of every chat, so that a file is opened only after it has changed.

A file is known by its path and by how it looks from outside. Records stay in memory and in the database, which other
processes share, requests in the database alone; whatever is wrong with one file is told in its record, and hides no
other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from pegboard.storage.database import Database, DatabaseConnection, StorageError
from pegboard.storage.threads import Threads
from pegboard.toolsets.chats.reader import Outcome, Reader, failure_outcome
from pegboard.toolsets.chats.reading import ChatFileStamp
from pegboard.toolsets.chats.session import ChatRequest, ChatSession
from pegboard.toolsets.chats.source import ChatFile, ChatSource
from pegboard.toolsets.chats.table import ChatTable, RowVersion, SessionRow, Unindexed
from pegboard.toolsets.chats.words import Wanted, index_words

T = TypeVar("T")
OnProgress = Callable[[int, int], None]

# How much is read before it is written down, and before another call may come in between.
_BATCH_FILES, _BATCH_BYTES, _BATCH_REQUESTS = 64, 8 << 20, 50
# So many seconds after a file could not be read for a reason that may pass, it is tried again.
_TRY_AGAIN = 2.0
# How often a file is read again that other processes read and write down at the same time.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _CachedSession:
    stamp: ChatFileStamp
    session: ChatSession
    # Where it is kept; `None` if it is not.
    row: RowVersion | None
    # Until when that is believed, of a file that could not be read for a reason that may pass.
    until: float | None = None

    @classmethod
    def of(cls, kept: SessionRow) -> _CachedSession:
        return cls(kept.stamp, kept.session, kept.row)


class _Reading(NamedTuple):
    outcome: Outcome
    # Where the file was kept when it was opened.
    before: RowVersion | None


class _Snapshot:
    """The files as they looked at one moment, and those of before that are gone; made where it holds up nobody."""

    def __init__(self, files: Mapping[str, ChatFile], gone: Sequence[str]) -> None:
        self.files = files
        self.gone = gone
        self.latest_first = sorted(files.values(), key=_change_time, reverse=True)
        self.nameless = [file for file in files.values() if file.session_id is None]
        self.by_id: dict[str, list[str]] = {}
        for file in files.values():
            if file.session_id is not None:
                self.by_id.setdefault(file.session_id, []).append(file.path)


class ChatStore:
    """The chats of some sources. Nothing is ever written but the database."""

    def __init__(
        self,
        database: Database,
        sources: Sequence[ChatSource],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._sources = sources
        self._clock = clock
        self._looking = Threads("chats-look", 1)
        self._reading = Threads("chats-read", 1)
        self._snapshot = _Snapshot({}, ())
        self._looked_at: float | None = None
        self._known: dict[str, _CachedSession] | None = None
        self._reader = Reader()

    def look_in(self, sources: Sequence[ChatSource]) -> None:
        """Other sources from now on."""
        self._sources = sources
        self._looked_at = None

    async def close(self) -> None:
        """Finish what is under way."""
        await self._looking.end()
        await self._reading.end()

    async def files(self, max_age: float = 0.0) -> Sequence[ChatFile]:
        """Every file that should hold a chat, the one written last first, as they looked so many seconds ago at most.

        None of them is opened.
        """
        await self._load()
        if self._looked_at is None or self._clock() - self._looked_at >= max_age:
            self._snapshot = await self._looking.run(self._look)
            self._looked_at = self._clock()
            await self._forget(self._snapshot.gone)
        return self._snapshot.latest_first

    def files_of(self, session_id: str) -> list[ChatFile]:
        """The files whose name is this session's, and those whose content is."""
        by_name = [self._snapshot.files[path] for path in self._snapshot.by_id.get(session_id, ())]
        return [*by_name, *(file for file in self.nameless() if self._holds(file, session_id))]

    def _holds(self, file: ChatFile, session_id: str) -> bool:
        known = self.session(file)
        return known is not None and known.session_id == session_id

    def nameless(self) -> Sequence[ChatFile]:
        """The files that have to be read before anybody knows whose they are."""
        return self._snapshot.nameless

    async def again(self, files: Iterable[ChatFile]) -> list[ChatFile]:
        """These files as they look now; one that is gone is left out."""
        wanted = list(files)
        return [file for file in await self._looking.run(lambda: [_again(file) for file in wanted]) if file is not None]

    async def read(
        self, files: Iterable[ChatFile], *, until: float | None = None, on_progress: OnProgress | None = None
    ) -> int:
        """Have these files known as they are now; how many there was no time for."""
        await self._load()
        stale = [file for file in files if not self.is_known(file)]
        done = 0
        for batch in _batches(stale):
            if until is not None and self._clock() >= until:
                break
            await self._read(batch)
            done += len(batch)
            if on_progress is not None:
                on_progress(done, len(stale))
        return len(stale) - done

    def session(self, file: ChatFile) -> ChatSession | None:
        """What is known of a file that was read."""
        known = (self._known or {}).get(file.path)
        return None if known is None else known.session

    def is_known(self, file: ChatFile) -> bool:
        """Whether what is known of a file is how it is now."""
        known = (self._known or {}).get(file.path)
        if known is None or known.stamp != file.stamp:
            return False
        return known.until is None or self._clock() < known.until

    async def requests(self, session: ChatSession, first: int, last: int) -> list[ChatRequest]:
        """Requests of a session, counted from 1."""
        path = session.chat_json_path
        if path is None:
            return []
        found = await self._load_requests(path, first, last)
        if len(found) < min(last, session.requests_count) - first + 1:
            # Another process has read it anew, or forgotten it.
            await self._load_again([path])
            await self.read(await self.again(file for file in [self._snapshot.files.get(path)] if file is not None))
            found = await self._load_requests(path, first, last)
        return found

    async def index(self, *, until: float | None = None, on_progress: OnProgress | None = None) -> int:
        """Have the words of all that was read in the index; how many requests there was no time for."""
        total = await self._ask(lambda connection: ChatTable(connection).count_unindexed())
        done = 0
        while done < total and (until is None or self._clock() < until):
            batch = await self._ask(lambda connection: ChatTable(connection).next_unindexed(_BATCH_REQUESTS))
            if not batch:
                break
            words = await self._reading.run(lambda batch=batch: [_words(each) for each in batch])

            def work(connection: DatabaseConnection, words: Sequence[_Words] = words) -> None:
                for number, digest, asked, answered in words:
                    ChatTable(connection).put_words(number, digest, asked, answered)

            await self._write(work)
            done += len(batch)
            if on_progress is not None:
                on_progress(min(done, total), total)
        return max(total - done, 0)

    async def search(self, wanted: Wanted, paths: Iterable[str], most: int) -> list[tuple[str, int]]:
        """Path and position of the requests in these files that have what is wanted, the best first."""
        known = self._known or {}
        files = {row.number: path for path in paths if path in known and (row := known[path].row) is not None}
        found = await self._ask(lambda connection: ChatTable(connection).search(wanted, list(files), most))
        return [(files[number], position) for number, position in found]

    async def hint(self, session_id: str) -> ChatSession | None:
        """A session that is spoken of, though there is no file of it."""

        def ask() -> ChatSession | None:
            return next((found for source in self._sources if (found := source.hint(session_id)) is not None), None)

        return await self._looking.run(ask)

    async def clear(self) -> None:
        """Forget everything; the files are as they were."""
        await self._forget(await self._ask(lambda connection: ChatTable(connection).paths()))

    async def _load(self) -> None:
        if self._known is None:
            loaded = await self._ask(
                lambda connection: {path: _CachedSession.of(kept) for path, kept in ChatTable(connection).files()}
            )
            self._known = loaded if self._known is None else self._known

    def _look(self) -> _Snapshot:
        found: dict[str, ChatFile] = {}
        for source in self._sources:
            for file in source.files():
                # The same folder by two names is met twice, and counts once.
                found.setdefault(file.path, file)
        gone = [path for path in list(self._known or {}) if path not in found and not os.path.lexists(path)]
        return _Snapshot(found, gone)

    async def _forget(self, paths: Sequence[str]) -> None:
        """A chat that its owner deleted is not kept here."""
        if not paths:
            return
        await self._write(lambda connection: ChatTable(connection).forget(paths))
        await self._database.empty_log()
        for path in paths:
            self._reader.forget(path)
            if self._known is not None:
                self._known.pop(path, None)

    async def _read(self, files: Sequence[ChatFile]) -> None:
        """Read some files and write down what they are; where another process was quicker, look what it wrote."""
        for _ in range(_ROUNDS):
            # One batch after the other, whoever asked: what another call has read meanwhile is known then.
            readings = await self._reading.run(lambda files=files: self._readings(files))
            overtaken = [file for file in await self._keep(readings) if not self.is_known(file)]
            if not overtaken:
                return
            await self._load_again([file.path for file in overtaken])
            files = [file for file in await self.again(overtaken) if not self.is_known(file)]

    def _readings(self, files: Sequence[ChatFile]) -> list[_Reading]:
        known = self._known or {}
        return [
            _Reading(self._reader.outcome(file, before.session if before else None), before.row if before else None)
            for file in files
            if not self.is_known(file)
            for before in [known.get(file.path)]
        ]

    async def _keep(self, readings: Sequence[_Reading]) -> list[ChatFile]:
        """Write down what was read; the files for which somebody else has, meanwhile."""
        lasting = [reading for reading in readings if not reading.outcome.passing]
        for outcome, before in readings:
            if outcome.passing:
                self._know(outcome, before)
        overtaken: list[ChatFile] = []
        for reading, row in zip(lasting, await self._put(lasting), strict=True):
            if row is None:
                overtaken.append(reading.outcome.file)
            elif isinstance(row, RowVersion):
                self._know(reading.outcome, row)
            else:
                self._know(failure_outcome(reading.outcome.file, None, row, passing=True), reading.before)
        return overtaken

    def _know(self, outcome: Outcome, row: RowVersion | None) -> None:
        until = self._clock() + _TRY_AGAIN if outcome.passing else None
        if self._known is not None:
            self._known[outcome.file.path] = _CachedSession(outcome.stamp, outcome.session, row, until)

    async def _put(self, readings: Sequence[_Reading]) -> list[RowVersion | str | None]:
        """For each its new row, or nothing where somebody else was quicker, or why it cannot be kept."""

        def work(connection: DatabaseConnection) -> list[RowVersion | str | None]:
            table = ChatTable(connection)
            return [
                table.put(read.file.path, before, read.stamp, read.session, read.requests) for read, before in readings
            ]

        try:
            return await self._write(work) if readings else []
        except StorageError:
            raise
        except Exception as exc:
            if len(readings) > 1:
                return [row for reading in readings for row in await self._put([reading])]
            # Whatever there is in one file that no row can hold, the others are still to be kept.
            return [type(exc).__name__]

    async def _load_requests(self, path: str, first: int, last: int) -> list[ChatRequest]:
        known = (self._known or {}).get(path)
        if known is None or known.row is None:
            return []
        row = known.row
        return await self._ask(lambda connection: ChatTable(connection).requests(row, first, last))

    async def _load_again(self, paths: Sequence[str]) -> None:
        """What is known of these files, from the database, where another process wrote it."""

        def work(connection: DatabaseConnection) -> list[SessionRow | None]:
            return [ChatTable(connection).file(path) for path in paths]

        for path, kept in zip(paths, await self._ask(work), strict=True):
            if self._known is not None:
                self._known.pop(path, None)
                if kept is not None:
                    self._known[path] = _CachedSession.of(kept)

    async def _ask(self, work: Callable[[DatabaseConnection], T]) -> T:
        with self._doubting():
            return await self._database.read(work)

    async def _write(self, work: Callable[[DatabaseConnection], T]) -> T:
        with self._doubting():
            return await self._database.write(work)

    @contextmanager
    def _doubting(self) -> Generator[None]:
        """After something went wrong with the database, what is in it is looked up anew: it may be another one."""
        try:
            yield
        except StorageError:
            self._known = None
            raise


def _change_time(file: ChatFile) -> int:
    return file.stamp.changed


_Words = tuple[int, bytes, list[str], list[str]]


def _words(each: Unindexed) -> _Words:
    calls = " ".join(f"{call.name} {call.message}" for call in each.request.tool_calls)
    return each.number, each.digest, index_words(each.request.text), index_words(f"{each.request.answer}\n{calls}")


def _again(file: ChatFile) -> ChatFile | None:
    try:
        return replace(file, stamp=ChatFileStamp.of(Path(file.path).stat()))
    except (OSError, ValueError):
        return None


def _batches(files: Sequence[ChatFile]) -> Iterator[list[ChatFile]]:
    batch: list[ChatFile] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file.stamp.size
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
