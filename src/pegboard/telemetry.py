"""Spans for whoever traces: with OpenTelemetry's SDK installed each call of a tool is one, without it none is."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from time import monotonic
from typing import Any, Protocol

from pegboard.version import VERSION


class Span(Protocol):
    """What is traced now."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class _Nowhere:
    def set_attribute(self, key: str, value: Any) -> None:
        """Nobody looks."""


Starter = Callable[[str, str], AbstractContextManager[Span]]
_NOWHERE = nullcontext(_Nowhere())


# How often to look whether the program has begun to trace.
_LOOKS_APART = 1.0


def span(method: str, tool: str) -> AbstractContextManager[Span]:
    """A span around a call of a tool; that it raised something, cancellation included, is told there as an error."""
    started = _tracing()
    return _NOWHERE if started is None else started(method, tool)


_looked_at: float | None = None
_found: Starter | None = None


def _tracing() -> Starter | None:
    """What starts spans, once the program says where they go; a span that goes nowhere takes its time, too."""
    global _looked_at, _found
    if _found is None and (_looked_at is None or monotonic() - _looked_at > _LOOKS_APART):
        _looked_at = monotonic()
        _found = _starter() if _is_traced() else None
    return _found


def is_traced() -> bool:
    """Whether the program traces."""
    return _tracing() is not None


def _is_traced() -> bool:
    if not _has_sdk():
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@cache
def _has_sdk() -> bool:
    # The API without the SDK leads nowhere.
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None


def _starter() -> Starter:
    from opentelemetry import trace

    @contextmanager
    def start(method: str, tool: str) -> Generator[Span]:
        attributes = {"mcp.method.name": method, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        tracer = trace.get_tracer("pegboard", VERSION)
        # Exceptions hold what servers said: that one was raised is told, its words are not.
        with tracer.start_as_current_span(
            f"{method} {tool}",
            kind=trace.SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as current:
            try:
                yield current
            except BaseException as exc:
                current.set_status(trace.Status(trace.StatusCode.ERROR, type(exc).__name__))
                raise

    return start
