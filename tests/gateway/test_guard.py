"""Who may come in: our own host, our own origin, JSON that says so, and nothing twice."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from harness import LIMIT, Gateway, open_gateway, toy
from pegboard.config import ConfigError, parse_settings
from pegboard.gateway.guard import Guard
from pegboard.gateway.hosts import AllowedHosts
from pegboard.host_names import host_problem

pytestmark = pytest.mark.anyio
CALL = "/api/tools/one__echo/call"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}},
}
VISIT = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@asynccontextmanager
async def rest(tmp_path: Path, **own: Any) -> AsyncGenerator[tuple[httpx2.AsyncClient, Gateway]]:
    async with (
        open_gateway(tmp_path, {"one": toy()}, **own) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway


def refusal(
    host: str, *headers: tuple[str, str], bind: str = "127.0.0.1", address: str = "127.0.0.1", **scope: Any
) -> int:
    """The status with which a guard refuses a request; 0 if it lets it in."""
    named = [(b"host", host.encode())] if host else []
    guard = Guard(no_app, hosts=AllowedHosts(bind, ("pegboard.example", "*.apps.example")))
    request = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": "GET",
        "path": "/api/tools",
        "server": (address, 7420),
        "headers": [*named, *((name.encode(), value.encode()) for name, value in headers)],
        **scope,
    }
    answer = guard.refusal(request)
    return 0 if answer is None else answer.status_code


async def no_app(*_: object) -> None:
    """Nobody gets this far."""


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.0.0.2", "localhost", "::1", "0.0.0.0", "::", "192.0.2.7"])
def test_a_foreign_host_is_refused_on_every_bind(bind: str) -> None:
    """DNS rebinding: no name that somebody else can let point here, wherever we listen."""
    for host in ("rebind.test", "rebind.test:7420", "localhost.evil.test", "evil-localhost", "127.0.0.1.nip.io"):
        assert refusal(host, bind=bind) == 421
    for host in ("example", "pegboard.example.evil.test", "apps.example", "203.0.113.9", "a@localhost", "[::1", "x y"):
        assert refusal(host, bind=bind) == 421
    for host in (
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "x.localhost:7420",
        "127.0.0.1:7420",
        "127.9.9.9",
        "[::1]:7420",
    ):
        assert refusal(host, bind=bind) == 0
    for host in ("pegboard.example", "Pegboard.Example:443", "one.apps.example"):
        assert refusal(host, bind=bind) == 0


def test_localhost_is_no_name_of_ours_where_others_have_its_other_address() -> None:
    """A page of theirs would have our origin; an address is us alone."""
    guard = Guard(no_app, hosts=AllowedHosts("127.0.0.1", has_localhost=False))
    for host, status in {"localhost:7420": 421, "x.localhost": 421, "127.0.0.1:7420": 0, "[::1]": 0}.items():
        headers = [(b"host", host.encode())]
        answer = guard.refusal(
            {"method": "GET", "path": "/", "scheme": "http", "http_version": "1.1", "headers": headers}
        )
        assert (0 if answer is None else answer.status_code) == status


def test_the_machines_own_names_are_ours_only_beyond_loopback() -> None:
    """On a local network anybody can answer for them, and a loopback address is reached without."""
    short = socket.gethostname().partition(".")[0]
    for name in (socket.gethostname(), short, f"{short}.local"):
        for bind in ("0.0.0.0", "::", "192.0.2.7"):
            assert refusal(name, bind=bind, address="192.0.2.7") == 0
        for bind in ("127.0.0.1", "127.0.0.2", "localhost", "::1"):
            assert refusal(name, ("origin", f"http://{name}"), bind=bind) == 421


def test_the_address_that_a_connection_came_in_on_is_ours() -> None:
    """Whoever uses an address of this machine needs no setting; another machine's address is no name of ours."""
    assert refusal("192.0.2.7:7420", bind="0.0.0.0", address="192.0.2.7") == 0
    assert refusal("192.0.2.8:7420", bind="0.0.0.0", address="192.0.2.7") == 421
    assert refusal("[fe80::1]:7420", bind="::", address="fe80::1%eth0") == 0
    assert refusal("0.0.0.0:7420", bind="0.0.0.0") == 0
    assert refusal("0.0.0.0:7420", bind="127.0.0.1") == 421


def test_a_request_without_a_host_is_let_in_only_where_http_allows_it() -> None:
    """HTTP/1.0, which health checks of load balancers speak and no browser does."""
    assert refusal("", http_version="1.0") == 0
    assert refusal("") == 400
    assert refusal("", ("origin", "http://127.0.0.1:7420"), http_version="1.0") == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "http://127.0.0.1",
        "http://127.0.0.1:7421",
        "https://127.0.0.1:7420",
        "http://localhost:7420",
        "http://127.0.0.1:7420/",
        "http://127.0.0.1:7420@evil.test",
        "//127.0.0.1:7420",
        "file://",
        "null",
        "",
    ],
)
def test_an_origin_must_be_ours_exactly(origin: str) -> None:
    """CSRF: scheme, host and port; a page on another port of this machine is another site's."""
    assert refusal("127.0.0.1:7420", ("origin", origin)) == 403


