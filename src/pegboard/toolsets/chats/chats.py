"""Chats: every operation on them, the same for the tools, REST, the command line and Python. They are only read."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.search.excerpt import cut, highlight
from pegboard.storage.database import Database
from pegboard.text import quote_start
from pegboard.toolsets.chats.claude_code import ClaudeCode
from pegboard.toolsets.chats.folders import Anywhere, Around, Where, Within, belongs
from pegboard.toolsets.chats.session import ChatRequest, ChatSession
from pegboard.toolsets.chats.source import ChatFile, ChatSource
from pegboard.toolsets.chats.store import ChatStore, OnProgress
from pegboard.toolsets.chats.vscode import ExportedChats, find_editors
from pegboard.toolsets.chats.words import Wanted, parse_query
from pegboard.toolsets.page import Page

T = TypeVar("T")

# For so many seconds nobody looks again which files there are; those that are talked about are looked at each time.
_FRESH = 2.0
_MOST_HITS = 5000
_TOGETHER = 16
_SHOWN_ID = 200


class NotThere(ToolFailure):
    """What is asked for is not there; the message is the answer."""

    def __init__(self, message: str) -> None:
        super().__init__(ToolErrorCode.NOT_FOUND, message, retryable=False)


@dataclass(frozen=True, slots=True)
class ChatPage(Page[T]):
    """Some of what there is, and how many files or requests nobody had the time to read yet."""

    unread: int = 0
    # Whether there is more than the total, which nobody counted.
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ChatHit:
    """A request that was found, in its words or in its answer's."""

    session: ChatSession
    index: int
    request: ChatRequest
    excerpt: str


def local_sources(
    env: Mapping[str, str] | None = None,
    home: Path | None = None,
    platform: str | None = None,
    exports: Iterable[Path] = (),
) -> list[ChatSource]:
    """Every place on this machine where chats are kept, and folders of exported ones."""
    env, home = os.environ if env is None else env, home or Path.home()
    return [
        *find_editors(env, home, platform or sys.platform),
        ClaudeCode.at_home(env, home),
        *map(ExportedChats, exports),
    ]


