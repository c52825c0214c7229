"""Tasks over REST: each route is one of the task tools, save the picture of who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import operation, path_parameter, query_parameter
from pegboard.gateway.rest.tool_route import ToolRoute
from pegboard.result import invalid
from pegboard.toolsets.tasks.graph import FORMATS
from pegboard.toolsets.tasks.tools import RegistryList, RegistryNext, RegistrySync, RegistryUpdate
from pegboard.toolsets.tasks.toolset import TasksToolset

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_GRAPH = {
    "path": "The folder that holds openspec.",
    "change_id": "Only tasks of this change, with what they need.",
    "format": f"{', '.join(FORMATS)}; mermaid if nothing is said.",
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
