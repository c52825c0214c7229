"""Fetching from addresses that a server, or an authorization server, names: bounded in time, size and place (SSRF).

Where an address may lead is decided by where the server of the config is: one outside never leads to addresses of this
machine or its networks. It is checked on the very address that is connected to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.config.address import url_problem
from pegboard.host_names import host_name, is_loopback_name
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.http.client import REDIRECTS, SAME_METHOD, exchange, is_behind_proxy, make_client, read_start
from pegboard.servers.http.origin import Origin
from pegboard.servers.http.zones import Zone, resolve_zones, zone_of

MAX_BYTES = 256 * 1024
# For all of one exchange, in seconds.
TIME_LIMIT = 10.0
_ACCEPT = {"accept": "application/json"}
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_JSON = {"content-type": "application/json"}
_WHERE = {
    Zone.PRIVATE: "in a private network",
    Zone.LOOPBACK: "of this machine",
    Zone.LINK_LOCAL: "of the local link",
    Zone.NOWHERE: "where no server can be",
}


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """An answer of any status; its members are empty if it is no JSON object. Both may hold secrets."""

    status: int
    members: Mapping[str, Any]
    headers: Mapping[str, str]
    # Why it is no JSON object, if it is none.
    problem: str = ""


class FetchFailed(ToolFailure):
    """There is no answer: nobody is there (`is_away`: trying again later may help), or one that cannot be used, or the
    address is none that may be asked."""

    def __init__(self, message: str, *, is_away: bool = False) -> None:
        code = ToolErrorCode.UNAVAILABLE if is_away else ToolErrorCode.INVALID_INPUT
        super().__init__(code, message, retryable=is_away)
        self.is_away = is_away


class _Border:
    """Asked about each address before it is connected to; remembers what it kept out."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._refused: Zone | None = None
        self._has_admitted = False

    @property
    def refusal(self) -> Zone | None:
        """What was kept out, if nothing was let in."""
        return None if self._has_admitted else self._refused

    def admits(self, address: str) -> bool:
        return self.admits_zone(zone_of(address))

    def admits_zone(self, zone: Zone) -> bool:
        is_admitted = self._zone.may_lead_to(zone)
        self._has_admitted |= is_admitted
        if not is_admitted:
            self._refused = zone
        return is_admitted


