"""Pegboard's own tools, by toolset."""
