"""The rest of MCP through the gateway: every feature between every kind of client and every kind of server."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import (
    SERVERS,
    Answer,
    Entry,
    RawClient,
    every_server,
    http_client,
    open_gateway,
    stdio_client,
    unattributed,
    unstamped,
    until_seen,
    write_config,
)
from pegboard.servers.errors import RpcError
from servers.toy import FEATURES, RICH_RESULT, Settings, Toy, form, model, prompt, prompted, resource, template, url

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

Feature = Callable[[RawClient, str], Awaitable[None]]
VERSIONS = ("2025-11-25", "2026-07-28")
ENVELOPE = "io.modelcontextprotocol/"
TRACE = {"vendor/trace": {"none": None, "big": 2**80}}
EVERY_CHANGE = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}

FILLED: dict[str, Any] = {
    "action": "accept",
    "content": {"name": "é\u2028😀", "big": 2**80, "none": None},
    "unheardOf": [None],
}
VISITED = {"action": "accept"}
SAMPLED = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u2", "name": "weather", "input": {"big": 2**80, "none": None}}],
    "model": "small",
    "stopReason": "toolUse",
}
ROOTS = {"roots": [{"uri": "file:///a%20b", "name": "ü", "_meta": {"x": None}}]}
ANSWERS: dict[str, Answer] = {
    "elicitation/create": lambda params: VISITED if params.get("mode") == "url" else FILLED,
    "sampling/createMessage": lambda _: SAMPLED,
    "roots/list": lambda _: ROOTS,
}


def options(version: str) -> dict[str, Any]:
    """A client that can do all that its version knows."""
    sub = version >= "2025-11-25"
    capabilities = {
        "elicitation": {"form": {}, "url": {}} if sub else {},
        "sampling": {"tools": {}} if sub else {},
        "roots": {},
    }
    return {"capabilities": capabilities, "answers": ANSWERS, "listen": EVERY_CHANGE}


def own(sent: Mapping[str, Any], server: str) -> dict[str, Any]:
    """What a server was sent; only in the modern era without what that hop adds."""
    if "modern" not in server:
        return dict(sent)
    meta = {key: value for key, value in sent["_meta"].items() if not key.startswith(ENVELOPE)}
    rest = {key: value for key, value in sent.items() if key != "_meta"}
    return rest | ({"_meta": meta} if meta else {})


async def carries_prompts(raw: RawClient, server: str) -> None:
    """Listed under the server's prefix and otherwise as sent; got under the server's own name, exactly. What a server
    speaks of that another one did before is named as its own."""
    listed = await raw.until_in("prompts", f"{server}__greet")
    for name in ("greet", "kinds", "asking"):
        assert listed[f"{server}__{name}"] == {**prompt(name), "name": f"{server}__{name}"}
    arguments = {"who": "é\u2028😀"}
    params = {"name": f"{server}__greet", "arguments": arguments, "_meta": TRACE, "extra": [None]}
    got = unstamped(await raw.request("prompts/get", params), raw)
    sent = got["_meta"]["toy/params"]
    assert own(sent, server) == {**params, "name": "greet"}
    assert got == prompted(sent, [json.dumps(arguments)])
    kinds = unstamped(await raw.request("prompts/get", {"name": f"{server}__kinds"}), raw)
    contents: Any = copy.deepcopy(RICH_RESULT["content"])
    if server != SERVERS[0]:
        contents[3]["resource"]["uri"] = f"pegboard://{server}/toy://a"
        contents[4]["uri"] = f"pegboard://{server}/toy://b"
    assert [message["content"] for message in kinds["messages"]] == contents


async def carries_resources(raw: RawClient, server: str) -> None:
    """Listed with their own URIs exactly as sent, and read with every kind of content, by list, template or link."""
    base, twin = f"toy://{server}", Toy(Settings(name=server))
    listed = await raw.until_in("resources", f"{base}/text")
    for uri in (f"{base}/text", f"{base}/blob", f"{base}/many", f"{base}/asking"):
        assert listed[uri] == resource(uri)
    assert (await raw.until_in("templates", f"{base}/item/{{id}}"))[f"{base}/item/{{id}}"] == template(
        f"{base}/item/{{id}}"
    )
    linked = await raw.call(f"{server}__linked")
    assert linked["content"] == twin.tool_linked({})["content"]
    for uri in (f"{base}/text", f"{base}/blob", f"{base}/many", f"{base}/item/7", f"{base}/hidden"):
        read = unstamped(await raw.request("resources/read", {"uri": uri, "_meta": TRACE, "extra": None}), raw)
        # How long it holds is said in the modern era alone.
        assert ("ttlMs" in read, read.get("cacheScope")) == ((True, "private") if raw.modern else (False, None))
        sent = read["_meta"]["toy/params"]
        assert own(sent, server) == {"uri": uri, "_meta": TRACE, "extra": None}
        assert (read["contents"], read["unheardOf"]) == (twin.contents(uri), [None])


async def refuses_unknown_resources(raw: RawClient, server: str) -> None:
    """A URI that nobody has: the code of the client's era, and the URI in the data."""
    await raw.until_in("resources", f"toy://{server}/text")
    with pytest.raises(RpcError) as unknown:
        await raw.request("resources/read", {"uri": f"toy://{server}/nothing"})
    assert unknown.value.code == (-32602 if raw.modern else -32002)
    assert unknown.value.data == {"uri": f"toy://{server}/nothing"}


