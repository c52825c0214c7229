"""REST routes of client programs: which are on this machine, and Pegboard in their config files.

Only for requests of this machine: they show and change files of its user.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from starlette.requests import Request

from pegboard.client_configs.check import check_target
from pegboard.client_configs.context import (
    InstallContext,
    InstallOptions,
    InstallUsageError,
    this_context,
)
from pegboard.client_configs.document import ClientFileError
from pegboard.client_configs.entries import EntryKind
from pegboard.client_configs.file_change import digest
from pegboard.client_configs.install import InstallPlan, apply_install, plan_install
from pegboard.client_configs.overlap import server_problems
from pegboard.client_configs.program import ClientProgram, Scope
from pegboard.client_configs.rows import install_row, uninstall_row
from pegboard.client_configs.survey import look_at, survey
from pegboard.client_configs.table import UnknownClientError, find_client
from pegboard.client_configs.uninstall import apply_uninstall, plan_uninstall
from pegboard.folder_names import leads_elsewhere
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import OBJECT, TEXT, list_of, object_with, operation, path_parameter, with_body
from pegboard.gateway.rest.responses import body_of
from pegboard.gateway.rest.rows import server_rows
from pegboard.names import is_board_name, nearest
from pegboard.result import Conflict, ToolErrorCode, ToolFailure, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pegboard.client_configs.file_change import FileChange
    from pegboard.gateway.rest.app import Rest

T = TypeVar("T")

_FLAG = {"type": "boolean", "default": False}
_SHARED = {
    "scope": {"enum": [*get_args(Scope)], "default": "user"},
    "project": {**TEXT, "description": "The project's folder, for the scope `project`."},
}
_CHOICES = {
    **_SHARED,
    "board": {**TEXT, "description": "The board in the entry; without one, the client's id."},
    "transport": {"enum": [*get_args(EntryKind)], "description": "Without one, what fits the client."},
    "name": {**TEXT, "description": "The entry's name."},
    "replace": {**_FLAG, "description": "Take out the client's servers that work in Pegboard."},
    "force": {**_FLAG, "description": "Overwrite an entry of this name that is not ours."},
    "digest": {**TEXT, "description": "Of the preview: if the file has changed since, nothing is written."},
}
_REMOVAL = {
    **_SHARED,
    "restore": {**_FLAG, "description": "The exact state before the install, or no change."},
    "preview": {**_FLAG, "description": "Only say what would be written."},
    "digest": _CHOICES["digest"],
}
_CLIENT = path_parameter("id")


async def _clients(rest: Rest, request: Request) -> Any:
    context = _context(rest, request, {})
    return {"clients": [status.row() for status in await asyncio.to_thread(survey, context)]}


async def _preview(rest: Rest, request: Request) -> Any:
    body = await _body(request, _CHOICES)
    client, context = _client(request), _context(rest, request, body)
    return install_row(await _in_thread(lambda: plan_install(client, context, _options(body))))


async def _install(rest: Rest, request: Request) -> Any:
    body = await _body(request, _CHOICES)
    client, context = _client(request), _context(rest, request, body)
    plan = await _in_thread(lambda: _write(client, context, body))
    if not plan.is_change:
        return install_row(plan)
    check = await asyncio.to_thread(check_target, plan.target)
    backup = context.backups.find_content(client.id, plan.file.path) if plan.file is not None else None
    restorable = plan.file is not None and look_at(client, context, body.get("scope", "user")).restorable
    row = install_row(plan, replace(check, total=len(rest.board.registry.all())))
    return {**row, "backup": None if backup is None else str(backup), "restorable": restorable}


def _write(client: ClientProgram, context: InstallContext, body: Mapping[str, Any]) -> InstallPlan:
    plan = plan_install(client, context, _options(body))
    if plan.outcome == "paste":
        raise InstallUsageError(f"Pegboard does not write the config of {client.name}: the preview has what to paste")
    if plan.outcome == "refused":
        raise Conflict(f"{plan.name!r} is another server's entry; `force` overwrites it")
    _check_digest(body, plan.change)
    apply_install(plan, context)
    return plan


def _check_digest(body: Mapping[str, Any], change: FileChange | None) -> None:
    """What a person agreed to is what is done."""
    seen = body.get("digest")
    if seen is not None and change is not None and seen != digest(change.before):
        raise Conflict("the file has changed since the preview; nothing was written")


async def _uninstall(rest: Rest, request: Request) -> Any:
    body = await _body(request, _REMOVAL)
    client, context = _client(request), _context(rest, request, body)

    def remove() -> Any:
        plan = plan_uninstall(client, context, body.get("scope", "user"), restore=body.get("restore", False))
        if not body.get("preview", False):
            _check_digest(body, plan.change)
            apply_uninstall(plan, context)
        return uninstall_row(plan)

    return await _in_thread(remove)


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except InstallUsageError as exc:
        raise invalid(str(exc)) from None
    except ClientFileError as exc:
        raise ToolFailure(ToolErrorCode.EXECUTION_FAILED, str(exc), retryable=False) from None


def _client(request: Request) -> ClientProgram:
    try:
        return find_client(str(request.path_params["id"]))
    except UnknownClientError as exc:
        raise ToolFailure(ToolErrorCode.NOT_FOUND, str(exc), retryable=False) from None


def _context(rest: Rest, request: Request, body: Mapping[str, Any]) -> InstallContext:
    project = body.get("project")
    if body.get("scope") == "project" and project is None:
        raise invalid("project: the scope `project` needs the folder")
    if project is not None and not Path(project).is_absolute():
        raise invalid("project: it must be an absolute path")
    if project is not None and leads_elsewhere(project):
        raise invalid("project: it must be a folder of this machine")
    needs_token = rest.authenticator is not None and rest.authenticator.requirement is True
    folder = Path(project) if project else None
    context = this_context(rest.config.path, rest.address(request), folder, needs_token=needs_token)
    return replace(context, own_problems=server_problems(server_rows(rest.board)))


def _options(body: Mapping[str, Any]) -> InstallOptions:
    return InstallOptions(
        scope=body.get("scope", "user"),
        board=body.get("board"),
        kind=body.get("transport"),
        name=body.get("name"),
        replace=body.get("replace", False),
        force=body.get("force", False),
    )


async def _body(request: Request, choices: Mapping[str, Any]) -> dict[str, Any]:
    """What is chosen; a misspelt or wrong choice is refused before anything is done."""
    body = await body_of(request)
    for key, value in body.items():
        if key not in choices:
            close = nearest(key[:80], choices, 1)
            raise invalid(f"{key[:80]!r} is no choice here{f': did you mean {close[0]}?' if close else ''}")
        _check(key, value, choices[key])
    return body


def _check(key: str, value: object, schema: Mapping[str, Any]) -> None:
    if "enum" in schema and value not in schema["enum"]:
        raise invalid(f"{key} must be {' or '.join(schema['enum'])}")
    if schema.get("type") == "boolean" and not isinstance(value, bool):
        raise invalid(f"{key} must be true or false")
    if schema.get("type") == "string" and not isinstance(value, str):
        raise invalid(f"{key} must be a text")
    if key in {"board", "name"} and not is_board_name(str(value)):
        raise invalid(f"{key} takes letters, digits, '_', '-' and '.', 64 at most")


def _route(action: str, handle: Any, summary: str, choices: Mapping[str, Any]) -> ApiRoute:
    schema = {"type": "object", "properties": dict(choices), "additionalProperties": False}
    described = with_body(operation(summary, object_with("client", TEXT), _CLIENT), schema, required=False)
    return ApiRoute("POST", f"/api/clients/{{id}}/{action}", handle, described, owner_only=True)


ROUTES = (
    ApiRoute(
        "GET",
        "/api/clients",
        _clients,
        operation(
            "The MCP clients of this machine, and Pegboard in their configs", object_with("clients", list_of(OBJECT))
        ),
        owner_only=True,
    ),
    _route("preview", _preview, "What an install would write; nothing is written", _CHOICES),
    _route("install", _install, "Put Pegboard into a client's config", _CHOICES),
    _route("uninstall", _uninstall, "Take Pegboard out of a client's config", _REMOVAL),
)
