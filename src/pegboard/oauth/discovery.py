"""Discovery: from a server that asks for a sign-in to its authorization server, by the rules of all MCP versions.

Resource metadata first (where the challenge says, then at the well-known addresses), then the metadata of the
authorization server that they name. A server without any of these is one of 2025-03-26: it is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.oauth.authorization_server import AuthorizationServer, metadata_addresses
from pegboard.oauth.fetching import Fetcher, FetchFailed
from pegboard.oauth.resource_metadata import ServerResource, covers, resource_metadata_addresses
from pegboard.result import ToolErrorCode, ToolFailure

if TYPE_CHECKING:
    from pegboard.servers.authorization import Challenge

StepName = Literal["resource metadata", "authorization server metadata", "endpoints"]
OnStep = Callable[["DiscoveryStep"], None]

RESOURCE_RULE = "RFC 9728, section 3.3: the resource of the metadata must be the server that was asked"
FIND_RESOURCE_RULE = "RFC 9728, section 3: a server publishes its protected resource metadata"
ISSUER_RULE = "RFC 8414, section 3.3: the issuer of the metadata must be the one that they were looked up for, exactly"
FIND_SERVER_RULE = "RFC 8414, section 3: an authorization server publishes its metadata"
ENDPOINT_RULE = "OAuth 2.1, section 1.5: the endpoints of an authorization server are https addresses"
# More authorization servers than that are not tried.
_MOST_SERVERS = 5


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """One thing that was tried, for whoever wants to know where it went wrong."""

    name: StepName
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
    # Nor is there any of an authorization server: its endpoints are where they would be, if it has any.
    is_guess: bool = False


class DiscoveryFailed(ToolFailure):
    """The authorization server cannot be used, or found; `rule` is the one that is broken."""

    def __init__(self, message: str, rule: str, url: str = "") -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=False)
        self.rule = rule
        self.url = url


async def discover(
    spec: ServerSpec, challenge: Challenge | None, fetcher: Fetcher, on_step: OnStep | None = None
) -> OAuthDiscovery:
    """Find the authorization server of a server. Raises `DiscoveryFailed`, or `FetchFailed` if nobody can say now."""
    walk = _DiscoveryWalk(spec.url or "", spec.sign_in, fetcher, on_step)
    found = await walk.find_resource(challenge.resource_metadata if challenge is not None else None)
    server = await walk.find_server(found)
    setting = spec.sign_in.resource
    resource = found.resource if found is not None and setting is None else setting or None
    scopes = found.scopes if found is not None else None
    return OAuthDiscovery(resource, scopes, server, is_fallback=found is None, is_guess=walk.is_guess)


async def discover_issuer(issuer: str, fetcher: Fetcher, on_step: OnStep | None = None) -> AuthorizationServer:
    """The authorization server of an issuer that is known, such as an identity provider. Raises as `discover` does."""
    return await _DiscoveryWalk(issuer, OAuthSettings(), fetcher, on_step).find_by_issuer(issuer)


class _Unfit(Exception):  # noqa: N818  it says what a document is
    """A document that cannot be used."""

    def __init__(self, outcome: str, rule: str, *, is_away: bool = False) -> None:
        super().__init__(outcome)
        self.rule = rule
        self.is_away = is_away


class _DiscoveryWalk:
    """One discovery, step by step."""

    def __init__(self, server_url: str, settings: OAuthSettings, fetcher: Fetcher, on_step: OnStep | None) -> None:
        self._server_url = server_url
        self._settings = settings
        self._fetcher = fetcher
        self._on_step = on_step
        # What went wrong at the address that the server itself named.
        self._said_trouble: DiscoveryFailed | None = None
        self.is_guess = False

    async def find_resource(self, said: str | None) -> ServerResource | None:
        """The server's resource metadata; `None` if it has none."""
        away: FetchFailed | None = None
        for url in resource_metadata_addresses(self._server_url, said):
            try:
                found = self._read_resource(await self._read(url, FIND_RESOURCE_RULE))
            except _Unfit as exc:
                self._tell("resource metadata", url, str(exc), exc.rule, is_fine=False)
                failure = self._failure("resource metadata", url, exc)
                if exc.rule == RESOURCE_RULE:
                    # Whoever names another resource would have us get a token for that one.
                    raise failure from None
                if isinstance(failure, FetchFailed):
                    away = away or failure
                elif url == said:
                    self._said_trouble = failure
            else:
                self._tell("resource metadata", url, "used", RESOURCE_RULE)
                return found
        if away is not None:
            raise away
        return None

    async def find_server(self, found: ServerResource | None) -> AuthorizationServer:
        """The authorization server: as the config has it, else as the metadata do, else the server itself."""
        settings = self._settings
        if settings.token_endpoint is not None:
            return self._use_endpoints(settings.token_endpoint)
        if settings.auth_server_metadata_url is not None:
            return await self._find_at(settings.auth_server_metadata_url)
        if settings.issuer is not None:
            return await self.find_by_issuer(settings.issuer)
        if found is None or not found.authorization_servers:
            return await self._find_at_origin()
        first: ToolFailure | None = None
        for issuer in found.authorization_servers[:_MOST_SERVERS]:
            try:
                return await self.find_by_issuer(issuer)
            except (DiscoveryFailed, FetchFailed) as exc:
                first = first or exc
        assert first is not None
        raise first

    async def find_by_issuer(self, issuer: str) -> AuthorizationServer:
        """The authorization server of an issuer, by its metadata."""
        if problem := self._issuer_problem(issuer):
            self._tell("authorization server metadata", issuer, problem, ENDPOINT_RULE, is_fine=False)
            raise DiscoveryFailed(f"the authorization server {issuer[:200]!r} {problem}", ENDPOINT_RULE, issuer)
        failures: list[ToolFailure] = []
        for url in metadata_addresses(issuer):
            server = await self._try_metadata(url, issuer, failures)
            if server is not None:
                return server
        raise _worst(failures)

    async def _find_at_origin(self) -> AuthorizationServer:
        """By the rules of 2025-03-26: metadata at the server's own origin, or endpoints with fixed names there."""
        parts = urlsplit(self._server_url)
        origin = f"{parts.scheme}://{parts.netloc}"
        failures: list[ToolFailure] = []
        for url in metadata_addresses(origin):
            server = await self._try_metadata(url, origin, failures, is_legacy=True)
            if server is not None:
                return server
        worst = _worst(failures)
        if isinstance(worst, FetchFailed) or worst.rule != FIND_SERVER_RULE:
            raise worst
        if self._said_trouble is not None:
            raise self._said_trouble
        server = self._require_endpoints(AuthorizationServer.at_origin(origin))
        self.is_guess = True
        self._tell("endpoints", origin, "used", "MCP 2025-03-26: without metadata the endpoints are at the origin")
        return server

    async def _find_at(self, url: str) -> AuthorizationServer:
        """By the address of its metadata, which the config names."""
        failures: list[ToolFailure] = []
        server = await self._try_metadata(url, self._settings.issuer, failures)
        if server is None:
            raise _worst(failures)
        return server

    def _use_endpoints(self, token_endpoint: str) -> AuthorizationServer:
        """By the endpoints that the config names."""
        parts = urlsplit(token_endpoint)
        server = AuthorizationServer(
            issuer=self._settings.issuer or f"{parts.scheme}://{parts.netloc}",
            token_endpoint=token_endpoint,
            authorization_endpoint=self._settings.authorization_endpoint,
            # Nobody says what it offers: it is asked as it must be.
            code_challenge_methods=("S256",),
        )
        server = self._require_endpoints(server)
        self._tell("endpoints", token_endpoint, "used", "the config names them")
        return server

    def _require_endpoints(self, server: AuthorizationServer) -> AuthorizationServer:
        """The server, if there are no others to try. Raises `DiscoveryFailed`."""
        try:
            return self._check_endpoints(server)
        except _Unfit as exc:
            self._tell("endpoints", server.issuer, str(exc), exc.rule, is_fine=False)
            raise DiscoveryFailed(f"{server.issuer} cannot be used: {exc}", exc.rule, server.issuer) from None

    async def _try_metadata(
        self, url: str, issuer: str | None, failures: list[ToolFailure], *, is_legacy: bool = False
    ) -> AuthorizationServer | None:
        name: StepName = "authorization server metadata"
        try:
            members = await self._read(url, FIND_SERVER_RULE)
            server = self._check_endpoints(_read_server(members, issuer, is_legacy=is_legacy))
        except _Unfit as exc:
            self._tell(name, url, str(exc), exc.rule, is_fine=False)
            failures.append(self._failure(name, url, exc))
            return None
        self._tell(name, url, "used", ISSUER_RULE)
        return server

    async def _read(self, url: str, rule: str) -> Mapping[str, Any]:
        try:
            answer = await self._fetcher.get_json(url)
        except FetchFailed as exc:
            raise _Unfit(str(exc), rule, is_away=exc.is_away) from None
        if answer.status != 200:
            is_away = answer.status in {408, 425, 429} or answer.status >= 500
            raise _Unfit(f"HTTP {answer.status}", rule, is_away=is_away)
        if answer.problem:
            raise _Unfit(answer.problem, rule)
        return answer.members

    def _read_resource(self, members: Mapping[str, Any]) -> ServerResource:
        found = ServerResource.of(members)
        if found is None:
            raise _Unfit("it names no resource", FIND_RESOURCE_RULE)
        if not covers(found.resource, self._server_url) and found.resource != self._settings.resource:
            raise _Unfit(f"it is about another resource, {found.resource[:200]!r}", RESOURCE_RULE)
        return found

    def _check_endpoints(self, server: AuthorizationServer) -> AuthorizationServer:
        """The server without those endpoints that may not be asked; there is none without the first two."""
        problem_of = self._fetcher.address_problem
        for endpoint in filter(None, (server.token_endpoint, server.authorization_endpoint)):
            if problem := problem_of(endpoint):
                raise _Unfit(f"its endpoint {endpoint[:200]!r} {problem}", ENDPOINT_RULE)
        optional = ("registration_endpoint", "revocation_endpoint", "device_authorization_endpoint")
        dropped = {key: None for key in optional if (url := getattr(server, key)) is not None and problem_of(url)}
        return replace(server, **dropped)

    def _issuer_problem(self, issuer: str) -> str | None:
        if problem := self._fetcher.address_problem(issuer):
            return problem
        parts = urlsplit(issuer)
        return "must have no query and no fragment" if parts.query or parts.fragment else None

    def _tell(self, name: StepName, url: str, outcome: str, rule: str, *, is_fine: bool = True) -> None:
        if self._on_step is not None:
            self._on_step(DiscoveryStep(name, url, outcome, is_fine, rule))

    def _failure(self, name: str, url: str, exc: _Unfit) -> FetchFailed | DiscoveryFailed:
        message = f"the {name} at {url[:200]} cannot be used: {exc}"
        return FetchFailed(message, is_away=True) if exc.is_away else DiscoveryFailed(message, exc.rule, url)


