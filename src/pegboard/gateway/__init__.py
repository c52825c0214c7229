"""How Pegboard is reached: MCP over HTTP and stdio, and REST."""
