"""Who is measured: how each is configured and started, and where it listens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tests.node import package

from benchmarks.gateways.credentials import AUDIENCE, Issuer, add_token, issuer
from benchmarks.gateways.envoy import envoy_binary, envoy_config
from benchmarks.gateways.processes import NotStarted, python
from pegboard.config import Settings

CONFIG = "config.json"
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
    # The token that its clients bring, once its config is in a folder.
    bearer: Callable[[Path], str] | None = None

    def url(self, port: int) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{port}/mcp"


def write_config(servers: Servers, folder: Path, **more: object) -> Path:
    """The config that most of them read."""
    file = folder / CONFIG
    file.write_text(json.dumps({"mcpServers": dict(servers), **more}), "utf-8")
    return file


def pegboard(servers: Servers, folder: Path, port: int, **own: object) -> list[str]:
    """Every tool is listed, and none of Pegboard's own: the others have none. Nobody writes down what is called."""
    config = write_config(servers, folder, pegboard={"expose": "all", "toolsets": [], "audit": False, **own})
    return python("pegboard", "serve", "--config", str(config), "--port", str(port))


def pegboard_token(servers: Servers, folder: Path, port: int) -> list[str]:
    """Everybody has to bring a token."""
    return pegboard(servers, folder, port, auth={"required": True})


def pegboard_jwt(servers: Servers, folder: Path, port: int) -> list[str]:
    """The same, and an issuer's JWTs are taken."""
    known = {"issuer": issuer().url, "jwksUrl": issuer().jwks_url, "audience": AUDIENCE}
    auth = {"required": True, "issuers": [known], "rules": [{"who": ["sub:ada"]}]}
    return pegboard(servers, folder, port, auth=auth)


def pegboard_audit(servers: Servers, folder: Path, port: int) -> list[str]:
    """Every call is written down."""
    if "audit" not in {field.name for field in fields(Settings)}:
        raise NotStarted("this Pegboard has no audit")
    return pegboard(servers, folder, port, audit=True)


def envoy_jwt(servers: Servers, folder: Path, port: int) -> list[str]:
    """With a token that has to be verified, by keys that it has."""
    return envoy(servers, folder, port, issuer())


def envoy(servers: Servers, folder: Path, port: int, trusted: Issuer | None = None) -> list[str]:
    """One worker, as everybody else has one thread."""
    file = folder / "envoy.json"
    file.write_text(json.dumps(envoy_config(servers, port, trusted)), "utf-8")
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

_SAME = "as without"
_CALLS_ONLY = {"list": _SAME, "start": _SAME}

PEERS = (
    Peer("direct", "no gateway", None, {"stdio": _NO_GATEWAY, "list": _NO_GATEWAY, "start": _NO_GATEWAY}),
    Peer("pegboard", "Pegboard", pegboard, {}),
    Peer(
        "pegboard_token",
        "Pegboard, static token",
        pegboard_token,
        _CALLS_ONLY,
        bearer=lambda folder: add_token(folder / CONFIG, folder),
    ),
    Peer("pegboard_jwt", "Pegboard, JWT", pegboard_jwt, _CALLS_ONLY, bearer=lambda _: issuer().token),
    Peer("pegboard_audit", "Pegboard, audit", pegboard_audit, _CALLS_ONLY),
    Peer("envoy", "Envoy, one worker", envoy, {"stdio": _NO_STDIO, "start": _NO_STDIO, "modern": _ENVOY_MODERN}),
    Peer(
        "envoy_jwt",
        "Envoy, one worker, JWT",
        envoy_jwt,
        {**_CALLS_ONLY, "stdio": _NO_STDIO, "modern": _ENVOY_MODERN},
        bearer=lambda _: issuer().token,
    ),
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
