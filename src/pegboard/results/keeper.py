"""Keeps whole results for those whose they are, until they were not read for a while, and as many as there is room for.

A text is compressed and written in pieces of so many characters, so that a part of it is read without the rest.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.clients.client import Client
from pegboard.log import logger
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.storage.database import StorageError
from pegboard.storage.results import ResultOwner, ResultStore, size_of_row
from pegboard.task_set import TaskSet
from pegboard.text import quote_start

PREFIX = "r_"
# A kept result as a resource.
URI = "pegboard://result/"
# The member of an argument that stands for one.
HANDLE_KEY = "$result"
# Seconds since a result was last read.
LIFETIME = 3600.0
# Bytes of what is kept, compressed: of one principal, and in all.
SHARE = 64 * 1024 * 1024
MOST = 1024 * 1024 * 1024
# Results of one principal.
MOST_RESULTS = 1000
# Characters of a piece.
PIECE = 500_000
_ID_BYTES = 16
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result that is kept: how long its text is, and where in it there is JSON, if that is most of it."""

    result_id: str
    characters: int
    facts: Mapping[str, Any]

    @property
    def json(self) -> tuple[int, int] | None:
        """Where the JSON begins and ends."""
        return (self.facts["start"], self.facts["end"]) if "start" in self.facts else None

    @property
    def path(self) -> str | None:
        """Where in it the records stand; `None` if it has none."""
        return self.facts.get("path")


class ResultKeeper:
    """The kept results of a board."""

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._tasks = TaskSet()
        self._cleaning: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Forget what expired while nobody looked."""
        try:
            await self._store.remove_expired(time.time() - LIFETIME)
        except StorageError as exc:
            logger().warning("results.clean.failed", reason=str(exc))

    async def close(self) -> None:
        """Stop what is under way."""
        await self._tasks.close()

    async def keep(self, text: str, facts: Mapping[str, Any], owner: ResultOwner) -> str | None:
        """Keep a text; the id that it can be read by, or `None` if that cannot be."""
        result_id = PREFIX + secrets.token_urlsafe(_ID_BYTES)
        try:
            is_kept = await self._keep(result_id, text, facts, owner)
        except StorageError as exc:
            logger().warning("result.keep.failed", reason=str(exc))
            return None
        if not is_kept:
            logger().warning("result.keep.failed", reason=f"it has more than {SHARE:,} bytes")
            return None
        if self._cleaning is None:
            self._cleaning = self._tasks.spawn(self._clean_up())
        return result_id

    async def _keep(self, result_id: str, text: str, facts: Mapping[str, Any], owner: ResultOwner) -> bool:
        written = exactjson.dump(dict(facts), ascii_only=True).decode()
        await self._store.begin(result_id, owner, written, len(text), time.time())
        size = size_of_row(written)
        try:
            for number, start in enumerate(range(0, len(text), PIECE)):
                piece = await asyncio.to_thread(_pack, text, start)
                size += len(piece)
                if size > SHARE:
                    break
                await self._store.add(result_id, number, piece)
            else:
                expired = time.time() - LIFETIME
                return await self._store.finish(
                    result_id, owner, expired=expired, count=MOST_RESULTS, share=SHARE, most=MOST
                )
        except BaseException:
            self._tasks.spawn(self._forget(result_id))
            raise
        await self._store.remove(result_id)
        return False

    async def find(self, result_id: str, owner: ResultOwner) -> KeptResult:
        """A result of this owner by its id or URI; `ToolFailure` in the same words for one that is somebody else's, or
        gone, or never was."""
        now = time.time()
        result_id = result_id.removeprefix(URI)
        found = await self._store.find(result_id, owner, now, now - LIFETIME) if _is_id(result_id) else None
        if found is None:
            shown = quote_start(result_id, _SHOWN)
            words = f'there is no result "{shown}" any more, or none of yours: call the tool again that gave it'
            raise ToolFailure(ToolErrorCode.NOT_FOUND, words, retryable=False)
        return KeptResult(result_id, found[1], exactjson.parse_object(found[0]))

    async def read(self, kept: KeptResult, start: int = 0, end: int | None = None) -> str:
        """The text from one place to another."""
        stop = kept.characters if end is None else min(end, kept.characters)
        texts = [text async for _, text in self.pieces(kept, start, stop)]
        return await asyncio.to_thread("".join, texts) if len(texts) > 1 else "".join(texts)

    async def pieces(self, kept: KeptResult, start: int, end: int) -> AsyncIterator[tuple[int, str]]:
        """The same piece by piece, each with the place where it begins."""
        for number in range(start // PIECE, -(-end // PIECE) if end > start else 0):
            rows = await self._store.pieces(kept.result_id, number, number + 1)
            if not rows:
                words = f'the result "{kept.result_id}" has just been removed: call the tool again that gave it'
                raise ToolFailure(ToolErrorCode.NOT_FOUND, words, retryable=False)
            text = await asyncio.to_thread(_unpack, rows[0])
            first, last = max(start - number * PIECE, 0), min(end - number * PIECE, PIECE)
            yield number * PIECE + first, text if (first, last) == (0, PIECE) else text[first:last]

    async def _forget(self, result_id: str) -> None:
        try:
            await self._store.remove(result_id)
        except StorageError as exc:
            logger().warning("result.remove.failed", reason=str(exc))

    async def _clean_up(self) -> None:
        """What nobody reads any more does not stay on the disk."""
        while True:
            await asyncio.sleep(LIFETIME / 4)
            await self.open()


def owner_of(client: Client) -> ResultOwner:
    """Whose the results of a client are."""
    return ResultOwner(client.principal.id, (client.session or "") if client.era == "handshake" else "")


def expiry(now: float) -> str:
    """When a result that was read now will be gone, as it is written."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + LIFETIME))


def _is_id(text: str) -> bool:
    return text.startswith(PREFIX) and len(text) <= _SHOWN and text.isascii()


def _pack(text: str, start: int) -> bytes:
    return zlib.compress(text[start : start + PIECE].encode("utf-8", "surrogatepass"), 1)


def _unpack(piece: bytes) -> str:
    return zlib.decompress(piece).decode("utf-8", "surrogatepass")
