"""The tables of the index of chats."""

from __future__ import annotations

from pegboard.storage.migration import Migration

# Steps are added, never changed.
STEPS: tuple[Migration, ...] = (
    # 1: what is known of chats, by the file that each is in; an edition tells one writing of a row from another
    Migration(
        sqlite="""
    CREATE TABLE chat_files (
        id      {serial},
        path    {bytes} NOT NULL UNIQUE,
        size    {integer} NOT NULL,
        changed {integer} NOT NULL,
        inode   {integer} NOT NULL,
        touched {integer} NOT NULL,
        reader  {integer} NOT NULL,
        edition {integer} NOT NULL,
        session {text} NOT NULL
    ){strict};
    CREATE TABLE chat_requests (
        id       {serial},
        file     {integer} NOT NULL REFERENCES chat_files (id),
        position {integer} NOT NULL,
        digest   {bytes} NOT NULL,
        body     {bytes} NOT NULL,
        indexed  {integer} NOT NULL,
        UNIQUE (file, position)
    ){strict};
    CREATE INDEX chat_requests_to_index ON chat_requests (file, position) WHERE indexed = 0;
    CREATE VIRTUAL TABLE chat_words USING fts5(request, answer, tokenize = 'ascii');
    """
    ),
)
