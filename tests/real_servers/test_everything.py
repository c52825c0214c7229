"""server-everything through the gateway is server-everything: every message that a client receives is the same."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import Entry, open_gateway, write_config
from pegboard.config import ServerSpec
from pegboard.servers.connector import EVERYTHING_ASKABLE
from pegboard.servers.errors import RpcError
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.transports.stdio import StdioTransport
from pegboard.servers.transports.streamable_http import StreamableHttpTransport
from pegboard.servers.transports.transport import Transport
from real_servers.recording import Answers, RecordingClient, Step, difference, recording
from real_servers.test_real_servers import EVERYTHING, everything_over, npm

pytestmark = pytest.mark.anyio

Try = Callable[[RecordingClient], Awaitable[None]]

# What the gateway announces to a server that several clients share: which tools this server has depends on it.
CAPABILITIES: dict[str, Any] = dict(EVERYTHING_ASKABLE)
MESSAGE = "notifications/message"
STATUS = "notifications/tasks/status"
UPDATED = "notifications/resources/updated"
FIRST, SECOND = "demo://resource/dynamic/text/1", "demo://resource/static/document/features.md"


async def call(client: RecordingClient, name: str, arguments: Any = None, **rest: Any) -> dict[str, Any]:
    """Call a tool; without arguments, the request has none."""
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return await client.request("tools/call", params, **rest)


def calls(name: str, *variants: Any) -> Try:
    """A tool that answers by itself, called with each of these arguments."""

    async def try_each(client: RecordingClient) -> None:
        for arguments in variants:
            await call(client, name, arguments)

    return try_each


async def try_gzip(client: RecordingClient) -> None:
    """A tool that makes a resource: it can be read at once, and is listed."""
    made = await call(client, "gzip-file-as-resource", {"name": "link.gz", "data": "data:text/plain,linked"})
    for content in made.get("content", []):
        await client.request("resources/read", {"uri": content["uri"]})
    await client.heard("notifications/resources/list_changed", steps=2)
    whole = {"name": "whole.gz", "data": "data:text/plain,whole", "outputType": "resource"}
    await call(client, "gzip-file-as-resource", whole)
    await client.heard("notifications/resources/list_changed")
    await client.pages("resources/list", "resources")
    await client.request("resources/read", {"uri": "demo://resource/session/whole.gz"})
    await call(client, "gzip-file-as-resource", {"name": "no.gz", "data": "ftp://example.org/"})


async def try_logging(client: RecordingClient) -> None:
    """Log messages below the level are kept back; the simulated ones have a level at random, so all are let through."""
    await client.request("logging/setLevel", {"level": "error"})
    await client.request("resources/subscribe", {"uri": FIRST})
    await client.request("resources/unsubscribe", {"uri": FIRST})
    await client.request("logging/setLevel", {"level": "debug"})
    await call(client, "toggle-simulated-logging", {}, title="simulated logging on")
    await client.heard(MESSAGE)
    await call(client, "toggle-simulated-logging", {}, title="simulated logging off")


async def try_updates(client: RecordingClient) -> None:
    """Updates of what is subscribed to, and of nothing else."""
    for uri in (FIRST, SECOND):
        await client.request("resources/subscribe", {"uri": uri})
        await client.heard(MESSAGE)
    await call(client, "toggle-subscriber-updates", {}, title="updates of two on")
    await client.heard(UPDATED, 2)
    await call(client, "toggle-subscriber-updates", {}, title="updates of two off")
    await client.request("resources/unsubscribe", {"uri": FIRST})
    await client.heard(MESSAGE)
    await call(client, "toggle-subscriber-updates", {}, title="updates of one on")
    await client.heard(UPDATED)
    await call(client, "toggle-subscriber-updates", {}, title="updates of one off")
    await client.request("resources/unsubscribe", {"uri": SECOND})
    await client.heard(MESSAGE)


async def try_progress(client: RecordingClient) -> None:
    """Progress for who asks for it."""
    await call(client, "trigger-long-running-operation", {"duration": 0.3, "steps": 3}, progress=True)
    await call(client, "trigger-long-running-operation", {"duration": 0.1, "steps": 2})


async def try_roots(client: RecordingClient) -> None:
    """Roots as the server got them. It asks for them again whenever they change, with no call under way: through a
    gateway only a session's own server may do that."""
    await call(client, "get-roots-list", {})


