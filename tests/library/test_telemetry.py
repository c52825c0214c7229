"""Spans, for whoever traces with OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from harness import MODERN, http_client, open_gateway, toy
from pegboard import Pegboard, telemetry
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Generator[InMemorySpanExporter]:
    """What is traced in a test; there is one provider for a whole process, so it is put in its place by hand."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def told(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_each_call_is_a_span(spans: InMemorySpanExporter) -> None:
    """With the tool, its server and how it went; a failure is an error without a word of what was said."""
    async with Pegboard({"one": toy()}, settings={"toolsets": []}) as board:
        await board.call("one__echo", {"text": "quokka"}, trace_id="abc")
        await board.call("one__fails")
        await board.call("one__refuses", {"text": "quokka"})
    fine, failed, refused = spans.get_finished_spans()
    assert fine.name == "tools/call one__echo"
    assert told(fine) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "one__echo",
        "pegboard.server": "one",
        "pegboard.trace_id": "abc",
        "pegboard.outcome": "ok",
    }
    assert told(failed)["pegboard.outcome"] == "error"
    assert (refused.status.is_ok, refused.status.description) == (False, "RpcError")
    assert (told(refused)["pegboard.server"], told(refused)["pegboard.outcome"]) == ("one", "failed")
    assert told(refused)["pegboard.trace_id"]
    assert "quokka" not in "".join(span.to_json() for span in (fine, failed, refused))
    assert "no, thank you" not in refused.to_json()


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.both_paths
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_call_over_mcp_is_a_span_of_what_the_client_traces(
    spans: InMemorySpanExporter, tmp_path: Path, version: str
) -> None:
    """On both paths: the same attributes of the conventions, the parent from `_meta`, and no secret."""
    asked = {"name": "one__echo", "arguments": {"text": "quokka"}, "_meta": {"traceparent": PARENT}}
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("tools", "one__echo")
        await client.request("tools/call", {"name": "one__echo"})
        before = gateway.board.metrics.declined.total()
        spans.clear()
        await client.request("tools/call", asked)
        await client.request("tools/call", {**asked, "name": "one__fails"})
        with pytest.raises(RpcError):
            await client.request("tools/call", {**asked, "name": "one__refuses"})
        declined = gateway.board.metrics.declined.total() - before
        session = next(iter(gateway.board.relay.sessions._clients), None)
    calls = [span for span in spans.get_finished_spans() if span.kind is trace.SpanKind.CLIENT]
    fine, failed, refused = [told(span) for span in calls if told(span).get("pegboard.outcome") != "handed over"][:3]
    # What an error is told as takes the full path.
    assert declined <= 1
    assert fine.pop("pegboard.trace_id")
    assert fine.pop("jsonrpc.request.id")
    digest = fine.pop("mcp.session.id", None)
    assert (digest is None) is (version == MODERN)
    assert fine == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "one__echo",
        "mcp.protocol.version": version,
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
        "pegboard.server": "one",
        "pegboard.outcome": "ok",
    }
    assert failed["error.type"] == "tool_error"
    assert (refused["error.type"], refused["rpc.response.status_code"]) == ("-32099", "-32099")
    every = "".join(span.to_json() for span in calls)
    assert "quokka" not in every
    assert session is None or session not in every
    assert all(PARENT.split("-")[1] in span.to_json() for span in calls)


async def test_a_call_within_a_span_is_its_child(spans: InMemorySpanExporter) -> None:
    """So that a trace of an agent's turn has the tools that it called."""
    async with Pegboard({"one": toy()}, settings={"toolsets": []}) as board:
        with trace.get_tracer("agent").start_as_current_span("turn") as turn:
            await board.call("one__echo", {"text": "x"})
    call, parent = spans.get_finished_spans()
    assert parent.name == "turn"
    assert call.parent is not None
    assert call.parent.span_id == turn.get_span_context().span_id


async def test_without_the_sdk_there_are_none(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else changes."""
    monkeypatch.delitem(sys.modules, "opentelemetry.sdk")
    async with Pegboard({"one": toy()}, settings={"toolsets": []}) as board:
        assert (await board.call("one__echo", {"text": "x"})).success
    assert not telemetry.is_traced()
    assert spans.get_finished_spans() == ()


async def test_without_a_provider_there_are_none() -> None:
    """A program may have the SDK and not use it; from the moment in which it does, calls are traced."""
    assert not telemetry.is_traced()
    with telemetry.span("tools/call", "one__echo") as nothing:
        nothing.set_attribute("pegboard.server", "one")
    assert not trace.get_current_span().is_recording()


def test_importing_it_does_not_import_opentelemetry() -> None:
    """Its API takes longer to import than a short command to run."""
    script = "import sys, pegboard.telemetry as t; assert not t.is_traced(); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
