"""An MCP server (the SDK's) behind an authorization server: it says whose token each call came with."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Generator, Mapping
from threading import Event, Thread
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from conformance.eras import Era, only
from harness import LIMIT, PromptServer
from oauth.authority import Authority, Family
from pegboard.gateway.listen import listen_on

METADATA = "/.well-known/oauth-protected-resource/mcp"


class GuardedServer:
    """Lets whoever has a token of its authority use `whoami`, `wait` and, with the scope for it, `write`."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.url = ""
        # Which scope each tool needs, and what is asked for at first.
        self.scopes: dict[str, str] = {}
        self.first_scope: str | None = None
        self.refused: Counter[int] = Counter()
        self.streams = 0

    @property
    def entry(self) -> dict[str, Any]:
        """The server in a config."""
        return {"url": self.url}

    def family_of(self, headers: Mapping[str, str]) -> Family | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return self.authority.verify(token) if scheme == "Bearer" else None

    def refusal(self, request: Request, body: bytes) -> Response | None:
        """The answer to a request that may not come in."""
        family = self.family_of(request.headers)
        if family is None:
            return self._challenge(401, self.first_scope, 'error="invalid_token"')
        if request.method != "POST":
            return None
        message = json.loads(body)
        tool = (message.get("params") or {}).get("name") if message.get("method") == "tools/call" else None
        wanted = self.scopes.get(str(tool))
        if wanted is not None and wanted not in family.scopes:
            return self._challenge(403, wanted, 'error="insufficient_scope"')
        return None

    def _challenge(self, status: int, scope: str | None, error: str) -> Response:
        self.refused[status] += 1
        origin = self.url.removesuffix("/mcp")
        parts = [error, f'resource_metadata="{origin}{METADATA}"', *([] if scope is None else [f'scope="{scope}"'])]
        return JSONResponse({}, status, headers={"www-authenticate": f"Bearer {', '.join(parts)}"})


def _tools(server: GuardedServer) -> MCPServer[Any]:
    mcp: MCPServer[Any] = MCPServer("guarded", log_level="ERROR")

    def user(context: Context[Any, Any]) -> str:
        # It was good when it came in.
        token = (context.headers or {})["authorization"].partition(" ")[2]
        return server.authority.tokens[token].family.user

    @mcp.tool()
    async def whoami(context: Context[Any, Any]) -> str:
        """Whose token the call came with."""
        return user(context)

    @mcp.tool()
    async def wait(seconds: float, context: Context[Any, Any]) -> str:
        """The same, after a while: the token may have expired meanwhile."""
        name = user(context)
        await asyncio.sleep(seconds)
        return name

    @mcp.tool()
    async def write(context: Context[Any, Any]) -> str:
        """The same, for those with the scope for it."""
        return user(context)

    return mcp


class Door:
    """Lets requests in, or says where to get a token."""

    def __init__(self, server: GuardedServer, era: Era) -> None:
        self._server = server
        self._whole = _tools(server).streamable_http_app()
        self._app = only(era, self._whole)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._whole(scope, receive, send)
            return
        request = Request(scope, receive)
        if request.url.path == METADATA:
            document = {"resource": self._server.url, "authorization_servers": [self._server.authority.url]}
            await JSONResponse(document)(scope, receive, send)
            return
        if request.url.path != "/mcp":
            await Response(status_code=404)(scope, receive, send)
            return
        body = await request.body()
        refusal = self._server.refusal(request, body)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._server.streams += request.method == "GET"
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return messages.pop() if messages else await receive()

        await self._app(scope, again, send)


@contextlib.contextmanager
def open_guarded(authority: Authority, era: Era = Era.BOTH) -> Generator[GuardedServer]:
    """One that listens, in a thread with a loop of its own."""
    guarded = GuardedServer(authority)
    listener = listen_on("127.0.0.1", 0)
    guarded.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    servers: list[tuple[PromptServer, asyncio.AbstractEventLoop]] = []
    started = Event()

    async def serve() -> None:
        config = uvicorn.Config(Door(guarded, era), log_config=None, access_log=False, timeout_graceful_shutdown=1)
        server = PromptServer(config)
        servers.append((server, asyncio.get_running_loop()))
        started.set()
        await server.serve(sockets=[listener])

    thread = Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(LIMIT)
    try:
        yield guarded
    finally:
        server, loop = servers[0]
        loop.call_soon_threadsafe(server.end)
        thread.join(LIMIT)
