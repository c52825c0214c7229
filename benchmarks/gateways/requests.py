"""Requests of both protocol eras as bytes, made once and sent as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json

from benchmarks.gateways.echo import META, VERSIONS, Era
from benchmarks.gateways.http1 import json_of, status

# All numbers have as many digits, so that one Content-Length holds for all of them.
FIRST_NUMBER = 100_000_000
CLIENT = {"name": "benchmark", "version": "1"}
_NAMED = "tools/call"


class WrongReply(Exception):  # noqa: N818  it says what the reply is
    """A reply that does not answer its request."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a gateway listens."""

    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Address:
        """The address in a URL."""
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 80, parts.path or "/")


@dataclass(frozen=True, slots=True)
class Wording:
    """How a client words its requests: the era, and the session if it has one."""

    address: Address
    era: Era
    session: str | None = None
    # The token that says who it is.
    bearer: str | None = None

    def request(self, method: str, params: Mapping[str, Any], number: int | None) -> bytes:
        """One request; without a number it is a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0"}
        if number is not None:
            message["id"] = number
        body = json.dumps({**message, "method": method, "params": self._params(params)}, separators=(",", ":")).encode()
        return self._head(method, params.get("name"), len(body)) + body

    def call(self, tool: str, size: int = 0) -> CallForm:
        """The form of a call of the echo tool: to be filled in with a number, twice."""
        text = str(FIRST_NUMBER)
        arguments: dict[str, Any] = {"text": text, "size": size} if size else {"text": text}
        made = self.request(_NAMED, {"name": tool, "arguments": arguments}, FIRST_NUMBER)
        form = made.replace(b"%", b"%%").replace(text.encode(), b"%d")
        assert form.count(b"%d") == 2
        return CallForm(form, size)

    def _params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self.era == "handshake":
            return dict(params)
        version = VERSIONS["modern"]
        meta = {f"{META}protocolVersion": version, f"{META}clientCapabilities": {}, f"{META}clientInfo": CLIENT}
        return {**params, "_meta": meta}

    def _head(self, method: str, name: str | None, length: int) -> bytes:
        lines = [
            f"POST {self.address.path} HTTP/1.1",
            f"Host: {self.address.host}:{self.address.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
        ]
        if self.bearer is not None:
            lines.append(f"Authorization: Bearer {self.bearer}")
        if method != "initialize":
            lines.append(f"MCP-Protocol-Version: {VERSIONS[self.era]}")
        if self.session is not None:
            lines.append(f"Mcp-Session-Id: {self.session}")
        if self.era == "modern":
            lines.append(f"Mcp-Method: {method}")
            if method == _NAMED:
                lines.append(f"Mcp-Name: {name}")
        lines.append(f"Content-Length: {length}")
        return "\r\n".join([*lines, "", ""]).encode()


@dataclass(frozen=True, slots=True)
class CallForm:
    """A call of the echo tool without its number, and what its answer has to be."""

    form: bytes
    size: int

    def request(self, number: int) -> bytes:
        """The call of this number."""
        return self.form % (number, number)

    def check(self, number: int, head: bytes, body: bytes) -> None:
        """Raise `WrongReply` unless this is the whole answer to the call of this number."""
        reply = read_reply(head, body)
        try:
            text = reply["result"]["content"][0]["text"]
        except (KeyError, IndexError, TypeError):
            raise WrongReply(f"no result: {_start_of(body)}") from None
        sent = str(number)
        right = text == sent if not self.size else len(text) == self.size and text.startswith(sent)
        if reply.get("id") != number or not right:
            raise WrongReply(f"call {number} was answered with {_start_of(body)}")


def read_reply(head: bytes, body: bytes) -> dict[str, Any]:
    """The JSON-RPC response that a response carries."""
    try:
        reply = from_json(json_of(head, body))
    except ValueError:
        reply = None
    if status(head) != b"200" or not isinstance(reply, dict):
        raise WrongReply(f"HTTP {status(head).decode()}: {_start_of(body)}")
    return reply


def _start_of(body: bytes) -> str:
    return body[:200].decode(errors="replace")
