"""A client that can show an address to its user is given one when a call needs a sign-in; it leads on only whoever made
the call."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
import httpx2
import pytest

from harness import LIMIT, MODERN, Gateway, http_client, open_gateway
from login.person import agree
from login.protected import ProtectedToy
from pegboard.auth.token_registry import TokenRegistry
from pegboard.servers.errors import RpcError
from servers.toy import Settings
from servers.toy_http import Handler, Manners, http_toy

pytestmark = pytest.mark.anyio
URL_MODE = {"elicitation": {"url": {}}}


@pytest.fixture(params=["gateway", "user"])
async def gateway(request: pytest.FixtureRequest, tmp_path: Path, protected: ProtectedToy) -> AsyncGenerator[Gateway]:
    """One whose grant is for all, and one where each signs in for themselves."""
    entry = {"url": protected.url, "oauth": {"per": request.param}}
    async with open_gateway(tmp_path, {"guarded": entry}) as running:
        yield running


async def open_link(address: str, **more: Any) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        return await http.get(address, headers={"accept": "text/html"}, **more)


async def sign_in(address: str) -> None:
    """What a person does who opens a link, and agrees."""
    opened = await open_link(address)
    assert opened.status_code == 303, opened.text
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        page = await http.get(await anyio.to_thread.run_sync(agree, opened.headers["location"]))
    assert page.status_code == 200, page.text


def offer_in(refused: RpcError) -> dict[str, Any]:
    assert refused.code == -32042
    (offer,) = refused.data["elicitations"]
    assert offer["mode"] == "url"
    assert "guarded" in offer["message"]
    return offer


@pytest.mark.scenario("login: A client with URL elicitation is given the address")
@pytest.mark.both_paths
async def test_a_handshake_client_is_given_the_address(gateway: Gateway) -> None:
    """In 2025-11-25 the call is error -32042; when the sign-in is done the client is told, and its call works."""
    async with http_client(gateway.mcp, "2025-11-25", capabilities=URL_MODE) as client:
        with pytest.raises(RpcError) as refused:
            await client.call("guarded__echo", {"text": "hello"})
        offer = offer_in(refused.value)
        assert offer["url"].startswith(f"{gateway.url}/connect/")
        with pytest.raises(RpcError) as again:
            await client.call("guarded__echo", {"text": "hello"})
        assert offer_in(again.value) == offer
        await sign_in(offer["url"])
        (told,) = await client.until_heard("notifications/elicitation/complete")
        assert told["elicitationId"] == offer["elicitationId"]
        assert "hello" in await client.text("guarded__echo", {"text": "hello"})
    assert (await open_link(offer["url"])).status_code == 404


@pytest.mark.both_paths
async def test_a_modern_client_is_asked(gateway: Gateway) -> None:
    """In 2026-07-28 the call is `input_required`; whoever accepts has it go on when the sign-in is done."""
    done: list[asyncio.Task[None]] = []

    def accept(params: Any) -> dict[str, str]:
        assert (params["mode"], "elicitationId" in params) == ("url", False)
        done.append(asyncio.create_task(sign_in(params["url"])))
        return {"action": "accept"}

    answers = {"elicitation/create": accept}
    async with http_client(gateway.mcp, MODERN, capabilities=URL_MODE, answers=answers) as client:
        result = await client.call_through("guarded__echo", {"text": "hello"})
        assert "hello" in str(result["content"])
        assert len(client.rounds) == 1
        await asyncio.gather(*done)


async def test_whoever_declines_is_told_the_command(gateway: Gateway) -> None:
    """A modern client whose user says no gets the failure."""
    answers = {"elicitation/create": lambda _: {"action": "decline"}}
    async with http_client(gateway.mcp, MODERN, capabilities=URL_MODE, answers=answers) as client:
        result = await client.call_through("guarded__echo", {"text": "hello"})
    assert result["isError"] is True
    assert "pegboard login guarded" in str(result["content"])


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}])
async def test_other_clients_are_told_the_command(gateway: Gateway, version: str, capabilities: dict[str, Any]) -> None:
    """A client that cannot show an address gets `TOOL_UNAVAILABLE` with the command."""
    async with http_client(gateway.mcp, version, capabilities=capabilities) as client:
        result = await client.call("guarded__echo", {"text": "hello"})
    assert result["isError"] is True
    assert "TOOL_UNAVAILABLE" in str(result["content"])
    assert "pegboard login guarded" in str(result["content"])


@pytest.mark.scenario("login: A link leads on nobody but whom it was given to")
async def test_a_link_is_for_whoever_was_given_it(tmp_path: Path, protected: ProtectedToy) -> None:
    """A link of a token's client asks for that token: without it, or with another one, nobody is led on, the machine's
    own user neither. An answer that comes with another browser is not taken, and can be pasted."""
    entry = {"url": protected.url, "oauth": {"per": "user"}}
    async with open_gateway(tmp_path, {"guarded": entry}) as gateway:
        alice, bob = await gateway.token("alice"), await gateway.token("bob")
        async with http_client(gateway.mcp, capabilities=URL_MODE, headers=alice) as client:
            with pytest.raises(RpcError) as refused:
                await client.call("guarded__echo", {"text": "hello"})
            url = offer_in(refused.value)["url"]
            page = await open_link(url)
            assert (page.status_code, "location" in page.headers, "Token" in page.text) == (200, False, True)
            async with httpx2.AsyncClient(timeout=LIMIT) as browser:
                assert (await browser.post(url, headers=bob)).status_code == 403
                assert (await browser.post(url, headers={"authorization": "Bearer pgb_x"})).status_code == 401
                assert (await browser.post(f"{url}x", headers=alice)).status_code == 404
                shown = await browser.post(url, headers=alice)
                address = await anyio.to_thread.run_sync(agree, shown.json()["data"]["url"])
                stranger = await open_link(address)
                assert (stranger.status_code, "paste" in stranger.text) == (403, True)
                assert (await browser.get(address)).status_code == 200
            assert "hello" in await client.text("guarded__echo", {"text": "hello"})
        async with http_client(gateway.mcp, capabilities=URL_MODE, headers=bob) as client:
            with pytest.raises(RpcError):
                await client.call("guarded__echo", {"text": "hello"})


async def test_only_admins_are_offered_the_gateways_sign_in(tmp_path: Path, protected: ProtectedToy) -> None:
    """A client that may not sign the gateway in is told that somebody has to."""
    async with open_gateway(tmp_path, {"guarded": {"url": protected.url}}) as gateway:
        weak, boss = await gateway.token("weak"), await gateway.token("boss", admin=True)
        async with http_client(gateway.mcp, capabilities=URL_MODE, headers=weak) as client:
            assert (await client.call("guarded__echo", {"text": "hello"}))["isError"] is True
        async with http_client(gateway.mcp, capabilities=URL_MODE, headers=boss) as client:
            with pytest.raises(RpcError) as refused:
                await client.call("guarded__echo", {"text": "hello"})
            offer_in(refused.value)


@pytest.mark.scenario("login: Whoever cannot run a command is told what helps them")
@pytest.mark.both_paths
@pytest.mark.parametrize("per", ["gateway", "user"])
async def test_a_token_is_told_what_its_user_can_do(tmp_path: Path, protected: ProtectedToy, per: str) -> None:
    """Nobody who comes with a plain token is told to run `pegboard login` themselves: a sign-in for all is for whoever
    runs the gateway, and one of their own is at an address."""
    entry = {"url": protected.url, "oauth": {"per": per}}
    async with open_gateway(tmp_path, {"guarded": entry}, toolsets=["discovery"]) as gateway:
        weak = await gateway.token("weak")
        async with http_client(gateway.mcp, headers=weak) as client:
            said = str((await client.call("guarded__echo", {"text": "hello"}))["content"])
            relayed = await client.call("tool_call", {"name": "guarded__echo", "arguments": {}})
        async with httpx2.AsyncClient(base_url=gateway.url, headers=weak, timeout=LIMIT) as http:
            called = (await http.post("/api/tools/guarded__echo/call", json={})).json()["error"]["message"]
            (row,) = (await http.get("/api/servers")).json()["data"]["servers"]
        texts = [said, str(relayed["content"]), called, str(row["lastError"])]
        if per == "gateway":
            assert all("whoever runs this gateway has to sign in there (pegboard login guarded)" in t for t in texts)
            return
        assert all(f"sign in at {gateway.url}/connect/" in text for text in texts)
        assert not any("pegboard login" in text for text in texts)
        address = called.partition("sign in at ")[2]
        assert (await prove(address, weak)) == 200


@pytest.mark.scenario("login: Whoever cannot run a command is told what helps them")
async def test_an_admin_with_a_token_is_given_an_address(tmp_path: Path, protected: ProtectedToy) -> None:
    """They sign in for all from where they are; `pegboard login` is for the gateway's machine."""
    async with open_gateway(tmp_path, {"guarded": {"url": protected.url}}) as gateway:
        boss = await gateway.token("boss", admin=True)
        async with http_client(gateway.mcp, headers=boss) as client:
            said = str((await client.call("guarded__echo", {"text": "hello"}))["content"])
            assert f"sign in at {gateway.url}/connect/" in said
            assert "pegboard login" not in said
            async with httpx2.AsyncClient(base_url=gateway.url, headers=boss, timeout=LIMIT) as http:
                called = (await http.post("/api/tools/guarded__echo/call", json={})).json()["error"]["message"]
            await sign_in_by_token(called.partition("sign in at ")[2], boss)
            assert "hello" in await client.text("guarded__echo", {"text": "hello"})


