"""Fetching from addresses that a server, or an authorization server, names: bounded in time, size, and place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard.config import ServerSpec
from pegboard.result import ToolErrorCode, ToolFailure


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """An answer of any status; its members are empty if it is no JSON object. Both may hold secrets."""

    status: int
    members: Mapping[str, Any]
    headers: Mapping[str, str]


class FetchFailed(ToolFailure):
    """There is no answer: nobody is there (`is_away`: trying again later may help), or one that cannot be used, or the
    address is none that may be asked."""

    def __init__(self, message: str, *, is_away: bool = False) -> None:
        code = ToolErrorCode.UNAVAILABLE if is_away else ToolErrorCode.INVALID_INPUT
        super().__init__(code, message, retryable=is_away)
        self.is_away = is_away


class Fetcher:
    """Fetches for the sign-in to one server, whose address says where it may lead."""

    def __init__(self, server_url: str, *, allow_http: bool = False, named: Collection[str] = ()) -> None:
        """`named`: addresses of the config itself, where the server did not lead to."""

    @classmethod
    def of(cls, spec: ServerSpec) -> Fetcher:
        """The one for a server of the config."""
        settings = spec.sign_in
        return cls(spec.url or "", allow_http=settings.allow_http, named=tuple(settings.addresses))

    async def get_json(self, url: str) -> JsonAnswer:
        """What stands at an address. Raises `FetchFailed`."""
        raise NotImplementedError

    async def post_form(self, url: str, fields: Mapping[str, str], headers: Mapping[str, str] = {}) -> JsonAnswer:
        """The answer to a form. Raises `FetchFailed`."""
        raise NotImplementedError

    async def post_json(self, url: str, members: Mapping[str, Any], headers: Mapping[str, str] = {}) -> JsonAnswer:
        """The answer to a JSON object. Raises `FetchFailed`."""
        raise NotImplementedError
