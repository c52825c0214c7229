"""What has to be true of the tables whatever was done to them."""

from __future__ import annotations

from collections import Counter

from pegboard.storage.database import Database, DatabaseConnection
from pegboard.toolsets.memory.fulltext import Fields
from pegboard.toolsets.memory.words import can_be_misspelt, distinct, spellings


async def assert_consistent(database: Database) -> None:
    """The full-text index and every count say the same as the memories themselves."""
    await database.write(_check)


def _check(connection: DatabaseConnection) -> None:
    if connection.dialect == "sqlite":
        connection.execute("INSERT INTO memory_index (memory_index, rank) VALUES ('integrity-check', 1)")
        assert connection.row("PRAGMA integrity_check") == ("ok",)
        assert connection.rows("PRAGMA foreign_key_check") == []
    kept = connection.rows("SELECT id, space, key, summary, text FROM memories")
    fields = {number: Fields.of(*parts) for number, _, *parts in kept}
    spaces = {number: space for number, space, *_ in kept}
    terms = connection.rows("SELECT memory, space, key, summary, body FROM memory_terms")
    assert {number: Fields(*parts) for number, _, *parts in terms} == fields
    assert {number: space for number, space, *_ in terms} == spaces
    _check_words(connection, fields, spaces)
    counted = connection.rows("SELECT id, memories FROM memory_spaces WHERE memories <> 0")
    assert dict(counted) == Counter(spaces.values())
    assert connection.rows("SELECT source FROM memory_links WHERE source NOT IN (SELECT id FROM memories)") == []


def _check_words(connection: DatabaseConnection, fields: dict[int, Fields], spaces: dict[int, int]) -> None:
    words = Counter(
        (spaces[number], word)
        for number, each in fields.items()
        for word in distinct(each.key, each.summary, each.text)
    )
    documents = connection.rows("SELECT space, word, documents FROM memory_words")
    assert {(space, word): number for space, word, number in documents} == words
    learnt = connection.rows("SELECT space, word, term FROM memory_spelt")
    spelt = {(space, word): term for space, word, term in learnt}
    variants = _variants(connection)
    # Nothing is left of words that nobody has any more.
    assert {(space, term) for (space, _), term in spelt.items()} <= words.keys()
    assert {(space, word) for space, word, _ in variants} <= spelt.keys()
    for number, each in fields.items():
        space = spaces[number]
        assert {word: spelt[space, word] for word in each.spelt} == each.spelt
        likely = [word for word in each.spelt if can_be_misspelt(word)]
        assert {(space, word, variant) for word in likely for variant in spellings(word)} <= variants
    if connection.dialect == "postgres":
        _check_vectors(connection, fields)


def _variants(connection: DatabaseConnection) -> set[tuple[int, str, str]]:
    """By which variant which word of which namespace is found."""
    if connection.dialect == "postgres":
        return {(*row,) for row in connection.rows("SELECT space, word, variant FROM memory_spellings")}
    connection.execute("CREATE VIRTUAL TABLE temp.variants USING fts5vocab(main, memory_spellings, instance)")
    rows = connection.rows("SELECT s.space, s.word, v.term FROM temp.variants v JOIN memory_spelt s ON s.id = v.doc")
    connection.execute("DROP TABLE temp.variants")
    return {(*row,) for row in rows}


def _check_vectors(connection: DatabaseConnection, fields: dict[int, Fields]) -> None:
    """PostgreSQL's own index has the words of each memory, and which namespace they are of."""
    rows = connection.rows("SELECT memory, space, tsvector_to_array(vector) FROM memory_terms")
    spaces = {number: space for number, space, _ in rows}
    assert {number: set(words) for number, _, words in rows} == {
        number: distinct(each.key, each.summary, each.text) | {f"¤{spaces[number]}"} for number, each in fields.items()
    }
