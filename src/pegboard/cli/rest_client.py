"""REST as commands speak it: with a running gateway of the same config, else with one in this process."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from pegboard.config import Location

Answer = dict[str, Any]
_NEW_OBJECTS = 200_000


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request; an answer is a `ToolResult` as a plain object."""

    method: str
    target: str
    body: Mapping[str, Any] | None = None

    def payload(self) -> bytes:
        """The body as it is sent: exact, so that the gateway refuses what is no text, as bytes of a shell may be."""
        from pegboard import exactjson

        return b"" if self.body is None else exactjson.dump(exactjson.exact(self.body))


class RestTransport(Protocol):
    """Carries requests to a gateway, wherever it is. A gateway that does not answer is an answer, too."""

    @property
    def is_running(self) -> bool:
        """Whether it leads to a gateway that runs, and keeps servers started."""
        ...

    def send(self, request: RestRequest) -> Answer:
        """The answer to one request."""
        ...

    def send_all(self, requests: Sequence[RestRequest], on_answer: Callable[[], None]) -> list[Answer]:
        """The answers to several requests that are made at once, in their order."""
        ...


def connect(location: Location, *, alone: bool = False) -> RestClient:
    """A client of the gateway that serves this config, if one runs, else of one that this process is. `alone`: of this
    process in any case."""
    from pegboard.cli.common import load_settings, quiet_logs
    from pegboard.cli.http_transport import find_running

    if not alone and (running := find_running(location.path)) is not None:
        return RestClient(running)
    settings = load_settings(location)
    quiet_logs()
    # Most of what a command makes are modules, which stay: to look among them for garbage is a tenth of its time.
    gc.set_threshold(_NEW_OBJECTS)
    from pegboard.cli.in_process import InProcessTransport

    return RestClient(InProcessTransport(settings, location.path))


@contextlib.contextmanager
def stay_connected(location: Location) -> Generator[RestClient]:
    """The same as `connect` for a command that has to be answered several times: where no gateway runs, this process is
    one until the command ends."""
    from pegboard.cli.common import load_settings, quiet_logs
    from pegboard.cli.http_transport import find_running

    if (running := find_running(location.path)) is not None:
        yield RestClient(running)
        return
    settings = load_settings(location)
    quiet_logs()
    from pegboard.cli.in_process import OpenBoardTransport

    with OpenBoardTransport(settings, location.path) as transport:
        yield RestClient(transport)


