"""What may be asked for and written down, and how a refusal is put."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.toolsets.tasks.task import TaskId

MAX_ASSIGNEE, MAX_NOTES = 200, 20_000
MAX_LIMIT, MAX_COUNT = 500, 50
MAX_OFFSET = 2**53
_SHOWN = 100

W = TypeVar("W", bound=str)


def not_found(message: str) -> ToolFailure:
    """The failure of a call for something that is not there."""
    return ToolFailure(ToolErrorCode.NOT_FOUND, message, retryable=False)


def checked_text(text: str, parameter: str, most: int) -> str:
    """A text that can be kept, or a clear refusal."""
    if len(text) > most:
        raise invalid(f"{parameter} has {len(text):,} characters, {most:,} is the most")
    if "\0" in text:
        raise invalid(f"{parameter} must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid(f"{parameter} is not valid Unicode: it contains half of a surrogate pair") from None
    return text


def checked_number(number: float, parameter: str, least: int, most: int) -> int:
    """A whole number within bounds, or a clear refusal. JSON tells no 10 from 10.0."""
    whole = int(number) if isinstance(number, int) or number.is_integer() else None
    if whole is None or isinstance(number, bool) or not least <= whole <= most:
        raise invalid(f"{parameter} must be a whole number between {least} and {most}, found {number}")
    return whole


def checked_choice(word: str, parameter: str, choices: Sequence[W]) -> W:
    """One of these words, or a clear refusal."""
    if word not in choices:
        raise invalid(f"{parameter} must be one of {', '.join(choices)}, found {shown(word)}")
    return cast("W", word)


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


def shown(text: str) -> str:
    """What somebody gave, as far as it is said back to them."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
