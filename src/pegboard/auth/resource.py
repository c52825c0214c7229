"""Resource identifiers (RFC 8707): what an authorization server calls this gateway in the tokens that are for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pegboard.host_names import split_host
from pegboard.names import is_board_name

_MCP = "/mcp"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def base_url(scope: Mapping[str, Any], public_url: str) -> str:
    """What whoever sends a request calls this gateway, without a path of ours; its owner's word goes first."""
    return public_url or _own_address(scope["scheme"], *_host_of(scope))


def resource_path(path: str) -> str:
    """The path of the resource that an address is part of: a board, or all of MCP."""
    board = path.removeprefix(f"{_MCP}/")
    return path if board != path and is_board_name(board) else _MCP


def audiences_of(scope: Mapping[str, Any], public_url: str) -> frozenset[str]:
    """The resources that a request's token may be for: the gateway, its MCP address, and the board that is asked for.

    A token for one board is none for another. Where nobody has said what others call this gateway, the address counts
    that the request came to; whether a proxy in front of it speaks TLS makes no difference.
    """
    name, port = ("", None) if public_url else _host_of(scope)
    return _audiences(public_url, name, port, resource_path(scope["path"]))


@lru_cache(maxsize=256)
def _audiences(public_url: str, name: str, port: int | None, path: str) -> frozenset[str]:
    bases = [public_url] if public_url else [_own_address(scheme, name, port) for scheme in _DEFAULT_PORTS]
    return frozenset(f"{base}{end}" for base in bases for end in ("", "/", _MCP, f"{_MCP}/", path))


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