def _read_server(members: Mapping[str, Any], issuer: str | None, *, is_legacy: bool) -> AuthorizationServer:
    said = members.get("issuer")
    if not isinstance(said, str) or not said:
        if not is_legacy:
            raise _Unfit("it names no issuer", ISSUER_RULE)
        said = issuer
    if issuer is not None and not is_same_issuer(said or "", issuer):
        if not is_legacy:
            raise _Unfit(f"it is about another issuer, {(said or '')[:200]!r}", ISSUER_RULE)
        # Servers of that version call themselves as they like, but their word gets them nobody else's credentials.
        said = issuer
    server = AuthorizationServer.of(said or "", members)
    if server is None:
        raise _Unfit("it names no token endpoint", FIND_SERVER_RULE)
    return server


def is_same_issuer(one: str, other: str) -> bool:
    """Whether two texts name one issuer: the same, exactly, but for the slash that an origin may end with, since both
    are the same address (RFC 3986, section 6.2.3) and frameworks add it."""
    shorter, longer = sorted((one, other), key=len)
    return one == other or (longer == f"{shorter}/" and not urlsplit(shorter).path)


def _worst(failures: list[ToolFailure]) -> DiscoveryFailed | FetchFailed:
    """The failure that says most: a broken rule, then somebody who is away, then something that is not there."""
    broken = [each for each in failures if isinstance(each, DiscoveryFailed) and each.rule != FIND_SERVER_RULE]
    away = [each for each in failures if isinstance(each, FetchFailed)]
    found = [*broken, *away, *failures][0]
    assert isinstance(found, (DiscoveryFailed, FetchFailed))
    return found
