"""Servers that misbehave: each fault costs the call it belongs to, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from harness import LIMIT, RawClient, eventually, http_client, open_board, open_gateway, toy
from pegboard.servers.errors import RpcError
from pegboard.servers.server_state import ServerState
from servers.toy import BUILT_IN, Settings
from servers.toy_http import Manners, http_toy

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]


def error_of(result: dict[str, Any]) -> dict[str, Any]:
    """The one shape of our own failures."""
    assert result["isError"] is True
    failed = json.loads(result["content"][0]["text"])
    assert failed["success"] is False
    assert set(failed["error"]) == {"code", "message", "retryable"}
    return failed["error"]


async def unhurt(client: RawClient, server: str) -> None:
    """The server still answers."""
    assert await client.text(f"{server}__echo", {"fine": True}) == '{"fine": true}'


BROKEN_ANSWERS = {
    "not_json": "not valid JSON",
    "not_utf8": "not valid JSON",
    "no_result": "neither a result",
    "result_is_list": "neither a result",
    "deep": "nested deeper than 200 levels",
}


@pytest.mark.parametrize(("how", "words"), BROKEN_ANSWERS.items(), ids=list(BROKEN_ANSWERS))
async def test_a_broken_answer_fails_its_own_call_only(tmp_path: Path, how: str, words: str) -> None:
    """One clear error for the call; a call under way beside it and the calls after it are not hurt."""
    async with open_gateway(tmp_path, {"bad": toy(), "good": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        beside = asyncio.create_task(client.text("bad__sleep", {"seconds": 0.5}))
        error = error_of(await client.call("bad__misbehave", {"how": how}))
        assert error["code"] == "TOOL_EXECUTION_FAILED"
        assert words in error["message"]
        assert await beside == "awake"
        await unhurt(client, "bad")
        await unhurt(client, "good")


@pytest.mark.parametrize("how", ["wrong_id", "not_an_object"])
async def test_an_answer_for_nobody_leaves_its_call_to_the_time_limit(tmp_path: Path, how: str) -> None:
    """What cannot be told to belong to a call is dropped; the call times out, and nothing else is hurt."""
    async with open_gateway(tmp_path, {"bad": toy({"timeout": 1.5})}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        error = error_of(await client.call("bad__misbehave", {"how": how}))
        assert (error["code"], error["retryable"]) == ("TOOL_UNAVAILABLE", True)
        await unhurt(client, "bad")


@pytest.mark.parametrize("how", ["twice", "split"])
async def test_an_odd_but_whole_answer_is_an_answer(tmp_path: Path, how: str) -> None:
    """An answer that comes twice counts once; one that comes byte by byte is put together."""
    async with open_gateway(tmp_path, {"bad": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        assert await client.text("bad__misbehave", {"how": how}) == "late"
        await unhurt(client, "bad")


async def test_half_an_emoji_is_replaced_not_refused(tmp_path: Path) -> None:
    """A text that JavaScript cut in the middle of a character comes through with U+FFFD."""
    async with open_gateway(tmp_path, {"bad": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        assert await client.text("bad__misbehave", {"how": "surrogate"}) == "cut \ud83d"


async def test_a_late_answer_is_dropped(tmp_path: Path) -> None:
    """The answer to a call that timed out is not taken for the answer to the next one."""
    async with open_gateway(tmp_path, {"bad": toy({"timeout": 1})}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        error_of(await client.call("bad__misbehave", {"how": "late", "after": 2}))
        await asyncio.sleep(1.2)
        await unhurt(client, "bad")


async def test_answers_out_of_order_find_their_calls(tmp_path: Path) -> None:
    """A quick call overtakes a slow one on the same connection."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        slow = asyncio.create_task(client.call("one__sleep", {"seconds": 600}, timeout=600))
        quick = await asyncio.gather(*(client.text("one__echo", {"n": n}) for n in range(20)))
        assert quick == [f'{{"n": {n}}}' for n in range(20)]
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


