"""OpenTelemetry spans: each call of a tool is one where the program traces, and costs nothing where it does not."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from pegboard.version import VERSION

_SDK = "opentelemetry.sdk"


class Span(Protocol):
    """What is traced now."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class _NoSpan:
    def set_attribute(self, key: str, value: Any) -> None:
        """Nobody traces."""


_NO_SPAN = nullcontext(_NoSpan())


def span(method: str, tool: str) -> AbstractContextManager[Span]:
    """A span around a call of a tool; an exception, cancellation included, makes its status an error."""
    return _start_span(method, tool) if is_traced() else _NO_SPAN


def is_traced() -> bool:
    """Whether the program traces: a span that goes nowhere takes its time, too."""
    # Asked for each call. OpenTelemetry takes two microseconds to say that there is no provider, and its API is slow
    # to import; a program that has not imported the SDK has no provider.
    if _SDK not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def _start_span(method: str, tool: str) -> Generator[Span]:
    from opentelemetry import trace

    attributes = {"mcp.method.name": method, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    tracer = trace.get_tracer("pegboard", VERSION)
    # The text of an exception may quote what a server said, so only its type is recorded.
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
