"""What may be asked for and written down, and how a refusal is put."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.toolsets.tasks.task import Reference, Task, TaskId
from pegboard.toolsets.validation import quote

MAX_ASSIGNEE, MAX_NOTES = 200, 20_000
MAX_LIMIT, MAX_COUNT = 500, 50
_SHOWN = 100
# Of so many names a message tells, and of so many steps of a circle.
_MOST_NAMES, _MOST_STEPS, _LONGEST_NAME = 20, 20, 120


def not_found(message: str) -> ToolFailure:
    """The failure of a call for something that is not there."""
    return ToolFailure(ToolErrorCode.NOT_FOUND, message, retryable=False)


def parse_reference(text: str, parameter: str, change: str | None = None) -> Reference:
    """Which task is meant, or a clear refusal."""
    reference = Reference.parse(text, change)
    if reference is None:
        raise invalid(f"{parameter} must be change-id/number, like add-login/3 or add-login/1.2, found {quote(text)}")
    return reference


def ambiguous(reference: Reference, tasks: Sequence[Task], parameter: str) -> ToolFailure:
    """The failure of a call for a number that stands before the text of several tasks."""
    told = some(f"{task.id} ({task.content[:_SHOWN]})" for task in tasks)
    return invalid(f"{parameter}: {len(tasks)} tasks of {reference.change} have the number {reference.number}: {told}")


def unknown_change(change: str, known: Iterable[str], unread: Mapping[str, str]) -> ToolFailure:
    """The failure of a call for a change that is not there, with those that come close, or cannot be read."""
    if change in unread:
        what = f"nothing is known of the tasks of {quote(change)}: {unread[change]}"
        return ToolFailure(ToolErrorCode.EXECUTION_FAILED, what, retryable=False)
    close = nearest(change[:_SHOWN], list(known))
    hint = f": did you mean {', '.join(close)}?" if close else "; spec_list shows those there are"
    return not_found(f"there is no change {quote(change)} with tasks{hint}")


def some(names: Iterable[object]) -> str:
    """Names for a message; of very many the first."""
    told = [str(name)[:_LONGEST_NAME] for name in names]
    more = len(told) - _MOST_NAMES
    return ", ".join(told if more <= 0 else [*told[:_MOST_NAMES], f"and {more} more"])


def circle(tasks: Sequence[TaskId]) -> str:
    """The steps from a task back to itself; of very many the first and the last."""
    steps = [str(task)[:_LONGEST_NAME] for task in tasks]
    more = len(steps) - _MOST_STEPS
    return " → ".join(steps if more <= 0 else [*steps[: _MOST_STEPS - 1], f"{more} more", steps[-1]])