async def try_elicitation(client: RecordingClient) -> None:
    """A form, with each of the answers that a person can give, and one of a client that fails."""
    content = {"name": "Peg", "check": True, "email": "peg@example.org", "integer": 7, "number": 2.5}
    for answer in (
        {"action": "accept", "content": {**content, "untitledMultipleSelectEnum": ["Piano", "Bass"]}},
        {"action": "decline"},
        {"action": "cancel"},
        RpcError(-32000, "there is nobody here", {"since": 1}),
    ):
        await call(client, "trigger-elicitation-request", {}, answers={"elicitation/create": answer})


async def try_url_elicitation(client: RecordingClient) -> None:
    """An address to visit, as a question and as an error that is gone at the second try."""
    url = {"url": "https://example.org/visit"}
    answers: Answers = {"elicitation/create": {"action": "accept"}}
    await call(client, "trigger-url-elicitation", {**url, "elicitationId": "visit-1"}, answers=answers)
    await call(client, "trigger-url-elicitation", {**url, "message": "Go!"}, answers=answers)
    await call(client, "trigger-url-elicitation", {**url, "errorPath": True}, title="error path, first")
    await call(
        client, "trigger-url-elicitation", {**url, "errorPath": True}, title="error path, again", answers=answers
    )
    decline: Answers = {"elicitation/create": {"action": "decline"}}
    await call(client, "trigger-url-elicitation", {**url, "elicitationId": "visit-2"}, answers=decline)


SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "a peg"}, "model": "none", "stopReason": "endTurn"}


async def try_sampling(client: RecordingClient) -> None:
    """A model's answer, and a person's refusal."""
    arguments = {"prompt": "What holds a tool?", "maxTokens": 7}
    await call(client, "trigger-sampling-request", arguments, answers={"sampling/createMessage": SAMPLED})
    refusal = RpcError(-1, "User rejected sampling request")
    await call(client, "trigger-sampling-request", arguments, answers={"sampling/createMessage": refusal})


async def try_research(client: RecordingClient) -> None:
    """A task of the server's: begun, looked at, asked a question by, listed, its result had; another one cancelled."""
    params = {"name": "simulate-research-query", "arguments": {"topic": "python", "ambiguous": True}}
    answers: Answers = {"elicitation/create": {"action": "accept", "content": {"interpretation": "snake"}}}
    task = (await client.request("tools/call", {**params, "task": {"ttl": 60000}})).get("task", {})
    await client.heard(STATUS)
    await client.request("tasks/get", {"taskId": task.get("taskId")})
    await client.request("tasks/result", {"taskId": task.get("taskId")}, answers=answers)
    await client.request("tasks/get", {"taskId": task.get("taskId")})
    params = {"name": "simulate-research-query", "arguments": {"topic": "pegs"}}
    task = (await client.request("tools/call", {**params, "task": {}})).get("task", {})
    await client.heard(STATUS)
    await client.request("tasks/list")
    await client.request("tasks/cancel", {"taskId": task.get("taskId")})
    await client.request("tasks/get", {"taskId": task.get("taskId")})
    await client.request("tasks/result", {"taskId": task.get("taskId")})


def client_task(status: str) -> dict[str, Any]:
    """A task that the client runs for the server."""
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"}
    return {"taskId": "ours-1", "status": status, "ttl": 60000, "pollInterval": 100, **times}


async def try_async_sampling(client: RecordingClient) -> None:
    """A question that becomes a task of the client's, which the server looks after."""
    answers: Answers = {
        "sampling/createMessage": {"task": client_task("working")},
        "tasks/get": {**client_task("completed"), "statusMessage": "thought about"},
        "tasks/result": SAMPLED,
    }
    await call(client, "trigger-sampling-request-async", {"prompt": "Why?"}, answers=answers)


async def try_async_elicitation(client: RecordingClient) -> None:
    """The same with a form, done as soon as it was begun; and answered at once, without a task."""
    answer = {"action": "accept", "content": {"name": "Peg", "agreeToTerms": False}}
    answers: Answers = {"elicitation/create": {"task": client_task("completed")}, "tasks/result": answer}
    await call(client, "trigger-elicitation-request-async", {}, answers=answers)
    await call(client, "trigger-elicitation-request-async", {}, answers={"elicitation/create": answer})


