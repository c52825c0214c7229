"""The MCP SDK's server, which clients talk to, and everything that touches the SDK's inner parts."""
