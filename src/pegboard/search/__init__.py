"""How a tool is found: a TF-IDF index over names, descriptions and parameters that follows its tools as they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard.search.index import Hit, ToolIndex

__all__ = ["Hit", "ToolIndex"]


def __getattr__(name: str) -> Any:
    # The index needs numpy, which takes a tenth of a second to load; what else is here does not.
    if name in __all__:
        from pegboard.search import index

        return getattr(index, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
