"""One structured line an event, on stderr: JSON for programs, colours for a person at a terminal.

Inside of another program it is that program's to say what is shown and where: events go through its structlog if it has
set that up, else to the logger `pegboard` of Python's own, which is quiet unless it is asked.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO
from urllib.parse import quote, quote_plus, unquote

from pegboard.terminal import plain_data

trace_id: ContextVar[str | None] = ContextVar("trace_id", default=None)

# Makes a line for a person of an event; `None` where there is nothing to say.
LineWriter = Callable[[Mapping[str, Any]], str | None]

# structlog knows no levels in between; some libraries do.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


@contextmanager
def trace_scope(trace: str | None = None) -> Generator[None]:
    """Everything that is logged meanwhile carries one id: the given one, the current one, or a new one."""
    token = trace_id.set(trace or trace_id.get() or new_trace_id())
    try:
        yield
    finally:
        trace_id.reset(token)


def new_trace_id() -> str:
    """A fresh id for everything that one operation logs."""
    # It has to differ, not to be hard to guess.
    return f"{random.getrandbits(64):016x}"


class Logger:
    """Takes events. What is not told costs next to nothing: structlog itself is loaded for the first that is."""

    def __init__(self) -> None:
        self.told_from = logging.DEBUG
        # The level of calls: a person at a terminal sees each of them. Whether they are told is asked at every call.
        self.call_level = logging.DEBUG
        self.tells_calls = True
        # Where events are to go once there are any.
        self.destination: TextIO | None = None
        self.lines: LineWriter | None = None

    def debug(self, event: str, **fields: Any) -> None:
        """Something that helps to find a fault."""
        self.log(logging.DEBUG, event, **fields)

    def info(self, event: str, **fields: Any) -> None:
        """Something that happened as it should."""
        self.log(logging.INFO, event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Something that somebody may have to look at."""
        self.log(logging.WARNING, event, **fields)

    def error(self, event: str, **fields: Any) -> None:
        """Something that went wrong."""
        self.log(logging.ERROR, event, **fields)

    def call(self, event: str, **fields: Any) -> None:
        """A call that ended."""
        self.log(self.call_level, event, **fields)

    def log(self, level: int, event: str, **fields: Any) -> None:
        """One event of any level."""
        if level < self.told_from:
            return
        if (current := trace_id.get()) is not None:
            fields.setdefault("traceId", current)
        if self.destination is not None:
            destination, self.destination = self.destination, None
            _configure_structlog(destination, self.told_from, self.lines)
        structlog = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            structlog.get_logger().log(level, event, **fields)
        elif _OWN.isEnabledFor(level):
            _OWN.log(level, json.dumps({"event": event, **fields}, ensure_ascii=False, default=repr))


_OWN = logging.getLogger("pegboard")
_LOGGER = Logger()


def logger() -> Logger:
    """The logger every module uses."""
    return _LOGGER


def configure(level: str = "info", stream: TextIO | None = None, *, lines: LineWriter | None = None) -> None:
    """Send events to `stream` (stderr), and what libraries log along with them. For a person at a terminal, `lines`
    makes a line of an event, or nothing."""
    out = stream or sys.stderr
    _LOGGER.told_from = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    _LOGGER.destination, _LOGGER.lines = out, lines
    _LOGGER.call_level = logging.INFO if out.isatty() else logging.DEBUG
    _LOGGER.tells_calls = _LOGGER.told_from <= _LOGGER.call_level
    logging.basicConfig(handlers=[_ToStructlog()], level=max(_LOGGER.told_from, logging.WARNING), force=True)


def _configure_structlog(out: TextIO, number: int, lines: LineWriter | None) -> None:
    import structlog

    def write_line(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        if lines is None or (line := lines(event)) is None:
            raise structlog.DropEvent
        return line

    own = structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))
    for_people = (_plain_event, own if lines is None else write_line)
    written: tuple[Any, ...] = for_people if out.isatty() else (structlog.processors.JSONRenderer(),)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            *written,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )


def _plain_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return plain_data(event)


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


REDACTED = "[redacted]"
# So many secrets are looked for one by one, which is quicker.
_FEW = 32


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes known secrets out of a text before it goes anywhere."""

    # In every spelling in which a message may repeat them.
    secrets: frozenset[str] = frozenset()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """A redactor for these secrets."""
        return cls(frozenset(spelling for secret in filter(None, secrets) for spelling in _spellings(secret)))

    def clean(self, text: str, most: int | None = None) -> str:
        """The text with every secret replaced, also where two of them overlap.

        With `most`, so many of its characters: a text is not cut before, since half a secret would not be known as one,
        and not after, since somebody else's text may be long.
        """
        last = len(text) if most is None else min(most, len(text))
        # A secret that begins before the cut is there in full.
        text = text[: last + max(map(len, self.secrets), default=0)]
        parts: list[str] = []
        end = 0
        for start, stop in _merge(self._spans(text)):
            if start >= last:
                break
            parts += text[end:start], REDACTED
            end = stop
        return "".join([*parts, text[end:last]])

    def _spans(self, text: str) -> list[tuple[int, int]]:
        if len(self.secrets) > _FEW:
            return self._spans_of_many(text)
        spans: list[tuple[int, int]] = []
        for secret in self.secrets:
            start = text.find(secret)
            while start >= 0:
                spans.append((start, start + len(secret)))
                start = text.find(secret, start + 1)
        return sorted(spans)

    def _spans_of_many(self, text: str) -> list[tuple[int, int]]:
        """One walk through the text, however many secrets there are."""
        size = min(map(len, self.secrets))
        by_start: dict[str, list[str]] = {}
        for secret in self.secrets:
            by_start.setdefault(secret[:size], []).append(secret)
        starts = ((at, by_start.get(text[at : at + size], ())) for at in range(len(text) - size + 1))
        return [(at, at + len(each)) for at, known in starts for each in known if text.startswith(each, at)]


def _merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


def _spellings(secret: str) -> set[str]:
    """A secret as it is, in an address, in JSON, and as Python shows it."""
    found: set[str] = set()
    for text in (secret, unquote(secret)):
        found |= {text, repr(text)[1:-1], quote(text, safe="", errors="replace"), quote_plus(text, errors="replace")}
        found |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return found
