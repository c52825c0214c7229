"""The tables of memories."""

from __future__ import annotations

from pegboard.storage.migration import Migration

# By their numbers among all steps of the database. Steps are added, never changed.
STEPS = {
    4: Migration(
        """
    CREATE TABLE memory_spaces (
        id       {serial},
        name     {text} NOT NULL UNIQUE,
        memories {integer} NOT NULL
    ){strict};
    CREATE TABLE memories (
        id               {serial},
        space            {integer} NOT NULL REFERENCES memory_spaces (id),
        key              {text} NOT NULL,
        summary          {text} NOT NULL,
        text             {text} NOT NULL,
        version          {integer} NOT NULL,
        base             {real} NOT NULL,
        access_count     {integer} NOT NULL,
        traverse_count   {integer} NOT NULL,
        created_at       {real} NOT NULL,
        updated_at       {real} NOT NULL,
        last_accessed_at {real} NOT NULL,
        UNIQUE (space, key)
    ){strict};
    CREATE INDEX memories_by_change ON memories (space, updated_at DESC, key);
    CREATE TABLE memory_links (
        id     {serial},
        space  {integer} NOT NULL REFERENCES memory_spaces (id),
        source {integer} NOT NULL REFERENCES memories (id),
        target {text} NOT NULL,
        type   {text} NOT NULL,
        term   {text} NOT NULL,
        weight {real} NOT NULL,
        UNIQUE (source, target, type)
    ){strict};
    CREATE INDEX memory_links_by_target ON memory_links (space, target);
    """,
        sqlite="""
    -- The label says which namespace it is, and again the words of key and summary: who has a word there is then found
    -- without looking at everybody who has it anywhere.
    CREATE TABLE memory_terms (
        memory  INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
        space   INTEGER NOT NULL,
        key     TEXT NOT NULL,
        summary TEXT NOT NULL,
        body    TEXT NOT NULL,
        label   TEXT NOT NULL GENERATED ALWAYS AS (
            '¤' || space || ' ¶' || replace(key, ' ', ' ¶') || ' §' || replace(summary, ' ', ' §')
        ) VIRTUAL
    ) STRICT;
    CREATE VIRTUAL TABLE memory_index USING fts5(
        label, key, summary, body, content = 'memory_terms', content_rowid = 'memory', tokenize = 'ascii'
    );
    CREATE TRIGGER memory_terms_come AFTER INSERT ON memory_terms BEGIN
        INSERT INTO memory_index (rowid, label, key, summary, body)
        VALUES (new.memory, new.label, new.key, new.summary, new.body);
    END;
    CREATE TRIGGER memory_terms_go AFTER DELETE ON memory_terms BEGIN
        INSERT INTO memory_index (memory_index, rowid, label, key, summary, body)
        VALUES ('delete', old.memory, old.label, old.key, old.summary, old.body);
    END;
    -- Not by word: the counts of frequent words stand side by side, as these came first, and few pages are written.
    CREATE TABLE memory_words (
        id        INTEGER PRIMARY KEY,
        space     INTEGER NOT NULL,
        word      TEXT NOT NULL,
        documents INTEGER NOT NULL,
        UNIQUE (space, word)
    ) STRICT;
    CREATE TABLE memory_spelt (
        id    INTEGER PRIMARY KEY,
        space INTEGER NOT NULL,
        word  TEXT NOT NULL,
        term  TEXT NOT NULL,
        UNIQUE (space, word)
    ) STRICT;
    -- As a table they would be written all over the file.
    CREATE VIRTUAL TABLE memory_spellings USING fts5(
        variants, content = '', detail = none, columnsize = 0, tokenize = 'ascii'
    );
    """,
        postgres="""
    CREATE TABLE memory_terms (
        memory  {integer} PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
        space   {integer} NOT NULL,
        key     {text} NOT NULL,
        summary {text} NOT NULL,
        body    {text} NOT NULL,
        vector  TSVECTOR NOT NULL
    );
    CREATE INDEX memory_terms_by_word ON memory_terms USING gin (vector);
    CREATE TABLE memory_words (
        space     {integer} NOT NULL,
        word      {text} NOT NULL,
        documents {integer} NOT NULL,
        PRIMARY KEY (space, word)
    );
    CREATE TABLE memory_spelt (
        space {integer} NOT NULL,
        word  {text} NOT NULL,
        term  {text} NOT NULL,
        PRIMARY KEY (space, word)
    );
    CREATE TABLE memory_spellings (
        space   {integer} NOT NULL,
        variant {text} NOT NULL,
        word    {text} NOT NULL,
        PRIMARY KEY (space, variant, word)
    );
    """,
    ),
}