async def test_a_server_that_dies_in_a_call_fails_it_and_comes_back(tmp_path: Path) -> None:
    """The error says what the process said last, without its secrets; the next call has a new process."""
    entry = toy({"env": {"API_TOKEN": "s3cr3t-value"}})
    async with open_gateway(tmp_path, {"bad": entry, "good": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        error = error_of(await client.call("bad__die", {"code": 9, "words": "cannot log in with s3cr3t-value"}))
        assert (error["code"], error["retryable"]) == ("TOOL_UNAVAILABLE", True)
        assert "exited with code 9" in error["message"]
        assert "cannot log in with [redacted]" in error["message"]
        await unhurt(client, "good")
        await client.until_listed(lambda names: "bad__echo" in names)
        await unhurt(client, "bad")
        assert "s3cr3t" not in str(gateway.board.servers["bad"].last_error)


async def test_half_an_answer_before_the_end_fails_the_call(tmp_path: Path) -> None:
    """A process that ends in the middle of a line fails the call with how it ended."""
    async with open_gateway(tmp_path, {"bad": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        error = error_of(await client.call("bad__misbehave", {"how": "half_then_die"}))
        assert "exited with code 5" in error["message"]


async def test_an_answer_of_fifty_megabytes_is_one_clear_error(tmp_path: Path) -> None:
    """It is read past without being kept, and a call beside it is not hurt."""
    async with open_gateway(tmp_path, {"bad": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        error = error_of(await client.call("bad__misbehave", {"how": "huge", "size": 80_000_000}, timeout=60))
        assert "the limit is" in error["message"]
        await unhurt(client, "bad")


async def test_a_large_answer_within_the_limit_is_carried(tmp_path: Path) -> None:
    """Ten megabytes are nothing to be afraid of."""
    async with open_gateway(tmp_path, {"big": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        result = await client.call("big__misbehave", {"how": "huge", "size": 10_000_000}, timeout=60)
        assert len(result["content"][0]["text"]) == 10_000_000


async def test_a_line_without_an_end_ends_the_server_not_the_gateway(tmp_path: Path) -> None:
    """An endless stream is cut off: its server is lost, others go on."""
    async with open_gateway(tmp_path, {"bad": toy(), "good": toy()}) as gateway, http_client(gateway.mcp) as client:
        await client.names()
        error = error_of(await client.call("bad__misbehave", {"how": "endless"}, timeout=60))
        assert "without the end of a line" in error["message"]
        await unhurt(client, "good")


async def test_words_on_stdout_are_not_protocol(tmp_path: Path) -> None:
    """A server that greets on its output is understood all the same."""
    async with open_gateway(tmp_path, {"noisy": toy(noise=True)}) as gateway, http_client(gateway.mcp) as client:
        await unhurt(client, "noisy")


@pytest.mark.parametrize("manner", [{"dies_at_unknown": True}, {"silent_at_unknown": True}], ids=["dies", "silent"])
async def test_an_old_server_that_cannot_be_asked_for_its_era(tmp_path: Path, manner: dict[str, Any]) -> None:
    """One that ends, or never answers, at a question it does not know is greeted in the old way; its era is kept."""
    log = tmp_path / "requests"
    entry = toy(era="handshake", log=str(log), **manner)
    async with open_gateway(tmp_path, {"old": entry}) as gateway, http_client(gateway.mcp) as client:
        await unhurt(client, "old")
        assert gateway.board.servers["old"].era == "handshake"
    assert "server/discover" in log.read_text()
    log.unlink()
    async with open_board(tmp_path, {"old": entry}) as board:
        assert board.servers["old"].era == "handshake"
        assert (await board.call("old__echo", {})).success
    assert "server/discover" not in log.read_text()


async def test_the_era_is_asked_once_and_kept(tmp_path: Path) -> None:
    """After a restart a known server is greeted in its era at once, with no question before."""
    log = tmp_path / "requests"
    for era, first in (("handshake", "initialize"), ("modern", "server/discover")):
        servers = {"one": toy(era=era, log=str(log))}
        async with open_board(tmp_path, servers) as board:
            assert (await board.call("one__echo", {})).success
        log.unlink()
        async with open_board(tmp_path, servers) as board:
            assert (await board.call("one__echo", {})).success
        assert log.read_text().splitlines()[0].endswith(first)
        log.unlink()


async def test_a_command_that_never_answers_fails_within_its_start_limit(tmp_path: Path) -> None:
    """`startTimeout` is enforced, and the process is gone afterwards."""
    entry = toy({"startTimeout": 0.5}, hang_on=["server/discover", "initialize"])
    async with open_gateway(tmp_path, {"mute": entry}) as gateway, http_client(gateway.mcp) as client:
        error = error_of(await client.call("mute__echo"))
        assert "no answer within 0.5 s" in error["message"]
        assert error["retryable"] is True


@pytest.mark.scenario("registry: Connection: five seconds unless the config says otherwise, enforced")
async def test_an_address_that_never_answers_fails_within_its_connect_limit(tmp_path: Path) -> None:
    """`connectTimeout` covers the whole greeting: a server that accepts and says nothing is not reached."""
    with http_toy(manners=Manners(hang=True)) as listening:
        servers = {"mute": {"type": "http", "url": listening.url, "connectTimeout": 0.5}}
        async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
            assert "no answer within 0.5 s" in error_of(await client.call("mute__echo"))["message"]


HTTP_FAULTS = {
    "500": (Manners(status=500), "HTTP 500", "TOOL_UNAVAILABLE", True),
    "503": (Manners(status=503), "HTTP 503", "TOOL_UNAVAILABLE", True),
    "429": (Manners(status=429), "HTTP 429", "RATE_LIMITED", True),
    "html": (
        Manners(status=200, body=b"<html>", content_type="text/html"),
        "text/html",
        "TOOL_EXECUTION_FAILED",
        False,
    ),
    "not_json": (Manners(status=200, body=b"{oops"), "not valid JSON", "TOOL_EXECUTION_FAILED", False),
    "wrong_id": (
        Manners(status=200, body=b'{"jsonrpc":"2.0","id":12345,"result":{}}'),
        "no answer to the request",
        "TOOL_EXECUTION_FAILED",
        False,
    ),
    "redirect": (Manners(redirect="http://other.example/mcp"), "http://other.example/mcp", "TOOL_UNAVAILABLE", False),
    "too_large": (Manners(status=200, body=b" " * 67_200_000), "larger than", "TOOL_EXECUTION_FAILED", False),
}


@pytest.mark.parametrize("fault", HTTP_FAULTS)
async def test_an_http_server_that_answers_wrongly(tmp_path: Path, fault: str) -> None:
    """Each wrong answer of a server that was fine before is one clear error of the call."""
    manners, words, code, retryable = HTTP_FAULTS[fault]
    with http_toy(Settings(era="handshake")) as listening:
        servers = {"bad": {"type": "http", "url": listening.url}, "good": toy()}
        async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
            await client.names()
            listening.manners, fine = manners, listening.manners
            error = error_of(await client.call("bad__echo", {}, timeout=30))
            assert (error["code"], error["retryable"]) == (code, retryable)
            assert words in error["message"]
            listening.manners = fine
            await unhurt(client, "bad")
            await unhurt(client, "good")


async def test_a_stream_that_breaks_off_fails_the_call(tmp_path: Path) -> None:
    """A connection cut after the first event is an error of that call, and the next one works."""
    with http_toy(Settings(era="handshake"), Manners(stream=True)) as listening:
        servers = {"bad": {"type": "http", "url": listening.url}}
        async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
            await client.names()
            listening.manners.cut_after_first = True
            error = error_of(await client.call("bad__progress", {"steps": 3}, on_progress=lambda _: None))
            assert (error["code"], error["retryable"]) == ("TOOL_UNAVAILABLE", True)
            listening.manners.cut_after_first = False
            await unhurt(client, "bad")


async def test_a_server_that_wants_credentials_says_so(tmp_path: Path) -> None:
    """401 is `needs_auth`, named in the error; with the right token it works, and the token is in no reply."""
    with http_toy(manners=Manners(token="right-token-9")) as listening:
        wrong = {"type": "http", "url": listening.url, "headers": {"Authorization": "Bearer wrong-token-1"}}
        async with open_gateway(tmp_path, {"safe": wrong}) as gateway, http_client(gateway.mcp) as client:
            error = error_of(await client.call("safe__echo"))
            assert error["code"] == "TOOL_UNAVAILABLE"
            assert "credentials" in error["message"]
            assert "wrong-token-1" not in error["message"]
            assert gateway.board.servers["safe"].state is ServerState.NEEDS_AUTH
            right = {**wrong, "headers": {"Authorization": "Bearer right-token-9"}}
            await gateway.configure({"safe": right})
            await unhurt(client, "safe")


async def test_a_server_of_the_older_transport_is_found_behind_a_plain_url(tmp_path: Path) -> None:
    """Without a `type`, an address that refuses a POST is tried as HTTP+SSE."""
    with http_toy(Settings(era="handshake")) as listening:
        async with (
            open_gateway(tmp_path, {"old": {"url": listening.sse_url}}) as gateway,
            http_client(gateway.mcp) as client,
        ):
            await unhurt(client, "old")


async def test_three_failures_in_a_row_open_the_breaker(tmp_path: Path) -> None:
    """From the third on, calls fail at once with the time of the next try; one success closes it again."""
    async with open_gateway(tmp_path, {"gone": {"command": "there-is-no-such-command"}}) as gateway:
        async with http_client(gateway.mcp) as client:
            for _ in range(3):
                error = error_of(await client.call("gone__x"))
                assert "there-is-no-such-command" in error["message"]
            error = error_of(await client.call("gone__x"))
            assert "next try in" in error["message"]
            server = gateway.board.servers["gone"]
            # Nobody has ever seen it, so it cannot be lost.
            assert server.state is ServerState.UNREACHABLE
            assert 25 < (server.next_try_in or 0) <= 36
            await gateway.configure({"gone": toy()})
            await unhurt(client, "gone")
            assert server.breaker.failures == 0


@pytest.mark.scenario("registry: AC5 a failed discovery keeps the tools and is a failed result")
async def test_a_failed_refresh_keeps_the_tools_and_says_since_when(tmp_path: Path) -> None:
    """A server that answers its list with an error keeps its cached tools; they are marked stale, and still work."""
    with http_toy() as listening:
        async with (
            open_gateway(tmp_path, {"one": {"type": "http", "url": listening.url}}) as gateway,
            http_client(gateway.mcp) as client,
        ):
            await client.until_listed(lambda names: "one__echo" in names)
            listening.toy.settings.list_fails = "not today"
            result = await gateway.board.refresh(["one"])
            assert result.error is not None
            assert (result.error.code, result.success) == ("TOOL_UNAVAILABLE", False)
            assert "one__echo" in await client.names()
            assert "one" in gateway.board.discovery.stale_since
            await unhurt(client, "one")
            listening.toy.settings.list_fails = ""
            assert (await gateway.board.refresh(["one"])).success
            assert "one" not in gateway.board.discovery.stale_since


async def test_an_expired_list_is_asked_for_again_only_where_that_starts_nothing(tmp_path: Path) -> None:
    """TTL over: a connected server is asked in the background at the next need; a stopped process is not started."""
    log = tmp_path / "requests"
    servers = {"one": toy({"ttl": 0.2, "idleTimeout": 2}, log=str(log))}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        await client.until_listed(lambda names: "one__echo" in names)
        await asyncio.sleep(0.25)
        lists = log.read_text().count("tools/list")
        await client.names()
        await eventually(lambda: log.read_text().count("tools/list") == lists + 1)
        await eventually(lambda: gateway.board.servers["one"].state is ServerState.IDLE)
        await asyncio.sleep(0.25)
        lists = log.read_text().count("tools/list")
        assert "one__echo" in await client.names()
        await asyncio.sleep(0.1)
        assert log.read_text().count("tools/list") == lists
        assert not gateway.board.servers["one"].is_connected


async def test_a_servers_own_ttl_replaces_ours(tmp_path: Path) -> None:
    """`ttlMs` above 0 counts instead of the config's; 0 does not."""
    async with open_board(tmp_path, {"own": toy(era="modern", ttl_ms=60_000), "none": toy(era="modern")}) as board:
        await board.discover_all_tools()
        own, none = board.registry.server("own"), board.registry.server("none")
        assert own is not None
        assert none is not None
        assert (own.ttl, none.ttl) == (60, 300)


@pytest.mark.scenario("gateway: Tool list updates are consistent")
async def test_a_crowd_of_servers_comes_and_goes_while_clients_list_and_call(tmp_path: Path) -> None:
    """Many servers are killed, disabled and enabled at random under load; no answer is wrong, and all come back."""
    rng = random.Random(7)
    count, rounds = (100, 300) if os.environ.get("PEGBOARD_LONG_TESTS") else (20, 30)
    names = [f"s{number}" for number in range(count)]
    servers: dict[str, Any] = {name: toy(name=name, tools=["who"]) for name in names}
    wrong: list[str] = []
    stop = asyncio.Event()

    async def load(client: RawClient) -> None:
        while not stop.is_set():
            name = rng.choice(names)
            try:
                result = await client.call(f"{name}__who")
            except RpcError as exc:
                wrong.append(f"{name}: {exc.code} {exc.message}")
                continue
            text = result["content"][0]["text"]
            if not (text == f"{name}:who" or error_of(result)["code"] == "TOOL_UNAVAILABLE"):
                wrong.append(text)
            listed = await client.names()
            if len(listed) != len(set(listed)):
                wrong.append("a name was listed twice")

    async with (
        open_gateway(tmp_path, servers) as gateway,
        http_client(gateway.mcp) as old,
        http_client(gateway.mcp, "2026-07-28") as new,
    ):
        everything = len(names) * (len(BUILT_IN) + 1)
        await old.until_listed(lambda listed: len(listed) == everything, limit=60)
        workers = [asyncio.create_task(load(client)) for client in (old, new, old, new)]
        for _ in range(rounds):
            name = rng.choice(names)
            held = list(gateway.board.servers[name]._connections.values())
            if rng.random() < 0.5 and held:
                held[0].peer.transport._process._signal(9)  # type: ignore[attr-defined]
            else:
                servers[name] = {**servers[name], "enabled": not servers[name].get("enabled", True)}
                await gateway.configure(servers)
            await asyncio.sleep(rng.random() * 0.1)
        stop.set()
        async with asyncio.timeout(LIMIT * 3):
            await asyncio.gather(*workers)
        assert not wrong
        await gateway.configure({name: {**entry, "enabled": True} for name, entry in servers.items()})
        for client in (old, new):
            await client.until_listed(lambda listed: len(listed) == everything, limit=90)
