"""The record of a request that is no call of a tool: a prompt, a resource, what is read over REST, or whatever else
reaches a server."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from pegboard.audit.audit import Audit
from pegboard.audit.composer import network_class
from pegboard.audit.outcome import outcome_of
from pegboard.clients.client import Client

RequestKind = Literal["prompt", "resource", "request", "read"]


class RequestRecord:
    """Records how a request went. Whoever makes it sets its `server`, and the `target` as soon as it is known that
    somebody has it: what is asked for may be anything."""

    __slots__ = ("_audit", "_client", "_kind", "_method", "server", "target")

    def __init__(self, audit: Audit, kind: RequestKind, client: Client, method: str = "") -> None:
        self._audit = audit
        self._kind = kind
        self._client = client
        self._method = method
        self.server = self.target = ""

    async def __aenter__(self) -> RequestRecord:
        self._audit.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._audit.recorder is None:
            return
        is_cancelled = exc is not None and not isinstance(exc, Exception)
        outcome, remark = outcome_of("ok" if exc is None else "cancelled" if is_cancelled else "", "", exc)
        client = self._client
        self._audit.note(
            self._kind,
            client.principal,
            outcome=outcome,
            server=self.server,
            tool=self.target,
            client=f"{client.name}/{client.version}" if client.version else client.name,
            session=client.session or "",
            network=network_class(client.endpoint),
            detail=" ".join(part for part in (self._method, remark) if part),
        )
        if self._audit.is_strict and not is_cancelled:
            await self._audit.settle()
