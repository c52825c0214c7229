"""The toy itself, without a gateway: so that a broken toy is told from a broken gateway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from harness import LIMIT, TOY, Answer, ListeningTransport, RawClient, connect, process_client
from pegboard.config import ServerSpec
from pegboard.servers.errors import RpcError
from pegboard.servers.transports.sse import SseTransport
from servers.toy import FEATURES, RICH_RESULT, Settings, form, model, prompt, resource, template, url
from servers.toy_http import Manners, http_toy

pytestmark = pytest.mark.anyio

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
FORM = {"action": "accept", "content": {"name": "é😀", "big": 2**80}, "none": None}
ANSWERS: dict[str, Answer] = {
    "elicitation/create": lambda params: FORM if params["mode"] == "form" else {"action": "accept"},
    "sampling/createMessage": lambda _: {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"},
    "roots/list": lambda _: {"roots": [{"uri": "file:///a"}]},
}
LISTENED = {"promptsListChanged": True, "resourceSubscriptions": ["toy://toy/text"]}


@contextlib.asynccontextmanager
async def direct(kind: str, **more: Any) -> AsyncGenerator[RawClient]:
    """A client of the toy itself."""
    transport, _, era = kind.partition("_")
    given: dict[str, Any] = {"era": era, "features": FEATURES, "pages": 2, **more}
    options: dict[str, Any] = {"capabilities": EVERYTHING, "answers": ANSWERS, "listen": LISTENED}
    version = "2026-07-28" if era == "modern" else "2025-11-25"
    if transport == "stdio":
        args = ("-I", "-S", str(TOY), json.dumps(given))
        spec = ServerSpec(name="toy", given_name="toy", command=sys.executable, args=args)
        async with process_client(spec, version, **options) as client:
            yield client
        return
    with http_toy(Settings(**given), Manners()) as listening:
        target = listening.sse_url if transport == "sse" else listening.url
        spec = ServerSpec(name="toy", given_name="toy", transport="http", url=target)
        async with connect(
            SseTransport(spec) if transport == "sse" else ListeningTransport(spec), version, **options
        ) as client:
            yield client


KINDS = ("stdio_handshake", "stdio_modern", "http_handshake", "http_modern", "sse_handshake")


@pytest.mark.parametrize("kind", KINDS)
async def test_offers(kind: str) -> None:
    """Prompts, resources, templates and completion are listed on pages, read and completed."""
    async with direct(kind) as client:
        first = await client.request("prompts/list")
        rest = await client.request("prompts/list", {"cursor": first["nextCursor"]})
        assert [*first["prompts"], *rest["prompts"]] == [prompt(name) for name in ("greet", "kinds", "asking")]
        assert (await client.request("resources/list"))["resources"][0] == resource("toy://toy/text")
        assert await client.listed("templates") == {"toy://toy/item/{id}": template("toy://toy/item/{id}")}
        for uri in ("toy://toy/text", "toy://toy/many", "toy://toy/hidden", "toy://toy/item/7"):
            assert (await client.request("resources/read", {"uri": uri}))["contents"][0]["uri"].startswith(uri)
        with pytest.raises(RpcError) as unknown:
            await client.request("resources/read", {"uri": "toy://toy/no"})
        assert unknown.value.code == (-32602 if client.modern else -32002)
        assert unknown.value.data == {"uri": "toy://toy/no"}
        kinds = (await client.request("prompts/get", {"name": "kinds"}))["messages"]
        assert [message["content"] for message in kinds] == RICH_RESULT["content"]
        asked = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "x"}}
        completion = (await client.request("completion/complete", asked))["completion"]
        assert json.loads(completion["values"][0]) == asked


@pytest.mark.parametrize("kind", [*KINDS, "http_standing"])
async def test_questions(kind: str) -> None:
    """Every tool, prompt and resource that asks puts its questions and shows the answers as they came."""
    standing = {"ask_on": "standing"} if kind == "http_standing" else {}
    async with direct("http_handshake" if standing else kind, **standing) as client:
        for tool, keys in {
            "ask_form": ["form"],
            "ask_url": ["url"],
            "ask_model": ["model"],
            "ask_roots": ["roots"],
            "ask_twice": ["first", "second"],
            "ask_both": ["form", "model"],
        }.items():
            answers = (await client.call_through(tool, {"who": "me"}))["structuredContent"]["answers"]
            assert list(answers) == keys
            assert answers.get("form", FORM) == FORM
        asked = [{"method": method, **({"params": params} if params else {})} for method, params in client.questions]
        assert asked[:3] == [form("me"), url("me", modern=client.modern), model("me")]
        assert form("é😀 again") in asked
        read = await client.request_through("resources/read", {"uri": "toy://toy/asking"})
        assert json.loads(read["contents"][0]["text"]) == {"form": FORM}
        got = await client.request_through("prompts/get", {"name": "asking"})
        assert json.loads(got["messages"][0]["content"]["text"]) == {"form": FORM}
        if client.modern:
            with pytest.raises(RpcError, match="requestState"):
                await client.request("tools/call", {"name": "ask_form", "requestState": "x", "inputResponses": {}})
        else:
            await client.until_heard("notifications/elicitation/complete")


@pytest.mark.parametrize("kind", KINDS)
async def test_news(kind: str) -> None:
    """Changes, updates, log lines and unknown notices come to those who asked for them."""
    async with direct(kind) as client:
        uri = "toy://toy/text"
        if not client.modern:
            await client.request("resources/subscribe", {"uri": uri})
            await client.request("logging/setLevel", {"level": "warning"})
        assert (await client.call("seen"))["structuredContent"]["subscriptions"] == [uri]
        await client.call("touch", {"uri": uri})
        await client.call("touch", {"uri": "toy://toy/blob"})
        assert [said["uri"] for said in await client.until_heard("notifications/resources/updated")] == [uri]
        await client.call("change", {"add_prompts": ["new"], "add_resources": ["toy://new"]})
        await client.until_heard("notifications/prompts/list_changed")
        if client.modern:
            assert client.said("notifications/resources/list_changed") == []
            assert await client.text("log", {"level": "alert"}) == "dropped"
            client.log_level = "warning"
        assert [await client.text("log", {"level": level, "data": 1}) for level in ("info", "error")] == [
            "dropped",
            "logged",
        ]
        assert [said["level"] for said in await client.until_heard("notifications/message")] == ["error"]
        await client.call("whisper", {"who": "you"})
        assert (await client.until_heard("notifications/toy/news"))[0]["who"] == "you"


@pytest.mark.parametrize("kind", KINDS)
async def test_odd_things(kind: str) -> None:
    """Unknown methods and notices, tasks, links, and a question whose call is given up."""
    async with direct(kind, capabilities={"toy": {"loud": True}}) as client:
        assert client.hello["capabilities"]["toy"] == {"loud": True}
        assert (await client.request("toy/shout", {"a": None}))["shouted"]["a"] is None
        await client.notify("notifications/toy/whisper", {"b": 1})
        task = (await client.call("start_task"))["task"]["taskId"]
        assert (await client.request("tasks/get", {"taskId": task}))["status"] == "completed"
        assert (await client.call("linked"))["content"][0]["uri"] == "toy://toy/hidden"
        seen = (await client.call("seen"))["structuredContent"]
        assert ["notifications/toy/whisper", 1] in [[method, params.get("b")] for method, params in seen["notes"]]
        if client.modern:
            return
        assert seen["client"]["capabilities"] == EVERYTHING
        client.answers = {"elicitation/create": lambda _: asyncio.Event().wait()}
        call = asyncio.create_task(client.call("ask_form", {}))
        await client.until(lambda: client.questions)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        async with asyncio.timeout(LIMIT):
            while (seen := (await client.call("seen"))["structuredContent"])["open"] or len(seen["cancelled"]) != 1:
                await asyncio.sleep(0.02)
        call = asyncio.create_task(client.call("ask_withdrawn", {}))
        await client.until(lambda: len(client.questions) == 2)
        await client.call("go_on")
        await call
        await client.until(lambda: len(client.withdrawn) == 1)
