"""Signing in by REST, and the page that a browser is sent back to: who may, what is good once, and what is shown."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
import httpx2
import pytest

from harness import LIMIT, Gateway, open_gateway, write_config
from login.person import agree
from login.protected import ProtectedToy

pytestmark = pytest.mark.anyio
_LOGIN = "/api/servers/guarded/login"


@pytest.fixture
async def gateway(tmp_path: Path, protected: ProtectedToy) -> AsyncGenerator[Gateway]:
    async with open_gateway(tmp_path, {"guarded": {"url": protected.url}}, audit={}) as running:
        yield running


@pytest.fixture
async def http(gateway: Gateway) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as client:
        yield client


async def begin(http: httpx2.AsyncClient, **wish: Any) -> dict[str, Any]:
    answer = await http.post(_LOGIN, json=wish)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def follow(address: str) -> str:
    """What the browser of somebody who agrees is sent to."""
    return await anyio.to_thread.run_sync(agree, address)


@pytest.mark.scenario("login: REST begins, waits for, finishes and ends a sign-in")
async def test_a_sign_in_from_its_begin_to_its_end(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """Begin gives the address, whose redirect is the gateway's; looking waits for the end; after it the server's tools
    can be called, the login is listed, and signing out revokes."""
    begun = await begin(http)
    assert begun["redirect"].rpartition("/")[0] == f"{gateway.url}/oauth/callback"
    assert begun["state"] == "waiting"
    assert (await begin(http))["flow"] == begun["flow"]
    page = await http.get(await follow(begun["url"]))
    assert page.status_code == 200
    done = (await http.get(f"{_LOGIN}/{begun['flow']}", params={"wait": 30})).json()["data"]
    assert (done["state"], "url" in done) == ("done", False)
    called = await http.post("/api/tools/guarded__echo/call", json={"arguments": {"text": "hello"}})
    assert called.status_code == 200, called.text
    (row,) = (await http.get("/api/logins")).json()["data"]["logins"]
    assert (row["server"], row["state"], row["scopes"], row["yours"]) == ("guarded", "live", ["mcp"], True)
    assert row["issuer"] == begun["url"].partition("/auth")[0]
    ended = (await http.delete(_LOGIN)).json()["data"]
    assert ended == {"server": "guarded", "signedOut": 1, "revoked": True}
    assert (await http.delete(_LOGIN)).json()["data"]["signedOut"] == 0
    refused = await http.post("/api/tools/guarded__echo/call", json={"arguments": {"text": "hello"}})
    assert "pegboard login guarded" in refused.json()["error"]["message"]


@pytest.mark.scenario("login: An answer is good once, and for the sign-in that it belongs to")
async def test_an_answer_is_good_once(http: httpx2.AsyncClient) -> None:
    """An answer that came already, one with a forged state, and one of a sign-in that was cancelled are refused, on the
    page and by REST; a HEAD, a body or a parameter that stands twice uses nothing up."""
    begun = await begin(http)
    address = await follow(begun["url"])
    assert (await http.head(address)).status_code == 405
    assert (await http.post(address)).status_code == 405
    assert (await http.get(f"{address}&state=other")).status_code == 400
    assert (await http.request("GET", address, json={})).status_code == 413
    forged = address.replace("state=", "state=x")
    for query in ("", "?code=x", "?state=x", forged.partition("/oauth/callback")[2]):
        assert (await http.get(f"/oauth/callback{query}")).status_code == 400
    assert (await http.post(f"{_LOGIN}/{begun['flow']}", json={"callback": forged})).status_code != 200
    assert (await http.get(address)).status_code == 200
    assert (await http.get(address)).status_code == 400
    assert (await http.post(f"{_LOGIN}/{begun['flow']}", json={"callback": address})).status_code != 200
    other = await begin(http)
    address = await follow(other["url"])
    assert (await http.delete(f"{_LOGIN}/{other['flow']}")).json()["data"]["cancelled"] is True
    late = await http.get(address)
    assert late.status_code == 400
    assert "pegboard login" in late.text


async def test_what_is_pasted_finishes(http: httpx2.AsyncClient) -> None:
    """The whole address, or what stands behind its question mark; without the id of the sign-in, too."""
    begun = await begin(http)
    query = urlsplit(await follow(begun["url"])).query
    done = await http.post(f"{_LOGIN}/{begun['flow']}", json={"callback": query})
    assert done.json()["data"]["state"] == "done"
    again = await begin(http)
    done = await http.post(_LOGIN, json={"callback": await follow(again["url"])})
    assert (done.json()["data"]["flow"], done.json()["data"]["state"]) == (again["flow"], "done")


async def test_a_sign_in_that_is_over_takes_no_answer(
    http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever agrees too late is told to begin anew."""
    monkeypatch.setattr("pegboard.oauth.sign_in._TIME_TO_AGREE", 0.0)
    begun = await begin(http)
    assert (await http.get(f"{_LOGIN}/{begun['flow']}")).json()["data"]["state"] == "failed"
    assert (await http.get(await follow(begun["url"]))).status_code == 400
    assert (await http.get("/api/logins")).json()["data"]["logins"] == []


