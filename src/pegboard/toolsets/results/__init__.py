"""The results toolset: what was left out of large results."""
