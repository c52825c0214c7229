"""OpenTelemetry spans: each call of a tool is one where the program traces, and costs nothing where it does not.

Their attributes are those of OpenTelemetry's conventions for MCP. What a call was given and what it gave is not among
them, and neither is a session's id, which lets its holder speak for the session: a digest stands for it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from pegboard.version import VERSION

_SDK = "opentelemetry.sdk"
# How a client says in `_meta` which span its request is a part of (SEP-414).
_CARRIED = ("traceparent", "tracestate")


class Span(Protocol):
    """What is traced now."""

    def set_attribute(self, key: str, value: Any) -> None: ...


class _NoSpan:
    def set_attribute(self, key: str, value: Any) -> None:
        """Nobody traces."""


_NO_SPAN = nullcontext(_NoSpan())


def span(method: str, tool: str, attributes: Mapping[str, Any] | None = None) -> AbstractContextManager[Span]:
    """A span around a call of a tool; an exception, cancellation included, makes its status an error."""
    return _start_call(method, tool, attributes or {}) if is_traced() else _NO_SPAN


def request_span(
    method: str, tool: str, attributes: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> AbstractContextManager[Span]:
    """A span around a client's request, a part of what the client says in `_meta`; where a request takes the full path,
    the SDK has it."""
    return _start_request(method, tool, attributes, meta or {}) if is_traced() else _NO_SPAN


def is_traced() -> bool:
    """Whether the program traces: a span that goes nowhere takes its time, too."""
    # Asked for each call. OpenTelemetry takes two microseconds to say that there is no provider, and its API is slow
    # to import; a program that has not imported the SDK has no provider.
    if _SDK not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def describe(method: str, tool: str) -> dict[str, Any]:
    """What every span about a call of a tool says."""
    return {"mcp.method.name": method, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}


@contextmanager
def _start_call(method: str, tool: str, attributes: Mapping[str, Any]) -> Generator[Span]:
    from opentelemetry import trace

    tracer = trace.get_tracer("pegboard", VERSION)
    # The text of an exception may quote what a server said, so only its type is recorded.
    with tracer.start_as_current_span(
        f"{method} {tool}",
        kind=trace.SpanKind.CLIENT,
        attributes={**describe(method, tool), **attributes},
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as exc:
            current.set_status(trace.Status(trace.StatusCode.ERROR, type(exc).__name__))
            raise


@contextmanager
def _start_request(method: str, tool: str, attributes: Mapping[str, Any], meta: Mapping[str, Any]) -> Generator[Span]:
    from opentelemetry import trace
    from opentelemetry.propagate import extract

    carried = {name: value for name in _CARRIED if isinstance(value := meta.get(name), str)}
    parent = extract(carried) if carried else None
    if parent is not None and not trace.get_current_span(parent).get_span_context().is_valid:
        parent = None
    with trace.get_tracer("pegboard", VERSION).start_as_current_span(
        f"{method} {tool}",
        context=parent,
        kind=trace.SpanKind.SERVER,
        attributes={**describe(method, tool), **attributes},
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        yield current
