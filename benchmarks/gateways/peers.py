"""Who is measured: how each is configured and started, and where it listens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.node import package

from benchmarks.gateways.envoy import envoy_binary, envoy_config
from benchmarks.gateways.processes import NotStarted, python

NODE_MODULES = Path(__file__).parents[1] / "node" / "node_modules"
# Servers by name, as every client's config has them.
Servers = Mapping[str, Mapping[str, Any]]
# Writes the config of some servers into a folder, and gives the command that listens on a port.
Prepare = Callable[[Servers, Path, int], list[str]]


@dataclass(frozen=True)
class Peer:
    """One of those measured."""

    key: str
    label: str
    prepare: Prepare | None
    # What it can never do, and why: a kind of server, an era, or a scenario.
    cannot: Mapping[str, str]
    # Whether it is reached over the HTTP+SSE transport of 2024.
    sse: bool = False

    def url(self, port: int) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{port}/mcp"


def write_config(servers: Servers, folder: Path, **more: object) -> Path:
    """The config that most of them read."""
    file = folder / "config.json"
    file.write_text(json.dumps({"mcpServers": dict(servers), **more}), "utf-8")
    return file


def pegboard(servers: Servers, folder: Path, port: int) -> list[str]:
    """Every tool is listed, and none of Pegboard's own: the others have none."""
    config = write_config(servers, folder, pegboard={"expose": "all", "toolsets": []})
    return python("pegboard", "serve", "--config", str(config), "--port", str(port))


def envoy(servers: Servers, folder: Path, port: int) -> list[str]:
    """One worker, as everybody else has one thread."""
    file = folder / "envoy.json"
    file.write_text(json.dumps(envoy_config(servers, port)), "utf-8")
    return [envoy_binary(), "-c", str(file), "--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"]


def fastmcp(servers: Servers, folder: Path, port: int) -> list[str]:
    """A proxy of a config, as the documentation makes one."""
    return python("benchmarks.gateways.fastmcp_proxy", str(write_config(servers, folder)), str(port))


def fastmcp_reused(servers: Servers, folder: Path, port: int) -> list[str]:
    """The same with a client that stays connected."""
    return [*fastmcp(servers, folder, port), "--reuse"]


def sdk(servers: Servers, folder: Path, port: int) -> list[str]:
    """Our own plain gateway on the SDK."""
    return python("benchmarks.gateways.sdk_gateway", str(write_config(servers, folder)), str(port))


def mcp_hub(servers: Servers, folder: Path, port: int) -> list[str]:
    """The npm package, on the Node of the Python environment."""
    config = write_config(servers, folder)
    try:
        command = package("mcp-hub", "dist/cli.js", NODE_MODULES)
    except RuntimeError as exc:
        raise NotStarted(str(exc)) from exc
    return [*command, "--port", str(port), "--config", str(config)]


_NO_GATEWAY = "there is no gateway"
_NO_STDIO = "reaches servers over HTTP only"
_ENVOY_MODERN = (
    "no server/discover; Mcp-Method is dropped, and forwarded if told to, but then with the client's Mcp-Name"
)

PEERS = (
    Peer("direct", "no gateway", None, {"stdio": _NO_GATEWAY, "list": _NO_GATEWAY, "start": _NO_GATEWAY}),
    Peer("pegboard", "Pegboard", pegboard, {}),
    Peer("envoy", "Envoy, one worker", envoy, {"stdio": _NO_STDIO, "start": _NO_STDIO, "modern": _ENVOY_MODERN}),
    Peer("sdk", "SDK gateway", sdk, {}),
    Peer("fastmcp", "FastMCP, as documented", fastmcp, {}),
    Peer("fastmcp_reused", "FastMCP, session reused", fastmcp_reused, {}),
    Peer("mcp_hub", "mcp-hub", mcp_hub, {"modern": "only the HTTP+SSE transport of 2024"}, sse=True),
)


def peers(only: str | None) -> list[Peer]:
    """Those that were asked for."""
    if only is None:
        return list(PEERS)
    keys = only.split(",")
    unknown = set(keys) - {peer.key for peer in PEERS}
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(p.key for p in PEERS)}")
    return [peer for peer in PEERS if peer.key in keys]


__all__ = ["PEERS", "NotStarted", "Peer", "Servers", "peers"]
