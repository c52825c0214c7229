"""The gate: authorization. Whether a caller may use a tool is decided here, for every entrance alike.

What the config rules out (a toolset or a server that is off) is not in the registry, so nobody gets a tool from
anywhere else. `tools.allow` and `tools.deny` are asked again at every call: they hold from the moment that a config is
taken over, and the registry follows. What a caller's address and place rule out is its filter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pegboard.catalog.finder import is_discovery_tool, is_result_reader
from pegboard.catalog.registry import ToolRegistry
from pegboard.config import Settings
from pegboard.listing.view import Filter
from pegboard.lru_dict import LruDict
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure, unavailable
from pegboard.tool import RegisteredTool, Tool

_DECISIONS = 4096


class Gate:
    """Lets a caller through to the tools that it may use."""

    def __init__(self, registry: ToolRegistry, settings: Callable[[], Settings]) -> None:
        self._registry = registry
        self._settings = settings
        # What was decided, for as long as neither the tools nor the settings change.
        self._decided: LruDict[tuple[str, Filter], RegisteredTool] = LruDict(_DECISIONS)
        self._decided_for: tuple[int, Settings | None] = (0, None)

    def tool(self, name: str, wanted: Filter) -> RegisteredTool | None:
        """The tool of this name, if it is known and this caller may use it."""
        settings = self._settings()
        if self._decided_for[1] is not settings or self._decided_for[0] != self._registry.generation:
            self._decided.clear()
            self._decided_for = self._registry.generation, settings
        tool = self._decided.get((name, wanted))
        if tool is None:
            tool = self._registry.get(name)
            if tool is None or not self.admits(tool, wanted):
                return None
            tool = wanted.pick(tool)
            # Whether a tool is for this machine alone may change at any moment, and a long filter is not worth keeping.
            if not wanted.remote and not wanted.is_long:
                self._decided[name, wanted] = tool
        return tool

    def admits(self, tool: RegisteredTool, wanted: Filter) -> bool:
        """Whether a caller may use a tool. A filter binds what the discovery tools find, not those themselves."""
        is_for_all = is_discovery_tool(tool) or is_result_reader(tool)
        passes = wanted.admits(tool) or (is_for_all and _allows_discovery(tool, wanted))
        return passes and self.permits(tool)

    def has_reader(self, wanted: Filter) -> bool:
        """Whether a caller may use a tool that reads kept results."""
        tools = (tool for tool in self._registry.static().values() if is_result_reader(tool))
        return any(self.admits(tool, wanted) for tool in tools)

    def permits(self, tool: RegisteredTool) -> bool:
        """Whether the config, as it is now, lets a tool of a server through."""
        spec = self._settings().servers.get(tool.server_name or "")
        return spec is None or spec.permits(tool.original_name)

    def own_tool(self, toolset: str, name: str, wanted: Filter) -> Tool:
        """A tool of Pegboard's own, for a front that has a route of its own for it; `ToolFailure` says why not."""
        # What a rule hides is for its principal as if it were switched off.
        hidden = wanted.access is not None and not wanted.access.admits_toolset(toolset)
        if toolset not in self._settings().toolsets or hidden:
            reason = f"the {toolset} toolset is switched off"
            raise ToolFailure(ToolErrorCode.NOT_IMPLEMENTED, reason, retryable=False)
        self.check_own(name)
        registered = self._registry.static().get(name)
        if registered is None:
            raise unavailable(f"{name} is not there yet: the config changes just now")
        if wanted.access is not None and not wanted.access.admits(registered):
            raise Forbidden(_refusal_of_off(name))
        if not self.admits(registered, wanted):
            raise Forbidden(refusal_of_remote(name))
        return cast("Tool", registered.tool)

    def check_own(self, name: str) -> None:
        """Refuse a tool of Pegboard's own that the config does not permit."""
        if not self._settings().permits(name):
            raise Forbidden(_refusal_of_off(name))


def _allows_discovery(tool: RegisteredTool, wanted: Filter) -> bool:
    return wanted.access is None or wanted.access.admits(tool)


def _refusal_of_off(name: str) -> str:
    return f"{name} is switched off (tools.allow and tools.deny of the pegboard section)"


def refusal_of_remote(name: str) -> str:
    """Why a client on another machine does not get a tool."""
    return f'"{name}" is only for clients on the machine that Pegboard runs on (chats.remote).'