class Fetcher:
    """Fetches for the sign-in to one server, whose address says where it may lead."""

    def __init__(self, server_url: str, *, allow_http: bool = False, named: Collection[str] = ()) -> None:
        """`named`: addresses of the config itself, where the server did not lead to."""
        self._origin = Origin.of(server_url)
        self._allow_http = allow_http
        self._named = tuple(Origin.of(each) for each in named)
        # Where the server is, once that was found out.
        self._zone: Zone | None = None

    @classmethod
    def of(cls, spec: ServerSpec) -> Fetcher:
        """The one for a server of the config."""
        settings = spec.sign_in
        return cls(spec.url or "", allow_http=settings.allow_http, named=tuple(settings.addresses))

    async def get_json(self, url: str) -> JsonAnswer:
        """What stands at an address. Raises `FetchFailed`."""
        return await self._fetch("GET", url, _ACCEPT, None)

    async def post_form(
        self, url: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> JsonAnswer:
        """The answer to a form. Raises `FetchFailed`."""
        return await self._fetch("POST", url, {**_ACCEPT, **_FORM, **(headers or {})}, urlencode(fields).encode())

    async def post_json(
        self, url: str, members: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> JsonAnswer:
        """The answer to a JSON object. Raises `FetchFailed`."""
        return await self._fetch("POST", url, {**_ACCEPT, **_JSON, **(headers or {})}, exactjson.dump(dict(members)))

    def address_problem(self, url: str) -> str | None:
        """Why an address may not be asked, whatever machine it is on; `None` if it may."""
        if problem := url_problem(url):
            return problem
        parts = urlsplit(url)
        if parts.username is not None:
            return "must not have a name or a password in it"
        if parts.scheme == "https" or self._allow_http:
            return None
        is_here = is_loopback_name(host_name(parts.hostname or "")) and is_loopback_name(host_name(self._origin.host))
        return None if is_here else "must begin with https://"

    async def _fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> JsonAnswer:
        if problem := self.address_problem(url):
            raise FetchFailed(f"{_display(url)} {problem}")
        try:
            origin = Origin.of(url)
        except ToolFailure:
            raise FetchFailed(f"{_display(url)} is no address that can be used") from None
        try:
            async with asyncio.timeout(TIME_LIMIT):
                return await self._exchange(origin, method, url, headers, body)
        except TimeoutError:
            raise FetchFailed(f"{origin.authority} did not answer within {TIME_LIMIT:g} s", is_away=True) from None

    async def _exchange(
        self, origin: Origin, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> JsonAnswer:
        is_named = any(each.holds(url) for each in self._named)
        border = None if is_named else _Border(await self._find_zone())
        if border is not None and is_behind_proxy(origin):
            await _check_name(origin, border)
        spec = ServerSpec(name="fetch", given_name="fetch", transport="http", url=url, connect_timeout=TIME_LIMIT)
        client = make_client(spec, border.admits if border is not None else None)
        follow = REDIRECTS if method == "GET" else SAME_METHOD
        try:
            async with exchange(client, origin.authority, method, url, headers, body, follow=follow) as response:
                content = await read_start(response, MAX_BYTES)
                status, received = response.status_code, response.headers
        except ToolFailure as exc:
            if border is not None and border.refusal is not None:
                raise _refusal(origin, border.refusal) from None
            raise FetchFailed(exc.error.message, is_away=exc.error.retryable) from None
        finally:
            await client.close()
        if len(content) > MAX_BYTES:
            raise FetchFailed(f"{origin.authority} sent more than {MAX_BYTES:,} bytes", is_away=True)
        try:
            return JsonAnswer(status, exactjson.parse_object(content), received)
        except exactjson.NotJson:
            return JsonAnswer(status, {}, received, "it is not a JSON object")

    async def _find_zone(self) -> Zone:
        if self._zone is None:
            self._zone = await _zone_of_server(self._origin)
        return self._zone


async def _zone_of_server(origin: Origin) -> Zone:
    """Where the server of the config is.

    Whoever owns its name decides where that leads, so a name alone brings nobody further inside than the Internet: the
    server has to answer there, too, and over TLS that takes its certificate.
    """
    if is_loopback_name(host_name(origin.host)):
        return Zone.LOOPBACK
    try:
        zone = min(await resolve_zones(origin.host, origin.port), default=Zone.PUBLIC)
    except OSError:
        return Zone.PUBLIC
    if zone is Zone.PUBLIC or is_behind_proxy(origin):
        return zone
    url = f"{origin.scheme}://{origin.authority}/"
    spec = ServerSpec(name="fetch", given_name="fetch", transport="http", url=url, connect_timeout=TIME_LIMIT)
    client = make_client(spec, lambda address: zone_of(address) is zone)
    try:
        async with client.stream("GET", url, _ACCEPT, None):
            return zone
    except Exception:
        return Zone.PUBLIC
    finally:
        await client.close()


async def _check_name(origin: Origin, border: _Border) -> None:
    """As far as it can be said from here: a proxy may know other addresses of that name."""
    try:
        zones = await resolve_zones(origin.host, origin.port)
    except OSError:
        return
    # Which of them the proxy takes is not ours to say: one is enough.
    for zone in zones:
        if not border.admits_zone(zone):
            raise _refusal(origin, zone)


def _refusal(origin: Origin, zone: Zone) -> FetchFailed:
    return FetchFailed(
        f"{origin.authority} has an address {_WHERE.get(zone, 'elsewhere')}, where nobody outside may lead: if it is "
        "the right one, the config has to name it"
    )


def _display(url: str) -> str:
    """An address as a message may have it: nothing behind its path."""
    shown = url.partition("?")[0].partition("#")[0][:200]
    scheme, slashes, rest = shown.partition("//")
    authority, slash, path = rest.partition("/")
    return repr(f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}")
