"""The sign-in of the page: a token is given once, and comes back in a cookie that is good for nothing else."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx2
import pytest

from auth.asking import modern_request
from gateway.event_stream import watching
from harness import LIMIT, Gateway, open_gateway, toy
from pegboard.auth import page_cookie
from pegboard.storage import StorageError

pytestmark = pytest.mark.anyio


def browser(gateway: Gateway) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT)


async def whoami(http: httpx2.AsyncClient) -> tuple[int, str]:
    answer = await http.get("/api/whoami")
    said = answer.json()
    return answer.status_code, said["data"]["name"] if said["success"] else said["error"]["message"]


def sealed_of(http: httpx2.AsyncClient) -> str:
    """The value of the cookie that a browser keeps."""
    (cookie,) = http.cookies.jar
    assert cookie.value is not None
    return cookie.value


def cookies(gateway: Gateway, *values: str) -> dict[str, str]:
    """The header that sends these values as cookies of the page."""
    port = gateway.url.rpartition(":")[2]
    return {"cookie": "; ".join(f"pegboard_{port}={value}" for value in values)}


async def whoami_with(gateway: Gateway, *values: str) -> tuple[int, str]:
    """Who somebody is with these cookies and nothing else."""
    async with browser(gateway) as http:
        http.headers.update(cookies(gateway, *values))
        return await whoami(http)


async def test_a_token_is_given_once(tmp_path: Path) -> None:
    """From then on the cookie says who it is, until somebody signs out."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak")
        assert (await whoami(http))[0] == 401
        answer = await http.post("/api/session", headers=weak)
        assert answer.json()["data"]["principal"]["name"] == "weak"
        assert await whoami(http) == (200, "weak")
        await http.delete("/api/session")
        assert (await whoami(http))[0] == 401


async def test_the_cookie_cannot_be_read_or_sent_by_other_pages(tmp_path: Path) -> None:
    """It does not have the token, is named after the port, and ends with the token."""
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak", expires_at=time.time() + 1000)
        value = (await http.post("/api/session", headers=weak)).headers["set-cookie"]
    assert weak["authorization"].removeprefix("Bearer ") not in value
    assert value.startswith(f"pegboard_{gateway.url.rpartition(':')[2]}=")
    parts = {name: text for name, _, text in (part.strip().partition("=") for part in value.split(";"))}
    assert {"HttpOnly", "SameSite", "Path"} < parts.keys()
    assert parts["SameSite"] == "Strict"
    assert 900 < int(parts["Max-Age"]) <= 1000


async def test_the_cookie_opens_nothing_but_the_page_and_rest(tmp_path: Path) -> None:
    """MCP wants the header; and a cookie's text is no token."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak")
        await http.post("/api/session", headers=weak)
        (sealed,) = [cookie.value for cookie in http.cookies.jar]
        body, headers = modern_request("tools/list")
        assert (await http.post("/mcp", json=body, headers=headers)).status_code == 401
        http.cookies.clear()
        answer = await http.get("/api/whoami", headers={"authorization": f"Bearer {sealed}"})
        assert answer.status_code == 401


@pytest.mark.parametrize("value", ["", "x", "A" * 80, "%", "ä", "A" * 40_000])
async def test_a_cookie_that_is_none_of_ours_lets_nobody_in(tmp_path: Path, value: str) -> None:
    """The browser is told to forget it, so that it does not stand in the way."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        port = gateway.url.rpartition(":")[2]
        cookie = f"other; a=b; pegboard_{port}={value}".encode("latin-1")
        answer = await http.get("/api/whoami", headers=[(b"cookie", cookie)])
    assert answer.status_code == 401
    assert "Max-Age=0" in answer.headers.get("set-cookie", "Max-Age=0")


async def test_a_cookie_ends_with_its_token(tmp_path: Path) -> None:
    """Removed or rotated, at the next request."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        admin = await gateway.token("admin", admin=True)
        for method, path in (("DELETE", "/api/tokens/weak"), ("POST", "/api/tokens/weak/rotate")):
            weak = await gateway.token("weak")
            await http.post("/api/session", headers=weak)
            assert await whoami(http) == (200, "weak")
            async with browser(gateway) as owner:
                assert (await owner.request(method, path, headers=admin)).status_code == 200
            assert (await whoami(http))[0] == 401
            assert not list(http.cookies.jar)


async def test_a_cookie_is_good_after_a_restart(tmp_path: Path) -> None:
    """And at every gateway on the same storage, until somebody signs out at one of them."""
    locked = {"required": True}
    async with open_gateway(tmp_path, {}, auth=locked) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak")
        await http.post("/api/session", headers=weak)
        sealed = sealed_of(http)
    async with open_gateway(tmp_path, {}, auth=locked) as one, open_gateway(tmp_path, {}, auth=locked) as two:
        for gateway in (one, two):
            assert await whoami_with(gateway, sealed) == (200, "weak")
        async with browser(one) as http:
            answer = await http.delete("/api/session", headers=cookies(one, sealed))
            assert answer.status_code == 200
        for gateway in (one, two):
            assert (await whoami_with(gateway, sealed))[0] == 401


async def test_a_copy_of_a_cookie_ends_at_sign_out(tmp_path: Path) -> None:
    """Whoever was given one has nothing any more; somebody else's session with the same token goes on."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway:
        weak = await gateway.token("weak")
        async with browser(gateway) as http, browser(gateway) as other:
            await http.post("/api/session", headers=weak)
            await other.post("/api/session", headers=weak)
            copy = sealed_of(http)
            assert await whoami_with(gateway, copy) == (200, "weak")
            await http.delete("/api/session")
            assert (await whoami_with(gateway, copy))[0] == 401
            assert await whoami(other) == (200, "weak")