async def completes(raw: RawClient, server: str) -> None:
    """Completion asks for the server's own prompt name or for the template, and brings back what the server said."""
    await raw.until_in("prompts", f"{server}__greet")
    given = {"argument": {"name": "who", "value": "é"}, "context": {"arguments": {"a": "b"}}, "extra": None}
    for ref, told in {
        ("ref/prompt", "name", f"{server}__greet"): "greet",
        ("ref/resource", "uri", f"toy://{server}/item/{{id}}"): f"toy://{server}/item/{{id}}",
    }.items():
        kind, key, value = ref
        params = {"ref": {"type": kind, key: value, "title": "T"}, **given}
        result = unstamped(await raw.request("completion/complete", params), raw)
        assert json.loads(result["completion"]["values"][0]) == {
            **params,
            "ref": {"type": kind, key: told, "title": "T"},
        }
        assert (result["completion"]["total"], result["completion"]["unheardOf"]) == (2**70, None)


async def carries_changes(raw: RawClient, server: str) -> None:
    """`list_changed` of prompts and of resources is followed by ours, once the new list can be had."""
    await raw.until_in("prompts", f"{server}__greet")
    for kind, fresh, listed in (
        ("prompts", "fresh", f"{server}__fresh"),
        ("resources", f"fresh://{server}", f"fresh://{server}"),
    ):
        method = f"notifications/{kind}/list_changed"
        before = len(raw.said(method))
        await raw.call(f"{server}__change", {f"add_{kind}": [fresh]})
        await raw.until_heard(method, before + 1)
        await raw.until_in(kind, listed)


async def carries_subscriptions(raw: RawClient, server: str) -> None:
    """Whoever subscribed to a resource hears that it changed, until the subscription ends."""
    uri, method = f"toy://{server}/text", "notifications/resources/updated"
    await raw.until_in("resources", uri)
    stream = None
    if raw.modern:
        stream = await raw.listen({"resourceSubscriptions": [uri]})
    else:
        assert await raw.request("resources/subscribe", {"uri": uri}) == {}
    await until_seen(raw, server, lambda now: now["subscriptions"] == [uri])
    assert await raw.text(f"{server}__touch", {"uri": uri}) == "1"
    await raw.until(lambda: any(said["uri"] == uri for said in raw.said(method)))
    told = [said for said in raw.said(method) if said["uri"] == uri]
    assert len(told) == 1
    assert told[0]["_meta"]["toy/key"] == 1
    if stream is not None:
        stream.cancel()
    else:
        assert await raw.request("resources/unsubscribe", {"uri": uri}) == {}
    await until_seen(raw, server, lambda now: now["subscriptions"] == [])
    assert await raw.text(f"{server}__touch", {"uri": uri}) == "0"


