"""Resource identifiers (RFC 8707): what an authorization server calls this gateway in the tokens that are for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pegboard.clients.locality import is_remote
from pegboard.host_names import host_name, is_loopback, split_host
from pegboard.names import is_board_name

_MCP = "/mcp"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def base_url(scope: Mapping[str, Any], public_url: str) -> str:
    """What whoever sends a request calls this gateway, without a path of ours; its owner's word goes first."""
    return public_url or _own_address(scope["scheme"], *_host_of(scope))


def resource_path(path: str) -> str:
    """The path of the resource that an address is part of: a board, or all of MCP."""
    board = path.removeprefix(f"{_MCP}/")
    return path if board != path and is_board_name(board) else _MCP


def audiences_of(scope: Mapping[str, Any], public_url: str, names: frozenset[str]) -> frozenset[str]:
    """The resources that a request's token may be for: the gateway, its MCP address, and the board that is asked for.

    A token for one board is none for another. Where nobody has said what others call this gateway, it is what the
    gateway knows of itself: the address that the connection came in on, and its names. What a request says in its
    `Host` does not count: whoever has a token for another gateway can say that one's. Whether a proxy in front of it
    speaks TLS makes no difference.
    """
    path = resource_path(scope["path"])
    if public_url:
        return _audiences(frozenset({public_url}), path)
    address, port = scope.get("server") or ("", None)
    return _audiences(_own_addresses(host_name(address), port, is_remote(scope), names), path)


@lru_cache(maxsize=256)
def _audiences(bases: frozenset[str], path: str) -> frozenset[str]:
    return frozenset(f"{base}{end}" for base in bases for end in ("", "/", _MCP, f"{_MCP}/", path))


@lru_cache(maxsize=256)
def _own_addresses(address: str, port: int | None, remote: bool, names: frozenset[str]) -> frozenset[str]:
    """What this gateway is called; a proxy in front of it has the usual port."""
    own = {address} if address else set[str]()
    if is_loopback(address):
        # Every machine has these: they are this one's for its own clients only.
        own = set[str]() if remote else own | _LOOPBACK
    places = [*((name, port) for name in own | names), *((name, None) for name in names)]
    return frozenset(_own_address(scheme, name, port) for scheme in _DEFAULT_PORTS for name, port in places)


def _own_address(scheme: str, name: str, port: int | None) -> str:
    host = f"[{name}]" if ":" in name else name
    return f"{scheme}://{host}" if port in {None, _DEFAULT_PORTS.get(scheme)} else f"{scheme}://{host}:{port}"


def _host_of(scope: Mapping[str, Any]) -> tuple[str, int | None]:
    """The host that a request names, which the guard has looked at; HTTP/1.0 need not name one."""
    for name, value in scope["headers"]:
        if name == b"host" and (parts := split_host(value.decode("latin-1"))) is not None:
            return parts
    server: tuple[str, int | None] = scope.get("server") or ("localhost", None)
    return server
