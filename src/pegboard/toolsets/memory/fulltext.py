"""The full-text index over memories: FTS5 in SQLite, tsvector in PostgreSQL, the same words in both.

What is wanted is said as groups of phrases: of each group one has to be there. The words come from `words`, letters and
digits alone, so no input can be taken for an operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pegboard.result import invalid
from pegboard.search.tokens import spelt
from pegboard.storage.database import Connection, Value
from pegboard.storage.many import marks, parts
from pegboard.toolsets.memory.spellings import Spellings, as_json, pairs
from pegboard.toolsets.memory.words import BREAK, distinct, indexed, spellings

Phrase = tuple[str, ...]
Wanted = Sequence[Sequence[Phrase]]

# Begins the word that stands for a namespace in `memory_index`, and that no text can have.
_SPACE = "¤"
# PostgreSQL counts positions up to here, and so many of each word.
_LAST_POSITION, _MOST_POSITIONS = 16383, 255
# It keeps so many bytes of different words and their positions for a memory, and not one more.
_MOST_BYTES = 1_000_000
# What a word counts in each column of `memory_index` when candidates are chosen; which namespace it is counts nothing.
_WEIGHTS = (0.0, 4.0, 2.0, 1.0)


@dataclass(frozen=True, slots=True)
class Fields:
    """A memory's words, as the index holds them."""

    key: str
    summary: str
    text: str
    # Words as they are spelt, with what the index knows them as.
    spelt: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    @classmethod
    def of(cls, key: str, summary: str, text: str) -> Fields:
        """The words of a memory's parts."""
        fields = cls(indexed(key), indexed(summary), indexed(text), spelt(f"{key}\n{summary}\n{text}"))
        if sum(len(word.encode()) for word in _words(fields)) > _MOST_BYTES:
            raise invalid("text has more different words than can be searched; write several memories and link them")
        return fields


