"""Pins as they are kept: a document for each server at one address and each sign-in that is shown something, and the
approved definitions, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pegboard.storage.database import Database, DatabaseConnection, Row

# A server, its fingerprint, and the principal whose sign-in it was; an empty one for what everybody is shown.
PinKey: TypeAlias = tuple[str, str, str]

_LOAD = "SELECT server, fingerprint, holder, document FROM pins ORDER BY server, fingerprint, holder"
_LOAD_ONE = "SELECT document FROM pins WHERE server = ? AND fingerprint = ? AND holder = ?"
_SAVE = """
INSERT INTO pins (server, fingerprint, holder, document) VALUES (?, ?, ?, ?)
ON CONFLICT (server, fingerprint, holder) DO UPDATE SET document = excluded.document
"""
_ADD_DEFINITION = """
INSERT INTO pin_definitions (server, fingerprint, digest, definition) VALUES (?, ?, ?, ?)
ON CONFLICT (server, fingerprint, digest) DO NOTHING
"""
_FIND_DEFINITION = "SELECT definition FROM pin_definitions WHERE server = ? AND fingerprint = ? AND digest = ?"
_LIST_DOCUMENTS = "SELECT document FROM pins WHERE server = ? AND fingerprint = ?"
_DROP_DEFINITION = "DELETE FROM pin_definitions WHERE server = ? AND fingerprint = ? AND digest = ?"
_VERSION = "SELECT version FROM pins_version"
# A digest as a document names it.
_DIGEST = re.compile(r'"([0-9a-f]{64})"')
# In the transaction of the change itself. Times would not do: the clocks of several machines differ.
_COUNT_CHANGE = "UPDATE pins_version SET version = version + 1"


@dataclass(frozen=True, slots=True)
class PinChange:
    """A document as it is to be, and definitions that it names, as JSON, by their digests."""

    document: str
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])
    # Digests that it names no longer.
    dropped: Collection[str] = ()


class PinStore:
    """Documents are read and changed in one transaction, so that two who decide at once both count."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def version(self) -> int:
        """Another number after each change, whoever made it."""
        return await self._database.read(_read_version)

    async def load(self) -> tuple[int, list[Row]]:
        """Every document with its key, and the version that this is."""
        return await self._database.read(lambda connection: (_read_version(connection), connection.rows(_LOAD)))

    async def change(self, key: PinKey, change: Callable[[str | None], PinChange]) -> str:
        """Put in place of a document (`None`: there is none) what is made of it; that."""

        def write(connection: DatabaseConnection) -> str:
            row = connection.row(_LOAD_ONE, *key)
            before = None if row is None else str(row[0])
            after = change(before)
            rows = [(*key[:2], digest, definition) for digest, definition in after.definitions.items()]
            if rows:
                connection.execute_many(_ADD_DEFINITION, rows)
            if after.document != before:
                connection.execute(_SAVE, *key, after.document)
                connection.execute(_COUNT_CHANGE)
            if unused := _find_unused(connection, key, after.dropped):
                connection.execute_many(_DROP_DEFINITION, [(*key[:2], digest) for digest in unused])
            return after.document

        return await self._database.write(write)

    async def definitions(self, key: PinKey, digests: Iterable[str]) -> dict[str, str]:
        """Approved definitions as JSON, those of these digests that there are."""
        wanted = sorted(set(digests))

        def read(connection: DatabaseConnection) -> dict[str, str]:
            rows = {digest: connection.row(_FIND_DEFINITION, *key[:2], digest) for digest in wanted}
            return {digest: str(row[0]) for digest, row in rows.items() if row is not None}

        return await self._database.read(read)


def _find_unused(connection: DatabaseConnection, key: PinKey, dropped: Collection[str]) -> list[str]:
    """Which of these digests no document of this server names any more. Each document is looked through once: others
    wait for this transaction."""
    unused = set(dropped)
    for row in connection.rows(_LIST_DOCUMENTS, *key[:2]) if unused else ():
        unused.difference_update(_DIGEST.findall(row[0]))
    return sorted(unused)


def _read_version(connection: DatabaseConnection) -> int:
    ((version,),) = connection.rows(_VERSION)
    return version
