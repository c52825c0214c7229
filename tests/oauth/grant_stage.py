"""A protected server, a real authorization server (oidc-provider) behind a token endpoint that can misbehave, and
gateways' sign-ins to them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio

from auth.provider import browse
from harness import LIMIT
from pegboard.config import ServerSpec, Settings
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.metrics import Metrics
from pegboard.oauth.grant import KeptGrant, OAuthGrant
from pegboard.oauth.oauth import OAuth
from pegboard.oauth.principals import LocalUserAlone
from pegboard.servers.authorization import Authorization, Challenge
from pegboard.storage import Storage, open_storage
from servers.toy_http import Handler, HttpToy, Manners, http_toy

REDIRECT = "http://127.0.0.1:7420/oauth/callback"
KEY = "0123456789abcdef" * 4


@dataclass
class TokenProxy:
    """Stands before a token endpoint: counts what is asked, and answers in its place where a test says so."""

    target: str
    server: ThreadingHTTPServer
    # What is sent instead of the answer; `None` closes the connection after the question has reached its target.
    answers: list[tuple[int, dict[str, str], bytes] | None] = field(default_factory=list)
    # What becomes of an answer on its way.
    change: Callable[[dict[str, Any]], dict[str, Any]] = field(default=lambda members: members)
    asked: int = 0
    errors: list[str] = field(default_factory=list)
    # Where questions wait, and whether they are thrown away afterwards.
    hold: threading.Event | None = None
    drops: bool = False
    waiting: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/token"


class _ProxyHandler(BaseHTTPRequestHandler):
    proxy: TokenProxy

    def log_message(self, format: str, *args: Any) -> None:
        """Tests have their own log."""

    def do_POST(self) -> None:
        proxy, body = self.proxy, self.rfile.read(int(self.headers["content-length"]))
        proxy.asked += 1
        instead = proxy.answers.pop(0) if proxy.answers else ()
        if instead:
            self._send(*instead)
            return
        if proxy.hold is not None:
            proxy.waiting.set()
            proxy.hold.wait(LIMIT)
            if proxy.drops:
                self.close_connection = True
                return
        status, content = _forward(proxy.target, body, self.headers["content-type"], self.headers["authorization"])
        if instead is None:
            self.close_connection = True
            return
        members = proxy.change(json.loads(content))
        if "error" in members:
            proxy.errors.append(members["error"])
        self._send(status, {"content-type": "application/json"}, json.dumps(members).encode())

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _forward(url: str, body: bytes, content_type: str, authorization: str | None) -> tuple[int, bytes]:
    headers = {"content-type": content_type} | ({"authorization": authorization} if authorization else {})
    try:
        with urlopen(Request(url, body, headers), timeout=LIMIT) as answer:
            return answer.status, answer.read()
    except HTTPError as exc:
        return exc.code, exc.read()


@contextlib.contextmanager
def token_proxy(target: str) -> Generator[TokenProxy]:
    """One that ends with the block."""
    handler = type("ProxyHandler", (_ProxyHandler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    proxy = handler.proxy = TokenProxy(target, server)  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        if proxy.hold is not None:
            proxy.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextlib.contextmanager
def protected_toy(issuer: str) -> Generator[HttpToy]:
    """A server that takes tokens of this issuer which are for it and not over, and names the issuer to others."""

    class ProtectedHandler(Handler):
        def do_GET(self) -> None:  # noqa: N802  the library's name
            if not self.path.startswith("/.well-known/oauth-protected-resource"):
                super().do_GET()
                return
            metadata = {"resource": self.toy.url, "authorization_servers": [issuer], "scopes_supported": ["mcp"]}
            self.plain(200, json.dumps(metadata).encode(), {"content-type": "application/json"})

        def do_POST(self) -> None:  # noqa: N802  the library's name
            if _is_good(self.headers.get("authorization", ""), self.toy.url):
                super().do_POST()
                return
            self.rfile.read(int(self.headers.get("content-length") or 0))
            place = f"http://127.0.0.1:{self.toy.port}/.well-known/oauth-protected-resource/mcp"
            self.plain(401, b"", {"www-authenticate": f'Bearer resource_metadata="{place}", scope="mcp"'})

    with http_toy(manners=Manners()) as toy:
        ProtectedHandler.toy = toy
        toy.server.RequestHandlerClass = ProtectedHandler
        yield toy


def _is_good(authorization: str, audience: str) -> bool:
    scheme, _, token = authorization.partition(" ")
    if scheme != "Bearer":
        return False
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return claims["aud"] == audience and claims["exp"] > time.time()


def make_spec(url: str, name: str = "notes", **oauth: Any) -> ServerSpec:
    """A server of the config."""
    settings = OAuthSettings(**oauth) if oauth else None
    return ServerSpec(name=name, given_name=name, transport="http", url=url, oauth=settings)


@dataclass
class Desk:
    """The sign-ins of one gateway."""

    oauth: OAuth
    storage: Storage
    metrics: Metrics
    notes: list[tuple[Any, ...]]
    specs: dict[str, ServerSpec]
    principals: Everybody
    changes: list[tuple[str, str, str]] = field(default_factory=list)

    def token(self, name: str = "notes", principal: str | None = None) -> Authorization:
        """The credentials that requests are sent with."""
        found = self.oauth.authorize(self.specs[name], principal)
        assert found is not None
        return found

    async def kept(self, name: str = "notes", principal: str = "") -> KeptGrant:
        """The grant in the storage."""
        found = await self.oauth._vault.load_grant(name, principal)
        assert found is not None
        return found

    async def change(self, name: str = "notes", principal: str = "", **members: Any) -> None:
        """Keep the grant with other members."""
        kept = await self.kept(name, principal)
        assert kept.grant is not None
        assert await self.oauth._vault.save_grant(self.specs[name], principal, replace(kept.grant, **members), kept)


class Everybody(LocalUserAlone):
    """Everybody is let in, as an admin, but those who were turned out."""

    def __init__(self) -> None:
        self.removed: set[str] = set()

    async def may_sign_in(self, principal_id: str, *, for_all: bool) -> bool:
        del for_all
        return principal_id not in self.removed

    def is_removed(self, principal_id: str) -> bool:
        return principal_id in self.removed


@contextlib.asynccontextmanager
async def open_desk(place: str, *specs: ServerSpec) -> AsyncGenerator[Desk]:
    """A gateway that shares its storage with all others of this place."""
    storage = open_storage(place)
    await storage.open()
    known = {spec.name: spec for spec in specs}
    settings, metrics, notes = Settings(servers=known, storage=place), Metrics(), list[tuple[Any, ...]]()
    oauth = OAuth(storage, place, lambda: settings, metrics, lambda *note: notes.append(note))
    oauth.principals = everybody = Everybody()
    desk = Desk(oauth, storage, metrics, notes, known, everybody)
    oauth.on_change(lambda *change: desk.changes.append(change))
    try:
        yield desk
    finally:
        await oauth.close()
        await storage.close()


async def sign_in(desk: Desk, name: str = "notes", principal: str = "", redirect: str = REDIRECT, **asked: Any) -> None:
    """Somebody who agrees to all."""
    flow = await desk.oauth.sign_ins.begin(desk.specs[name], principal, redirect_uri=redirect, **asked)
    assert flow.url is not None
    done = await desk.oauth.sign_ins.finish(await browse(flow.url), principal_id=None)
    assert done.state == "done", done.reason


async def send_through(desk: Desk, proxy: TokenProxy, name: str = "notes", **members: Any) -> None:
    """From now on tokens of this grant are asked for through a proxy."""
    grant = (await desk.kept(name)).grant
    assert grant is not None
    server = replace(grant.authorization_server, token_endpoint=proxy.url)
    await desk.change(name, authorization_server=server, **members)


async def let_expire(desk: Desk, name: str = "notes") -> None:
    """As if its access token had been given long ago."""
    await desk.change(name, expires_at=time.time() - 1.0, lifetime=60.0)


def refused(status: int = 401, **said: Any) -> Challenge:
    """What a server says to a request that it refuses."""
    return Challenge(status, scheme_seen=True, **said)


async def wait_for(condition: Callable[[], bool]) -> None:
    """Until something is so."""
    with anyio.fail_after(LIMIT):
        while not condition():
            await asyncio.sleep(0.01)


def usable(kept: KeptGrant) -> OAuthGrant:
    """The grant of one that is in force."""
    assert kept.is_live
    assert kept.grant is not None
    return kept.grant