TRIES: dict[str, Try] = {
    "echo": calls("echo", {"message": "grüße \U0001f3af\n"}, {}, None),
    "get-annotated-message": calls(
        "get-annotated-message",
        *({"messageType": kind, "includeImage": kind == "debug"} for kind in ("error", "success", "debug")),
    ),
    "get-env": calls("get-env", {}),
    "get-resource-links": calls("get-resource-links", {"count": 4}, {}, {"count": 11}),
    "get-resource-reference": calls(
        "get-resource-reference",
        {"resourceType": "Text", "resourceId": 1},
        {"resourceType": "Blob", "resourceId": 2},
        {"resourceId": 0},
    ),
    "get-structured-content": calls(
        "get-structured-content", *({"location": city} for city in ("New York", "Chicago", "Los Angeles", "Atlantis"))
    ),
    "get-sum": calls("get-sum", {"a": 1.5, "b": 2}, {"a": 9007199254740991, "b": 0}, {"a": "x"}),
    "get-tiny-image": calls("get-tiny-image", {}, None),
    "gzip-file-as-resource": try_gzip,
    "toggle-simulated-logging": try_logging,
    "toggle-subscriber-updates": try_updates,
    "trigger-long-running-operation": try_progress,
    "get-roots-list": try_roots,
    "trigger-elicitation-request": try_elicitation,
    "trigger-url-elicitation": try_url_elicitation,
    "trigger-sampling-request": try_sampling,
    # Only to be had as a task, which this client does not ask for here.
    "simulate-research-query": calls("simulate-research-query", {"topic": "pegs"}),
}
TASK_TRIES: dict[str, Try] = {
    "simulate-research-query": try_research,
    "trigger-sampling-request-async": try_async_sampling,
    "trigger-elicitation-request-async": try_async_elicitation,
}
PROMPTS: dict[str, list[dict[str, str] | None]] = {
    "simple-prompt": [None, {}],
    "args-prompt": [{"city": "Bern"}, {"city": "Bern", "state": "BE"}, {}],
    "completable-prompt": [{"department": "Sales", "name": "Eve"}],
    "resource-prompt": [
        {"resourceType": "Text", "resourceId": "1"},
        {"resourceType": "Blob", "resourceId": "2"},
        {"resourceType": "Other", "resourceId": "1"},
    ],
}
# What is typed when a completion is asked for, and what was chosen before.
TYPED: dict[str, list[tuple[str, dict[str, str] | None]]] = {
    "city": [("B", None)],
    "state": [("B", None)],
    "department": [("", None), ("S", None), ("x", None)],
    "name": [("", None), *(("", {"department": name}) for name in ("Engineering", "Sales", "Marketing", "Support"))],
    "resourceType": [("", None), ("T", None)],
    "resourceId": [("1", None), ("x", None)],
}


async def meet(client: RecordingClient) -> None:
    """The server asks for the roots a moment after it was greeted."""
    # A gateway may greet the server no sooner than for the first call.
    await client.link.request(
        "tools/call", {"name": f"{client.prefix}echo", "arguments": {"message": "hi"}}, timeout=10
    )
    await client.asked("roots/list")
    await client.heard(MESSAGE)


async def try_tools(client: RecordingClient, tries: dict[str, Try]) -> None:
    """Each tool that is listed, in the order of the table."""
    listed = {tool["name"] for tool in await client.pages("tools/list", "tools")}
    unknown = listed - TRIES.keys() - TASK_TRIES.keys()
    assert not unknown, f"the script has nothing for {unknown}"
    for name, attempt in tries.items():
        if name in listed:
            await attempt(client)


async def use_resources(client: RecordingClient) -> None:
    for resource in await client.pages("resources/list", "resources"):
        await client.request("resources/read", {"uri": resource["uri"]})
    for template in await client.pages("resources/templates/list", "resourceTemplates"):
        for value in ("1", "22", "abc"):
            await client.request("resources/read", {"uri": template["uriTemplate"].replace("{resourceId}", value)})
        await complete(client, {"type": "ref/resource", "uri": template["uriTemplate"]}, "resourceId")


async def use_prompts(client: RecordingClient) -> None:
    for prompt in await client.pages("prompts/list", "prompts"):
        assert prompt["name"] in PROMPTS, f"the script has nothing for the prompt {prompt['name']}"
        for arguments in PROMPTS[prompt["name"]]:
            given = {} if arguments is None else {"arguments": arguments}
            await client.request("prompts/get", {"name": prompt["name"], **given})
        for argument in prompt.get("arguments", []):
            await complete(client, {"type": "ref/prompt", "name": prompt["name"]}, argument["name"])