class FullText:
    """The index of one namespace, within one transaction."""

    def __init__(self, connection: Connection, space: int) -> None:
        self._connection = connection
        self.space = space

    @cached_property
    def size(self) -> int:
        """How many memories the namespace has."""
        row = self._connection.row("SELECT memories FROM memory_spaces WHERE id = ?", self.space)
        return int(row[0]) if row else 0

    def put(self, memory: int, fields: Fields) -> None:
        """Enter a memory, or enter it anew."""
        self.put_all({memory: fields})

    def put_all(self, entered: Mapping[int, Fields]) -> None:
        """Enter memories, or enter them anew, with as few statements as one takes."""
        # Another spelling of a word is new even where the index knows both as the same.
        self._spellings.learn({word: term for fields in entered.values() for word, term in fields.spelt.items()})
        before = self.fields(list(entered))
        changed = {memory: fields for memory, fields in entered.items() if before.get(memory) != fields}
        self._strike([memory for memory in changed if memory in before])
        values = [(memory, self.space, each.key, each.summary, each.text) for memory, each in changed.items()]
        if self._connection.dialect == "sqlite":
            self._connection.execute_many(
                "INSERT INTO memory_terms (memory, space, key, summary, body) VALUES (?, ?, ?, ?, ?)", values
            )
        else:
            self._connection.execute_many(
                "INSERT INTO memory_terms (memory, space, key, summary, body, vector)"
                " VALUES (?, ?, ?, ?, ?, CAST(? AS tsvector))",
                [(*row, _vector(fields)) for row, fields in zip(values, changed.values(), strict=True)],
            )
        self._count((before.get(memory) for memory in changed), changed.values())

    def drop(self, memory: int) -> None:
        """Strike a memory."""
        before = self.fields([memory])
        self._strike([memory])
        self._count(before.values(), ())

    def total(self, wanted: Wanted) -> int:
        """How many memories have what is wanted."""
        where, params = self._where(wanted)
        row = self._connection.row(f"SELECT count(*) FROM {self._source} WHERE {where}", *params)
        return int(row[0]) if row else 0

    def best(self, wanted: Wanted, limit: int, offset: int = 0, *, titled: bool = False) -> list[int]:
        """Those that have it, roughly the best first; `titled`, those that have it in key or summary."""
        where, params = self._where(wanted, titled=titled)
        if self._connection.dialect == "sqlite":
            order = f"bm25(memory_index, {', '.join(map(str, _WEIGHTS))}), memory_index.rowid"
            sql = f"SELECT memory_index.rowid FROM memory_index WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
            return [int(row[0]) for row in self._connection.rows(sql, *params, limit, offset)]
        words = " | ".join(
            _quoted(word) for word in dict.fromkeys(word for group in wanted for p in group for word in p)
        )
        rows = self._connection.rows(
            f"SELECT memory FROM memory_terms WHERE {where}"
            " ORDER BY ts_rank('{0.1, 0.25, 0.5, 1.0}', vector, CAST(? AS tsquery)) DESC, memory LIMIT ? OFFSET ?",
            *(*params, words, limit, offset),
        )
        return [int(row[0]) for row in rows]

    def fields(self, memories: Sequence[int]) -> dict[int, Fields]:
        """The words of these memories."""
        found: dict[int, Fields] = {}
        for part in parts(memories):
            rows = self._connection.rows(
                f"SELECT memory, key, summary, body FROM memory_terms WHERE memory IN ({marks(part)})",
                *part,
            )
            found.update({int(memory): Fields(key, summary, text) for memory, key, summary, text in rows})
        return found

    def frequencies(self, words: Iterable[str]) -> dict[str, int]:
        """How many memories have each of these words; a word that none has is left out."""
        found: dict[str, int] = {}
        asked = sorted(set(words))
        for part in parts(asked):
            rows = self._connection.rows(
                "SELECT word, documents FROM memory_words"
                f" WHERE space = ? AND documents > 0 AND word IN ({marks(part)})",
                self.space,
                *part,
            )
            found.update({word: int(documents) for word, documents in rows})
        return found

    def beginning_with(self, beginning: str, most: int) -> list[str]:
        """Words that are longer and begin so, as the index knows them, those of most memories first."""
        # The last character there is: what begins alike stands before it.
        end = beginning + "\U0010ffff"
        rows = self._connection.rows(
            "SELECT w.word FROM memory_spelt s JOIN memory_words w ON w.space = s.space AND w.word = s.term"
            " WHERE s.space = ? AND s.word > ? AND s.word < ? AND w.documents > 0"
            " GROUP BY w.word, w.documents ORDER BY w.documents DESC, w.word LIMIT ?",
            *(self.space, beginning, end, most),
        )
        return [row[0] for row in rows]

    def spelt_like(self, word: str) -> dict[str, str]:
        """Words that a mistyped one may stand for, with what the index knows them as."""
        variants = sorted(spellings(word))
        if self._connection.dialect == "sqlite":
            # CROSS JOIN keeps this order: otherwise all words are asked, one by one, whether they match.
            sql = (
                "SELECT s.word, s.term FROM memory_spellings CROSS JOIN memory_spelt s ON s.id = memory_spellings.rowid"
                " CROSS JOIN memory_words w ON w.space = s.space AND w.word = s.term"
                " WHERE memory_spellings MATCH ? AND s.space = ? AND w.documents > 0"
            )
            return dict(self._connection.rows(sql, " OR ".join(_fts5_phrase((each,)) for each in variants), self.space))
        rows = self._connection.rows(
            "SELECT DISTINCT s.word, s.term FROM memory_spellings v"
            " JOIN memory_spelt s ON s.space = v.space AND s.word = v.word"
            " JOIN memory_words w ON w.space = s.space AND w.word = s.term"
            f" WHERE v.space = ? AND w.documents > 0 AND v.variant IN ({marks(variants)})",
            self.space,
            *variants,
        )
        return dict(rows)

    @cached_property
    def _is_alone(self) -> bool:
        """Whether no other namespace has anything, so that which one it is need not be looked up for each word."""
        others = "SELECT 1 FROM memory_spaces WHERE memories > 0 AND id <> ? LIMIT 1"
        return self._connection.row(others, self.space) is None

    @property
    def _source(self) -> str:
        return "memory_index" if self._connection.dialect == "sqlite" else "memory_terms"

    def _where(self, wanted: Wanted, *, titled: bool = False) -> tuple[str, list[Value]]:
        if self._connection.dialect == "sqlite":
            columns = "{key summary} : " if titled else ""
            groups = [f"{columns}({' OR '.join(_fts5_phrase(phrase) for phrase in group)})" for group in wanted]
            spaced = groups if self._is_alone else [_fts5_phrase((f"{_SPACE}{self.space}",)), *groups]
            return "memory_index MATCH ?", [" AND ".join(spaced)]
        clauses: list[str] = ["space = ?"]
        params: list[Value] = [self.space]
        for group in wanted:
            clause, values = _postgres_group(group, ":AB" if titled else "")
            clauses.append(clause)
            params += values
        return " AND ".join(clauses), params

    def _strike(self, memories: Sequence[int]) -> None:
        for part in parts(memories):
            self._connection.execute(f"DELETE FROM memory_terms WHERE memory IN ({marks(part)})", *part)

    def _count(self, before: Iterable[Fields | None], after: Iterable[Fields | None]) -> None:
        """Keep the number of memories of each word true, and no word that none has."""
        counts = Counter(word for fields in after for word in _words(fields))
        counts.subtract(word for fields in before for word in _words(fields))
        self._connection.execute(
            f"INSERT INTO memory_words (space, word, documents) {pairs(self._connection, 'BIGINT')}"
            " ON CONFLICT (space, word) DO UPDATE SET documents = memory_words.documents + excluded.documents",
            *(self.space, as_json({word: number for word, number in counts.items() if number})),
        )
        gone: list[str] = []
        for part in parts(sorted(word for word, number in counts.items() if number < 0)):
            sql = f"DELETE FROM memory_words WHERE space = ? AND documents <= 0 AND word IN ({marks(part)})"
            gone += [row[0] for row in self._connection.rows(f"{sql} RETURNING word", self.space, *part)]
        self._spellings.forget(gone)

    @property
    def _spellings(self) -> Spellings:
        return Spellings(self._connection, self.space)


