"""A FastMCP proxy of a config over HTTP: `python -m benchmarks.gateways.fastmcp_proxy CONFIG PORT [--reuse]`."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any


async def serve(config: dict[str, Any], port: int, reuse: bool) -> None:
    """Serve as documented; or, to reuse one session, with a client that is connected before."""
    from fastmcp import Client
    from fastmcp.server import create_proxy

    options: dict[str, Any] = {"transport": "http", "host": "127.0.0.1", "port": port, "show_banner": False}
    if not reuse:
        await create_proxy(config, name="proxy").run_async(**options, log_level="error")
        return
    async with Client(config) as client:
        await create_proxy(client, name="proxy").run_async(**options, log_level="error")


def main() -> None:
    """Be the proxy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--reuse", action="store_true")
    given = parser.parse_args()
    asyncio.run(serve(json.loads(given.config.read_text("utf-8")), given.port, given.reuse))


if __name__ == "__main__":
    main()