def test_our_own_origin_is_let_in() -> None:
    """Whatever name it goes by, and with the port that the scheme means."""
    assert refusal("127.0.0.1:7420", ("origin", "http://127.0.0.1:7420")) == 0
    assert refusal("LOCALHOST:7420", ("origin", "http://localhost:7420")) == 0
    assert refusal("pegboard.example", ("origin", "https://pegboard.example"), scheme="https") == 0
    assert refusal("pegboard.example:443", ("origin", "https://pegboard.example"), scheme="https") == 0
    assert refusal("pegboard.example:8443", ("origin", "https://pegboard.example"), scheme="https") == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_what_a_browser_sends_for_another_site_is_refused(site: str) -> None:
    """Pictures, scripts, frames and forms: all but a link to a page, which is only looked at."""
    sent = ("sec-fetch-site", site)
    link = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"))
    for method in ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"):
        assert refusal("localhost", sent, method=method) == 403
    for path in ("/", "/docs", "/oauth/callback"):
        assert refusal("localhost", sent, *link, path=path) == 0
        assert refusal("localhost", sent, *link, path=path, method="POST") == 403
        assert refusal("localhost", sent, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image"), path=path) == 403
        assert refusal("localhost", sent, link[0], ("sec-fetch-dest", "iframe"), path=path) == 403
    assert refusal("localhost", sent, *link) == 403
    assert refusal("localhost", ("sec-fetch-site", "same-origin"), method="POST") == 0
    assert refusal("localhost", ("sec-fetch-site", "none")) == 0


@pytest.mark.parametrize(
    "name", ["host", "origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "content-type", "content-length"]
)
def test_a_header_that_decides_may_come_once(name: str) -> None:
    """One reader takes the first, another the last."""
    value = {"host": "localhost", "origin": "http://localhost", "content-length": "0"}.get(name, "same-origin")
    assert refusal("localhost" if name != "host" else "", (name, value), (name, value)) == 400


@pytest.mark.both_paths
async def test_a_body_must_be_json_by_its_content_type(tmp_path: Path) -> None:
    """What a form or a beacon can send is refused in the one error shape, and nothing is done."""
    async with rest(tmp_path) as (http, gateway):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None):
            headers = {} if kind is None else {"content-type": kind}
            for path in (CALL, "/mcp"):
                answer = await http.post(path, content=b'{"arguments": {}}', headers=headers)
                assert answer.status_code == 415
                assert answer.json()["error"]["code"] == "TOOL_INVALID_INPUT"
        assert gateway.board.servers["one"].state.value != "connected"
        for kind in ("application/json", "Application/JSON; charset=utf-8"):
            answer = await http.post(CALL, content=b'{"arguments": {}}', headers={"content-type": kind})
            assert answer.status_code == 200
        assert (await http.post(CALL)).status_code == 200

        async def pieces() -> AsyncGenerator[bytes]:
            yield b'{"arguments": {}}'

        assert (await http.post(CALL, content=pieces(), headers={"content-type": "text/plain"})).status_code == 415


@pytest.mark.both_paths
async def test_trailers_are_no_headers(tmp_path: Path) -> None:
    """What follows a body in pieces cannot say whose the request is, on neither path."""
    async with rest(tmp_path) as (_, gateway):
        own = urlsplit(gateway.url).netloc
        for path, body in ((CALL, b"{}"), ("/mcp", json.dumps(INITIALIZE).encode())):
            trailer = b"Host: evil.test\r\nSec-Fetch-Site: cross-site\r\n"
            assert await chunked(gateway, path, own, body, trailer) == 200
            assert await chunked(gateway, path, "evil.test", body, f"Host: {own}\r\n".encode()) == 421


async def chunked(gateway: Gateway, path: str, host: str, body: bytes, trailer: bytes) -> int:
    """The status of a request with a trailer."""
    parts = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(
        b"POST %b HTTP/1.1\r\nHost: %b\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        b"Accept: application/json, text/event-stream\r\nConnection: close\r\n\r\n%x\r\n%b\r\n0\r\n%b\r\n"
        % (path.encode(), host.encode(), len(body), body, trailer)
    )
    async with asyncio.timeout(LIMIT):
        status = int((await reader.readline()).split()[1])
        await reader.read()
    writer.close()
    return status


async def test_other_names_are_allowed_by_the_config(tmp_path: Path) -> None:
    """`pegboard.hosts` takes names and addresses; what is none is an error that says so."""
    async with rest(tmp_path, hosts=["pegboard.example", "203.0.113.9"]) as (http, _):
        for host in ("pegboard.example", "203.0.113.9:80"):
            assert (await http.get("/health", headers={"host": host})).status_code == 200
        refused = await http.get("/health", headers={"host": "other.example"})
        assert refused.status_code == 421
        assert "--allow-host" in refused.json()["error"]["message"]
    for wrong in ("http://x", "x/y", "x:80", "*", "a*b", "", "a b"):
        assert host_problem(wrong)
        with pytest.raises(ConfigError, match=r"pegboard\.hosts"):
            parse_settings(json.dumps({"pegboard": {"hosts": [wrong]}}), tmp_path / "x.json", {})


async def test_a_link_leads_to_a_page_and_to_nothing_else(tmp_path: Path) -> None:
    """Over the wire: pages open from anywhere, data does not."""
    async with rest(tmp_path) as (http, _):
        for path in ("/", "/docs"):
            assert (await http.get(path, headers=VISIT)).status_code == 200
        for path in ("/api/tools", "/api/memories", "/health", "/metrics", "/openapi.json"):
            assert (await http.get(path, headers=VISIT)).status_code == 403
