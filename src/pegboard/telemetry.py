"""Spans for whoever traces: with OpenTelemetry's SDK installed each call of a tool is one, without it none is."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

from pegboard.version import VERSION


class Span(Protocol):
    """What is traced now."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class _Nowhere:
    def set_attribute(self, key: str, value: Any) -> None:
        """Nobody looks."""


_NOWHERE = nullcontext(_Nowhere())


def span(method: str, tool: str) -> AbstractContextManager[Span]:
    """A span around a call of a tool; that it raised something, cancellation included, is told there as an error."""
    started = _starter()
    return _NOWHERE if started is None else started(method, tool)


@cache
def _starter() -> Callable[[str, str], AbstractContextManager[Span]] | None:
    # The API without the SDK leads nowhere, and costs time at every call.
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return None
    from opentelemetry import trace

    @contextmanager
    def started(method: str, tool: str) -> Generator[Span]:
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

    return started