class RestClient:
    """What commands ask a gateway."""

    def __init__(self, transport: RestTransport) -> None:
        self._transport = transport

    @property
    def is_running(self) -> bool:
        """Whether a gateway runs that keeps servers started; else this process starts them."""
        return self._transport.is_running

    def servers(self) -> Answer:
        """Every server."""
        return self.get("/api/servers")

    def tools(self, server: str | None, prefix: str | None, status: str | None) -> Answer:
        """Every tool that passes."""
        return self.get("/api/tools", server=server, prefix=prefix, status=status)

    def find(self, query: str, limit: int) -> Answer:
        """The tools that fit best."""
        return self.get("/api/tools/search", q=query, limit=limit)

    def describe(self, name: str) -> Answer:
        """One tool in full."""
        return self.get(f"/api/tools/{_segment(name)}")

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        request = RestRequest("POST", f"/api/tools/{_segment(name)}/call", {"arguments": arguments})
        return self._transport.send(request)

    def refresh(self, names: Sequence[str], on_answer: Callable[[], None] = lambda: None) -> dict[str, Answer]:
        """Have servers asked for their tools now, all at once."""
        requests = [RestRequest("POST", f"/api/servers/{_segment(name)}/refresh") for name in names]
        return dict(zip(names, self._transport.send_all(requests, on_answer), strict=True))

    def status(self) -> Answer:
        """The gateway itself."""
        return self.get("/api/status")

    def log(self, name: str, most: int | None, after: int) -> Answer:
        """The newest lines of a server's log."""
        return self.get(f"/api/servers/{_segment(name)}/log", limit=most, after=after)

    def restart(self, name: str) -> Answer:
        """Have a server started anew."""
        return self._transport.send(RestRequest("POST", f"/api/servers/{_segment(name)}/restart"))

    def tokens(self) -> Answer:
        """Every token, without its secret."""
        return self.get("/api/tokens")

    def add_token(self, name: str, rule: Mapping[str, Any], expires: str | None) -> Answer:
        """Make a token; the answer has it, this once."""
        return self._transport.send(
            RestRequest("POST", "/api/tokens", {"name": name, "rule": rule, "expires": expires})
        )

    def token(self, name: str) -> Answer:
        """One token, and what it is given now."""
        return self.get(f"/api/tokens/{_segment(name)}")

    def change_token(self, name: str, changes: Mapping[str, Any]) -> Answer:
        """Change a token's rule, expiry or name."""
        return self._transport.send(RestRequest("PATCH", f"/api/tokens/{_segment(name)}", changes))

    def rotate_token(self, name: str, expires: str | None) -> Answer:
        """Give a token another secret; the answer has it, this once."""
        return self._transport.send(RestRequest("POST", f"/api/tokens/{_segment(name)}/rotate", {"expires": expires}))

    def remove_token(self, name: str) -> Answer:
        """Remove a token."""
        return self._transport.send(RestRequest("DELETE", f"/api/tokens/{_segment(name)}"))

    def changes_of(self, server: str, items: Sequence[str]) -> Answer:
        """What a server changed in its definitions."""
        return self.get(f"/api/changes/{_segment(server)}", item=list(items) or None)

    def decide_changes(self, server: str, verb: str, items: Sequence[str], revision: str | None = None) -> Answer:
        """Accept or reject what a server changed, or some of it, as it was at that revision."""
        body: dict[str, Any] = {"items": list(items)} if items else {}
        body |= {} if revision is None else {"revision": revision}
        return self._transport.send(RestRequest("POST", f"/api/changes/{_segment(server)}/{verb}", body))

    def begin_login(self, name: str, wish: Mapping[str, Any]) -> Answer:
        """Begin to sign in to a server."""
        return self._transport.send(RestRequest("POST", f"/api/servers/{_segment(name)}/login", wish))

    def look_at_login(self, name: str, flow: str, wait: int) -> Answer:
        """How a sign-in is, when it has ended or so many seconds have passed."""
        return self.get(f"/api/servers/{_segment(name)}/login/{_segment(flow)}", wait=wait)

    def finish_login(self, name: str, flow: str, callback: str) -> Answer:
        """Finish a sign-in with the address that a browser was sent to."""
        target = f"/api/servers/{_segment(name)}/login/{_segment(flow)}"
        return self._transport.send(RestRequest("POST", target, {"callback": callback}))

    def cancel_login(self, name: str, flow: str) -> Answer:
        """Cancel a sign-in."""
        return self._transport.send(RestRequest("DELETE", f"/api/servers/{_segment(name)}/login/{_segment(flow)}"))

    def logout(self, name: str, *, everybody: bool) -> Answer:
        """Sign out of a server."""
        query = "?all=true" if everybody else ""
        return self._transport.send(RestRequest("DELETE", f"/api/servers/{_segment(name)}/login{query}"))

    def logins(self) -> Answer:
        """Who is signed in where."""
        return self.get("/api/logins")

    def get(self, path: str, /, **query: object) -> Answer:
        """The answer at an address of the gateway, with those parameters that have a value."""
        given = {name: value for name, value in query.items() if value is not None}
        try:
            target = f"{path}?{urlencode(given, doseq=True)}" if given else path
        except UnicodeEncodeError as exc:
            # An address cannot carry it.
            message = f"{exc.object!r} is not valid Unicode: it contains half of a surrogate pair"
            return failure("TOOL_INVALID_INPUT", message, retryable=False)
        return self._transport.send(RestRequest("GET", target))


def failure(code: str, message: str, *, retryable: bool) -> Answer:
    """The answer where no gateway has one."""
    return {"success": False, "error": {"code": code, "message": message, "retryable": retryable}}


def _segment(name: str) -> str:
    return quote(name, safe="", errors="replace")
