"""The shelf: what is known of every chat, so that a file is opened only after it has changed.

A file is known by its path, size and time. Records stay in memory and in the database, requests in the database alone;
whatever is wrong with one file is told in its record, and hides no other.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pegboard.log import logger
from pegboard.storage.database import Connection, Database
from pegboard.storage.threads import Threads
from pegboard.toolsets.chats.reading import Reading, Stamp, Unreadable, open_to_read
from pegboard.toolsets.chats.session import Request, Session
from pegboard.toolsets.chats.source import ChatFile, ChatSource
from pegboard.toolsets.chats.table import ChatTable, Packed, Unindexed
from pegboard.toolsets.chats.words import Wanted, indexed

OnProgress = Callable[[int, int], None]

# How much is read before it is written down, and before another call may come in between.
_BATCH_FILES, _BATCH_BYTES, _BATCH_REQUESTS = 64, 8 << 20, 50
# How many logs are held open in mind, to be read on when they grow.
_HELD = 4
# A file can change twice within one tick of its clock; what was read so soon after a change is not yet trusted.
_TICK = 100_000_000


@dataclass(frozen=True, slots=True)
class _Known:
    stamp: Stamp
    session: Session


@dataclass(frozen=True, slots=True)
class _Outcome:
    path: str
    known: _Known
    # `None`: it could not be read, and what was known of it stays.
    requests: Sequence[Packed] | None


class Shelf:
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
        self._files: Mapping[str, ChatFile] = {}
        self._latest_first: Sequence[ChatFile] = ()
        self._by_id: Mapping[str, Sequence[str]] = {}
        self._looked_at: float | None = None
        self._known: dict[str, _Known] | None = None
        self._held: OrderedDict[str, Reading] = OrderedDict()

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
            found, gone = await self._looking.run(self._look)
            self._files = found
            by_id: dict[str, list[str]] = {}
            for file in found.values():
                if file.session_id is not None:
                    by_id.setdefault(file.session_id, []).append(file.path)
            self._by_id = by_id
            self._latest_first = sorted(found.values(), key=_changed, reverse=True)
            self._looked_at = self._clock()
            await self._forget(gone)
        return self._latest_first

    def named(self, session_id: str) -> list[ChatFile]:
        """The files whose name is this session's, and those whose content is."""
        found = [self._files[path] for path in self._by_id.get(session_id, ())]
        if found:
            return found
        return [
            self._files[path]
            for path, known in (self._known or {}).items()
            if known.session.session_id == session_id and path in self._files
        ]

    def nameless(self) -> list[ChatFile]:
        """The files that have to be read before anybody knows whose they are."""
        return [file for file in self._files.values() if file.session_id is None]

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
            # One batch after the other, whoever asked: what another call has read meanwhile is known then.
            outcomes = await self._reading.run(lambda batch=batch: self._outcomes(batch))
            await self._keep(outcomes)
            done += len(batch)
            if on_progress is not None:
                on_progress(done, len(stale))
        return len(stale) - done

    def session(self, file: ChatFile) -> Session | None:
        """What is known of a file that was read."""
        known = (self._known or {}).get(file.path)
        return None if known is None else known.session

    def is_known(self, file: ChatFile) -> bool:
        """Whether what is known of a file is how it is now."""
        known = (self._known or {}).get(file.path)
        return known is not None and known.stamp == file.stamp

    async def requests(self, session: Session, first: int, last: int) -> list[Request]:
        """Requests of a session, counted from 1."""
        path = session.chat_json_path
        if path is None:
            return []
        return await self._database.read(lambda connection: ChatTable(connection).requests(path, first, last))

    async def index(self, *, until: float | None = None, on_progress: OnProgress | None = None) -> int:
        """Have the words of all that was read in the index; how many requests there was no time for."""
        total = await self._database.read(lambda connection: ChatTable(connection).count_unindexed())
        done = 0
        while done < total and (until is None or self._clock() < until):
            batch = await self._database.read(lambda connection: ChatTable(connection).unindexed(_BATCH_REQUESTS))
            if not batch:
                break
            words = await self._reading.run(lambda batch=batch: [_words(each) for each in batch])

            def work(connection: Connection, words: Sequence[_Words] = words) -> None:
                for number, digest, asked, answered in words:
                    ChatTable(connection).put_words(number, digest, asked, answered)

            await self._database.write(work)
            done += len(batch)
            if on_progress is not None:
                on_progress(min(done, total), total)
        return max(total - done, 0)

    async def search(self, wanted: Wanted, most: int) -> list[tuple[str, int]]:
        """Path and position of the requests that have what is wanted, the best first."""
        return await self._database.read(lambda connection: ChatTable(connection).search(wanted, most))

    async def hint(self, session_id: str) -> Session | None:
        """A session that is spoken of, though there is no file of it."""

        def ask() -> Session | None:
            return next((found for source in self._sources if (found := source.hint(session_id)) is not None), None)

        return await self._looking.run(ask)

    async def clear(self) -> None:
        """Forget everything; the files are as they were."""
        await self._forget(await self._database.read(lambda connection: ChatTable(connection).paths()))
        self._held.clear()

    async def _load(self) -> None:
        if self._known is None:
            rows = await self._database.read(lambda connection: list(ChatTable(connection).sessions()))
            loaded = {path: _Known(stamp, session) for path, stamp, session in rows}
            self._known = loaded if self._known is None else self._known

    def _look(self) -> tuple[dict[str, ChatFile], list[str]]:
        found: dict[str, ChatFile] = {}
        for source in self._sources:
            for file in source.files():
                # The same folder by two names is met twice, and counts once.
                found.setdefault(file.path, file)
        gone = [path for path in list(self._known or {}) if path not in found and not os.path.lexists(path)]
        return found, gone

    async def _forget(self, paths: Sequence[str]) -> None:
        """A chat that its owner deleted is not kept here."""
        if not paths:
            return
        await self._database.write(lambda connection: ChatTable(connection).forget(paths))
        for path in paths:
            self._held.pop(path, None)
            if self._known is not None:
                self._known.pop(path, None)

    async def _keep(self, outcomes: Sequence[_Outcome]) -> None:
        def work(connection: Connection) -> None:
            table = ChatTable(connection)
            for outcome in outcomes:
                table.put(outcome.path, outcome.known.stamp, outcome.known.session, outcome.requests)

        if outcomes:
            await self._database.write(work)
            assert self._known is not None
            self._known.update({outcome.path: outcome.known for outcome in outcomes})

    def _outcomes(self, files: Sequence[ChatFile]) -> list[_Outcome]:
        return [self._outcome(file) for file in files if not self.is_known(file)]

    def _outcome(self, file: ChatFile) -> _Outcome:
        held = self._held.pop(file.path, None)
        try:
            return self._read(file, held)
        except (Unreadable, OSError) as exc:
            reason = exc.strerror or type(exc).__name__ if isinstance(exc, OSError) else str(exc)
        except Exception as exc:
            # Whatever a file does to us, fill the memory for instance, the others are still to be read.
            reason = type(exc).__name__
        logger().warning("chats.file.unreadable", path=file.path, reason=reason)
        known = (self._known or {}).get(file.path)
        if known is not None and known.session.chat_json_path is not None:
            # Perhaps somebody is writing it: what was good a moment ago is better than nothing.
            return _Outcome(file.path, _Known(file.stamp, replace(known.session, problem=reason)), None)
        moment = file.stamp.changed // 1_000_000
        session = Session(file.session_id or "", file.source.name, first_seen=moment, last_seen=moment, problem=reason)
        return _Outcome(file.path, _Known(file.stamp, session), ())

    def _read(self, file: ChatFile, held: Reading | None) -> _Outcome:
        started = time.time_ns()
        with open_to_read(file.path) as stream:
            stamp = Stamp.of(os.fstat(stream.fileno()))
            reading = held if held is not None and held.goes_on(stream, stamp.size) else file.source.reading(file)
            chat = reading.read(stream)
        if not chat.folders:
            chat = replace(chat, folders=tuple(file.source.folders(file)))
        name = file.session_id or chat.session_id or Path(file.path).stem
        session = Session.of(chat, name, file.source.name, file.path, stamp.changed // 1_000_000)
        if chat.problem is not None:
            logger().warning("chats.file.damaged", path=file.path, reason=chat.problem)
        if reading.grows:
            self._held[file.path] = reading
            while len(self._held) > _HELD:
                self._held.popitem(last=False)
        if abs(started - stamp.changed) < _TICK:
            stamp = Stamp(stamp.size, -1)
        return _Outcome(file.path, _Known(stamp, session), [Packed.of(request) for request in chat.requests])


def _changed(file: ChatFile) -> int:
    return file.stamp.changed


_Words = tuple[int, bytes, list[str], list[str]]


def _words(each: Unindexed) -> _Words:
    calls = " ".join(f"{call.name} {call.message}" for call in each.request.tool_calls)
    return each.number, each.digest, indexed(each.request.text), indexed(f"{each.request.answer}\n{calls}")


def _again(file: ChatFile) -> ChatFile | None:
    try:
        return replace(file, stamp=Stamp.of(Path(file.path).stat()))
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
