"""How a tool is found: a TF-IDF index over names, descriptions and parameters that follows its tools as they change."""

from __future__ import annotations

from pegboard.search.index import Hit, ToolIndex

__all__ = ["Hit", "ToolIndex"]
