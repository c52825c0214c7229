"""A gateway that takes the tokens of an issuer, and plain requests to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from auth.issuer import Issuer
from harness import LIMIT, MODERN, Gateway, open_gateway, toy
from pegboard.protocol.eras import modern_params
from pegboard.protocol.headers import request_headers

EVERYBODY = {"who": ["*"]}
_HANDSHAKE = "2025-11-25"
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Door:
    """Sends requests as a client on another machine would: a proxy says so."""

    def __init__(self, gateway: Gateway, issuer: Issuer, http: httpx2.AsyncClient) -> None:
        self.gateway, self.issuer, self.http = gateway, issuer, http

    @property
    def resource(self) -> str:
        return self.gateway.mcp

    def token(self, *args: Any, **changes: Any) -> str:
        """A token of the issuer, for this gateway unless a test says otherwise."""
        return self.issuer.sign(*args, **({"aud": self.resource} | changes))

    async def call(
        self,
        bearer: str | None = None,
        tool: str = "one__x",
        *,
        path: str = "/mcp",
        arguments: Mapping[str, Any] | None = None,
        headers: list[tuple[str, str]] | None = None,
        session: str | None = None,
        raw: list[tuple[str, str]] | None = None,
        host: str = "",
    ) -> httpx2.Response:
        """A call of the modern era, or in a session, which the fast path takes if nothing is odd about it."""
        if session is not None:
            asked = {"name": tool, "arguments": dict(arguments or {})}
            return await self.post("tools/call", asked, bearer or "", session, path=path)
        asked = {"name": tool, "arguments": dict(arguments or {})}
        body, given = _modern("tools/call", asked)
        given += headers or []
        if raw is not None:
            return await self.send_bytes(path, [*given, *raw], body, host)
        if bearer is not None:
            given.append(("authorization", f"Bearer {bearer}"))
        return await self.http.post(path, content=body, headers=given)

    async def request(self, method: str, params: Mapping[str, Any], bearer: str) -> httpx2.Response:
        """A request of the modern era, with all of its answer."""
        body, given = _modern(method, params)
        return await self.http.post("/mcp", content=body, headers=[*given, ("authorization", f"Bearer {bearer}")])

    async def call_in_session(self, session: str, raw: list[tuple[str, str]], path: str) -> httpx2.Response:
        """A call of the handshake era with headers that no client would send."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__x"}}
        named = [("mcp-session-id", session), ("mcp-protocol-version", _HANDSHAKE)]
        return await self.send_bytes(path, [*_ACCEPT.items(), *named, *raw], json.dumps(message).encode())

    async def send_bytes(
        self, path: str, headers: list[tuple[str, str]], body: bytes, host: str = ""
    ) -> httpx2.Response:
        """A request whose headers no client would send; surrogates stand for bytes that are no text."""
        port = int(self.gateway.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        own = [("host", host or f"127.0.0.1:{port}"), ("content-length", str(len(body))), ("connection", "close")]
        named = [*own, *headers]
        head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in named)
        writer.write(head.encode("utf-8", "surrogateescape") + b"\r\n" + body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        said, _, content = answer.partition(b"\r\n\r\n")
        status, *lines = said.decode("latin-1").split("\r\n")
        pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return httpx2.Response(int(status.split()[1]), headers=[*pairs], content=content)

    async def open_session(self, bearer: str) -> str:
        """A session of the handshake era, ready to be used."""
        hello = {"protocolVersion": _HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        answer = await self.post("initialize", hello, bearer)
        assert answer.status_code == 200, answer.text
        session = answer.headers["mcp-session-id"]
        body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = await self.http.post("/mcp", content=body, headers=_headers(bearer, session))
        assert answer.status_code == 202
        return session

    async def post(
        self, method: str, params: Mapping[str, Any], bearer: str, session: str | None = None, *, path: str = "/mcp"
    ) -> httpx2.Response:
        """A request of the handshake era."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return await self.http.post(path, content=body, headers=_headers(bearer, session))

    async def get(self, path: str, bearer: str | None = None, **headers: str) -> httpx2.Response:
        given = headers if bearer is None else {**headers, "authorization": f"Bearer {bearer}"}
        return await self.http.get(path, headers=given)

    @property
    def declined(self) -> Mapping[str, int]:
        """How often the fast path was not taken, by the reason."""
        return self.gateway.board.metrics.declined

    async def configure(self, **auth: Any) -> None:
        """Other settings of `auth`, with the issuer."""
        await self.gateway.configure({"one": toy(tools=["x", "y"])}, auth=auth_settings(self.issuer, **auth))


def auth_settings(issuer: Issuer, *, settings: Mapping[str, Any] | None = None, **auth: Any) -> dict[str, Any]:
    given = {"issuer": issuer.url, **(settings or {})}
    return {"required": True, "issuers": [given], "rules": [EVERYBODY], **auth}


@contextlib.asynccontextmanager
async def open_door(
    tmp_path: Path,
    issuer: Issuer,
    *,
    settings: Mapping[str, Any] | None = None,
    toolsets: list[str] | None = None,
    audit: Mapping[str, Any] | None = None,
    hosts: list[str] | None = None,
    **auth: Any,
) -> AsyncGenerator[Door]:
    """A gateway with one server, where everybody has to say who they are."""
    servers = {"one": toy(tools=["x", "y"])}
    own: dict[str, Any] = {"auth": auth_settings(issuer, settings=settings, **auth)}
    if audit is not None:
        own["audit"] = dict(audit)
    async with open_gateway(tmp_path, servers, **own, toolsets=toolsets or [], hosts=hosts or []) as gateway:
        await gateway.board.list_tools()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            yield Door(gateway, issuer, http)


def _headers(bearer: str, session: str | None) -> dict[str, str]:
    named = {} if session is None else {"mcp-session-id": session, "mcp-protocol-version": _HANDSHAKE}
    return {**_ACCEPT, **named, "authorization": f"Bearer {bearer}"}


def _modern(method: str, params: Mapping[str, Any]) -> tuple[bytes, list[tuple[str, str]]]:
    """The body and the headers of a request of the modern era."""
    info = {"name": "c", "version": "1"}
    stamped = modern_params(params, version=MODERN, client_info=info, capabilities={})
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": stamped})
    return body.encode(), [*_ACCEPT.items(), *request_headers(MODERN, method, stamped).items()]
