"""Protected servers that others wrote, each with an authorization server of its own habits."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

from harness import LIMIT
from node import NODE_MODULES, node

EXAMPLE = (
    NODE_MODULES / "@modelcontextprotocol" / "sdk" / "dist" / "esm" / "examples" / "server" / "simpleStreamableHttp.js"
)
FASTMCP = Path(__file__).parent / "fastmcp_server.py"


@contextlib.contextmanager
def open_typescript(*options: str) -> Generator[str]:
    """The TypeScript SDK's example: an issuer with a slash at its end, no `iss`, no refresh tokens."""
    port, other = free_port(), free_port()
    environment = {**os.environ, "MCP_PORT": str(port), "MCP_AUTH_PORT": str(other)}
    with _process([str(node()), str(EXAMPLE), "--oauth", *options], environment, (port, other)):
        yield f"http://localhost:{port}/mcp"


@contextlib.contextmanager
def open_fastmcp() -> Generator[str]:
    """FastMCP's own authorization server, at the same address as the server, with refresh tokens."""
    port = free_port()
    with _process([sys.executable, str(FASTMCP), str(port)], dict(os.environ), (port,)):
        yield f"http://127.0.0.1:{port}/mcp"


def free_port() -> int:
    """A port for a program that cannot choose one by itself."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def _process(command: list[str], environment: dict[str, str], ports: tuple[int, ...]) -> Generator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        for port in ports:
            _await_port(process, port)
        yield
    finally:
        process.kill()
        process.wait(LIMIT)


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        assert process.poll() is None, "the server did not start"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")
