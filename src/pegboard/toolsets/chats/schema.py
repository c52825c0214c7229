"""The index of chats: a file of its own beside everything else that is kept.

It can be made again from the chats at any time, and it holds what people said: so it stays on the machine whose chats
they are, also where memories and boards are on a PostgreSQL that others share.
"""

from __future__ import annotations

from pegboard.config import state_folder
from pegboard.storage import OnDemand, SqliteDatabase
from pegboard.storage.migrations import Step

# Steps are added, never changed.
STEPS: tuple[Step, ...] = (
    # 1: what is known of chats, by the file that each is in
    Step(
        sqlite="""
    CREATE TABLE chat_files (
        id      {serial},
        path    {text} NOT NULL UNIQUE,
        size    {integer} NOT NULL,
        changed {integer} NOT NULL,
        reader  {integer} NOT NULL,
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


def chat_index() -> OnDemand:
    """The index in the user's state folder; nothing is opened before somebody asks for a chat."""
    return OnDemand(SqliteDatabase(state_folder() / "chats.db", STEPS))
