"""The loops under `examples/`, with the real SDKs on a transport that plays the model's part."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from harness import toy
from pegboard import Pegboard

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SERVERS: dict[str, Any] = {"one": toy(), "two": toy(), "dead": {"command": "/nonexistent/server"}}
SETTINGS: dict[str, Any] = {"toolsets": ["discovery"]}


def example(name: str) -> Any:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model:
    """Plays what a model said, and remembers what it was sent."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self._left = list(replies)
        self.sent: list[dict[str, Any]] = []

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(json.loads(request.content))
        return httpx2.Response(200, json=self._left.pop(0))


def said(*content: dict[str, Any], stop: str = "tool_use") -> dict[str, Any]:
    """A message of Claude's."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_sequence": None, "usage": usage}
    return {**message, "stop_reason": stop, "content": list(content)}


def use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def response(*output: dict[str, Any]) -> dict[str, Any]:
    """A response of OpenAI's."""
    head = {"id": "r", "object": "response", "created_at": 1, "model": "g"}
    return {**head, "output": list(output), "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def function(call_id: str, name: str, arguments: str, namespace: str | None = None) -> dict[str, Any]:
    call = {"type": "function_call", "id": f"f{call_id}", "call_id": call_id, "name": name, "arguments": arguments}
    return {**call, "status": "completed", **({"namespace": namespace} if namespace else {})}


async def test_a_loop_with_claude() -> None:
    """Find, load by reference, call two servers at once, fail one, finish."""
    model = Model(
        said(use("t1", "tool_find", query="echo a text")),
        said(
            use("t2", "one__echo", text="hi"),
            use("t3", "two__echo", text="ho"),
            use("t4", "dead__x"),
            use("t5", "one__ecko"),
            use("t6", "tool_find", query=7),
        ),
        said({"type": "text", "text": "Done."}, stop="end_turn"),
    )
    async with Pegboard(SERVERS, settings=SETTINGS) as board:
        client = AsyncAnthropic(api_key="x", http_client=model.client())
        assert await example("anthropic_loop").run("Say hi", board, client) == "Done."
    first, second, last = model.sent
    offered = {tool["name"]: tool.get("defer_loading", False) for tool in first["tools"]}
    assert (offered["tool_find"], offered["one__echo"]) == (False, True)
    [found] = second["messages"][-1]["content"]
    assert found["tool_use_id"] == "t1"
    assert {"type": "tool_reference", "tool_name": "one__echo"} in found["content"]
    results = {each["tool_use_id"]: each for each in last["messages"][-1]["content"]}
    assert list(results) == ["t2", "t3", "t4", "t5", "t6"]
    assert [results[key].get("is_error", False) for key in results] == [False, False, True, True, True]
    assert results["t2"]["content"] == [{"type": "text", "text": '{"text": "hi"}'}]


async def test_a_loop_with_openai() -> None:
    """The same: its tool search is run here, and loads what it found, a namespace a server."""
    search = {"type": "tool_search_call", "id": "ts", "call_id": "c1", "execution": "client", "status": "completed"}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "secret"}
    model = Model(
        response(thought, {**search, "arguments": {"query": "echo a text"}}),
        response(
            function("c2", "echo", '{"text": "hi"}', "one"),
            function("c3", "echo", '{"text": "ho"}', "two"),
            function("c4", "x", "{}", "dead"),
            function("c5", "echo", '{"te', "one"),
        ),
        response({**message, "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}),
    )
    async with Pegboard(SERVERS, settings=SETTINGS) as board:
        client = AsyncOpenAI(api_key="x", http_client=model.client())
        assert await example("openai_loop").run("Say hi", board, client) == "Done."
    first, second, last = model.sent
    assert [tool["type"] for tool in first["tools"]] == ["tool_search"]
    # What is not kept there is only known if it comes along: else the second request is refused.
    assert (first["store"], first["include"]) == (False, ["reasoning.encrypted_content"])
    assert thought in second["input"]
    loaded = second["input"][-1]
    assert (loaded["type"], loaded["call_id"]) == ("tool_search_output", "c1")
    assert {"one", "two"} <= {each["name"] for each in loaded["tools"]}
    outputs = {each["call_id"]: each["output"] for each in last["input"] if each.get("type") == "function_call_output"}
    assert list(outputs) == ["c2", "c3", "c4", "c5"]
    assert outputs["c2"] == '{"text": "hi"}'
    assert all(outputs[key].startswith("Error:") for key in ("c4", "c5"))


async def test_a_conversation_that_hits_everything_ends_well() -> None:
    """A dead server, an unknown tool, bad arguments and a timeout: four well-formed error results, no exception."""
    reply = said(
        use("t1", "dead__x"),
        use("t2", "nothing"),
        use("t3", "tool_find"),
        use("t4", "one__sleep", seconds=30),
    )
    async with Pegboard(SERVERS, settings=SETTINGS) as board:
        await board.get_tool_definitions()
        [message] = await board.answer(reply, timeout=0.5)
    assert message["role"] == "user"
    assert [each["tool_use_id"] for each in message["content"]] == ["t1", "t2", "t3", "t4"]
    assert all(each["is_error"] is True for each in message["content"])
    assert all(each["content"][0]["text"] for each in message["content"])


def test_the_loops_are_short() -> None:
    """Short enough to copy."""
    for file in EXAMPLES.glob("*_loop.py"):
        assert len(file.read_text("utf-8").splitlines()) < 60
