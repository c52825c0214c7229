"""The config files of MCP client programs: where they are, what is in them, and how Pegboard is put into them."""
