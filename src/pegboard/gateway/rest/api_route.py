"""An entry of the REST table with a function of its own: what is served where, and how it is described."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.gateway.rest.operations import Operation

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A method of a path, in which `{key:path}` may hold slashes. Its function gives data, or a whole response."""

    method: str
    path: str
    handle: Callable[[Rest, Request], Awaitable[Any]]
    # Its description in the OpenAPI document, if it is there.
    operation: Operation | None = None
    # Whether it is for the user that the gateway runs as, on this machine, and for nobody else.
    owner_only: bool = False
    # Whether it is for those who may change the gateway: that user, and whom a rule makes an admin.
    admin_only: bool = False
