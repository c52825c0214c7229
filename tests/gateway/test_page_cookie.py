"""The sign-in of the page: a token is given once, and comes back in a cookie that is good for nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import httpx2
import pytest

from auth.asking import modern_request
from harness import LIMIT, Gateway, open_gateway, toy

pytestmark = pytest.mark.anyio


def browser(gateway: Gateway) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT)


async def whoami(http: httpx2.AsyncClient) -> tuple[int, str]:
    answer = await http.get("/api/whoami")
    said = answer.json()
    return answer.status_code, said["data"]["name"] if said["success"] else said["error"]["message"]


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
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http, browser(gateway) as owner:
        for method, path in (("DELETE", "/api/tokens/weak"), ("POST", "/api/tokens/weak/rotate")):
            weak = await gateway.token("weak")
            await http.post("/api/session", headers=weak)
            assert await whoami(http) == (200, "weak")
            assert (await owner.request(method, path)).status_code == 200
            assert (await whoami(http))[0] == 401
            # Forgotten, so that the user of this machine is who they are.
            assert await whoami(http) == (200, "local")


async def test_a_cookie_is_good_after_a_restart(tmp_path: Path) -> None:
    """And at every gateway on the same storage."""
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak")
        await http.post("/api/session", headers=weak)
        (sealed,) = [cookie.value for cookie in http.cookies.jar]
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        assert sealed is not None
        http.cookies.set(f"pegboard_{gateway.url.rpartition(':')[2]}", sealed)
        assert await whoami(http) == (200, "weak")


async def test_of_two_cookies_none_counts(tmp_path: Path) -> None:
    """Another server of this host may have set one of them, to have somebody act for it."""
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        weak = await gateway.token("weak")
        await http.post("/api/session", headers=weak)
        (cookie,) = http.cookies.jar
        name, value = cookie.name, cookie.value
        http.cookies.clear()
        twice = await http.get("/api/whoami", headers={"cookie": f"{name}={value}; {name}={value}"})
    assert twice.json()["data"]["name"] == "local"


async def test_nobody_signs_in_without_a_token(tmp_path: Path) -> None:
    """This machine's user has none to keep, and a wrong one is refused."""
    async with open_gateway(tmp_path, {}) as gateway, browser(gateway) as http:
        assert (await http.post("/api/session")).status_code == 400
        wrong = await http.post("/api/session", headers={"authorization": "Bearer pgb_wrong"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
