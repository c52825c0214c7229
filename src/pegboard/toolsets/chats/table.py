"""What is kept of chats: a row for each file that was read, one for each request in it, and the words of those."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pegboard import exactjson
from pegboard.storage.database import Connection
from pegboard.toolsets.chats.fields import an_object
from pegboard.toolsets.chats.reading import Stamp
from pegboard.toolsets.chats.session import Request, Session
from pegboard.toolsets.chats.words import Phrase, Wanted

# Counts up when files are read in another way: what an older Pegboard made of them is then read again.
_READER = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """A request as it is kept."""

    digest: bytes
    body: bytes

    @classmethod
    def of(cls, request: Request) -> Packed:
        """As JSON, which carries every character, and compressed: chats are long."""
        data = exactjson.dump(request.to_dict())
        return cls(blake2b(data, digest_size=16).digest(), zlib.compress(data, 1))


@dataclass(frozen=True, slots=True)
class Unindexed:
    """A request whose words are not in the index yet."""

    number: int
    digest: bytes
    request: Request


class ChatTable:
    """The rows of the index."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def sessions(self) -> Iterator[tuple[str, Stamp, Session]]:
        """Every file that was read, as it looked then, and what was in it."""
        query = "SELECT path, size, changed, reader, session FROM chat_files"
        for path, size, changed, reader, session in self._connection.rows(query):
            stamp = Stamp(size, changed if reader == _READER else -1)
            yield path, stamp, Session.from_record(an_object(exactjson.parse(session)))

    def put(self, path: str, stamp: Stamp, session: Session, requests: Sequence[Packed] | None) -> None:
        """A file as it was read; without requests those from before stay."""
        values = (stamp.size, stamp.changed, _READER, exactjson.dump(session.to_record()).decode())
        row = self._connection.row(
            "INSERT INTO chat_files (path, size, changed, reader, session) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET size = excluded.size, changed = excluded.changed,"
            " reader = excluded.reader, session = excluded.session RETURNING id",
            *(path, *values),
        )
        assert row is not None
        if requests is not None:
            self._put_requests(int(row[0]), requests)

    def forget(self, paths: Sequence[str]) -> None:
        """Files that are gone: nothing of what was in them stays."""
        for path in paths:
            row = self._connection.row("SELECT id FROM chat_files WHERE path = ?", path)
            if row is not None:
                self._put_requests(int(row[0]), ())
                self._connection.execute("DELETE FROM chat_files WHERE id = ?", row[0])

    def paths(self) -> list[str]:
        """Every file there is a row of."""
        return [row[0] for row in self._connection.rows("SELECT path FROM chat_files")]

    def requests(self, path: str, first: int, last: int) -> list[Request]:
        """The requests of a file from one position to another, both counted from 1."""
        rows = self._connection.rows(
            "SELECT r.body FROM chat_requests r JOIN chat_files f ON f.id = r.file"
            " WHERE f.path = ? AND r.position BETWEEN ? AND ? ORDER BY r.position",
            *(path, first, last),
        )
        return [_unpacked(row[0]) for row in rows]

    def unindexed(self, most: int) -> list[Unindexed]:
        """Some of the requests whose words are not in the index yet."""
        rows = self._connection.rows("SELECT id, digest, body FROM chat_requests WHERE indexed = 0 LIMIT ?", most)
        return [Unindexed(int(number), bytes(digest), _unpacked(body)) for number, digest, body in rows]

    def count_unindexed(self) -> int:
        """How many those are."""
        row = self._connection.row("SELECT count(*) FROM chat_requests WHERE indexed = 0")
        return int(row[0]) if row else 0

    def put_words(self, number: int, digest: bytes, asked: Sequence[str], answered: Sequence[str]) -> None:
        """The words of a request, unless it has changed meanwhile or somebody else was quicker."""
        claim = "UPDATE chat_requests SET indexed = 1 WHERE id = ? AND digest = ? AND indexed = 0"
        if not self._connection.execute(claim, number, digest):
            return
        insert = "INSERT INTO chat_words (rowid, request, answer) VALUES (?, ?, ?)"
        self._connection.execute(insert, number, " ".join(asked), " ".join(answered))

    def search(self, wanted: Wanted, most: int) -> list[tuple[str, int]]:
        """Path and position of requests that have what is wanted, the best first."""
        rows = self._connection.rows(
            "SELECT f.path, r.position FROM chat_words JOIN chat_requests r ON r.id = chat_words.rowid"
            " JOIN chat_files f ON f.id = r.file WHERE chat_words MATCH ?"
            " ORDER BY bm25(chat_words, 2.0, 1.0), r.id DESC LIMIT ?",
            *(_query(wanted), most),
        )
        return [(path, int(position)) for path, position in rows]

    def _put_requests(self, file: int, requests: Sequence[Packed]) -> None:
        """Only what changed is written: most of a chat that grows stays as it is."""
        query = "SELECT position, id, digest, indexed FROM chat_requests WHERE file = ?"
        there = {
            int(at): (int(number), bytes(digest), flag)
            for at, number, digest, flag in self._connection.rows(query, file)
        }
        changed = [
            (position, packed)
            for position, packed in enumerate(requests, 1)
            if position not in there or there[position][1] != packed.digest
        ]
        gone = [position for position in there if position > len(requests)]
        self._drop_words([there[at][0] for at in (*gone, *(at for at, _ in changed if at in there)) if there[at][2]])
        self._connection.execute_many("DELETE FROM chat_requests WHERE id = ?", [(there[at][0],) for at in gone])
        self._connection.execute_many(
            "INSERT INTO chat_requests (file, position, digest, body, indexed) VALUES (?, ?, ?, ?, 0)"
            " ON CONFLICT (file, position) DO UPDATE SET digest = excluded.digest, body = excluded.body, indexed = 0",
            [(file, position, packed.digest, packed.body) for position, packed in changed],
        )

    def _drop_words(self, numbers: Sequence[int]) -> None:
        self._connection.execute_many("DELETE FROM chat_words WHERE rowid = ?", [(number,) for number in numbers])


def _unpacked(body: Any) -> Request:
    kept: Mapping[str, Any] = an_object(exactjson.parse(zlib.decompress(bytes(body))))
    return Request.from_dict(kept)


def _query(wanted: Wanted) -> str:
    def quoted(phrase: Phrase) -> str:
        return f'"{" ".join(phrase)}"'

    groups = (f"({' OR '.join(map(quoted, group))})" for group in wanted.groups)
    return (" OR " if wanted.any_of else " AND ").join(groups)
