"""The memory toolset: what an agent writes down, and finds again."""