async def carries_log_lines(raw: RawClient, server: str) -> None:
    """A handshake client gets what its level admits, a modern one what its request's level admits."""
    await raw.until_in("prompts", f"{server}__greet")

    async def log(level: str) -> None:
        await raw.call(f"{server}__log", {"level": level, "data": {"by": server, "big": 2**80, "none": None}})

    if raw.modern:
        await log("emergency")
        raw.log_level = "warning"
    else:
        await raw.request("logging/setLevel", {"level": "warning"})
    await log("info")
    await log("error")
    raw.log_level = None

    def lines() -> list[Mapping[str, Any]]:
        return [said for said in raw.said("notifications/message") if said["data"]["by"] == server]

    await raw.until(lines)
    assert [line["level"] for line in lines()] == ["error"]
    assert lines()[0]["data"] == {"by": server, "big": 2**80, "none": None}
    assert (lines()[0]["logger"], lines()[0]["unheardOf"]) == ("toy.log", {"a": None})


def question(raw: RawClient, back: int = 1) -> dict[str, Any]:
    """One of the last questions as the server asked it."""
    method, given = raw.questions[-back]
    params = unattributed(method, given)
    return {"method": method, **({"params": params} if params else {})}


async def carries_questions(raw: RawClient, server: str) -> None:
    """Forms, visits, samples and roots are asked for and answered exactly."""
    result = unstamped(await raw.call_through(f"{server}__ask_form", {"who": server}), raw)
    assert result["structuredContent"] == {"answers": {"form": FILLED}}
    assert question(raw) == form(server)
    result = await raw.call_through(f"{server}__ask_roots", {"who": server})
    assert result["structuredContent"] == {"answers": {"roots": ROOTS}}
    assert question(raw) == {"method": "roots/list"}
    if raw.version < "2025-11-25":
        return
    result = await raw.call_through(f"{server}__ask_model", {"who": server})
    assert result["structuredContent"] == {"answers": {"model": SAMPLED}}
    assert question(raw) == model(server)
    result = await raw.call_through(f"{server}__ask_url", {"who": server})
    assert result["structuredContent"] == {"answers": {"url": VISITED}}
    asked = dict(question(raw)["params"])
    # The id of a visit is required in 2025-11-25 and gone in 2026-07-28.
    visit = asked.pop("elicitationId", None)
    assert asked == url(server, modern=True)["params"]
    assert raw.modern or isinstance(visit, str)
    if not raw.modern and "modern" not in server:
        assert visit in [said["elicitationId"] for said in await raw.until_heard("notifications/elicitation/complete")]


async def carries_several_questions(raw: RawClient, server: str) -> None:
    """One after the other, and two at once."""
    asked = len(raw.questions)
    result = await raw.call_through(f"{server}__ask_twice", {"who": server})
    assert result["structuredContent"] == {"answers": {"first": FILLED, "second": FILLED}}
    assert [question(raw, 2), question(raw)] == [form(server), form(f"{FILLED['content']['name']} again")]
    assert len(raw.questions) == asked + 2
    if raw.version < "2025-11-25":
        return
    result = await raw.call_through(f"{server}__ask_both", {"who": server})
    assert result["structuredContent"] == {"answers": {"form": FILLED, "model": SAMPLED}}
    assert len(raw.questions) == asked + 4
    assert form(server) in [question(raw, 2), question(raw)]
    assert model(server) in [question(raw, 2), question(raw)]


async def carries_questions_of_prompts_and_resources(raw: RawClient, server: str) -> None:
    """`prompts/get` and `resources/read` may ask as well as a tool."""
    await raw.until_in("prompts", f"{server}__asking")
    got = await raw.request_through("prompts/get", {"name": f"{server}__asking"})
    assert question(raw) == form("prompt")
    assert json.loads(got["messages"][0]["content"]["text"]) == {"form": FILLED}
    uri = f"toy://{server}/asking"
    read = await raw.request_through("resources/read", {"uri": uri})
    assert question(raw) == form(uri)
    assert [content["uri"] for content in read["contents"]] == [uri]
    assert json.loads(read["contents"][0]["text"]) == {"form": FILLED}


