"""What is kept of chats: a row for each file that was read, one for each request in it, and the words of those."""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pegboard import exactjson
from pegboard.storage.database import DatabaseConnection
from pegboard.toolsets.chats.fields import an_object
from pegboard.toolsets.chats.reading import NEVER, ChatFileStamp
from pegboard.toolsets.chats.session import ChatRequest, ChatSession
from pegboard.toolsets.chats.words import Phrase, Wanted

# Counts up when files are read in another way: what an older Pegboard made of them is then read again.
_READER = 2
_COLUMNS = "id, size, changed, inode, touched, reader, edition, session"


@dataclass(frozen=True, slots=True)
class Packed:
    """A request as it is kept."""

    digest: bytes
    body: bytes

    @classmethod
    def of(cls, request: ChatRequest) -> Packed:
        """As JSON, which carries every character, and compressed: chats are long."""
        data = exactjson.dump(request.to_dict())
        return cls(blake2b(data, digest_size=16).digest(), zlib.compress(data, 1))


@dataclass(frozen=True, slots=True)
class RowVersion:
    """Which row a file has, and who wrote it last: with another edition it was somebody else."""

    number: int
    edition: int


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What is kept of a file: how it looked when it was read, and what was in it."""

    row: RowVersion
    stamp: ChatFileStamp
    session: ChatSession


@dataclass(frozen=True, slots=True)
class Unindexed:
    """A request whose words are not in the index yet."""

    number: int
    digest: bytes
    request: ChatRequest


class ChatTable:
    """The rows of the index."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection

    def files(self) -> Iterator[tuple[str, SessionRow]]:
        """Every file that was read."""
        for name, *rest in self._connection.rows(f"SELECT path, {_COLUMNS} FROM chat_files"):  # noqa: S608
            path = os.fsdecode(name)
            yield path, _session_row(path, *rest)

    def file(self, path: str) -> SessionRow | None:
        """One of them."""
        query = f"SELECT {_COLUMNS} FROM chat_files WHERE path = ?"  # noqa: S608
        row = self._connection.row(query, os.fsencode(path))
        return None if row is None else _session_row(path, *row)

    def put(
        self,
        path: str,
        before: RowVersion | None,
        stamp: ChatFileStamp,
        session: ChatSession,
        requests: Sequence[Packed] | None,
    ) -> RowVersion | None:
        """A file as it was read; without requests those from before stay.

        `None`, and nothing changed, if somebody else wrote it since `before`: theirs may be the newer reading.
        """
        edition = secrets.randbits(62)
        about = exactjson.dump(session.to_record()).decode()
        values = (stamp.size, stamp.changed, stamp.inode, stamp.touched, _READER, edition, about)
        if before is None:
            row = self._connection.row(
                "INSERT INTO chat_files (size, changed, inode, touched, reader, edition, session, path)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO NOTHING RETURNING id",
                *(*values, os.fsencode(path)),
            )
        else:
            row = self._connection.row(
                "UPDATE chat_files SET size = ?, changed = ?, inode = ?, touched = ?, reader = ?, edition = ?,"
                " session = ? WHERE id = ? AND edition = ? RETURNING id",
                *(*values, before.number, before.edition),
            )
        if row is None:
            return None
        if requests is not None:
            self._put_requests(int(row[0]), requests)
        return RowVersion(int(row[0]), edition)

    def forget(self, paths: Sequence[str]) -> None:
        """Files that are gone: nothing of what was in them stays."""
        had_words = False
        for path in paths:
            row = self._connection.row("SELECT id FROM chat_files WHERE path = ?", os.fsencode(path))
            if row is not None:
                had_words = self._put_requests(int(row[0]), ()) or had_words
                self._connection.execute("DELETE FROM chat_files WHERE id = ?", row[0])
        if had_words:
            # Until its parts are merged, the index of words only notes that some are to be passed over.
            self._connection.execute("INSERT INTO chat_words (chat_words) VALUES ('optimize')")

    def paths(self) -> list[str]:
        """Every file there is a row of."""
        return [os.fsdecode(row[0]) for row in self._connection.rows("SELECT path FROM chat_files")]

    def requests(self, row: RowVersion, first: int, last: int) -> list[ChatRequest]:
        """The requests of a file from one position to another, both counted from 1; none in another edition."""
        rows = self._connection.rows(
            "SELECT r.body FROM chat_requests r JOIN chat_files f ON f.id = r.file"
            " WHERE f.id = ? AND f.edition = ? AND r.position BETWEEN ? AND ? ORDER BY r.position",
            *(row.number, row.edition, first, last),
        )
        return [_unpack(row[0]) for row in rows]

    def next_unindexed(self, most: int) -> list[Unindexed]:
        """Some of the requests whose words are not in the index yet."""
        rows = self._connection.rows("SELECT id, digest, body FROM chat_requests WHERE indexed = 0 LIMIT ?", most)
        return [Unindexed(int(number), bytes(digest), _unpack(body)) for number, digest, body in rows]

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

    def search(self, wanted: Wanted, files: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Row and position of requests in these files that have what is wanted, the best first."""
        rows = self._connection.rows(
            "SELECT r.file, r.position FROM chat_words JOIN chat_requests r ON r.id = chat_words.rowid"
            " WHERE chat_words MATCH ? AND r.file IN (SELECT value FROM json_each(?))"
            " ORDER BY bm25(chat_words, 2.0, 1.0), r.id DESC LIMIT ?",
            *(_query(wanted), exactjson.dump(files).decode(), most),
        )
        return [(int(file), int(position)) for file, position in rows]

    def _put_requests(self, file: int, requests: Sequence[Packed]) -> bool:
        """Only what changed is written: most of a chat that grows stays as it is. Whether words went."""
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
        numbers = [there[at][0] for at in (*gone, *(at for at, _ in changed if at in there)) if there[at][2]]
        self._drop_words(numbers)
        self._connection.execute_many("DELETE FROM chat_requests WHERE id = ?", [(there[at][0],) for at in gone])
        self._connection.execute_many(
            "INSERT INTO chat_requests (file, position, digest, body, indexed) VALUES (?, ?, ?, ?, 0)"
            " ON CONFLICT (file, position) DO UPDATE SET digest = excluded.digest, body = excluded.body, indexed = 0",
            [(file, position, packed.digest, packed.body) for position, packed in changed],
        )
        return bool(numbers)

    def _drop_words(self, numbers: Sequence[int]) -> None:
        self._connection.execute_many("DELETE FROM chat_words WHERE rowid = ?", [(number,) for number in numbers])


def _session_row(
    path: str, number: int, size: int, changed: int, inode: int, touched: int, reader: int, edition: int, about: str
) -> SessionRow:
    stamp = ChatFileStamp(size, changed, inode, touched) if reader == _READER else NEVER
    return SessionRow(
        RowVersion(number, edition), stamp, ChatSession.from_record(an_object(exactjson.parse(about)), path)
    )


def _unpack(body: Any) -> ChatRequest:
    kept: Mapping[str, Any] = an_object(exactjson.parse(zlib.decompress(bytes(body))))
    return ChatRequest.from_dict(kept)


def _query(wanted: Wanted) -> str:
    def quote(phrase: Phrase) -> str:
        return f'"{" ".join(phrase)}"'

    groups = (f"({' OR '.join(map(quote, group))})" for group in wanted.groups)
    return (" OR " if wanted.any_of else " AND ").join(groups)
