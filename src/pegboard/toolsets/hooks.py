"""Which of Pegboard's own tools hang on the board, as the settings have it now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pegboard.config import Settings
from pegboard.tool import Disposable, Tool

Makers = Mapping[str, Callable[[], Sequence[Tool]]]


class Hooks:
    """Hangs the tools of the wanted toolsets, and takes down those that are not wanted any more."""

    def __init__(self, makers: Makers, register: Callable[[Tool], Disposable]) -> None:
        self._makers = makers
        self._register = register
        self._hung: dict[str, Disposable] = {}

    def apply(self, settings: Settings) -> None:
        """Hang what the settings want; what hangs already stays."""
        wanted = {
            tool.name: tool
            for toolset, make in self._makers.items()
            if toolset in settings.toolsets
            for tool in make()
            if settings.permits(tool.name)
        }
        for name in self._hung.keys() - wanted.keys():
            self._hung.pop(name).dispose()
        for name, tool in wanted.items():
            if name not in self._hung:
                self._hung[name] = self._register(tool)
