"""Questions of servers: whom they reach, what becomes of their answers, and of calls that nobody answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import (
    LIMIT,
    Entry,
    RawClient,
    eventually,
    every_server,
    http_client,
    open_gateway,
    seen,
    toy,
    unattributed,
    unstamped,
    until_seen,
)
from pegboard.servers.errors import RpcError
from servers.toy import FEATURES, Settings, form
from servers.toy_http import Manners, http_toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

ERAS = ("handshake", "modern")
VERSIONS = ("2025-11-25", "2026-07-28")
HANDSHAKE = ("stdio_handshake", "http_handshake", "sse_handshake")
ABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
# Over HTTP each of them is a thread of the toy's, beside the gateway in one process.
ABANDONED = {"stdio_handshake": 400, "http_handshake": 150}


def full(name: str = "one", era: str = "handshake", entry: Entry | None = None, **more: Any) -> Entry:
    """A toy that asks."""
    return toy(entry, name=name, era=era, features=FEATURES, **more)


def named(name: str) -> dict[str, Any]:
    """The answer of someone with this name."""
    return {"action": "accept", "content": {"name": name}}


async def never(_: Mapping[str, Any]) -> Any:
    """A user who went away."""
    await asyncio.Event().wait()


def asked(url: str, version: str = "2025-11-25", name: str = "me", **more: Any) -> Any:
    """A client whose user says this name, however often it is asked."""
    options: dict[str, Any] = {"capabilities": ABLE, "answers": {"elicitation/create": lambda _: named(name)}, **more}
    return http_client(url, version, **options)


def answers(result: Mapping[str, Any]) -> dict[str, Any]:
    """The answers as the server got them."""
    return result["structuredContent"]["answers"]


@contextlib.asynccontextmanager
async def parked(
    tmp_path: Path, arguments: Mapping[str, Any]
) -> AsyncGenerator[tuple[RawClient, dict[str, Any], dict[str, Any]]]:
    """A modern client's call of a handshake server with its question open: client, params, and what was answered."""
    async with open_gateway(tmp_path, {"one": full()}) as gateway, asked(gateway.mcp, "2026-07-28") as client:
        params = {"name": "one__ask_form", "arguments": dict(arguments)}
        result = await client.request("tools/call", params)
        assert result["resultType"] == "input_required"
        yield client, params, result


@pytest.mark.parametrize("server_era", ERAS)
async def test_a_question_reaches_the_client_whose_call_caused_it(tmp_path: Path, server_era: str) -> None:
    """Clients of either era that only watch are not asked."""
    async with open_gateway(tmp_path, {"one": full(era=server_era)}) as gateway:
        async with (
            asked(gateway.mcp, name="old") as old,
            asked(gateway.mcp, "2026-07-28", name="modern") as modern,
            asked(gateway.mcp) as bystander,
        ):
            for name, client in {"old": old, "modern": modern}.items():
                result = await client.call_through("one__ask_form", {"who": name})
                assert answers(result) == {"form": named(name)}
            assert [len(client.questions) for client in (old, modern, bystander)] == [1, 1, 0]