@pytest.mark.parametrize("per", ["gateway", "user"])
async def test_found_tools_say_how_to_sign_in(tmp_path: Path, protected: ProtectedToy, per: str) -> None:
    """Tools of a server that waits for a sign-in say how to get it to whoever finds, lists and describes them; an
    address is never cut."""
    entry = {"url": protected.url, "oauth": {"per": per}}
    async with open_gateway(tmp_path, {"guarded": entry}, toolsets=["discovery"]) as gateway:
        weak = await gateway.token("weak")
        boss = await gateway.token("boss", admin=True)
        await sign_in_by_token(await offered_url(gateway, boss), boss)
        assert (await gateway.board.refresh(["guarded"])).success
        protected.is_strict = True
        assert not (await gateway.board.refresh(["guarded"])).success
        words = "has to sign in there" if per == "gateway" else f"sign in at {gateway.url}/connect/"
        async with http_client(gateway.mcp, headers=weak) as client:
            found = await client.call("tool_find", {"query": "echo", "limit": 50})
            described = await client.call("tool_describe", {"name": "guarded__echo"})
        async with httpx2.AsyncClient(base_url=gateway.url, headers=weak, timeout=LIMIT) as http:
            listed = (await http.get("/api/tools?server=guarded")).json()["data"]["tools"]
        for text in (str(found), str(described), str(listed)):
            assert words in text
        if per == "user":
            address = re.search(r"sign in at (\S+/connect/[\w-]+)", str(found["structuredContent"]))
            assert address is not None
            assert (await prove(address[1], weak)) != 404


