"""Who is behind a request is known before anything else happens, at every entrance over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from audit.readers import records_of
from auth.asking import modern_request
from harness import LIMIT, Gateway, eventually, http_client, open_gateway, serving, stdio_client, toy, write_config
from pegboard.auth.proof import PROOF_HEADER, _sign, make_proof
from pegboard.clients import peer_user
from pegboard.clients.peer_user import Peer
from pegboard.gateway.authentication import is_open
from pegboard.gateway.rest.table import route_table
from pegboard.servers.http.refusal import NeedsAuth
from pegboard.version import VERSION
from servers.toy import Settings
from servers.toy_http import http_toy

pytestmark = pytest.mark.anyio

GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}
ELSEWHERE = {"x-forwarded-for": "203.0.113.9"}
# One address of each kind.
ADDRESSES = (
    "/docs",
    "/openapi.json",
    "/metrics",
    "/api/servers",
    "/api/nothing",
    "/nothing",
    "/mcp",
    "/mcp/board",
)


@contextlib.contextmanager
def somebody_elses_gateway() -> Generator[None]:
    """The gateway runs as another user: connections are real, and so is what the system says of them."""
    theirs = os.geteuid() + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: theirs)
        yield


async def statuses(gateway: Gateway, headers: dict[str, str]) -> dict[str, int]:
    """What each kind of address answers."""
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers={**ACCEPT, **headers}) as http:
        found = {path: (await http.get(path)).status_code for path in ADDRESSES}
        found["call"] = (await http.post("/api/tools/one__echo/call", json={})).status_code
        found["initialize"] = (await http.post("/mcp", json=GREETING)).status_code
        return found


@pytest.mark.scenario("access: Everybody but this machine's own user needs a credential")
@pytest.mark.parametrize(
    ("required", "who", "let_in"),
    [
        ("remote", "owner", True),
        ("remote", "another user", False),
        ("remote", "another machine", False),
        (True, "owner", False),
        (True, "another machine", False),
        (False, "owner", True),
        (False, "another user", True),
        (False, "another machine", True),
    ],
)
async def test_who_needs_no_token(tmp_path: Path, required: object, who: str, let_in: bool) -> None:
    """The user that the gateway runs as, on this machine, unless the config wants one of everybody, or of nobody."""
    headers = ELSEWHERE if who == "another machine" else {}
    with somebody_elses_gateway() if who == "another user" else contextlib.nullcontext():
        async with open_gateway(tmp_path, {"one": toy()}, auth={"required": required}) as gateway:
            found = await statuses(gateway, headers)
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=headers) as http:
                assert (await http.get("/health")).status_code == 200
    assert {path for path, status in found.items() if status == 401} == (set() if let_in else set(found))


@pytest.mark.both_paths
@pytest.mark.parametrize("required", ["remote", True, False])
@pytest.mark.parametrize("headers", [{}, ELSEWHERE], ids=["here", "elsewhere"])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_token_lets_in(tmp_path: Path, required: object, headers: dict[str, str], version: str) -> None:
    """Whatever is required, and wherever it comes from."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": required}) as gateway:
        token = await gateway.token()
        async with http_client(gateway.mcp, version, headers={**headers, **token}) as client:
            for _ in range(2):
                assert await client.text("one__echo", {"x": 1})


@pytest.mark.scenario("access: A bearer that is sent is always checked")
@pytest.mark.parametrize("required", ["remote", True, False])
async def test_a_bearer_that_is_brought_is_looked_at(tmp_path: Path, required: object) -> None:
    """One that is not known is refused also where none is needed: whoever sends it believes to be somebody."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": required}) as gateway:
        known = await gateway.token()
        wrong = known["authorization"][:-1] + ("A" if known["authorization"][-1] != "A" else "B")
        for bearer in ("Bearer nonsense", wrong, "Basic dTpw", "Bearer pgb_000000000000_" + "a" * 43):
            found = await statuses(gateway, {"authorization": bearer})
            # Many of them from one address are slowed down.
            assert set(found.values()) <= {401, 429}, (bearer, found)


@pytest.mark.scenario("access: A token in an address is refused")
async def test_what_is_no_credential_is_refused_with_its_reason(tmp_path: Path) -> None:
    """Twice, empty, too long, not ASCII, in the address; nothing of it is said back."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        token = (await gateway.token())["authorization"]
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            odd: list[Any] = [
                [("authorization", token), ("authorization", token)],
                {"authorization": "Bearer"},
                {"authorization": f"Bearer {'a' * 20_000}"},
                {"authorization": b"Bearer \xc3\xa4"},
                {"authorization": "Bearer two words"},
            ]
            for headers in odd:
                assert (await http.get("/api/servers", headers=headers)).status_code == 400
            for name in ("access_token", "token", "api_key", "Authorization"):
                secret = token.removeprefix("Bearer ")
                answer = await http.get(f"/api/servers?{name}={secret}")
                assert answer.status_code == 400
                assert "must not stand in the address" in answer.text
                assert secret not in answer.text