class Chats:
    """The chats of some sources, newest first."""

    def __init__(
        self,
        database: Database,
        sources: Sequence[ChatSource] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = ChatStore(database, local_sources() if sources is None else sources, clock=clock)
        self._clock = clock
        # Whether clients on other machines may read them.
        self.allows_remote = False

    def look_at_exports(self, exports: Iterable[str]) -> None:
        """Other folders of exported chats than before."""
        self.store.look_in(local_sources(exports=map(Path, exports)))

    async def close(self) -> None:
        """Finish what is under way."""
        await self.store.close()

    async def session(self, session_id: str, *, patience: float | None = None) -> ChatSession:
        """The session of that id, as it is now; `NotThere` if nobody knows it.

        So many seconds at most are spent on files that may be any session's.
        """
        until = self._until(patience)
        found = await self._find_session(session_id, _FRESH, until) or await self._find_session(session_id, 0, until)
        found = found or await self.store.hint(session_id)
        if found is None:
            shown = quote_start(session_id, _SHOWN_ID)
            raise NotThere(f"Session not found: {shown}")
        return found

    async def newest(self, places: Sequence[str] | None = None, *, patience: float | None = None) -> ChatSession | None:
        """The session in which something happened last; with places, among those of these folders.

        One that lies in a place goes before one whose folder is around it.
        """
        files, until = await self._files(), self._until(patience)
        if not places:
            return await self._newest(files, Anywhere(), until)
        return await self._newest(files, Within(places), until) or await self._newest(files, Around(places), until)

    async def request(self, session: ChatSession, index: int) -> ChatRequest:
        """A session's request, counted from 1; `NotThere` if it has none of that number, or no file."""
        if session.chat_json_path is None:
            raise NotThere("Chat data not available for session")
        if index > session.requests_count:
            raise NotThere(f"Index {index} exceeds total requests ({session.requests_count})")
        found = await self.store.requests(session, index, index)
        if not found:
            raise NotThere("Chat data not available for session")
        return found[0]

    async def requests(self, session: ChatSession, first: int = 1, last: int | None = None) -> list[ChatRequest]:
        """A session's requests, counted from 1: all of them, or from one to another."""
        return await self.store.requests(session, first, session.requests_count if last is None else last)

    async def list(
        self,
        limit: int = 20,
        offset: int = 0,
        workspace: str | None = None,
        *,
        patience: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> ChatPage[ChatSession]:
        """Sessions, those in which something happened last before others."""
        files, unread = await self._read_all(self._until(patience), on_progress)
        found = await asyncio.to_thread(self._sessions, files)
        sessions = [session for session in found if _in_workspace(session, workspace)]
        return ChatPage(sessions[offset : offset + limit], len(sessions), limit, offset, unread)

    async def search(
        self,
        query: str,
        limit: int = 10,
        offset: int = 0,
        workspace: str | None = None,
        session_id: str | None = None,
        *,
        patience: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> ChatPage[ChatHit]:
        """Requests that have every word of a query in them or in their answer, or any if none has every one."""
        until = self._until(patience)
        files, unread = await self._read_all(until, on_progress)
        unread += await self.store.index(until=until, on_progress=on_progress)
        asked = parse_query(query)
        if not asked.groups:
            return ChatPage((), 0, limit, offset, unread)
        sessions = await asyncio.to_thread(self._sessions, files)
        if session_id is not None:
            # It may be one that cannot be read, or, which is then said, none at all.
            found = [session for session in sessions if session.session_id == session_id]
            sessions = found or [await self.session(session_id, patience=patience)]
        by_path = {
            session.chat_json_path: session
            for session in sessions
            if session.chat_json_path is not None and _in_workspace(session, workspace)
        }
        places = await self._places(asked, by_path) or await self._places(replace(asked, any_of=True), by_path)
        cut, places = len(places) > _MOST_HITS, places[:_MOST_HITS]
        hits = [await self._hit(session, index, asked) for session, index in places[offset : offset + limit]]
        return ChatPage([hit for hit in hits if hit is not None], len(places), limit, offset, unread, cut)

    async def read_all(self, on_progress: OnProgress | None = None) -> int:
        """Have every chat read and indexed, however long that takes; how many files there are."""
        files, _ = await self._read_all(None, on_progress)
        await self.store.index(on_progress=on_progress)
        return len(files)

    async def clear(self) -> None:
        """Forget what was read; the chats themselves are not touched."""
        await self.store.clear()

    async def _find_session(self, session_id: str, max_age: float, until: float | None) -> ChatSession | None:
        await self.store.files(max_age)
        await self.store.read(self.store.nameless(), until=until)
        files = await self.store.again(self.store.files_of(session_id))
        await self.store.read(files)
        return max(filter(None, map(self.store.session, files)), key=_rank, default=None)

    async def _files(self) -> list[ChatFile]:
        """Every file, latest first; those that changed last, and are likely to change again, as they are now."""
        files = await self.store.files(_FRESH)
        latest = await self.store.again(files[:_TOGETHER])
        return [*sorted(latest, key=lambda file: file.stamp.changed, reverse=True), *files[_TOGETHER:]]

    async def _newest(self, files: Sequence[ChatFile], where: Where, until: float | None) -> ChatSession | None:
        best: ChatSession | None = None
        candidates = (file for file in files if self._may_be(file, where))
        while some := list(islice(candidates, _TOGETHER)):
            if best is not None and best.requests_count and some[0].stamp.changed // 1_000_000 < best.activity:
                # Nothing happened in a file after it was written.
                break
            await self.store.read(some, until=until)
            for session in filter(None, map(self.store.session, some)):
                if session.chat_json_path is not None and where.admits(session.folders):
                    best = session if best is None else max(best, session, key=_rank)
        return best

    def _may_be(self, file: ChatFile, where: Where) -> bool:
        """Whether a session may be one of those; without opening its file, where its place tells."""
        known = self.store.session(file) if self.store.is_known(file) else None
        folders = known.folders if known is not None else file.source.folders(file)
        return where.may_admit(file.home) if folders is None else where.admits(folders)

    async def _read_all(self, until: float | None, on_progress: OnProgress | None) -> tuple[list[ChatFile], int]:
        files = await self._files()
        return files, await self.store.read(files, until=until, on_progress=on_progress)

    def _sessions(self, files: Sequence[ChatFile]) -> list[ChatSession]:
        """One session for each id, newest first."""
        found: dict[str, ChatSession] = {}
        for session in filter(None, map(self.store.session, files)):
            if session.chat_json_path is not None:
                other = found.get(session.session_id)
                found[session.session_id] = session if other is None else max(other, session, key=_rank)
        by_id = sorted(found.values(), key=lambda session: session.session_id)
        return sorted(by_id, key=_latest, reverse=True)

    async def _places(self, asked: Wanted, by_path: Mapping[str, ChatSession]) -> list[tuple[ChatSession, int]]:
        found = await self.store.search(asked, by_path, _MOST_HITS + 1)
        return [(by_path[path], index) for path, index in found]

    async def _hit(self, session: ChatSession, index: int, asked: Wanted) -> ChatHit | None:
        requests = await self.store.requests(session, index, index)
        if not requests:
            return None
        # A request may be a pasted document of megabytes.
        return ChatHit(session, index, requests[0], await asyncio.to_thread(_excerpt, requests[0], asked))

    def _until(self, patience: float | None) -> float | None:
        return None if patience is None else self._clock() + patience


def _excerpt(request: ChatRequest, asked: Wanted) -> str:
    shown = highlight(request.text, asked.words) or highlight(request.answer, asked.words)
    return shown or cut(request.text or request.answer)


def _rank(session: ChatSession) -> tuple[bool, bool, int, int]:
    """Of several: one whose file can be read, in which something was asked, and that latest."""
    return session.chat_json_path is not None, session.requests_count > 0, *_latest(session)


def _latest(session: ChatSession) -> tuple[int, int]:
    return session.activity, session.last_seen or 0


def _in_workspace(session: ChatSession, workspace: str | None) -> bool:
    return workspace is None or belongs(session.folders, [workspace])
