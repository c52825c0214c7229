"""The discovery toolset: find a tool, look at it, load it, call it."""
