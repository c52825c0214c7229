"""One structured line an event, on stderr: JSON for programs, colours for a person at a terminal.

Inside of another program it is that program's to say what is shown and where: events go through its structlog if it has
set that up, else to the logger `pegboard` of Python's own, which is quiet unless it is asked.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO, cast

import structlog

trace_id: ContextVar[str | None] = ContextVar("trace_id", default=None)

# structlog knows no levels in between; some libraries do.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)

_NUMBERS = {name.lower(): number for name, number in logging.getLevelNamesMapping().items()}
# Without a configuration everything is told.
_told_from = logging.DEBUG

Logger = structlog.typing.FilteringBoundLogger


def new_trace_id() -> str:
    """A fresh id for everything that one operation logs."""
    # It has to differ, not to be hard to guess.
    return f"{random.getrandbits(64):016x}"


def logger() -> Logger:
    """The logger every module uses."""
    if not structlog.is_configured():
        return _INSIDE_A_PROGRAM
    current = trace_id.get()
    return cast("Logger", structlog.get_logger() if current is None else structlog.get_logger(traceId=current))


def is_told(level: str) -> bool:
    """Whether events of this level go anywhere; to ask is cheaper than to tell nobody."""
    return _NUMBERS[level] >= _told_from


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Send events to `stream` (stderr), and what libraries log along with them."""
    out = stream or sys.stderr
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    global _told_from
    _told_from = number
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.dev.ConsoleRenderer(colors=True) if out.isatty() else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_ToStructlog()], level=max(number, logging.WARNING), force=True)


def _add_trace_id(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if "traceId" not in event and (current := trace_id.get()) is not None:
        event["traceId"] = current
    return event


_INSIDE_A_PROGRAM = cast(
    "Logger",
    structlog.wrap_logger(
        logging.getLogger("pegboard"),
        processors=[structlog.stdlib.filter_by_level, _add_trace_id, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
    ),
)


class _ToStructlog(logging.Handler):
    """Libraries' own messages as one event each. Their tracebacks stay out: they can show payloads."""

    def emit(self, record: logging.LogRecord) -> None:
        log = logger()
        try:
            message = record.getMessage()
        except Exception:
            # A slip in a library's log line must not become an error of what it was doing.
            message = str(record.msg)
        extra: dict[str, str] = {}
        if record.exc_info and record.exc_info[0] is not None:
            extra["error"] = record.exc_info[0].__name__
        level = max((known for known in _LEVELS if known <= record.levelno), default=logging.DEBUG)
        log.log(level, f"library.{record.name}", message=message[:500], **extra)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes known secrets out of a text before it goes anywhere."""

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """A redactor for these secrets; the longest goes first, so that none hides inside another."""
        return cls(tuple(sorted(filter(None, secrets), key=len, reverse=True)))

    def clean(self, text: str) -> str:
        """The text with every secret replaced."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text
