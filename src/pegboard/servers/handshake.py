"""The handshake: finds out a server's era by its answers, never by a timeout, and opens the conversation in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.exactjson import as_list, as_object
from pegboard.protocol.eras import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    MODERN_VERSIONS,
    SERVER_INFO_KEY,
    UNSUPPORTED_VERSION,
    Era,
    modern_params,
)
from pegboard.protocol.headers import request_headers
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.errors import RpcError
from pegboard.servers.http.client import WrongStatus
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Message
from pegboard.version import CLIENT_INFO

# A server that does not answer a question it does not know is asked in the old way as well, after this long.
SILENCE = 3.0
# These statuses say "not like this" to the question for the era. Others (5xx, 401) say nothing of it.
# Characters of what a server says about its use.
_MAX_INSTRUCTIONS = 64 * 1024
_NOT_MODERN = frozenset({400, 404, 405, 406, 415, 422, 501})


@dataclass(frozen=True, slots=True)
class ServerHello:
    """What a server said of itself."""

    era: Era
    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    server_info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instructions: str | None = None


async def negotiate(peer: JsonRpcPeer, known: Era | None, capabilities: Mapping[str, Any]) -> ServerHello:
    """Greet a server in its era: the one known from before, or the one that its answers show."""
    if known == "handshake":
        try:
            return await _initialize(peer, capabilities)
        except (RpcError, WrongStatus) as refusal:
            # It may have moved on since it was last seen.
            answer = await _discover_if_modern(peer, capabilities)
            if answer is None or not _speaks_modern(answer):
                raise refusal from None
            return _modern(answer)
    if peer.transport.is_duplex:
        return await _ask_both_ways(peer, capabilities)
    try:
        answer = await _discover(peer, capabilities)
    except RpcError as exc:
        if exc.refusal is not None:
            raise exc.refusal from exc
        _refuse_disjoint(exc)
        return await _initialize(peer, capabilities)
    except WrongStatus as exc:
        if exc.status not in _NOT_MODERN:
            raise
        return await _initialize(peer, capabilities)
    return _modern(answer) if _speaks_modern(answer) else await _initialize(peer, capabilities)


async def _ask_both_ways(peer: JsonRpcPeer, capabilities: Mapping[str, Any]) -> ServerHello:
    """Over a pipe: ask the new way; at an error, or after a silence, also the old way. The answers decide."""
    asked = asyncio.ensure_future(_discover(peer, capabilities))
    try:
        done, _ = await asyncio.wait({asked}, timeout=SILENCE)
        if done and not asked.exception() and _speaks_modern(asked.result()):
            return _modern(asked.result())
        if done and isinstance(exc := asked.exception(), RpcError):
            _refuse_disjoint(exc)
        elif done and (exc := asked.exception()):
            raise exc
        try:
            return await _first_good(asked, peer, capabilities)
        except RpcError as exc:
            if exc.code != UNSUPPORTED_VERSION:
                raise
            return _modern(await asked)
    finally:
        asked.cancel()


async def _first_good(
    asked: asyncio.Future[Message], peer: JsonRpcPeer, capabilities: Mapping[str, Any]
) -> ServerHello:
    """Whichever question is answered first with something of use."""
    handshake = asyncio.ensure_future(_initialize(peer, capabilities))
    try:
        while not handshake.done():
            await asyncio.wait({handshake, *(() if asked.done() else (asked,))}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and not asked.cancelled() and not asked.exception() and _speaks_modern(asked.result()):
                return _modern(asked.result())
        return await handshake
    finally:
        handshake.cancel()


async def _discover(peer: JsonRpcPeer, capabilities: Mapping[str, Any]) -> Message:
    params = modern_params(None, version=LATEST_MODERN, client_info=CLIENT_INFO, capabilities=capabilities)
    headers = request_headers(LATEST_MODERN, "server/discover", params)
    return await peer.request("server/discover", params, timeout=None, headers=headers, cancellable=False)


async def _discover_if_modern(peer: JsonRpcPeer, capabilities: Mapping[str, Any]) -> Message | None:
    try:
        return await _discover(peer, capabilities)
    except (RpcError, WrongStatus):
        return None


async def _initialize(peer: JsonRpcPeer, capabilities: Mapping[str, Any]) -> ServerHello:
    params = {"protocolVersion": LATEST_HANDSHAKE, "capabilities": dict(capabilities), "clientInfo": dict(CLIENT_INFO)}
    answer = await peer.request("initialize", params, timeout=None, cancellable=False)
    version = answer.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        raise ToolFailure(
            ToolErrorCode.UNAVAILABLE,
            f"{peer.label} speaks protocol version {version!r}, which Pegboard does not",
            retryable=False,
        )
    return ServerHello(
        "handshake", str(version), _object(answer, "capabilities"), _object(answer, "serverInfo"), _text(answer)
    )


def _modern(answer: Message) -> ServerHello:
    versions = as_list(answer.get("supportedVersions")) or []
    version = next(v for v in reversed(MODERN_VERSIONS) if v in versions)
    info = _object(_object(answer, "_meta"), SERVER_INFO_KEY)
    return ServerHello("modern", version, _object(answer, "capabilities"), info, _text(answer))


def _speaks_modern(answer: Message) -> bool:
    versions = as_list(answer.get("supportedVersions")) or []
    return any(version in versions for version in MODERN_VERSIONS)


def _refuse_disjoint(exc: RpcError) -> None:
    """A server that names the versions it speaks, and none of them is ours, will not be helped by a handshake."""
    supported = as_list((as_object(exc.data) or {}).get("supported"))
    if exc.code == UNSUPPORTED_VERSION and supported and not any(v in HANDSHAKE_VERSIONS for v in supported):
        raise exc


def _object(answer: Mapping[str, Any], key: str) -> dict[str, Any]:
    return as_object(answer.get(key)) or {}


def _text(answer: Message) -> str | None:
    value = answer.get("instructions")
    return value[:_MAX_INSTRUCTIONS] if isinstance(value, str) and value.strip() else None