@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.parametrize("kind", ["stdio_handshake", "stdio_modern", "http_handshake", "http_modern", "sse_handshake"])
async def test_calls_that_ask_at_the_same_time_are_kept_apart(tmp_path: Path, kind: str, count: int) -> None:
    """Clients of both eras share one server, and their first calls ever ask: each is asked its own, and only that."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway, contextlib.AsyncExitStack() as stack:
            clients: dict[str, RawClient] = {}
            for number in range(count):
                name = f"client-{number}"
                opened = asked(gateway.mcp, VERSIONS[number % 2], name=name)
                clients[name] = await stack.enter_async_context(opened)
            for _ in range(2):
                async with asyncio.timeout(30):
                    results = await asyncio.gather(
                        *(
                            client.request_through(
                                "tools/call", {"name": f"{kind}__ask_form", "arguments": {"who": name}}, timeout=30
                            )
                            for name, client in clients.items()
                        )
                    )
                assert [answers(result) for result in results] == [{"form": named(name)} for name in clients]
            for name, client in clients.items():
                assert [unattributed(*each) for each in client.questions] == [form(name)["params"]] * 2


@pytest.mark.parametrize("kind", ["stdio_handshake", "http_handshake", "http_stream", "sse_handshake"])
async def test_an_error_for_an_answer_arrives_as_that_error(tmp_path: Path, kind: str) -> None:
    """A handshake client that refuses with code, message and data refuses the handshake server with the same."""

    def refuse(_: Mapping[str, Any]) -> Any:
        raise RpcError(-1, "the user is out 😀", {"until": [None, 2**80]})

    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway:
            async with asked(gateway.mcp, answers={"elicitation/create": refuse}) as client:
                error = {"code": -1, "message": "the user is out 😀", "data": {"until": [None, 2**80]}}
                assert answers(await client.call(f"{kind}__ask_form")) == {"form": {"error": error}}


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_user_may_say_no(tmp_path: Path, era: str, version: str, action: str) -> None:
    """`decline` and `cancel` are answers like any other."""
    async with open_gateway(tmp_path, {"one": full(era=era)}) as gateway:
        async with asked(gateway.mcp, version, answers={"elicitation/create": lambda _: {"action": action}}) as client:
            assert answers(await client.call_through("one__ask_form")) == {"form": {"action": action}}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_that_cannot_answer_is_not_asked(tmp_path: Path, version: str) -> None:
    """A handshake server gets an error at once: -32601, or -32602 for a visit where only forms can be filled in."""
    async with open_gateway(tmp_path, {"one": full()}) as gateway:
        async with asked(gateway.mcp, version, capabilities={}) as client:
            for tool, key in (("ask_form", "form"), ("ask_model", "model"), ("ask_roots", "roots")):
                assert answers(await client.call(f"one__{tool}"))[key]["error"]["code"] == -32601
            assert client.questions == []
        async with asked(gateway.mcp, version, capabilities={"elicitation": {}}) as client:
            assert answers(await client.call("one__ask_url"))["url"]["error"]["code"] == -32602
            assert client.questions == []
            assert answers(await client.call_through("one__ask_form")) == {"form": named("me")}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["stdio_modern", "http_modern"])
async def test_a_modern_server_sees_what_the_client_can_answer(tmp_path: Path, kind: str, version: str) -> None:
    """Each request carries the capabilities of the very client it is made for, and the server decides by them."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway:
            async with (
                asked(gateway.mcp, version) as able,
                asked(gateway.mcp, version, capabilities={"roots": {}}) as unable,
            ):
                await able.until_in("tools", f"{kind}__echo")
                for client in (able, unable):
                    echoed = await client.call(f"{kind}__echo")
                    declared = echoed["structuredContent"]["params"]["_meta"][CAPABILITIES]
                    assert {name for name in ABLE if name in declared} == set(client.capabilities)
                with pytest.raises(RpcError) as lacking:
                    await unable.call(f"{kind}__ask_form")
                assert lacking.value.code == -32021
                assert lacking.value.data == {"requiredCapabilities": {"elicitation": {}}}
                assert unable.questions == []


async def test_the_questions_of_a_handshake_server_for_a_modern_client(tmp_path: Path) -> None:
    """`input_required` with one entry for the open question, as it was asked, and a state that says nothing."""
    async with parked(tmp_path, {"who": "x"}) as (client, params, result):
        (question,) = result["inputRequests"].values()
        assert unattributed(question["method"], question["params"]) == form("x")["params"]
        assert isinstance(result["requestState"], str)
        final = await client.request("tools/call", {**params, **await client.answered(result)})
        assert answers(unstamped(final, client)) == {"form": named("me")}


@pytest.mark.parametrize("change", ["longer", "shorter", "first", "last", "other", "none"])
async def test_a_state_that_was_tampered_with_is_refused(tmp_path: Path, change: str) -> None:
    """-32602, and the call that waits goes on untouched."""
    async with parked(tmp_path, {"who": "x"}) as (client, params, result):
        state = result["requestState"]
        changed = {
            "longer": f"{state}A",
            "shorter": state[:-1],
            "first": ("B" if state[0] == "A" else "A") + state[1:],
            "last": state[:-1] + ("B" if state[-1] == "A" else "A"),
            "other": "nonsense",
            "none": "",
        }[change]
        retry = {**params, **await client.answered(result)}
        with pytest.raises(RpcError) as refused:
            await client.request("tools/call", {**retry, "requestState": changed})
        assert refused.value.code == -32602
        assert answers(await client.request("tools/call", retry)) == {"form": named("me")}
        assert (await seen(client, "one"))["cancelled"] == []


