"""The parameters and answers of the task tools, described once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.toolsets.tasks.check import MAX_ASSIGNEE, MAX_COUNT, MAX_LIMIT, MAX_NOTES
from pegboard.toolsets.tasks.task import PRIORITIES, STATUSES

Schema = Mapping[str, Any]


def text(description: str, *examples: str, **more: Any) -> Schema:
    """A parameter that is a text."""
    return {"type": "string", "description": description, "examples": list(examples), **more}


def choice(description: str, choices: Sequence[str], example: str, **more: Any) -> Schema:
    """A parameter that is one of a few words."""
    return {"enum": list(choices), "description": description, "examples": [example], **more}


def number(description: str, least: int, most: int | None, default: int, example: int) -> Schema:
    """A parameter that is a whole number."""
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": "integer", "description": description, **bounds, "default": default, "examples": [example]}


def switch(description: str) -> Schema:
    """A parameter that is on or off."""
    return {"type": "boolean", "description": description, "default": False, "examples": [True]}


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

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
STRINGS: Schema = {"type": "array", "items": STRING}
_MAYBE: Schema = {"type": ["string", "null"]}
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
        "assignee": _MAYBE,
        "started_at": _MAYBE,
        "completed_at": _MAYBE,
        "notes": _MAYBE,
        "source_line": INTEGER,
        "synced_at": _MAYBE,
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


def hints(title: str, *, reads: bool = False, destroys: bool = False, again: bool = False) -> dict[str, Any]:
    """What a client may tell its user of a tool."""
    return {
        "title": title,
        "readOnlyHint": reads,
        "destructiveHint": destroys,
        "idempotentHint": reads or again,
        "openWorldHint": False,
    }
