"""REST routes of the import: the servers that clients of this machine have, and taking them over.

Only for the user that the gateway runs as: they read that user's files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.client_configs.import_files import read_clients
from pegboard.client_configs.import_plan import ImportPlan, UnknownNameError, choose, choose_exactly, plan_import
from pegboard.client_configs.place import this_place
from pegboard.client_configs.reading import ConfigReading
from pegboard.client_configs.table import CLIENTS
from pegboard.exactjson import as_list, as_object
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, with_body
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import Created, members_of
from pegboard.gateway.rest.server_routes import PLAN, own_ports, server_rows_of
from pegboard.names import fold_server_name
from pegboard.result import invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_SERVERS = "Instead of names: the file and the name of each, as the list has them."


async def _find_servers(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    plan = await asyncio.to_thread(_plan, rest, own_ports(request), _all)
    return await asyncio.to_thread(plan.to_dict)


async def _import(rest: Rest, request: Request) -> Any:
    body = await members_of(request, ("names", "servers"))
    if len(body) > 1:
        raise invalid("names or servers, not both")
    try:
        plan = await asyncio.to_thread(_plan, rest, own_ports(request), _choice(body))
    except UnknownNameError as exc:
        raise invalid(f"{''.join(body)}: {exc}") from None
    await rest.config.add_all(plan.entries)
    added = await server_rows_of(rest, request, [fold_server_name(name) for name in plan.entries])
    return Created({**added, **await asyncio.to_thread(plan.to_dict)})


def _choice(body: Mapping[str, Any]) -> Callable[[ConfigReading], ConfigReading]:
    """Which servers are meant: those of some names, wherever they are; or those of some files and names; or all."""
    if "names" in body:
        names = as_list(body["names"])
        if names is None or not all(isinstance(name, str) for name in names):
            raise invalid("names must be a list of names of servers")
        return lambda reading: choose(reading, names)
    if "servers" not in body:
        return _all
    wanted: set[tuple[str, str]] = set()
    for each in as_list(body["servers"]) or ():
        row = as_object(each) or {}
        file, name = row.get("file"), row.get("name")
        if not isinstance(file, str) or not isinstance(name, str) or len(row) > 2:
            wanted.clear()
            break
        wanted.add((file, name))
    if not wanted:
        raise invalid("servers must be a list of objects, each with the file and the name of a server there")
    return lambda reading: choose_exactly(reading, wanted)


def _all(reading: ConfigReading) -> ConfigReading:
    return reading


def _plan(rest: Rest, ports: Collection[int], select: Callable[[ConfigReading], ConfigReading]) -> ImportPlan:
    reading = select(read_clients(CLIENTS, this_place(None), with_project=False))
    return plan_import(reading, rest.config.entries(), ports=ports)


ROUTES = (
    ApiRoute(
        "GET",
        "/api/import",
        _find_servers,
        operation("The servers that clients of this machine have, and what would become of each", PLAN),
        owner_only=True,
    ),
    ApiRoute(
        "POST",
        "/api/import",
        _import,
        with_body(
            operation("Take over servers that clients of this machine have; all, or those named", PLAN),
            {
                **object_with(
                    "names",
                    list_of(TEXT),
                    servers={**list_of(object_with("file", TEXT, name=TEXT)), "description": _SERVERS},
                ),
                "required": [],
            },
            required=False,
            example={"names": []},
        ),
        owner_only=True,
    ),
)