async def test_a_copy_of_a_cookie_ends_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of a token that never expires: what a browser forgets by itself, the gateway does, too."""
    monkeypatch.setattr(page_cookie, "_DAYS_30", 0.0)
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        value = (await http.post("/api/session", headers=await gateway.token("weak"))).headers["set-cookie"]
        assert (await whoami_with(gateway, value.partition("=")[2].partition(";")[0]))[0] == 401


async def test_known_sessions_go_on_while_storage_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tokens do; one that is not known lets nobody in."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak")
        await http.post("/api/session", headers=weak)
        unseen = sealed_of(http)
        await http.post("/api/session", headers=weak)
        assert await whoami(http) == (200, "weak")

        async def fail(*_: object) -> bool:
            raise StorageError("away", "bring it back")

        monkeypatch.setattr(gateway.board.storage.page_sessions, "has", fail)
        assert await whoami(http) == (200, "weak")
        assert (await whoami_with(gateway, unseen))[0] == 401


async def test_the_user_of_this_machine_stays_who_they_are(tmp_path: Path) -> None:
    """Another server of this host can give their browser any cookie: garbage, or one of its own token."""
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        await http.post("/api/session", headers=await gateway.token("weak"))
        for value in (sealed_of(http), "garbage", ""):
            assert await whoami_with(gateway, value) == (200, "local")


async def test_cookies_of_others_do_not_stand_in_the_way(tmp_path: Path) -> None:
    """Ours comes last, as it is for the widest path; what is not good is passed over, wherever it stands."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        sealed: dict[str, str] = {}
        for name in ("mine", "theirs"):
            await http.post("/api/session", headers=await gateway.token(name))
            sealed[name] = sealed_of(http)
        for values in (["garbage", sealed["mine"]], [sealed["mine"], "garbage"], [sealed["theirs"], sealed["mine"]]):
            assert await whoami_with(gateway, *values) == (200, "mine")
        many = ["garbage"] * 50
        assert await whoami_with(gateway, *many, sealed["mine"]) == (200, "mine")


async def test_cookies_that_let_nobody_in_are_forgotten_wherever_they_are(tmp_path: Path) -> None:
    """A browser forgets one for the path that it was set for alone; and garbage is no bad token that is counted."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        for _ in range(30):
            assert (await whoami_with(gateway, "garbage"))[0] == 401
        answer = await http.get("/api/whoami", headers=cookies(gateway, "garbage"))
        assert answer.status_code == 401
    forgotten = [value for name, value in answer.headers.multi_items() if name == "set-cookie"]
    assert {value.split("; ")[1] for value in forgotten if "Max-Age=0" in value} == {
        "Path=/",
        "Path=/api",
        "Path=/docs",
    }


async def test_nobody_signs_in_without_a_token(tmp_path: Path) -> None:
    """This machine's user has none to keep, and a wrong one is refused."""
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        assert (await http.post("/api/session")).status_code == 400
        wrong = await http.post("/api/session", headers={"authorization": "Bearer pgb_wrong"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)


async def test_a_stream_ends_when_its_page_signs_out(tmp_path: Path) -> None:
    """At once, and at every other gateway of the storage in a moment; one that came with the token itself, or with
    somebody else's cookie, goes on."""
    locked = {"required": True}
    async with open_gateway(tmp_path, {}, auth=locked) as one, open_gateway(tmp_path, {}, auth=locked) as two:
        weak = await one.token("weak")
        await two.load_tokens()
        async with browser(one) as http, browser(one) as other:
            await http.post("/api/session", headers=weak)
            await other.post("/api/session", headers=weak)
            mine, theirs = sealed_of(http), sealed_of(other)
            async with (
                watching(one, cookies(one, mine)) as (_, here),
                watching(two, cookies(two, mine)) as (_, there),
                watching(one, cookies(one, theirs)) as (_, another),
                watching(one, weak) as (_, bearer),
            ):
                await http.delete("/api/session")
                for events in (here, there):
                    with pytest.raises(EOFError):
                        await events.wait_for("nothing")
                await other.post("/api/tools/nobody/call", json={})
                for events in (another, bearer):
                    assert (await events.wait_for("call"))["tool"] == "nobody"


async def test_a_stream_ends_when_the_session_of_its_page_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by time, and not while storage is away."""
    async with open_gateway(tmp_path, {}, auth={"required": True}) as gateway, browser(gateway) as http:
        await http.post("/api/session", headers=await gateway.token("weak"))
        sessions, looked = gateway.board.storage.page_sessions, asyncio.Event()
        list_over = sessions.list_over

        async def away(*_: object) -> list[str]:
            looked.set()
            raise StorageError("away")

        async with watching(gateway, cookies(gateway, sealed_of(http))) as (_, events):
            monkeypatch.setattr(sessions, "list_over", away)
            await asyncio.wait_for(looked.wait(), LIMIT)
            await http.post("/api/tools/nobody/call", json={})
            assert (await events.wait_for("call"))["tool"] == "nobody"
            monkeypatch.setattr(sessions, "list_over", lambda ids, now: list_over(ids, now + 31 * 86_400))
            with pytest.raises(EOFError):
                await events.wait_for("nothing")