@pytest.mark.scenario("access: A token in an address is refused")
@pytest.mark.both_paths
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
async def test_a_token_in_a_path_is_refused_and_not_recorded(tmp_path: Path, is_known: bool) -> None:
    """It has the form of a board's name; nothing is kept under it, and nothing of it is said back."""
    own: dict[str, Any] = {"audit": {}, "auth": {"required": True}}
    async with open_gateway(tmp_path, {"one": toy()}, **own) as gateway:
        headers = await gateway.token()
        secret = headers["authorization"].removeprefix("Bearer ")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=headers if is_known else {}) as http:
            message, more = modern_request("tools/list")
            answers = [
                await http.post(f"/mcp/{secret}", json=message, headers=more),
                await http.post(f"/mcp/%70gb{secret[3:]}", json=message, headers=more),
                await http.get(f"/api/tools/{secret}"),
            ]
        assert [answer.status_code for answer in answers] == [400] * 3
        assert not any(secret in answer.text for answer in answers)
        records = await records_of(gateway, "access")
        assert [record.detail.partition("pgb_")[1:] for record in records] == [("", "")] * 3


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
async def test_the_scheme_may_be_written_in_any_case(tmp_path: Path, scheme: str) -> None:
    """As HTTP has it."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway:
        token = (await gateway.token())["authorization"].removeprefix("Bearer ")
        assert (await statuses(gateway, {"authorization": f"{scheme} {token}"}))["/api/servers"] == 200


@pytest.mark.scenario("access: Another user of the machine is not its owner")
@pytest.mark.parametrize("who", ["owner", "another user"])
async def test_where_the_kernel_cannot_be_asked_a_table_tells_the_user(
    tmp_path: Path, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is let in, and another is not."""
    monkeypatch.setattr(peer_user, "_ask_kernel", lambda *_: None)
    with somebody_elses_gateway() if who == "another user" else contextlib.nullcontext():
        async with open_gateway(tmp_path, {"one": toy()}) as gateway:
            assert (await statuses(gateway, {}))["/api/servers"] == (200 if who == "owner" else 401)


async def test_a_refusal_says_how_to_come_in(tmp_path: Path) -> None:
    """Without credentials there is no error to name (RFC 6750); with wrong ones there is."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            unknown = await http.get("/api/servers")
            wrong = await http.get("/api/servers", headers={"authorization": "Bearer x"})
    assert "pegboard token add" in unknown.json()["error"]["message"]
    assert unknown.headers["www-authenticate"].startswith("Bearer ")
    assert "error=" not in unknown.headers["www-authenticate"]
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]


@pytest.mark.both_paths
async def test_a_browser_from_elsewhere_gets_a_page(tmp_path: Path) -> None:
    """It says what this is and that a token is needed, and nothing of this gateway; programs get JSON, as ever."""
    async with open_gateway(tmp_path, {"secretive": toy()}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=ELSEWHERE) as http:
            browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
            answer = await http.get("/docs", headers=browser)
            assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert "This is Pegboard" in answer.text
            assert "Authorization: Bearer TOKEN" in answer.text
            assert not {"secretive", VERSION} & set(re.split(r"[^\w.]+", answer.text))
            assert (await http.get("/docs")).headers["content-type"] == "application/json"
            token = await gateway.token()
            assert (await http.get("/docs", headers={**browser, **token})).status_code == 200
            assert (await http.post("/mcp", headers=browser, json={})).headers["content-type"] == "application/json"


async def test_one_that_is_over_is_refused_on_the_next_request(tmp_path: Path) -> None:
    """Expired, or revoked: on a session that was open before, too."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        soon = time.time() + 2.0
        for headers in (await gateway.token("expiring", expires_at=soon), await gateway.token("revoked")):
            async with http_client(gateway.mcp, headers=headers, listen=False) as client:
                for _ in range(2):
                    assert await client.text("one__echo", {})
                if time.time() < soon:
                    await asyncio.sleep(max(soon - time.time(), 0))
                else:
                    await gateway.board.storage.tokens.remove("revoked")
                    await gateway.load_tokens()
                with pytest.raises(NeedsAuth):
                    await client.call("one__echo", {})


