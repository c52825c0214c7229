"""The MCP registry: a registry for tests, what publishers write, and what Pegboard makes of it."""
