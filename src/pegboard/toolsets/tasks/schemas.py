"""The parameters and answers of the task tools, described once."""

from __future__ import annotations

from pegboard.toolsets.schemas import INTEGER, MAYBE_STRING, STRING, STRINGS, Schema, choice, number, text
from pegboard.toolsets.tasks.check import MAX_ASSIGNEE, MAX_COUNT, MAX_LIMIT, MAX_NOTES
from pegboard.toolsets.tasks.task import PRIORITIES, STATUSES

PATH = text("The folder that holds openspec; left out, your workspace folder", "/home/me/shop")
TASK_ID = text(
    "Which task: change-id/number, by its place in the file or as it is numbered there (1.2)",
    "add-login/3",
    minLength=1,
)
CHANGE_ID = text("Only tasks of this change", "add-login", minLength=1)
STATUS = choice("Only tasks in this status", STATUSES, "pending")
PRIORITY = choice("Only tasks of this priority", PRIORITIES, "high")
ASSIGNEE = text("Only tasks that this person or agent works on", "ada", minLength=1)
LIMIT = number("How many at most", 1, MAX_LIMIT, 50, 20)
OFFSET = number("How many to pass over", 0, None, 0, 50)
COUNT = number("How many tasks to offer", 1, MAX_COUNT, 1, 3)
NEW_STATUS = choice(
    "The status it shall have; completed ticks its box in tasks.md, any other empties it", STATUSES, "completed"
)
NEW_PRIORITY = choice("The priority it shall have", PRIORITIES, "high")
NEW_ASSIGNEE = text("Who works on it; an empty text for nobody", "ada", maxLength=MAX_ASSIGNEE)
NOTES = text("Notes in place of those there are; an empty text for none", "waits for the design", maxLength=MAX_NOTES)
DEPENDS_ON: Schema = {
    "type": ["array", "string"],
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": 50,
    "description": "Tasks that have to be completed first: change-id/number, or a number of the same change",
    "examples": [["add-users/2", "1"], "add-users/2"],
}

TASK: Schema = {
    "type": "object",
    "properties": {
        "id": STRING,
        "content": STRING,
        "printed_number": STRING,
        "status": {"enum": list(STATUSES)},
        "priority": {"enum": list(PRIORITIES)},
        "depends_on": STRINGS,
        "blocked_by": STRINGS,
        "why_blocked": STRING,
        "assignee": MAYBE_STRING,
        "started_at": MAYBE_STRING,
        "completed_at": MAYBE_STRING,
        "notes": MAYBE_STRING,
        "source_line": INTEGER,
        "synced_at": MAYBE_STRING,
    },
    "required": ["id", "content", "status", "priority", "depends_on", "blocked_by", "source_line"],
}
TASKS: Schema = {"type": "array", "items": TASK}
ROWS: Schema = {"type": "array", "items": {"type": "object"}}
COUNTS: Schema = {"type": "object", "additionalProperties": INTEGER}
SUMMARY: Schema = {
    "type": "object",
    "properties": {"by_status": COUNTS, "by_priority": COUNTS, "by_change": {"type": "object"}},
}
CONFLICTS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"id": STRING, "content": STRING, "registry": STRING, "file": STRING, "outcome": STRING},
        "required": ["id", "registry", "file", "outcome"],
    },
}
FINDINGS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "severity": {"enum": ["error", "warning", "info"]},
            "file": STRING,
            "line": INTEGER,
            "message": STRING,
            "advice": STRING,
        },
        "required": ["severity", "file", "line", "message", "advice"],
    },
}
