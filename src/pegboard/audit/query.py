"""A query of the audit: which records somebody wants to see, and which they may."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from pegboard.audit.event import LONGEST_TEXT
from pegboard.audit.record import KINDS, OUTCOMES, REASONS, REFUSED, time_prefix
from pegboard.names import nearest
from pegboard.result import invalid
from pegboard.storage.database import Value

_Add = Callable[..., None]
USUAL, MOST = 100, 1000
RULE, UNKNOWN = f"{REFUSED}rule", f"{REFUSED}unknown_tool"
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,9})\s*([a-z]+)")
_ID = re.compile("[0-9a-f]{30}")
# To read a pattern takes a while that grows with it, and nobody else is served meanwhile.
_LONGEST_KIND = 64
# What has a date in every time zone, from the first moment that a record can have.
_LAST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """What is asked for, newest first. `owner`: the principal whose records alone may be seen; `None`: everybody's."""

    since: float | None = None
    until: float | None = None
    who: str | None = None
    server: str | None = None
    tool: str | None = None
    outcome: str | None = None
    denied: bool = False
    kind: str | None = None
    limit: int = USUAL
    # The id behind which to go on.
    cursor: str | None = None
    owner: str | None = None

    def where(self) -> tuple[str, list[Value]]:
        """The condition of the query, and its values."""
        parts: list[str] = ["1 = 1"]
        params: list[Value] = []

        def add(part: str, *values: Value) -> None:
            parts.append(part)
            params.extend(values)

        if self.owner is not None:
            add("principal_id = ?", self.owner)
        # By the id, which has an index.
        if self.since is not None:
            add("id >= ?", _prefix(self.since))
        if self.until is not None:
            add("id < ?", _prefix(self.until))
        if self.cursor is not None:
            add("id < ?", self.cursor)
        if self.who is not None:
            self._add_who(add, self.who)
        for column, wanted in (("server", self.server), ("tool", self.tool), ("kind", self.kind)):
            if wanted is not None:
                _add_pattern(add, column, wanted)
        if self.denied:
            add("substr(outcome, 1, 8) = ?", REFUSED)
        if self.outcome is not None:
            self._add_outcome(add, self.outcome)
        return " AND ".join(parts), params

    def _add_who(self, add: _Add, wanted: str) -> None:
        # A client's name is before its version.
        client = f"{wanted}/"
        condition = "(principal = ? OR principal_id = ? OR client = ? OR substr(client, 1, ?) = ?)"
        add(condition, wanted, wanted, wanted, len(client), client)

    def _add_outcome(self, add: _Add, wanted: str) -> None:
        if self.owner is not None and wanted.startswith(REFUSED):
            # Whoever may not see a tool is not told by the audit that there is one.
            if wanted == UNKNOWN:
                add("outcome IN (?, ?)", UNKNOWN, RULE)
            else:
                add("outcome = ? AND outcome <> ?", wanted, RULE)
        elif wanted == REFUSED.rstrip(":"):
            add("substr(outcome, 1, 8) = ?", REFUSED)
        else:
            add("outcome = ?", wanted)


def _prefix(moment: float) -> str:
    return time_prefix(max(int(moment * 1_000_000_000), 0))


def _add_pattern(add: _Add, column: str, wanted: str) -> None:
    """A name, or a pattern with `*`."""
    if "*" not in wanted:
        add(f"{column} = ?", wanted)
        return
    escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    add(f"lower({column}) LIKE lower(CAST(? AS TEXT)) ESCAPE '\\'", escaped)


def read_moment(text: str, now: float, what: str) -> float:
    """A moment as people say it: `2h` ago, a day, or a day and a time. Without a time zone it is UTC."""
    moment = _parse_moment(text.strip(), now)
    if moment is None:
        raise invalid(f"{what} must be like 30m, 2h, 7d, 2026-11-17 or 2026-11-17T08:00, found {text[:40]!r}")
    if not 0 <= moment <= _LAST:
        raise invalid(f"{what} must be between the years 1970 and 9999, found {text[:40]!r}")
    return moment


def _parse_moment(text: str, now: float) -> float | None:
    if (match := _AGO.fullmatch(text.lower())) and match[2] in _UNITS:
        return now - int(match[1]) * _UNITS[match[2]]
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def read_name(text: str, what: str) -> str:
    """A name that records can have, or a pattern of such."""
    if len(text) > LONGEST_TEXT:
        raise invalid(f"{what} has more than {LONGEST_TEXT} characters, and nothing that is recorded has")
    return text


def read_outcome(text: str) -> str:
    """An outcome that records can have; `refused` stands for all reasons."""
    reason = text.removeprefix(REFUSED)
    if text in OUTCOMES or (reason != text and (reason in REASONS or reason.isdigit())):
        return text
    known = REASONS if reason != text else OUTCOMES
    said = "refused:WHY must have one of" if reason != text else "outcome must be refused:WHY or one of"
    raise invalid(f"{said} {', '.join(known)}{_suggest(reason, known)}")


def read_kind(text: str) -> str:
    """A kind that records can have, or a pattern that fits one."""
    if len(text) <= _LONGEST_KIND and any(fnmatchcase(kind, _escape(text.lower())) for kind in KINDS):
        return text
    raise invalid(f"kind must be one of {', '.join(KINDS)}, or a pattern such as token.*{_suggest(text, KINDS)}")


def _escape(pattern: str) -> str:
    """A pattern in which `*` alone stands for anything."""
    return "".join(f"[{letter}]" if letter in "?[" else letter for letter in pattern)


def _suggest(text: str, known: Sequence[str]) -> str:
    close = nearest(text[:40], known, 1)
    return f"; found {text[:40]!r}{f', did you mean {close[0]}?' if close else ''}"


def read_cursor(text: str) -> str:
    """A cursor as an answer gave it."""
    if not _ID.fullmatch(text):
        raise invalid("cursor is none that an answer gave")
    return text