async def sign_in_by_token(url: str, headers: dict[str, str]) -> None:
    """What a person does who opens a link, shows their token, and agrees."""
    async with httpx2.AsyncClient(timeout=LIMIT) as browser:
        shown = await browser.post(url, headers=headers)
        page = await browser.get(await anyio.to_thread.run_sync(agree, shown.json()["data"]["url"]))
    assert page.status_code == 200, page.text


async def offered_url(gateway: Gateway, headers: dict[str, str]) -> str:
    """The link that a client with this token is given."""
    async with http_client(gateway.mcp, capabilities=URL_MODE, headers=headers) as client:
        with pytest.raises(RpcError) as refused:
            await client.call("guarded__echo", {"text": "hello"})
    return offer_in(refused.value)["url"]


async def prove(url: str, headers: dict[str, str]) -> int:
    async with httpx2.AsyncClient(timeout=LIMIT) as browser:
        return (await browser.post(url, headers=headers)).status_code


@pytest.mark.scenario("login: A link counts for what its holder may now")
async def test_a_link_is_no_more_than_its_holder_may_now(tmp_path: Path, protected: ProtectedToy) -> None:
    """Whoever was an admin when they got the link of the gateway's own sign-in is not led on; to whom the server was
    hidden since, there is no such link."""
    async with open_gateway(tmp_path, {"guarded": {"url": protected.url}}) as gateway:
        tokens = TokenRegistry(gateway.board.storage.tokens, gateway.load_tokens)
        boss = await gateway.token("boss", admin=True)
        url = await offered_url(gateway, boss)
        await tokens.change("boss", rule={"admin": None})
        assert await prove(url, boss) == 403
        await tokens.change("boss", rule={"admin": True, "servers": ["other"]})
        assert await prove(url, boss) == 404
        await tokens.change("boss", rule={"servers": None})
        assert await prove(url, boss) == 200


@pytest.mark.scenario("login: A link counts for what its holder may now")
async def test_a_link_is_for_the_grant_it_was_made_for(tmp_path: Path, protected: ProtectedToy) -> None:
    """A link to sign in for oneself does not begin the gateway's own sign-in when the server became one for all, and
    the other way round."""
    own, shared = ({"url": protected.url, "oauth": {"per": per}} for per in ("user", "gateway"))
    async with open_gateway(tmp_path, {"guarded": own}) as gateway:
        weak, boss = await gateway.token("weak"), await gateway.token("boss", admin=True)
        urls = [(await offered_url(gateway, who), who) for who in (weak, boss)]
        await gateway.configure({"guarded": shared})
        assert [await prove(url, who) for url, who in urls] == [404, 404]
        url = await offered_url(gateway, boss)
        await gateway.configure({"guarded": own})
        assert await prove(url, boss) == 404
        assert [await prove(url, who) for url, who in urls] == [200, 200]


