"""The full-text index over memories: FTS5 in SQLite, tsvector in PostgreSQL, the same words in both.

What is wanted is said as groups of phrases: of each group one has to be there. The words come from `words`, letters and
digits alone, so no input can be taken for an operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pegboard.result import invalid
from pegboard.search.tokens import terms_by_word
from pegboard.storage.database import DatabaseConnection, Value
from pegboard.storage.sql import marks, parts
from pegboard.toolsets.memory.spellings import Spellings, as_json, pairs
from pegboard.toolsets.memory.words import BREAK, distinct, index_text, spellings

Phrase = tuple[str, ...]
Wanted = Sequence[Sequence[Phrase]]

# Begins the word that stands for a namespace in the index, and that no text can have.
_SPACE = "¤"
# PostgreSQL counts positions up to here, and so many of each word.
_LAST_POSITION, _MOST_POSITIONS = 16383, 255
# It keeps so many bytes of different words and their positions for a memory, and not one more.
_MOST_BYTES = 1_000_000
# What it adds to have something at all, in the key, and in the summary: about as much as in the ranking.
_SHARES = {"": 1.0, "A": 0.34, "B": 0.25}
# The parts of a memory as PostgreSQL weighs them, and what words of theirs begin with in SQLite's label.
_COLUMNS = {"A": "key", "B": "summary", "": "body"}
_LABELS = {"A": "¶", "B": "§"}
_TITLE = "AB"


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
        fields = cls(index_text(key), index_text(summary), index_text(text), terms_by_word(f"{key}\n{summary}\n{text}"))
        if sum(len(word.encode()) for word in _words(fields)) > _MOST_BYTES:
            raise invalid("text has more different words than can be searched; write several memories and link them")
        return fields


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that is looked for, in whatever form, and what it is worth to have it."""

    forms: Sequence[Phrase]
    worth: float


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Memories to choose from: those that have any of some forms, and those that have everything of something wanted;
    `titled`, have that in key or summary."""

    any_of: Sequence[Phrase] = ()
    all_of: Wanted = ()
    titled: bool = False

    def holds(self, term: Term) -> bool:
        """Whether whoever has it is in the pool, for that alone."""
        return set(self.any_of).issuperset(term.forms)

    def asks_for(self, term: Term) -> bool:
        """Whether whoever has everything that is wanted has it."""
        return any(set(term.forms).issuperset(group) for group in self.all_of)


class FullText:
    """The index of one namespace, within one transaction."""

    def __init__(self, connection: DatabaseConnection, space: int) -> None:
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
                [(*row, _vector(fields, self._label)) for row, fields in zip(values, changed.values(), strict=True)],
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

    def covering(self, pool: CandidatePool, terms: Sequence[Term], limit: int) -> list[tuple[int, float]]:
        """Those of a pool that have most of what is looked for, by its worth, and how much that is; the most first."""
        select = self._sqlite_covering if self._connection.dialect == "sqlite" else self._postgres_covering
        sql, params = select(pool, terms)
        return [(int(memory), float(worth)) for memory, worth in self._connection.rows(sql, *params, limit)]

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

    def find_similar(self, word: str) -> dict[str, str]:
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

    def _where(self, wanted: Wanted) -> tuple[str, list[Value]]:
        if self._connection.dialect == "sqlite":
            return "memory_index MATCH ?", [self._here(_fts5(wanted))]
        clause, params = _postgres(wanted)
        return f"{self._in_space} AND {clause}", [*self._space_params, *params]

    def _here(self, expression: str) -> str:
        """An expression of FTS5 within this namespace."""
        return expression if self._is_alone else f"{_fts5_phrase((self._label,))} AND ({expression})"

    @property
    def _label(self) -> str:
        return f"{_SPACE}{self.space}"

    @property
    def _in_space(self) -> str:
        # By the label, the index leaves out at once what others have; alone, there are no others.
        return "space = ?" if self._is_alone else "space = ? AND vector @@ CAST(? AS tsquery)"

    @property
    def _space_params(self) -> list[Value]:
        return [self.space] if self._is_alone else [self.space, _quote(self._label)]

    def _sqlite_covering(self, pool: CandidatePool, terms: Sequence[Term]) -> tuple[str, list[Value]]:
        """For each thing a list of the memories that have it; the sum over all lists is what a memory covers."""
        params: list[Value] = []
        for has, worth in _fts5_lists(pool, terms):
            params += [worth, self._here(has)]
        lists = ["SELECT rowid AS memory, ? AS worth FROM memory_index WHERE memory_index MATCH ?"] * (len(params) // 2)
        sql = (
            f"SELECT memory, sum(worth) AS worth FROM ({' UNION ALL '.join(lists)})"
            " GROUP BY memory ORDER BY worth DESC, memory LIMIT ?"
        )
        return sql, params

    def _postgres_covering(self, pool: CandidatePool, terms: Sequence[Term]) -> tuple[str, list[Value]]:
        """Every memory of the pool is asked for each thing: it has to be fetched for the first one anyway."""
        asked: list[str] = []
        params: list[Value] = []
        for term in terms:
            for part, share in _SHARES.items():
                clause, values = _postgres([term.forms], part)
                asked.append(f"CASE WHEN {clause} THEN CAST(? AS DOUBLE PRECISION) ELSE 0 END")
                params += [*values, share * term.worth]
        clauses: list[str] = []
        params += self._space_params
        for wanted, where in (([pool.any_of], ""), (pool.all_of, _TITLE if pool.titled else "")):
            if wanted and all(wanted):
                clause, values = _postgres(wanted, where)
                clauses.append(clause)
                params += values
        sql = (
            f"SELECT memory, {' + '.join(asked)} AS worth FROM memory_terms"
            f" WHERE {self._in_space} AND ({' OR '.join(clauses)}) ORDER BY worth DESC, memory LIMIT ?"
        )
        return sql, params

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


def _fts5_phrase(phrase: Sequence[str]) -> str:
    return f'"{" ".join(phrase)}"'


def _fts5_lists(pool: CandidatePool, terms: Sequence[Term]) -> Iterator[tuple[str, float]]:
    """Expressions, and what it is worth to match each. Of what is common only who else in the pool has it is asked for:
    to go through them all takes long, and tells little."""
    rare = _fts5([pool.any_of]) if pool.any_of else ""
    whole = _fts5(pool.all_of, _TITLE if pool.titled else "")
    for term in terms:
        has = {part: _fts5([term.forms], part) for part in _SHARES}
        if pool.holds(term):
            yield from ((has[part], share * term.worth) for part, share in _SHARES.items())
        elif rare:
            yield f"({rare}) AND ({has['']})", term.worth
        else:
            within = (part for part in _SHARES if part or not pool.asks_for(term))
            yield from ((f"({whole}) AND ({has[part]})", _SHARES[part] * term.worth) for part in within)
    if whole:
        sure = sum(term.worth for term in terms if pool.asks_for(term))
        yield (f"({whole}) NOT ({rare})" if rare else whole), sure


def _fts5(wanted: Wanted, where: str = "") -> str:
    """An expression; `where` names the parts that have to have it, by their weights."""
    begins = [_LABELS[part] for part in where] or [""]
    return " AND ".join(
        f"({' OR '.join(_fts5_phrase([begin + word for word in phrase]) for begin in begins for phrase in group)})"
        for group in wanted
    )


def _postgres(wanted: Wanted, where: str = "") -> tuple[str, list[Value]]:
    """A condition, and its values; `where` names the parts by their weights: A the key, B the summary."""
    groups = [_postgres_group(group, where) for group in wanted]
    params: list[Value] = [value for _, values in groups for value in values]
    return f"({' AND '.join(clause for clause, _ in groups)})", params


def _postgres_group(group: Sequence[Phrase], where: str) -> tuple[str, list[str]]:
    """The words by index; that they stand side by side is seen in the text itself, however long it is."""
    weights = f":{where}" if where else ""
    columns = [column for weight, column in _COLUMNS.items() if not where or weight in where]
    single = [_quote(phrase[0]) + weights for phrase in group if len(phrase) == 1]
    clauses: list[str] = []
    params: list[str] = []
    if single:
        clauses.append("vector @@ CAST(? AS tsquery)")
        params.append(" | ".join(single))
    for phrase in group:
        if len(phrase) > 1:
            there = " OR ".join(f"strpos(' ' || {column} || ' ', ?) > 0" for column in columns)
            clauses.append(f"(vector @@ CAST(? AS tsquery) AND ({there}))")
            params += [" & ".join(_quote(word) + weights for word in dict.fromkeys(phrase))]
            params += [f" {' '.join(phrase)} "] * len(columns)
    return f"({' OR '.join(clauses)})", params


def _vector(fields: Fields, label: str) -> str:
    """The words with their places, the way PostgreSQL writes a tsvector: A for the key, B for the summary; and which
    namespace they are of."""
    places: dict[str, list[str]] = {}
    size = at = 0
    for weight, text in (("A", fields.key), ("B", fields.summary), ("", fields.text)):
        for word in text.split(" "):
            at += 1
            if word and word != BREAK and len(found := places.setdefault(word, [])) < _MOST_POSITIONS:
                found.append(f"{min(at, _LAST_POSITION)}{weight}")
                size += 2 if len(found) > 1 else len(word.encode()) + 6
    if size > _MOST_BYTES:
        return " ".join(map(_quote, (label, *places)))
    placed = (f"{_quote(word)}:{','.join(dict.fromkeys(found))}" for word, found in places.items())
    return " ".join((_quote(label), *placed))


def _quote(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