async def test_the_page_shows_nothing_of_what_it_was_given(http: httpx2.AsyncClient) -> None:
    """Neither code nor state is on it, nothing is markup, and nobody keeps it, frames it or is told of its address."""
    begun = await begin(http)
    state = parse_qs(urlsplit(begun["url"]).query)["state"][0]
    evil = {"error": "<script>alert(1)</script>", "error_description": "<img src=x>", "state": state, "code": "secret"}
    page = await http.get("/oauth/callback", params=evil)
    assert page.status_code == 400
    for part in ("<script", "<img", state, "secret"):
        assert part not in page.text
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


async def test_a_flood_of_answers_is_slowed(http: httpx2.AsyncClient) -> None:
    """After many answers that fit no sign-in, an address has to wait."""
    statuses = [(await http.get(f"/oauth/callback?code=x&state={number}")).status_code for number in range(25)]
    assert statuses[0] == 400
    assert statuses[-1] == 429


@pytest.mark.scenario("login: Only admins sign the gateway in")
async def test_the_gateways_own_sign_in_is_for_admins(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """A token without --admin can neither begin, look at, finish, cancel nor end it, and sees none; one with it can;
    a server that its rule hides is not there."""
    weak, hidden = await gateway.token("weak"), await gateway.token("hidden", servers=["other"], admin=True)
    begun = await begin(http)
    for method, path in (
        ("POST", _LOGIN),
        ("DELETE", _LOGIN),
        ("GET", f"{_LOGIN}/{begun['flow']}"),
        ("POST", f"{_LOGIN}/{begun['flow']}"),
        ("DELETE", f"{_LOGIN}/{begun['flow']}"),
    ):
        assert (await http.request(method, path, headers=weak, json={})).status_code == 403, (method, path)
        assert (await http.request(method, path, headers=hidden, json={})).status_code == 404, (method, path)
    assert (await http.get(await follow(begun["url"]))).status_code == 200
    assert (await http.get("/api/logins", headers=weak)).json()["data"]["logins"] == []
    assert (await http.get("/api/logins", headers=hidden)).json()["data"]["logins"] == []
    admin = await gateway.token("boss", admin=True)
    assert len((await http.get("/api/logins", headers=admin)).json()["data"]["logins"]) == 1
    assert (await http.delete(_LOGIN, headers=admin)).json()["data"]["signedOut"] == 1


async def test_each_user_signs_in_for_themselves(tmp_path: Path, protected: ProtectedToy) -> None:
    """With per: user a token begins its own sign-in, which others neither see nor finish; an admin ends all."""
    entry = {"url": protected.url, "oauth": {"per": "user"}}
    async with open_gateway(tmp_path, {"guarded": entry}) as gateway:
        alice, bob = await gateway.token("alice"), await gateway.token("bob")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            begun = (await http.post(_LOGIN, headers=alice)).json()["data"]
            other = (await http.post(_LOGIN, headers=bob)).json()["data"]
            assert begun["flow"] != other["flow"]
            path = f"{_LOGIN}/{begun['flow']}"
            assert (await http.get(path, headers=bob)).status_code == 404
            address = await follow(begun["url"])
            assert (await http.post(_LOGIN, headers=bob, json={"callback": address})).status_code == 403
            done = await http.post(path, headers=alice, json={"callback": address})
            assert done.json()["data"]["state"] == "done"
            assert len((await http.get("/api/logins", headers=alice)).json()["data"]["logins"]) == 1
            (seen,) = (await http.get("/api/logins")).json()["data"]["logins"]
            assert (seen["who"], seen["yours"]) == ("token alice", False)
            assert (await http.get("/api/servers")).json()["data"]["servers"][0]["perUser"] is True
            (own,) = (await http.get("/api/logins", headers=alice)).json()["data"]["logins"]
            assert own["yours"] is True
            assert (await http.get("/api/logins", headers=bob)).json()["data"]["logins"] == []
            none = (await http.delete(_LOGIN, headers=bob)).json()["data"]
            assert (none["signedOut"], none["others"]) == (0, 0)
            none = (await http.delete(_LOGIN)).json()["data"]
            assert (none["signedOut"], none["others"]) == (0, 1)
            assert (await http.delete(f"{_LOGIN}?all=true", headers=bob)).status_code == 403
            assert (await http.delete(f"{_LOGIN}?all=true")).json()["data"]["signedOut"] == 1


async def test_the_callback_port_is_open_while_somebody_waits(tmp_path: Path, protected: ProtectedToy) -> None:
    """With callbackPort the redirect is localhost with that port; it is listened on until the sign-in has ended, and a
    port that another program has is an error that names it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        entry = {"url": protected.url, "oauth": {"callbackPort": port}}
        async with open_gateway(tmp_path, {"guarded": entry}) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                refused = await http.post(_LOGIN)
                assert (refused.status_code, str(port) in refused.text) == (409, True)
                taken.close()
                begun = await begin(http)
                assert begun["redirect"].rpartition("/")[0] == f"http://localhost:{port}/callback"
                page = await http.get(await follow(begun["url"]))
                assert (page.status_code, "Signed in to guarded" in page.text) == (200, True)
            with anyio.fail_after(LIMIT):
                while gateway.front._desk._ports:
                    await anyio.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.mark.scenario("login: Whoever asks again costs nothing")
async def test_a_sign_in_is_looked_at_once_however_many_ask(tmp_path: Path, protected: ProtectedToy) -> None:
    """However often a sign-in with a port of its own is begun, one task looks how it stands; the port is closed when
    it has ended."""
    entry = {"url": protected.url, "oauth": {"callbackPort": free_port()}}
    async with open_gateway(tmp_path, {"guarded": entry}) as gateway:
        desk = gateway.front._desk
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            begun = await asyncio.gather(*(begin(http) for _ in range(5)))
            assert len({each["flow"] for each in begun}) == 1
            assert len(desk._waiting) == 1
            assert [port.users for port in desk._ports.values()] == [1]
            await http.delete(f"{_LOGIN}/{begun[0]['flow']}")
        with anyio.fail_after(LIMIT):
            while desk._ports:
                await anyio.sleep(0.05)
        assert not desk._held


async def test_sign_ins_that_others_began_are_forgotten(tmp_path: Path, protected: ProtectedToy) -> None:
    """A sign-in whose answer goes elsewhere is not cancelled by whoever joined it; of those that are over nothing is
    kept."""
    async with open_gateway(tmp_path, {"guarded": {"url": protected.url}}) as gateway:
        desk = gateway.front._desk
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            begun = await begin(http)
            desk._joined["over"] = 0.0
            await gateway.configure({"guarded": {"url": protected.url, "oauth": {"callbackPort": free_port()}}})
            assert (await begin(http))["flow"] == begun["flow"]
            assert set(desk._joined) == {begun["flow"]}
            assert (await http.delete(f"{_LOGIN}/{begun['flow']}")).json()["data"]["cancelled"] is False


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="there is no IPv6 here")
async def test_a_callback_port_that_is_taken_on_ipv6_is_taken(tmp_path: Path, protected: ProtectedToy) -> None:
    """A browser may take localhost for ::1, where another program would be given the answer: the sign-in does not
    begin, and nothing is left open."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        entry = {"url": protected.url, "oauth": {"callbackPort": port}}
        async with open_gateway(tmp_path, {"guarded": entry}) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                refused = await http.post(_LOGIN)
                assert (refused.status_code, str(port) in refused.text) == (409, True)
                with pytest.raises(OSError, match="refused"):
                    socket.create_connection(("127.0.0.1", port), LIMIT).close()
                taken.close()
                assert (await begin(http))["redirect"].startswith(f"http://localhost:{port}/callback/")


@pytest.mark.scenario("login: The gateway describes itself as a client")
async def test_the_client_document(tmp_path: Path) -> None:
    """Everybody can fetch it where the gateway has a public https address; else there is none."""
    async with open_gateway(tmp_path, {}, auth={"publicUrl": "https://gateway.example"}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            document = (await http.get("/oauth/client.json")).json()
            write_config(gateway.config, {}, auth={"publicUrl": "http://localhost:7420"})
            await gateway.front.config.reload()
            missing = await http.get("/oauth/client.json")
    assert document["client_id"] == "https://gateway.example/oauth/client.json"
    assert document["redirect_uris"] == ["https://gateway.example/oauth/callback"]
    assert missing.status_code == 404
