"""MCP servers for tests: small, quick to start, and able to misbehave in every way we know."""
