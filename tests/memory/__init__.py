"""The memory toolset."""
