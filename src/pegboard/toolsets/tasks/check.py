"""What may be asked for and written down, and how a refusal is put."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.toolsets.checked import shown
from pegboard.toolsets.tasks.task import TaskId

MAX_ASSIGNEE, MAX_NOTES = 200, 20_000
MAX_LIMIT, MAX_COUNT = 500, 50
MAX_OFFSET = 2**53
_SHOWN = 100


def not_found(message: str) -> ToolFailure:
    """The failure of a call for something that is not there."""
    return ToolFailure(ToolErrorCode.NOT_FOUND, message, retryable=False)


def checked_id(text: str, parameter: str, change: str | None = None) -> TaskId:
    """A task's id, or a clear refusal."""
    task = TaskId.parse(text, change)
    if task is None:
        raise invalid(f"{parameter} must be change-id/number, like add-login/3, found {shown(text)}")
    return task


def unknown_change(change: str, known: Iterable[str]) -> ToolFailure:
    """The failure of a call for a change that is not there, with those that come close."""
    close = nearest(change[:_SHOWN], list(known))
    hint = f": did you mean {', '.join(close)}?" if close else "; spec_list shows those there are"
    return not_found(f"there is no change {shown(change)} with tasks{hint}")
