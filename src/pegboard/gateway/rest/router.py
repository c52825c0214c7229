"""The REST table as Starlette's routes: one for each path, with all of its methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.routing import Route

from pegboard.auth.refused import AuthRefused
from pegboard.clients.endpoint import PRINCIPAL_KEY
from pegboard.gateway.authentication import note_refusal
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.owner import require_admin, require_owner
from pegboard.gateway.rest.responses import answering
from pegboard.gateway.rest.table import RestRoute
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure, invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

# How the name of a parameter ends that may hold slashes.
_SLASHES = ":path}"


def starlette_routes(rest: Rest, table: Iterable[RestRoute]) -> list[Route]:
    """What is served where."""
    by_path: dict[str, list[RestRoute]] = {}
    for route in table:
        by_path.setdefault(_serve_path(route.path), []).append(route)
    return [
        Route(path, answering(_Fork(rest, path, routes).answer), methods=[route.method for route in routes])
        for path, routes in by_path.items()
    ]


def _serve_path(path: str) -> str:
    """The path that Starlette matches: where slashes may be in a parameter, all up to there."""
    start, slashes, _ = path.partition(_SLASHES)
    return start + slashes


class _Fork:
    """Chooses among the routes that share a path: by method, and by what stands behind a parameter with slashes."""

    def __init__(self, rest: Rest, path: str, routes: Sequence[RestRoute]) -> None:
        self._rest = rest
        self._start, _, parameter = path.partition("{")
        self._parameter = parameter.removesuffix(_SLASHES) if path.endswith(_SLASHES) else ""
        self._routes = {(route.path.removeprefix(path), route.method): route for route in routes}

    async def answer(self, request: Request) -> Any:
        """What the route that is meant gives."""
        ending = self._split(request) if self._parameter else ""
        # HEAD is a GET without the answer's body, and Starlette lets it in wherever GET is.
        method = "GET" if request.method == "HEAD" else request.method
        route = self._routes.get((ending, method))
        if route is None:
            words = f"{request.method} is not possible there; /docs lists what there is"
            raise ToolFailure(ToolErrorCode.NOT_FOUND, words)
        if isinstance(route, ApiRoute):
            try:
                if route.owner_only:
                    require_owner(request, self._rest.board.settings)
                if route.admin_only:
                    require_admin(request, self._rest.board.settings)
            except Forbidden as exc:
                refused = AuthRefused(403, str(exc), principal=request.scope[PRINCIPAL_KEY])
                note_refusal(self._rest.board.audit, refused, request.scope)
                raise
        return await route.handle(self._rest, request)

    def _split(self, request: Request) -> str:
        """What stands behind the parameter; its own slashes are encoded, which Starlette cannot tell any more."""
        raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        value = raw.partition(b"?")[0].removeprefix(self._start.encode())
        ending = next((ending for ending, _ in self._routes if ending and value.endswith(ending.encode())), "")
        try:
            request.path_params[self._parameter] = unquote_to_bytes(value.removesuffix(ending.encode())).decode()
        except UnicodeDecodeError:
            raise invalid(f"{self._parameter}: the address is not UTF-8") from None
        return ending