async def complete(client: RecordingClient, ref: dict[str, str], argument: str) -> None:
    assert argument in TYPED, f"the script has nothing for the argument {argument}"
    for typed, chosen in TYPED[argument]:
        context = {} if chosen is None else {"context": {"arguments": chosen}}
        params = {"ref": ref, "argument": {"name": argument, "value": typed}, **context}
        await client.request("completion/complete", params)


async def everything(client: RecordingClient) -> None:
    """All that the server has, save tasks."""
    await meet(client)
    await use_resources(client)
    await use_prompts(client)
    await try_tools(client, TRIES)
    await client.request("ping")


async def tasks(client: RecordingClient) -> None:
    """Tasks of the server's and of the client's."""
    await meet(client)
    await try_tools(client, TASK_TRIES)


async def record(wire: Transport, script: Try, prefix: str = "") -> list[Step]:
    """Everything that a client receives in the course of a script."""
    async with recording(wire, CAPABILITIES, prefix) as client:
        await script(client)
    return client.steps


@asynccontextmanager
async def process(*command: str, **env: str) -> AsyncGenerator[Transport]:
    """A command's pipes."""
    keeper = OrphanReaper()
    spec = ServerSpec(name="direct", given_name="direct", command=command[0], args=tuple(command[1:]), env=env)
    try:
        yield StdioTransport(spec, keeper)
    finally:
        await asyncio.to_thread(keeper.close)


def address(url: str) -> Transport:
    return StreamableHttpTransport(ServerSpec(name="direct", given_name="direct", transport="http", url=url))


async def alone(transport: str, script: Try) -> list[Step]:
    """The script with the server itself."""
    if transport == "stdio":
        entry = npm(*EVERYTHING)
        async with process(entry["command"], *entry["args"]) as wire:
            return await record(wire, script)
    async with everything_over(transport) as url:
        return await record(address(url), script)


async def behind(transport: str, front: str, tmp_path: Path, script: Try) -> list[Step]:
    """The script with the gateway before the server."""
    async with AsyncExitStack() as stack:
        entry: Entry = npm(*EVERYTHING)
        if transport != "stdio":
            entry = {"type": "http", "url": await stack.enter_async_context(everything_over(transport))}
        if front == "http":
            gateway = await stack.enter_async_context(open_gateway(tmp_path, {"everything": entry}))
            await gateway.board.refresh()
            return await record(address(gateway.mcp), script, "everything__")
        config = write_config(tmp_path / "pegboard.json", {"everything": entry})
        pegboard = warm_start()
        refresh = [*pegboard, "refresh", "--config", str(config)]
        await asyncio.to_thread(subprocess.run, refresh, check=True, capture_output=True)
        own = {name: value for name, value in os.environ.items() if name.startswith("PEGBOARD_")}
        wire = await stack.enter_async_context(process(*pegboard, "stdio", "--config", str(config), **own))
        return await record(wire, script, "everything__")


async def test_two_runs_of_the_server_alone_are_equal() -> None:
    """What is left of a recording is the same each time, all that is waited for comes, and a change shows."""
    one, other = await asyncio.gather(alone("stdio", everything), alone("stdio", everything))
    assert not difference(one, other)
    assert not [step for step in one if step.in_vain]
    other[1].answer["result"]["resources"][0]["mimeType"] = "text/changed"
    assert '+     "mimeType": "text/changed"' in difference(one, other)
    del other[-1]
    assert "only the server alone has: ping" in difference(one, other)


@pytest.mark.parametrize(
    ("transport", "front", "script"),
    [
        pytest.param("stdio", "http", everything, id="stdio-http-everything"),
        pytest.param("streamableHttp", "http", everything, id="http-http-everything"),
        pytest.param("stdio", "stdio", everything, id="stdio-stdio-everything"),
        pytest.param("stdio", "http", tasks, id="stdio-http-tasks"),
        pytest.param("streamableHttp", "stdio", tasks, id="http-stdio-tasks"),
    ],
)
async def test_the_gateway_equals_the_server(tmp_path: Path, transport: str, front: str, script: Try) -> None:
    """Each answer, question, notification and step of progress is the server's own, in its order."""
    expected, got = await asyncio.gather(alone(transport, script), behind(transport, front, tmp_path, script))
    if found := difference(expected, got):
        pytest.fail(
            f"the gateway differs from the server alone (-: the server, +: the gateway)\n{found}", pytrace=False
        )
