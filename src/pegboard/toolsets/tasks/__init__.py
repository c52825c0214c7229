"""The task registry: the tasks of an OpenSpec folder, for agents and people."""

from pegboard.toolsets.tasks.graph import draw_graph
from pegboard.toolsets.tasks.outcomes import TaskFilter
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.task import Task, TaskId
from pegboard.toolsets.tasks.tools import task_tools

__all__ = ["Project", "Registry", "Task", "TaskFilter", "TaskId", "draw_graph", "task_tools"]