_WORDS = "guarded wants a sign-in: pegboard login guarded"


@pytest.mark.scenario("login: Nobody's words make an offer")
@pytest.mark.both_paths
@pytest.mark.parametrize("rule", [{"admin": True}, {"admin": True, "servers": ["liar"]}])
async def test_words_make_no_offer(tmp_path: Path, protected: ProtectedToy, rule: dict[str, Any]) -> None:
    """What a client calls a tool, and what a server says with a 403, are words: they offer no sign-in to another
    server, whether it is hidden from the client or not."""

    def refuse(handler: Handler, body: bytes) -> bool:
        if b'"tools/call"' not in body:
            return False
        error = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "error": {"code": -32000, "message": _WORDS}}
        handler.plain(403, json.dumps(error).encode(), {"content-type": "application/json"})
        return True

    with http_toy(Settings(name="liar"), Manners(door=refuse)) as liar:
        servers = {"guarded": {"url": protected.url}, "liar": {"url": liar.url}}
        async with open_gateway(tmp_path, servers, toolsets=["discovery"]) as gateway:
            headers = await gateway.token(**rule)
            async with http_client(gateway.mcp, capabilities=URL_MODE, headers=headers) as client:
                asked = {"name": f"x {_WORDS}", "arguments": {}}
                for result in (await client.call("tool_call", asked), await client.call("liar__echo", {"text": "x"})):
                    assert result["isError"] is True
                    assert _WORDS in str(result["content"])


@pytest.mark.both_paths
async def test_more_rights_are_offered(tmp_path: Path) -> None:
    """A call that a server refuses for lack of a scope is answered with the address, by `tool_call` too."""

    def refuse(handler: Handler, body: bytes) -> bool:
        if b'"tools/call"' not in body:
            return False
        handler.plain(403, b"", {"www-authenticate": 'Bearer error="insufficient_scope", scope="write"'})
        return True

    with http_toy(Settings(name="guarded"), Manners(door=refuse)) as toy:
        async with open_gateway(tmp_path, {"guarded": {"url": toy.url}}, toolsets=["discovery"]) as gateway:
            async with http_client(gateway.mcp, capabilities=URL_MODE) as client:
                relayed = {"name": "guarded__echo", "arguments": {"text": "x"}}
                for name, arguments in (("guarded__echo", {"text": "x"}), ("tool_call", relayed)):
                    with pytest.raises(RpcError) as refused:
                        await client.call(name, arguments)
                    offer_in(refused.value)


@pytest.mark.scenario("login: A browser is known by a secret")
@pytest.mark.parametrize("public", ["", "https://gateway.example"])
async def test_a_browser_is_known_by_a_secret(tmp_path: Path, protected: ProtectedToy, public: str) -> None:
    """The cookie that a link leaves has a value that nobody can guess, and no other value counts; where the gateway is
    called by https, neither does the name that every site of the domain could set."""
    entry = {"url": protected.url, "oauth": {"per": "user"}}
    async with open_gateway(tmp_path, {"guarded": entry}, auth={"publicUrl": public} if public else {}) as gateway:
        alice = await gateway.token("alice")
        path = urlsplit(await offered_url(gateway, alice)).path
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            shown = await http.post(path, headers=alice)
        pair, *attributes = shown.headers["set-cookie"].split("; ")
        name, value = pair.split("=")
        assert name.startswith("__Host-" if public else "pegboard-")
        assert ("Secure" in attributes, "HttpOnly" in attributes) == (bool(public), True)
        assert len(value) >= 32
        (state,) = parse_qs(urlsplit(shown.json()["data"]["url"]).query)["state"]
        address = f"{gateway.url}/oauth/callback?error=access_denied&state={state}"
        plain = name.removeprefix("__Host-")
        wrong = [f"{name}=1", f"{name}=", f"{name}={value}x", f"{name}=%C3%A9", f"__Host-{plain}x={value}"]
        for cookie in [*wrong, f"{plain}={value}" if public else f"__Host-{plain}={value}"]:
            refused = await open_with(address, cookie)
            assert (refused.status_code, "paste" in refused.text) == (403, True), cookie
        taken, again = [await open_with(address, f"{name}={value}") for _ in range(2)]
        assert (taken.status_code, "Not signed in to guarded" in taken.text) == (400, True)
        assert (again.status_code, "came already" in again.text) == (400, True)


async def open_with(address: str, cookie: str) -> httpx2.Response:
    """What a browser with this cookie gets."""
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        return await http.get(address, headers={"accept": "text/html", "cookie": cookie})
