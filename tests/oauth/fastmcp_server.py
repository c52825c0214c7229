"""A FastMCP server behind FastMCP's authorization server in memory; its argument is its port."""

from __future__ import annotations

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

PORT = int(sys.argv[1])
provider = InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{PORT}",
    client_registration_options=ClientRegistrationOptions(enabled=True),
    revocation_options=RevocationOptions(enabled=True),
)
server: FastMCP[None] = FastMCP("guarded", auth=provider)


@server.tool
def greet(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}!"


server.run("http", host="127.0.0.1", port=PORT, show_banner=False, log_level="error")
