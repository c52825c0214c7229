"""The task registry: the tasks of an OpenSpec folder, for agents and people."""

from pegboard.toolsets.tasks.graph import drawn
from pegboard.toolsets.tasks.outcomes import Filter
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.task import Task, TaskId
from pegboard.toolsets.tasks.tools import task_tools

__all__ = ["Filter", "Project", "Registry", "Task", "TaskId", "drawn", "task_tools"]
