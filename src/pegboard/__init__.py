"""Pegboard: one endpoint between an AI agent and all of its tools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard.library.pegboard import Pegboard
    from pegboard.result import ToolErrorCode, ToolResult
    from pegboard.tool import Tool

__all__ = ["Pegboard", "Tool", "ToolErrorCode", "ToolResult"]

_HOMES = {"Pegboard": "library.pegboard", "Tool": "tool", "ToolErrorCode": "result", "ToolResult": "result"}


def __getattr__(name: str) -> Any:
    # The names are looked up when they are used, so that `pegboard --help` does not load the whole gateway.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
