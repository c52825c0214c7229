"""REST: the board's answers as JSON, one shape for good ones and bad."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from pegboard.auth.authenticator import Authenticator
from pegboard.auth.rule_book import RuleBook
from pegboard.auth.token import StaticToken
from pegboard.auth.token_registry import TokenRegistry
from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import REST_CLIENT, identify
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.config_watcher import ConfigFile
from pegboard.gateway.event_feed import EventFeed
from pegboard.gateway.listen import local_address
from pegboard.gateway.login_desk import LoginDesk
from pegboard.gateway.network_addresses import network_urls
from pegboard.gateway.oauth_callback import CallbackPage
from pegboard.gateway.rest import openapi
from pegboard.gateway.rest.removed_servers import RemovedServers
from pegboard.gateway.rest.router import starlette_routes
from pegboard.gateway.rest.shared_counts import SharedCounts
from pegboard.gateway.rest.table import route_table
from pegboard.mcp_registry.registry import McpRegistry, registry_address


@dataclass(frozen=True, slots=True)
class Rest:
    """Every REST route, and what they answer from."""

    board: Board
    config: ConfigFile
    # Which config it is, and the secret of its run file.
    identity: str
    token: str
    sessions: Callable[[], int]
    started: float = 0.0
    # What the gateway listens on, if it does.
    host: str | None = None
    # Who is let in, where it listens.
    authenticator: Authenticator | None = None
    # Whom to tell of a change of tokens.
    on_tokens: Callable[[], Awaitable[None]] | None = None
    # Where sign-ins begin.
    desk: LoginDesk | None = None
    logins: LoginDesk = field(init=False)
    tokens: TokenRegistry = field(init=False)
    mcp_registry: McpRegistry = field(init=False)
    feed: EventFeed = field(init=False)
    removed: RemovedServers = field(init=False, default_factory=RemovedServers)
    # Of calls, for statistics.
    call_counts: SharedCounts[dict[str, Any]] = field(init=False, default_factory=SharedCounts[dict[str, Any]])

    def __post_init__(self) -> None:
        store = self.board.storage.tokens
        tokens = TokenRegistry(store) if self.on_tokens is None else TokenRegistry(store, self.on_tokens)
        object.__setattr__(self, "tokens", tokens)
        desk = self.desk or LoginDesk(self.board, CallbackPage(self.board), self.identity)
        object.__setattr__(self, "logins", desk)
        object.__setattr__(self, "feed", EventFeed(self.board, self.config, self.sessions, self._list_tokens))
        object.__setattr__(self, "mcp_registry", McpRegistry(lambda: registry_address(self.board.settings)))

    def _list_tokens(self) -> list[StaticToken]:
        """Those that this gateway knows."""
        return [] if self.authenticator is None else self.authenticator.tokens.list_all()

    @property
    def rules(self) -> RuleBook:
        """The rules of the config as it is now."""
        return RuleBook(self.board.settings.auth, self.board.settings.read_only_tools)

    def routes(self) -> list[Route]:
        """What is served where."""
        return starlette_routes(self, (*openapi.ROUTES, *route_table()))

    def address(self, request: Request) -> str | None:
        """The address of the gateway on this machine; what a request calls it is its sender's choice."""
        server: tuple[str, int] | None = request.scope.get("server")
        return None if self.host is None or server is None else local_address(self.host, server[1])

    def network_urls(self, request: Request) -> list[str]:
        """Where other machines reach the gateway."""
        server: tuple[str, int] | None = request.scope.get("server")
        if self.host is None or server is None:
            return []
        return network_urls(self.host, server[1], self.board.settings.auth.public_url)

    def caller(self, request: Request) -> Caller:
        """Who sends a request."""
        client = identify(endpoint_of(request.scope))
        client.name = REST_CLIENT
        return Caller(client)