def _words(fields: Fields | None) -> set[str]:
    return set() if fields is None else distinct(fields.key, fields.summary, fields.text)


def _fts5_phrase(phrase: Phrase) -> str:
    return f'"{" ".join(phrase)}"'


def _postgres_group(group: Sequence[Phrase], where: str) -> tuple[str, list[str]]:
    """The words by index; that they stand side by side is seen in the text itself, however long it is."""
    single = [_quoted(phrase[0]) + where for phrase in group if len(phrase) == 1]
    clauses: list[str] = []
    params: list[str] = []
    if single:
        clauses.append("vector @@ CAST(? AS tsquery)")
        params.append(" | ".join(single))
    for phrase in group:
        if len(phrase) > 1:
            text = f" {' '.join(phrase)} "
            clauses.append(
                "(vector @@ CAST(? AS tsquery) AND (strpos(' ' || key || ' ', ?) > 0"
                " OR strpos(' ' || summary || ' ', ?) > 0 OR strpos(' ' || body || ' ', ?) > 0))"
            )
            params += [" & ".join(_quoted(word) for word in dict.fromkeys(phrase)), text, text, text]
    return f"({' OR '.join(clauses)})", params


def _vector(fields: Fields) -> str:
    """The words with their places, the way PostgreSQL writes a tsvector: A for the key, B for the summary."""
    places: dict[str, list[str]] = {}
    size = at = 0
    for weight, text in (("A", fields.key), ("B", fields.summary), ("", fields.text)):
        for word in text.split(" "):
            at += 1
            if word and word != BREAK and len(found := places.setdefault(word, [])) < _MOST_POSITIONS:
                found.append(f"{min(at, _LAST_POSITION)}{weight}")
                size += 2 if len(found) > 1 else len(word.encode()) + 6
    if size > _MOST_BYTES:
        return " ".join(map(_quoted, places))
    return " ".join(f"{_quoted(word)}:{','.join(dict.fromkeys(found))}" for word, found in places.items())


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
