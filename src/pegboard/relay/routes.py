"""Routes: which server something belongs to that Pegboard itself has no name for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.exactjson import as_list, as_object
from pegboard.names import fold_server_name
from pegboard.protocol.client import INVALID_PARAMS
from pegboard.protocol.methods import TASK_METHODS
from pegboard.servers.link import METHOD_NOT_FOUND, Message, Params, RpcError

_MAX_TASKS = 10_000
_SHOWN = 100
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

    def knows(self, identity: str, server: str, task: object) -> bool:
        """Whether a client was given this task by this server."""
        return isinstance(task, str) and server in self._tasks.get((identity, task), ())

    def own_tasks(self, identity: str, server: str, result: Message) -> Message:
        """A server's list of tasks, as far as they are this client's: those of others are nothing to it."""
        tasks = as_list(result.get("tasks"))
        if tasks is None:
            return result
        own = [task for task in tasks if self.knows(identity, server, (as_object(task) or {}).get("taskId"))]
        return {**result, "tasks": own}

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
                self._check_task(identity, folded, method, params)
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
                self._check_task(identity, candidates[0], method, params)
                return candidates[0]
        raise RpcError(
            METHOD_NOT_FOUND,
            f"Method not found: {method} could be meant for any of {len(seen)} servers; "
            f'name one in _meta as "{SERVER_KEY}", or use /mcp?server=NAME',
        )

    def _check_task(self, identity: str, server: str, method: str, params: Params) -> None:
        """A server that many clients share cannot tell them apart, so whose a task is has to be told here."""
        if method not in TASK_METHODS or (method == "tasks/list" and "taskId" not in params):
            return
        if "taskId" not in params:
            raise RpcError(INVALID_PARAMS, f"{method} needs the taskId of a task")
        if not self.knows(identity, server, params["taskId"]):
            raise RpcError(INVALID_PARAMS, f"Unknown task: {str(params['taskId'])[:_SHOWN]!r} is none of this client's")


def _task_id(result: Message) -> str | None:
    task = as_object(result.get("task")) or result
    given = task.get("taskId")
    return given if isinstance(given, str) else None