async def test_a_retry_with_other_arguments_is_refused(tmp_path: Path) -> None:
    """-32602 for other arguments, another tool or another method; the call that waits goes on untouched."""
    async with parked(tmp_path, {"who": "x"}) as (client, params, result):
        carried = await client.answered(result)
        for other in ({**params, "arguments": {"who": "y"}}, {**params, "name": "one__ask_both"}):
            with pytest.raises(RpcError) as refused:
                await client.request("tools/call", {**other, **carried})
            assert refused.value.code == -32602
        with pytest.raises(RpcError) as refused:
            await client.request("prompts/get", {"name": "one__asking", **carried})
        assert refused.value.code == -32602
        assert answers(await client.request("tools/call", {**params, **carried})) == {"form": named("me")}


@pytest.mark.parametrize("kind", ["stdio_modern", "http_modern"])
async def test_a_modern_servers_own_state_is_carried_for_a_modern_client(tmp_path: Path, kind: str) -> None:
    """Both of one era: the round trips are the client's, and a false state is the server's to refuse."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway, asked(gateway.mcp, "2026-07-28") as client:
            params = {"name": f"{kind}__ask_form", "arguments": {"who": "x"}}
            result = await client.request("tools/call", params)
            question = result["inputRequests"]["form"]
            assert unattributed(question["method"], question["params"]) == form("x")["params"]
            with pytest.raises(RpcError) as refused:
                await client.request("tools/call", {**params, "inputResponses": {}, "requestState": "nonsense"})
            assert refused.value.code == -32602
            final = await client.request("tools/call", {**params, **await client.answered(result)})
            assert answers(final) == {"form": named("me")}


async def test_a_question_on_the_standing_stream_finds_its_call(tmp_path: Path) -> None:
    """Some servers ask on the standing stream instead of the call's own."""
    settings = Settings(name="one", era="handshake", features=FEATURES, ask_on="standing")
    with http_toy(settings, Manners(stream=True)) as listening:
        async with open_gateway(tmp_path, {"one": {"type": "http", "url": listening.url}}) as gateway:
            for version in VERSIONS:
                async with asked(gateway.mcp, version) as client:
                    assert answers(await client.call_through("one__ask_form")) == {"form": named("me")}


@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_a_cancelled_call_takes_its_question_back(tmp_path: Path, kind: str) -> None:
    """The server is told, the client's user is no longer asked, and the connection goes on."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway:
            async with asked(gateway.mcp, answers={"elicitation/create": never}) as client:
                call = asyncio.create_task(client.call(f"{kind}__ask_form", timeout=60))
                await client.until(lambda: client.questions)
                await client.give_up()
                await client.until(lambda: len(client.withdrawn) == 1)
                await until_seen(client, kind, lambda now: len(now["cancelled"]) == 1 and now["open"] == 0)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)


async def test_a_cancelled_call_takes_back_the_question_of_a_modern_server(tmp_path: Path) -> None:
    """There the server waits for nothing; the client's user must still not be asked any longer."""
    async with open_gateway(tmp_path, {"one": full(era="modern")}) as gateway:
        async with asked(gateway.mcp, answers={"elicitation/create": never}) as client:
            call = asyncio.create_task(client.call("one__ask_form", timeout=60))
            await client.until(lambda: client.questions)
            await client.give_up()
            await client.until(lambda: len(client.withdrawn) == 1)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)


