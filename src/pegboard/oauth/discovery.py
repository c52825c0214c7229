"""Discovery: from a server that asks for a sign-in to its authorization server, by the rules of all MCP versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pegboard.config import ServerSpec
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher
from pegboard.result import ToolErrorCode, ToolFailure

if TYPE_CHECKING:
    from pegboard.servers.authorization import Challenge


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """One thing that was tried, for whoever wants to know where it went wrong."""

    name: Literal["resource metadata", "authorization server metadata", "endpoints"]
    url: str
    # `used`, or why not.
    outcome: str
    is_fine: bool
    # Which rule it keeps or breaks.
    rule: str


@dataclass(frozen=True, slots=True)
class OAuthDiscovery:
    """What was found out."""

    # The value of the `resource` parameter (RFC 8707); `None`: it is left out.
    resource: str | None
    # What the resource metadata list; `None`: nothing.
    resource_scopes: tuple[str, ...] | None
    authorization_server: AuthorizationServer
    # There is no resource metadata: the rules of 2025-03-26 apply.
    is_fallback: bool = False


class DiscoveryFailed(ToolFailure):
    """The authorization server cannot be used, or found; `rule` is the one that is broken."""

    def __init__(self, message: str, rule: str, url: str = "") -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=False)
        self.rule = rule
        self.url = url


async def discover(
    spec: ServerSpec,
    challenge: Challenge | None,
    fetcher: Fetcher,
    on_step: Callable[[DiscoveryStep], None] | None = None,
) -> OAuthDiscovery:
    """Find the authorization server of a server. Raises `DiscoveryFailed`, or `FetchFailed` if nobody can say now."""
    raise NotImplementedError
