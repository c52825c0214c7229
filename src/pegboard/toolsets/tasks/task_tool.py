"""What the tools of tasks and of specs have in common."""

from __future__ import annotations

from pegboard.tool import MAX_VALUES, ResultTool
from pegboard.toolsets.tasks.registry import Registry


class TaskTool(ResultTool):
    """A tool that works on the registry of a project."""

    category = "tasks"
    max_values = MAX_VALUES
    # The client may be asked for its folders.
    asks = True

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
