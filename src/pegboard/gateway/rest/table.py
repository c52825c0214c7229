"""The REST table: every route of the gateway and of the installed toolsets."""

from __future__ import annotations

from typing import TypeAlias

from pegboard.gateway.rest import (
    access_routes,
    audit_routes,
    board_routes,
    catalog_routes,
    change_routes,
    client_routes,
    event_routes,
    import_routes,
    login_routes,
    registry_routes,
    run_routes,
    server_detail,
    server_routes,
    session_routes,
    stat_routes,
    status_routes,
    token_routes,
)
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.tool_route import ToolRoute
from pegboard.toolsets.installed import load_parts

RestRoute: TypeAlias = ApiRoute | ToolRoute


def route_table() -> list[RestRoute]:
    """All of them, in the order in which they are tried."""
    own = (
        *status_routes.ROUTES,
        *server_routes.ROUTES,
        *server_detail.ROUTES,
        *import_routes.ROUTES,
        *run_routes.ROUTES,
        *login_routes.ROUTES,
        *catalog_routes.ROUTES,
        *client_routes.ROUTES,
        *board_routes.ROUTES,
        *registry_routes.ROUTES,
        *access_routes.ROUTES,
        *token_routes.ROUTES,
        *change_routes.ROUTES,
        *session_routes.ROUTES,
        *audit_routes.ROUTES,
        *event_routes.ROUTES,
        *stat_routes.ROUTES,
    )
    return [*own, *(route for part in load_parts("routes").values() for route in part.ROUTES)]