async def carries_the_unheard_of(raw: RawClient, server: str) -> None:
    """Methods and notices that Pegboard never heard of reach the server that was named, and come back exactly."""
    meta = {"pegboard/server": server, **TRACE}
    params = {"a": [None], "big": 2**80, "_meta": meta}
    result = unstamped(await raw.request("toy/shout", params), raw)
    assert (result["by"], result["big"]) == (server, 2**80)
    sent = own(result["shouted"], server)
    assert (sent["a"], sent["big"]) == ([None], 2**80)
    assert {key: value for key, value in sent["_meta"].items() if key != "pegboard/server"} == TRACE
    await raw.notify("notifications/toy/whisper", {"for": server, "_meta": {"pegboard/server": server}})
    if raw.can_notify:
        told = ["notifications/toy/whisper", server]
        await until_seen(raw, server, lambda now: told in [[note[0], note[1].get("for")] for note in now["notes"]])
    await raw.call(f"{server}__whisper", {"who": server})
    await raw.until(lambda: server in [said["who"] for said in raw.said("notifications/toy/news")])
    said = next(said for said in raw.said("notifications/toy/news") if said["who"] == server)
    assert (said["big"], said["none"]) == (2**80, None)


async def finds_the_owner_of_a_task(raw: RawClient, server: str) -> None:
    """A method with a `taskId` goes to the server whose result brought it."""
    task = (await raw.call(f"{server}__start_task"))["task"]
    assert (task["status"], task["ttl"]) == ("working", 60_000)
    got = unstamped(await raw.request("tasks/get", {"taskId": task["taskId"]}), raw)
    assert got == {"taskId": task["taskId"], "status": "completed", "by": server, "ttl": None}


FEATURE_TESTS: tuple[Feature, ...] = (
    carries_prompts,
    carries_resources,
    refuses_unknown_resources,
    completes,
    carries_changes,
    carries_subscriptions,
    carries_log_lines,
    carries_questions,
    carries_several_questions,
    carries_questions_of_prompts_and_resources,
    carries_the_unheard_of,
    finds_the_owner_of_a_task,
)


async def everywhere(raw: RawClient, *features: Feature) -> None:
    """Try features on every server, and tell of all that failed."""
    failures: list[Exception] = []
    for feature in features:
        for server in SERVERS:
            try:
                await feature(raw, server)
            except Exception as exc:
                exc.add_note(f"{feature.__name__} on {server}")
                failures.append(exc)
    if failures:
        raise ExceptionGroup("features that failed", failures)


@contextlib.asynccontextmanager
async def over_http(tmp_path: Path, version: str, entries: dict[str, Entry]) -> AsyncGenerator[RawClient]:
    """A client of a gateway over HTTP."""
    async with open_gateway(tmp_path, entries) as gateway:
        async with http_client(gateway.mcp, version, **options(version)) as raw:
            yield raw


@pytest.mark.parametrize(
    ("feature", "version"),
    [
        *((feature, version) for feature in FEATURE_TESTS for version in VERSIONS),
        *((feature, "2025-06-18") for feature in (carries_resources, carries_log_lines, carries_questions)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_over_http(tmp_path: Path, feature: Feature, version: str) -> None:
    """Each feature holds between an HTTP client of either era and every kind of server."""
    with every_server(features=FEATURES, pages=2) as entries:
        async with over_http(tmp_path, version, entries) as raw:
            await everywhere(raw, feature)


@pytest.mark.parametrize("version", VERSIONS)
async def test_over_stdio(tmp_path: Path, version: str) -> None:
    """Each feature holds between a stdio client of either era and every kind of server, all in one process."""
    with every_server(features=FEATURES, pages=2) as entries:
        config = write_config(tmp_path / "pegboard.json", entries)
        async with stdio_client(config, version, **options(version)) as raw:
            await everywhere(raw, *FEATURE_TESTS)
