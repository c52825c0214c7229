"""Routes: which server something belongs to that Pegboard itself has no name for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.exactjson import as_object
from pegboard.names import fold_server_name
from pegboard.servers.link import METHOD_NOT_FOUND, Message, Params, RpcError

_MAX_TASKS = 10_000
SERVER_KEY = "pegboard/server"


class Routes:
    """Finds the owner of methods and notifications that nobody here has heard of."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[tuple[str, str], set[str]] = OrderedDict()

    def learn(self, identity: str, server: str, result: Message) -> None:
        """A result may name a task that later requests are about."""
        if (task := _task_id(result)) is None:
            return
        self._tasks.setdefault((identity, task), set()).add(server)
        self._tasks.move_to_end((identity, task))
        while len(self._tasks) > _MAX_TASKS:
            self._tasks.popitem(last=False)

    def owner(
        self,
        identity: str,
        method: str,
        params: Params,
        seen: Sequence[str],
        capabilities: Mapping[str, Mapping[str, Any]],
    ) -> str:
        """The one server this belongs to, of those that the client sees; `RpcError` where that cannot be told."""
        named = (as_object(params.get("_meta")) or {}).get(SERVER_KEY)
        if isinstance(named, str):
            if (folded := fold_server_name(named)) in seen:
                return folded
            raise RpcError(METHOD_NOT_FOUND, f"{method}: there is no server {named!r} here")
        task = params.get("taskId")
        if isinstance(task, str):
            owners = self._tasks.get((identity, task), set()) & set(seen)
            if len(owners) == 1:
                return next(iter(owners))
        room = method.removeprefix("notifications/").partition("/")[0]
        able = [server for server in seen if room in capabilities.get(server, {})]
        for candidates in (able, seen):
            if len(candidates) == 1:
                return candidates[0]
        raise RpcError(
            METHOD_NOT_FOUND,
            f"Method not found: {method} could be meant for any of {len(seen)} servers; "
            f'name one in _meta as "{SERVER_KEY}", or use /mcp?server=NAME',
        )


def _task_id(result: Message) -> str | None:
    task = as_object(result.get("task")) or result
    given = task.get("taskId")
    return given if isinstance(given, str) else None
