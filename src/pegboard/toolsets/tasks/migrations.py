"""The tables of tasks."""

from __future__ import annotations

from pegboard.storage.migration import Migration

# By their numbers among all steps of the database. Steps are added, never changed. `version` counts the changes of a
# registry; `forgot` is the last at which rows were taken out.
STEPS = {
    5: Migration("""
    CREATE TABLE task_registries (
        id         {serial},
        root       {text} NOT NULL UNIQUE,
        version    {integer} NOT NULL,
        forgot     {integer} NOT NULL,
        created_at {real} NOT NULL,
        synced_at  {real}
    ){strict};
    CREATE TABLE tasks (
        id           {serial},
        registry     {integer} NOT NULL REFERENCES task_registries (id),
        change_id    {text} NOT NULL,
        number       {integer} NOT NULL,
        digest       {text} NOT NULL,
        content      {text} NOT NULL,
        ticked       {integer} NOT NULL,
        depends      {text} NOT NULL,
        status       {text},
        priority     {text},
        assignee     {text},
        notes        {text},
        started_at   {real},
        completed_at {real},
        gone         {integer} NOT NULL,
        version      {integer} NOT NULL
    ){strict};
    CREATE INDEX tasks_by_place ON tasks (registry, change_id, number);
    CREATE INDEX tasks_by_version ON tasks (registry, version);
    CREATE TABLE task_needs (
        registry {integer} NOT NULL REFERENCES task_registries (id),
        task     {integer} NOT NULL REFERENCES tasks (id),
        needed   {integer} NOT NULL REFERENCES tasks (id),
        PRIMARY KEY (task, needed)
    ){strict};
    CREATE INDEX task_needs_by_needed ON task_needs (needed);
    CREATE INDEX task_needs_by_registry ON task_needs (registry);
"""),
}
