"""The numbered steps from an empty SQLite file to the newest schema. Steps are added, never changed."""

from __future__ import annotations

SQLITE: tuple[str, ...] = (
    # 1: the catalog
    """
    CREATE TABLE catalog (
        server        TEXT NOT NULL,
        fingerprint   TEXT NOT NULL,
        era           TEXT NOT NULL,
        version       TEXT NOT NULL,
        capabilities  TEXT NOT NULL,
        server_info   TEXT NOT NULL,
        instructions  TEXT,
        tools         TEXT NOT NULL,
        discovered_at REAL NOT NULL,
        ttl           REAL,
        PRIMARY KEY (server, fingerprint)
    ) STRICT;
    """,
    # 2: prompts, resources and templates beside the tools
    """
    ALTER TABLE catalog ADD COLUMN prompts TEXT;
    ALTER TABLE catalog ADD COLUMN resources TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE catalog ADD COLUMN templates TEXT NOT NULL DEFAULT '[]';
    """,
    # 3: named boards
    """
    CREATE TABLE boards (
        name  TEXT PRIMARY KEY,
        tools TEXT NOT NULL
    ) STRICT;
    """,
)
