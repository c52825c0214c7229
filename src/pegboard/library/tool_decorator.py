"""`@board.tool`: a typed function as a tool of a board."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from pegboard.function_tool import FunctionTool, Said
from pegboard.function_tool import tool as tool_of
from pegboard.tool import Disposable, Tool

P = ParamSpec("P")
R = TypeVar("R")


class ToolDecorator(ABC):
    """A board that tools can be registered at."""

    @abstractmethod
    def register(self, tool: Tool) -> Disposable:
        """Add a tool of this program's own; `ValueError` if its name or its schema cannot be used."""

    @overload
    def tool(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...

    @overload
    def tool(self, /, **said: Unpack[Said]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...

    def tool(self, function: Callable[..., Any] | None = None, /, **said: Unpack[Said]) -> Any:
        """Make a tool of a typed function, and add it; a decorator, with arguments or without."""

        def register(function: Callable[..., Any]) -> FunctionTool[..., Any]:
            # Made in the caller's thread: the types of its parameters may be local to the functions that run there.
            made = tool_of(**said)(function)
            self.register(made)
            return made

        return register if function is None else register(function)
