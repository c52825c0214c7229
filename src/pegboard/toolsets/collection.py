"""All installed toolsets on one board: those that the settings want have their tools registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from pegboard.config import Settings
from pegboard.log import logger
from pegboard.tool import Disposable, Tool
from pegboard.toolsets.installed import load_parts
from pegboard.toolsets.toolset import BoardApi, Toolset

S = TypeVar("S", bound=Toolset)


class Toolsets:
    """Registers the tools of the wanted toolsets, and takes out those that are not wanted any more."""

    def __init__(
        self,
        board: BoardApi,
        register: Callable[[Tool], Disposable],
        batch: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._all: list[Toolset] = [part.TOOLSET(board) for part in load_parts("toolset").values()]
        self._register = register
        # What is registered and taken out within it is one change.
        self._batch = batch
        self._registered: dict[str, tuple[Tool, Disposable]] = {}

    def of(self, kind: type[S]) -> S:
        """The toolset of this class."""
        return next(toolset for toolset in self._all if isinstance(toolset, kind))

    def tool(self, name: str) -> Tool | None:
        """The tool of this name, whether it is registered or not."""
        return next((tool for toolset in self._all for tool in toolset.tools() if tool.name == name), None)

    def apply(self, settings: Settings) -> None:
        """Register what the settings want; what is registered already stays."""
        for toolset in self._all:
            toolset.apply(settings)
        wanted = {
            tool.name: tool
            for toolset in self._all
            if toolset.is_wanted(settings)
            for tool in toolset.tools()
            if settings.permits(tool.name)
        }
        if wanted == {name: tool for name, (tool, _) in self._registered.items()}:
            return
        with self._batch():
            self._exchange(wanted)
        logger().info("toolsets.registered", toolCount=len(self._registered), toolsets=self.counts())

    def last_changes(self) -> dict[tuple[str, str], int]:
        """By toolset and namespace, a number that is another after each change; only of toolsets that have
        namespaces."""
        every = ((toolset.name, toolset.last_changes()) for toolset in self._all)
        return {(name, namespace): last for name, changes in every for namespace, last in (changes or {}).items()}

    def has_namespaces(self, name: str) -> bool:
        """Whether what a toolset keeps is in namespaces, not all of which are for everybody."""
        return any(toolset.name == name and toolset.last_changes() is not None for toolset in self._all)

    def counts(self) -> dict[str, int]:
        """How many tools of each toolset are registered."""
        counts = {toolset.name: sum(tool.name in self._registered for tool in toolset.tools()) for toolset in self._all}
        return {name: count for name, count in counts.items() if count}

    def _exchange(self, wanted: Mapping[str, Tool]) -> None:
        for name, (tool, registration) in list(self._registered.items()):
            if wanted.get(name) is not tool:
                registration.dispose()
                del self._registered[name]
        for name, tool in wanted.items():
            if name not in self._registered:
                self._registered[name] = tool, self._register(tool)

    async def open(self) -> None:
        """Begin."""
        for toolset in self._all:
            await toolset.open()

    async def close(self) -> None:
        """Finish what is under way."""
        for toolset in self._all:
            await toolset.close()
