"""How the words of a namespace are spelt, so that a beginning or a mistyped word finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from pegboard import exactjson
from pegboard.storage.database import DatabaseConnection
from pegboard.storage.sql import marks, parts
from pegboard.toolsets.memory.words import can_be_misspelt, can_be_spelt, spellings

# Every spelling of a word begins as its term does, but for three: dying, lying and tying.
_BEGINNING = 2
_LAST_CHARACTER = "\U0010ffff"


class Spellings:
    """The spellings of one namespace, within one transaction."""

    def __init__(self, connection: DatabaseConnection, space: int) -> None:
        self._connection = connection
        self._space = space

    def learn(self, words: Mapping[str, str]) -> None:
        """Keep how words are spelt, with what the index knows them as."""
        sqlite = self._connection.dialect == "sqlite"
        rows = self._connection.rows(
            f"INSERT INTO memory_spelt (space, word, term) {pairs(self._connection, 'TEXT')}"
            f" ON CONFLICT DO NOTHING RETURNING word{', id' if sqlite else ''}",
            *(self._space, as_json(words)),
        )
        variants = {row: sorted(spellings(row[0])) for row in rows if can_be_misspelt(row[0])}
        if sqlite:
            self._connection.execute_many(
                "INSERT INTO memory_spellings (rowid, variants) VALUES (?, ?)",
                [(number, " ".join(each)) for (_, number), each in variants.items()],
            )
        elif variants:
            self._connection.execute(
                "INSERT INTO memory_spellings (space, variant, word)"
                " SELECT CAST(? AS BIGINT), json_array_elements_text(value), key FROM json_each(CAST(? AS json))"
                " ON CONFLICT DO NOTHING",
                *(self._space, as_json({word: each for (word,), each in variants.items()})),
            )

    def forget(self, terms: Iterable[str]) -> None:
        """Strike every spelling of words that no memory has any more: nothing is left of what somebody deleted."""
        gone = sorted(filter(can_be_spelt, terms))
        # There is no index by term; by their beginnings, few spellings are looked at.
        for beginning, alike in groupby(gone, key=lambda term: term[:_BEGINNING]):
            for part in parts(list(alike)):
                self._strike(beginning, part)

    def _strike(self, beginning: str, terms: Iterable[str]) -> None:
        given = list(terms)
        sqlite = self._connection.dialect == "sqlite"
        rows = self._connection.rows(
            f"DELETE FROM memory_spelt WHERE space = ? AND word >= ? AND word <= ? AND term IN ({marks(given)})"
            f" RETURNING word{', id' if sqlite else ''}",
            *(self._space, beginning, beginning + _LAST_CHARACTER, *given),
        )
        variants = {row: sorted(spellings(row[0])) for row in rows if can_be_misspelt(row[0])}
        if sqlite:
            # This kind of table does not keep what it indexes, and has to be told what to take out.
            self._connection.execute_many(
                "INSERT INTO memory_spellings (memory_spellings, rowid, variants) VALUES ('delete', ?, ?)",
                [(number, " ".join(each)) for (_, number), each in variants.items()],
            )
        elif variants:
            self._connection.execute(
                "DELETE FROM memory_spellings s"
                " USING (SELECT key AS word, json_array_elements_text(value) AS variant"
                " FROM json_each(CAST(? AS json))) gone"
                " WHERE s.space = ? AND s.variant = gone.variant AND s.word = gone.word",
                *(as_json({word: each for (word,), each in variants.items()}), self._space),
            )


def pairs(connection: DatabaseConnection, kind: str) -> str:
    """A SELECT of the namespace and each pair of an object, so that one statement takes many words."""
    if connection.dialect == "sqlite":
        # Without a WHERE, SQLite would take ON CONFLICT for the ON of a join.
        return "SELECT ?, key, value FROM json_each(?) WHERE true"
    return f"SELECT CAST(? AS BIGINT), key, CAST(value AS {kind}) FROM json_each_text(CAST(? AS json))"


def as_json(words: Mapping[str, object]) -> str:
    """In one order everywhere, so that two writers never wait for each other."""
    return exactjson.dump(dict(sorted(words.items()))).decode()