@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_a_question_that_the_server_takes_back_is_taken_back(tmp_path: Path, kind: str) -> None:
    """`notifications/cancelled` for a question reaches the client that was asked."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway:
            async with asked(gateway.mcp, answers={"elicitation/create": never}) as client:
                call = asyncio.create_task(client.call(f"{kind}__ask_withdrawn"))
                await client.until(lambda: client.questions)
                await client.call(f"{kind}__go_on")
                assert answers(await call) == {}
                await client.until(lambda: len(client.withdrawn) == 1)


async def test_a_page_to_visit_first_is_a_question_to_a_modern_client(tmp_path: Path) -> None:
    """The error -32042 of a handshake server: a modern client is asked, and its call sent again if it accepts."""
    async with open_gateway(tmp_path, {"one": full()}) as gateway:
        accepts = {"elicitation/create": lambda _: {"action": "accept"}}
        async with asked(gateway.mcp, "2026-07-28", answers=accepts) as client:
            result = await client.call_through("one__behind_a_page")
            assert result["content"][0]["text"] == "inside"
            method, params = client.questions[0]
            assert (method, params["mode"], params["url"]) == ("elicitation/create", "url", "https://example.com/in")
        declines = {"elicitation/create": lambda _: {"action": "decline"}}
        async with asked(gateway.mcp, "2026-07-28", answers=declines) as client:
            with pytest.raises(RpcError) as refused:
                await client.call_through("one__behind_a_page")
            assert refused.value.code == -32042
        async with asked(gateway.mcp) as client:
            await client.call("one__behind_a_page")
            with pytest.raises(RpcError) as refused:
                await client.call("one__behind_a_page")
            assert refused.value.data["elicitations"][0]["elicitationId"] == "page-1"


@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_a_client_that_leaves_takes_its_calls_along(tmp_path: Path, kind: str) -> None:
    """A session that ends with a question open: the server is told, and the next client's call works."""
    with every_server((kind,), features=FEATURES) as entries:
        async with open_gateway(tmp_path, entries) as gateway, asked(gateway.mcp) as stays:
            async with asked(gateway.mcp, answers={"elicitation/create": never}) as leaves:
                call = asyncio.create_task(leaves.call(f"{kind}__ask_form", timeout=60))
                await leaves.until(lambda: leaves.questions)
            await asyncio.gather(call, return_exceptions=True)
            await until_seen(stays, kind, lambda now: len(now["cancelled"]) == 1 and now["open"] == 0)
            assert answers(await stays.call(f"{kind}__ask_form")) == {"form": named("me")}


@pytest.mark.parametrize("kind", ["stdio_handshake", "http_handshake"])
async def test_calls_that_nobody_comes_back_for_are_let_go(tmp_path: Path, kind: str) -> None:
    """Hundreds of them (fewer over HTTP): their time runs out, the server is told, and nothing is left."""
    with every_server((kind,), features=FEATURES) as entries:
        entries[kind]["timeout"] = 2 if kind == "stdio_handshake" else 6
        async with open_gateway(tmp_path, entries) as gateway, asked(gateway.mcp, "2026-07-28") as client:
            few, most = asyncio.Semaphore(100), 0

            async def abandon(number: int) -> dict[str, Any]:
                nonlocal most
                async with few:
                    params = {"name": f"{kind}__ask_form", "arguments": {"who": number}}
                    result = await client.request("tools/call", params, timeout=60)
                    most = max(most, gateway.board.relay.parked.count)
                    return result

            async with asyncio.timeout(90):
                results = await asyncio.gather(*map(abandon, range(ABANDONED[kind])))
            waited = [result for result in results if result["resultType"] == "input_required"]
            # Over a pipe they wait for each other, and some for too long; over HTTP only the machine holds them up.
            assert len(waited) > (0 if kind == "stdio_handshake" else ABANDONED[kind] / 2)
            assert most > 10
            await eventually(lambda: gateway.board.relay.parked.count == 0, 3 * LIMIT)
            # A cancellation may still be on its way when the last question is closed.
            await until_seen(client, kind, lambda now: now["open"] == 0 and len(now["cancelled"]) >= len(waited))
            late = await client.answered(waited[0])
            with pytest.raises(RpcError) as gone:
                await client.request("tools/call", {"name": f"{kind}__ask_form", "arguments": {"who": 0}, **late})
            assert gone.value.code == -32602
            assert answers(await client.call_through(f"{kind}__ask_form")) == {"form": named("me")}
