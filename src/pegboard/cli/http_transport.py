"""REST over HTTP, with a gateway that has proven that it is the one of its run file."""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import secrets
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pegboard.cli.rest_client import Answer, RestRequest, failure

if TYPE_CHECKING:
    from pegboard.config import RunningGateway

_UNANSWERED = (OSError, ValueError, RecursionError, http.client.HTTPException)
_PROOF_LIMIT = 5.0
_MAX_HEALTH = 10_000
_MOST_AT_ONCE = 64


def find_running(config: Path) -> GatewayTransport | None:
    """The way to a gateway that serves this config, if one does."""
    from pegboard.config.runfile import find_gateways

    for file, gateway in find_gateways(config):
        if is_running(file, gateway):
            return GatewayTransport(gateway)
    return None


def is_running(file: Path, gateway: RunningGateway) -> bool:
    """Whether the gateway of a run file answers; the file of one that is gone is taken away."""
    from pegboard.config.runfile import forget

    try:
        with _connect(gateway):
            return True
    except ConnectionRefusedError:
        forget(file)
    except _UNANSWERED:
        pass
    return False


class GatewayTransport:
    """Sends each request over a connection of its own."""

    is_running = True

    def __init__(self, gateway: RunningGateway, bearer: str = "") -> None:
        self._gateway = gateway
        self._bearer = bearer

    def with_bearer(self, token: str) -> GatewayTransport:
        """The same for whoever has this token, and not for the user of this machine."""
        return GatewayTransport(self._gateway, token)

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self._gateway.url

    def send(self, request: RestRequest) -> Answer:
        """The answer to one request."""
        try:
            return _exchange(self._gateway, request, self._bearer)
        except _UNANSWERED as exc:
            message = f"the gateway at {self._gateway.url} did not answer: {exc}"
            return failure("TOOL_UNAVAILABLE", message, retryable=True)

    def send_all(self, requests: Sequence[RestRequest], on_answer: Callable[[], None]) -> list[Answer]:
        """The answers to several requests that are made at once, in their order."""
        from concurrent.futures import ThreadPoolExecutor

        def send(request: RestRequest) -> Answer:
            answer = self.send(request)
            on_answer()
            return answer

        with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
            return list(pool.map(send, requests))


def _exchange(gateway: RunningGateway, request: RestRequest, bearer: str) -> Answer:
    from pegboard import exactjson
    from pegboard.auth.proof import PROOF_HEADER, make_proof

    with _connect(gateway) as connection:
        proof = {PROOF_HEADER: make_proof(gateway.token, urlsplit(gateway.url).port or 80)}
        who = {"authorization": f"Bearer {bearer}"} if bearer else proof
        headers = {"content-type": "application/json", **who}
        connection.request(request.method, request.target, request.payload() or None, headers)
        return exactjson.parse_object(connection.getresponse().read())


@contextlib.contextmanager
def _connect(gateway: RunningGateway) -> Generator[http.client.HTTPConnection]:
    """A connection whose other end has proven to be that gateway; nothing else is sent before."""
    from pegboard.gateway.proof import CHALLENGE_HEADER, http_purpose, prove

    parts = urlsplit(gateway.url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    connection = http.client.HTTPConnection(host, port, timeout=_PROOF_LIMIT)
    with contextlib.closing(connection):
        connection.connect()
        # What was proven is proven of this connection: it must not be opened again unasked.
        connection.auto_open = 0
        challenge = secrets.token_hex(16)
        connection.request("GET", "/health", headers={CHALLENGE_HEADER: challenge})
        said: Any = json.loads(connection.getresponse().read(_MAX_HEALTH))
        proof = str(cast("Answer", said).get("proof")) if isinstance(said, dict) else ""
        if not hmac.compare_digest(proof.encode(), prove(gateway.token, http_purpose(port), challenge.encode())):
            raise OSError("somebody else answers there")
        if connection.sock is None:
            raise OSError("it closed the connection: it is stopping")
        connection.sock.settimeout(None)
        yield connection
