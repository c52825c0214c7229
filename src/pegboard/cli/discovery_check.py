"""A walk through what a sign-in to a server needs, for `doctor`: each step, and of the one that fails the rule that it
breaks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.config import ServerSpec
    from pegboard.oauth.authorization_server import AuthorizationServer
    from pegboard.oauth.discovery import DiscoveryStep
    from pegboard.oauth.fetching import Fetcher
    from pegboard.servers.authorization import Challenge

# What a client says first: an answer of 401 says where a sign-in begins.
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "pegboard-doctor", "version": "1"},
    },
}
_ACCEPT = {"accept": "application/json, text/event-stream"}
_PKCE_RULE = "MCP 2025-11-25: an authorization server must say that it offers PKCE with S256"


@dataclass(frozen=True, slots=True)
class SignInCheck:
    """What was found: the steps as they were taken, and what is wrong in the end, with the rule that it breaks."""

    steps: Sequence[DiscoveryStep]
    issuer: str = ""
    # Whether the server says nothing of a sign-in: it may take tokens alone.
    is_silent: bool = False
    problem: str = ""
    rule: str = ""
    advice: str = ""


def check_sign_ins(specs: Sequence[ServerSpec]) -> list[SignInCheck]:
    """Walk through the discovery of servers, all at once."""
    if not specs:
        return []
    return asyncio.run(_check_all(specs))


def finds_sign_in(name: str, path: Path) -> bool:
    """Whether a server of this config has a sign-in, though perhaps one that does not work."""
    from pegboard.config import ConfigError, read_settings

    try:
        spec = read_settings(path, os.environ).servers.get(name)
    except ConfigError:
        return False
    return spec is not None and not asyncio.run(check_sign_in(spec)).is_silent


async def _check_all(specs: Sequence[ServerSpec]) -> list[SignInCheck]:
    return list(await asyncio.gather(*map(check_sign_in, specs)))


async def check_sign_in(spec: ServerSpec) -> SignInCheck:
    """Walk through the discovery of one server, as a sign-in would."""
    from pegboard.oauth.discovery import DiscoveryFailed, discover
    from pegboard.oauth.fetching import Fetcher, FetchFailed

    steps: list[DiscoveryStep] = []
    fetcher = Fetcher.of(spec)
    try:
        found = await discover(spec, await _ask(spec, fetcher), fetcher, steps.append)
    except DiscoveryFailed as exc:
        return SignInCheck(steps, problem=str(exc), rule=exc.rule, advice="the server's owner has to correct it")
    except FetchFailed as exc:
        return SignInCheck(steps, problem=str(exc), advice="try again later, or tell the server's owner")
    server = found.authorization_server
    if found.is_fallback and steps and steps[-1].name == "endpoints" and spec.sign_in.token_endpoint is None:
        return SignInCheck(steps, server.issuer, is_silent=True)
    problem, rule, advice = _find_obstacle(spec, server)
    return SignInCheck(steps, server.issuer, problem=problem, rule=rule, advice=advice)


async def _ask(spec: ServerSpec, fetcher: Fetcher) -> Challenge | None:
    """What the server says to somebody without credentials."""
    from pegboard.oauth.fetching import FetchFailed
    from pegboard.servers.authorization import Challenge

    try:
        answer = await fetcher.post_json(spec.url or "", _HELLO, _ACCEPT)
    except FetchFailed:
        return None
    return Challenge.of(answer.status, answer.headers)


def _find_obstacle(spec: ServerSpec, server: AuthorizationServer) -> tuple[str, str, str]:
    """What stands in the way of a sign-in at an authorization server that was found: it, its rule, what to do."""
    settings = spec.sign_in
    if settings.flow == "browser" and "S256" not in (server.code_challenge_methods or ()):
        return f"{server.issuer} does not offer PKCE with S256", _PKCE_RULE, "the server's owner has to switch it on"
    if settings.flow == "device" and server.device_authorization_endpoint is None:
        return f"{server.issuer} has no device codes", "RFC 8628, section 4", 'take "flow" out of its "oauth"'
    is_known = settings.client_id is not None or settings.client_metadata_url is not None
    if not is_known and server.registration_endpoint is None and not server.client_id_metadata_document_supported:
        advice = f'register a client there, and put its id into "oauth": {{"clientId": …}} of {spec.name}'
        return f"{server.issuer} registers no clients by itself", "MCP: pre-registration", advice
    return "", "", ""
