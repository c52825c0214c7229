"""The only package that knows the MCP SDK's inner parts, and the rules of the two protocol eras."""
