"""A model provider's API that plays a script: what cannot run here is the model, everything around it can.

It speaks Anthropic's Messages API, streamed or not. Each step of the script is a tool that the model calls, or the text
that it ends with. Which step is next is read from the conversation itself, as a model would.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


@dataclass(frozen=True)
class Step:
    """A call of the tool whose name ends in this, with arguments that may depend on the last result."""

    tool: str
    arguments: Callable[[str], dict[str, Any]] = lambda _: {}


@dataclass
class ScriptedModel:
    """The script, and what it was asked: the names of the tools in each request of the conversation."""

    steps: Sequence[Step]
    prompts: list[list[str]] = field(default_factory=list[list[str]])
    results: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    url: str = ""

    def answer(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The content of the model's next message."""
        names = [str(tool.get("name")) for tool in body.get("tools") or []]
        if not any(name.endswith(self.steps[0].tool) for name in names):
            # A title for the conversation, or whatever else a client asks a model for.
            return [{"type": "text", "text": "A conversation"}]
        self.results = list(_results(body["messages"]))
        self.prompts.append(names)
        if len(self.results) >= len(self.steps):
            return [{"type": "text", "text": f"The answer is: {self.results[-1]}"}]
        step = self.steps[len(self.results)]
        name = next((name for name in names if name.endswith(step.tool)), None)
        if name is None:
            self.problems.append(f"{step.tool} is not among {names}")
            return [{"type": "text", "text": f"There is no {step.tool}"}]
        arguments = step.arguments(self.results[-1] if self.results else "")
        return [{"type": "tool_use", "id": f"toolu_{len(self.results)}", "name": name, "input": arguments}]


def _results(messages: list[dict[str, Any]]) -> Iterator[str]:
    """The results of the tools that were called so far, as text."""
    for message in messages:
        content = message.get("content")
        for part in cast("list[Any]", content) if isinstance(content, list) else []:
            if part.get("type") == "tool_result":
                yield _text(part.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or [])


def _app(model: ScriptedModel) -> Starlette:
    async def messages(request: Request) -> Response:
        body = await request.json()
        content = model.answer(body)
        if not body.get("stream"):
            return JSONResponse(_message(content))
        return StreamingResponse(_events(content), media_type="text/event-stream")

    async def count(_: Request) -> Response:
        return JSONResponse({"input_tokens": 1000})

    async def anything(_: Request) -> Response:
        return JSONResponse({})

    return Starlette(
        routes=[
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/messages", messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
            Route("/{path:path}", anything, methods=["GET", "HEAD", "POST"]),
        ]
    )


def _message(content: list[dict[str, Any]]) -> dict[str, Any]:
    stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 10}
    head: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _events(content: list[dict[str, Any]]) -> Iterator[str]:
    whole = _message(content)
    yield _event("message_start", message={**whole, "content": [], "stop_reason": None})
    for index, part in enumerate(content):
        if part["type"] == "tool_use":
            begin = {**part, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        else:
            begin, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": part["text"]}
        yield _event("content_block_start", index=index, content_block=begin)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage={"output_tokens": 10})
    yield _event("message_stop")


def _event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


@contextlib.contextmanager
def scripted_model(steps: Sequence[Step]) -> Generator[ScriptedModel]:
    """A model that plays this script, on a port of its own."""
    model = ScriptedModel(steps)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        model.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(_app(model), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.should_exit = True
            thread.join(10)
