"""An authorization server, and the server that it protects, on this machine: they answer what a test wants."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl

from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import OAuthSettings

PRM = "/.well-known/oauth-protected-resource"
METADATA = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def members(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer; one without an end goes on until somebody hangs up."""

    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    is_endless: bool = False
    is_silent: bool = False


def said(members: Any, status: int = 200, **headers: str) -> Said:
    """A JSON answer."""
    named = {"content-type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
    return Said(status, json.dumps(members).encode(), tuple(named.items()))


class ScriptedServer:
    """Answers by path; whatever it has no answer for is not there."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.answers: dict[str, Said | Callable[[Asked], Said]] = {}
        self.closed = Event()

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.asked]

    def metadata(self, path: str = "", **changes: Any) -> dict[str, Any]:
        """Good metadata of the issuer at that path; `None` leaves a member out."""
        issuer = f"{self.url}{path}"
        given = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
            "revocation_endpoint": f"{issuer}/revoke",
            "device_authorization_endpoint": f"{issuer}/device",
            "code_challenge_methods_supported": ["S256"],
        }
        return {key: value for key, value in (given | changes).items() if value is not None}

    def protect(self, path: str = "/mcp", **changes: Any) -> None:
        """Have resource metadata for the server at that path, and authorization server metadata at the origin."""
        resource = {"resource": f"{self.url}{path}", "authorization_servers": [self.url]} | changes
        self.answers[f"{PRM}{path}"] = said({key: value for key, value in resource.items() if value is not None})
        self.answers.setdefault(METADATA, said(self.metadata()))

    def spec(self, path: str = "/mcp", **settings: Any) -> ServerSpec:
        """The server at that path, as a config has it."""
        oauth = OAuthSettings(**settings)
        return ServerSpec(name="docs", given_name="docs", transport="http", url=f"{self.url}{path}", oauth=oauth)

    def answer(self, asked: Asked) -> Said:
        self.asked.append(asked)
        found = self.answers.get(asked.path.partition("?")[0], Said(404, b"not here", ()))
        return found if isinstance(found, Said) else found(asked)


class _Handler(BaseHTTPRequestHandler):
    script: ScriptedServer

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        named = {name.lower(): value for name, value in self.headers.items()}
        answer = self.script.answer(Asked(self.command, self.path, named, self.rfile.read(length)))
        if answer.is_silent:
            self.script.closed.wait(60)
            return
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if not answer.is_endless:
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        with contextlib.suppress(OSError):
            while answer.is_endless and not self.script.closed.is_set():
                self.wfile.write(b" " * 65536)

    do_POST = do_GET  # noqa: N815  the base class looks for that name

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def open_scripted() -> Generator[ScriptedServer]:
    """One that listens."""
    script = ScriptedServer()
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()
