"""The MCP registry: finds servers that others have published there, and proposes how each can be run."""
