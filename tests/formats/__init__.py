"""Tools for model providers."""