@pytest.mark.both_paths
async def test_streams_end_with_their_token(tmp_path: Path) -> None:
    """A standing stream of a token that is revoked is closed at once; those of others go on."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=ACCEPT) as http:

            async def open_session(headers: dict[str, str]) -> dict[str, str]:
                answer = await http.post("/mcp", json=GREETING, headers=headers)
                return {**headers, "mcp-session-id": answer.headers["mcp-session-id"]}

            revoked = await open_session(await gateway.token("revoked"))
            other = await open_session(await gateway.token("other"))
            async with (
                http.stream("GET", "/mcp", headers=revoked) as theirs,
                http.stream("GET", "/mcp", headers=other) as others,
            ):
                assert (theirs.status_code, others.status_code) == (200, 200)
                await gateway.board.storage.tokens.remove("revoked")
                await gateway.load_tokens()
                async with asyncio.timeout(LIMIT):
                    with contextlib.suppress(httpx2.RemoteProtocolError):
                        async for _ in theirs.aiter_bytes():
                            pass
                assert not others.is_closed
            assert (await http.get("/mcp", headers=revoked)).status_code == 401


@pytest.mark.scenario("access: A command proves that it can read the run file")
async def test_whoever_can_read_the_run_file_is_the_user(tmp_path: Path) -> None:
    """A command proves it with each request, for the gateway of one port and for a minute."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        secret = gateway.front.token
        good = make_proof(secret, port)
        moment, nonce, signature = good.split(".")
        wrong = [
            make_proof("another secret", port),
            make_proof(secret, port + 1),
            *(f"{then}.{_sign(secret, port, then)}" for then in (f"{int(moment) - 90}.x", f"{int(moment) + 90}.x")),
            f"{int(moment) - 120}.{nonce}.{signature}",
            f"{moment}.{nonce[::-1]}.{signature}",
            "nonsense",
            "..",
            f"{moment}.{nonce}.ä",
        ]
        assert (await statuses(gateway, {PROOF_HEADER: good}))["/api/servers"] == 200
        for proof in wrong:
            found = await statuses(gateway, {PROOF_HEADER: proof.encode("latin-1")})  # type: ignore[dict-item]
            assert set(found.values()) == {401}, proof


async def test_commands_and_the_bridge_are_the_users_own(tmp_path: Path) -> None:
    """They work where everybody else needs a token."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, auth={"required": True})
    with serving(config) as (_, url):
        async with httpx2.AsyncClient(base_url=url, timeout=LIMIT) as http:
            assert (await http.get("/api/servers")).status_code == 401
        command = [sys.executable, "-m", "pegboard", "servers", "--json", "--config", str(config)]
        ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=LIMIT)
        assert [row["name"] for row in json.loads(ran.stdout)["data"]["servers"]] == ["one"]
        async with stdio_client(config) as client:
            assert await client.text("one__echo", {})


@pytest.mark.scenario("access: Little is open to whoever is not known")
def test_what_is_open_to_everybody_is_little() -> None:
    """Health, and where OAuth's clients look first."""
    paths = [route.path for route in route_table()]
    assert [path for path in paths if is_open(path)] == ["/health"]
    assert is_open("/.well-known/oauth-protected-resource/mcp")
    assert not is_open("/.well-known/oauth-protected-resources")


@pytest.mark.scenario("access: A client's credentials are never sent on")
async def test_a_clients_credentials_are_never_sent_on(tmp_path: Path) -> None:
    """A server sees its own, or none."""
    with http_toy(Settings(name="far")) as far:
        async with open_gateway(tmp_path, {"far": {"type": "http", "url": far.url}}) as gateway:
            async with http_client(gateway.mcp, headers=await gateway.token()) as client:
                assert await client.text("far__echo", {})
        assert far.headers
        assert not [headers for headers in far.headers if "authorization" in headers]


@pytest.mark.skipif(os.geteuid() != 0, reason="to be another user takes root; the tests above stand in for it")
async def test_another_user_of_this_machine_is_refused(tmp_path: Path) -> None:
    """Over a real connection of a real other user."""
    script = """
import os, socket, sys
os.setuid(65534)
client = socket.socket()
client.connect(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"GET /api/servers HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
print(client.recv(12).decode())
"""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        port = gateway.url.rpartition(":")[2]
        ran = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script, port], capture_output=True, text=True, timeout=LIMIT
        )
    assert ran.stdout.strip() == "HTTP/1.1 401", ran.stderr


async def test_where_files_are_is_said_to_whoever_can_read_them(tmp_path: Path) -> None:
    """An admin elsewhere, and somebody here who is no admin, learn the state of the gateway and no place of it."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        admin, guest = await gateway.token("boss", admin=True), await gateway.token("guest")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for headers in ({**admin, **ELSEWHERE}, guest):
                told = (await http.get("/api/status", headers=headers)).json()["data"]
                assert told["servers"] == {"registered": 1}
                assert not {"pid", "config"} & told.keys()
            assert {"pid", "config"} <= (await http.get("/api/status")).json()["data"].keys()


async def test_whoever_is_gone_by_the_time_it_is_looked_at_is_nobody(tmp_path: Path) -> None:
    """A connection that was reset has no peer any more: its request is not that of this machine's user."""
    assert not Peer(None, ("127.0.0.1", 1)).is_own
    body = json.dumps({"key": "written", "text": "by nobody"}).encode()
    head = b"POST /api/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    with somebody_elses_gateway():
        async with open_gateway(tmp_path, {}, toolsets=["memory"]) as gateway:
            port = int(gateway.url.rpartition(":")[2])

            def flood() -> None:
                for _ in range(300):
                    with socket.socket() as client:
                        # Closed at once, and not in turn.
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        client.connect(("127.0.0.1", port))
                        client.send(request)

            await asyncio.to_thread(flood)
            await eventually(lambda: not gateway.front.connections.open)
            rows = await gateway.board.storage.database.read(lambda found: found.rows("SELECT key FROM memories"))
            assert rows == []
