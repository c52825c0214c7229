"""Tasks over REST: most routes are task tools; others tell who waits for whom, which is read without a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, path_parameter, query_parameter
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.tool_route import ToolRoute
from pegboard.result import invalid
from pegboard.toolsets.tasks.graph import FORMATS
from pegboard.toolsets.tasks.schemas import ROWS, TASK
from pegboard.toolsets.tasks.tools import RegistryList, RegistryNext, RegistrySync, RegistryUpdate
from pegboard.toolsets.tasks.toolset import TasksToolset

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_GRAPH = {
    "path": "The folder that holds openspec.",
    "change_id": "Only tasks of this change, with what they need.",
    "format": f"{', '.join(FORMATS)}; mermaid if nothing is said.",
}
_FOLDER = {"path": _GRAPH["path"]}
_CHANGE = {
    "type": "object",
    "required": ["id", "title", "status", "tasks", "completed", "needs", "waits_for", "layer", "in_cycle"],
    "properties": {"needs": list_of(TEXT), "waits_for": list_of(TEXT), "layer": {"type": "integer"}},
}
_TASK = (path_parameter("change", minLength=1), path_parameter("number"))


async def _graph(rest: Rest, request: Request) -> Any:
    query = request.query_params
    for name in query:
        if name not in _GRAPH:
            raise invalid(f"{name} is not a parameter: there are {', '.join(_GRAPH)}")
        if len(query.getlist(name)) > 1:
            raise invalid(f"{name} is given {len(query.getlist(name))} times")
    if query.get("change_id") == "":
        raise invalid('change_id: "" is shorter than 1 character')
    caller = rest.caller(request)
    # The picture is of what this tool lists.
    rest.board.gate.own_tool(TasksToolset.name, RegistryList.name, caller.client.filter)
    tasks = rest.board.toolsets.of(TasksToolset)
    form = query.get("format") or "mermaid"
    return await tasks.graph(form, query.get("change_id"), query.get("path"), caller)


async def _changes(rest: Rest, request: Request) -> Any:
    check_query(request, _FOLDER)
    tasks = rest.board.toolsets.of(TasksToolset)
    return await tasks.changes(request.query_params.get("path"), rest.caller(request))


async def _task(rest: Rest, request: Request) -> Any:
    check_query(request, _FOLDER)
    tasks = rest.board.toolsets.of(TasksToolset)
    task_id = f"{request.path_params['change']}/{request.path_params['number']}"
    return await tasks.task(task_id, request.query_params.get("path"), rest.caller(request))


ROUTES = (
    ToolRoute("GET", "/api/tasks", RegistryList),
    ToolRoute("GET", "/api/tasks/next", RegistryNext),
    ApiRoute(
        "GET",
        "/api/tasks/graph",
        _graph,
        operation(
            "Who waits for whom: Mermaid text, a picture for a terminal, or its rows",
            {"type": "object", "required": ["format", "tasks", "left_out"]},
            *(query_parameter(name, description) for name, description in _GRAPH.items()),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/tasks/changes",
        _changes,
        operation(
            "How far each change is, which changes it needs, and tasks that are held up",
            object_with(
                "changes",
                list_of(_CHANGE),
                left_out={"type": "integer"},
                held_up=list_of({**TASK}),
                message={**TEXT, "description": "Why there are none: no folder has any, and what to do."},
            ),
            *(query_parameter(name, description) for name, description in _FOLDER.items()),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/tasks/{change}/{number}",
        _task,
        operation(
            "A task, what it depends on, and who waits for it",
            object_with("task", {**TASK}, depends_on={**ROWS}, dependants=list_of(TEXT)),
            *_TASK,
            *(query_parameter(name, description) for name, description in _FOLDER.items()),
        ),
    ),
    ToolRoute("POST", "/api/tasks/sync", RegistrySync, in_query=("path",), body_required=False, shows=("dry_run",)),
    ToolRoute(
        "PATCH",
        "/api/tasks/{change}/{number}",
        RegistryUpdate,
        in_path={"task_id": _TASK},
        in_query=("path",),
        shows=("status",),
    ),
)
