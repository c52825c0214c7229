"""Routes: which server something belongs to that Pegboard itself has no name for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.exactjson import as_list, as_object
from pegboard.faircache import FairCache
from pegboard.names import fold_server_name
from pegboard.protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from pegboard.protocol.eras import RELATED_TASK_KEY
from pegboard.protocol.members import LONGEST_NAME, fold
from pegboard.protocol.methods import is_about_task
from pegboard.servers.attribution import SERVER_KEY
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params

_MAX_TASKS = 10_000
_SHOWN = 100


class Routes:
    """Finds the owner of methods and notifications that nobody here has heard of."""

    def __init__(self) -> None:
        # The servers that gave a client a task, by the client and the task.
        self._tasks = FairCache[str, frozenset[str]](_MAX_TASKS)
        # How many clients were given it, by the server and the task.
        self._holders: Counter[tuple[str, str]] = Counter()

    def learn(self, identity: str, server: str, result: Message) -> None:
        """A result may name a task that later requests are about."""
        if (task := _task_id(result)) is None:
            return
        givers = self._givers(identity, task)
        self._holders[server, task] += server not in givers
        forgotten = self._tasks.put(identity, task, givers | {server})
        if forgotten is not None:
            for place in ((giver, forgotten[0]) for giver in forgotten[1]):
                self._holders[place] -= 1
                if not self._holders[place]:
                    del self._holders[place]

    def knows(self, identity: str, server: str, task: object) -> bool:
        """Whether a client was given this task by this server."""
        return isinstance(task, str) and server in self._givers(identity, task)

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
        """The one server this belongs to, of those that the client sees; `RpcError` where that cannot be told, or where
        it is about another client's task."""
        found = self._find(identity, method, params, seen, capabilities)
        self.check_tasks(identity, found, method, params)
        return found

    def check_tasks(self, identity: str, server: str, method: str, params: Params) -> None:
        """Refuse what is about another client's task: a server that many share cannot tell them apart."""
        if is_about_task(method):
            if "taskId" not in params:
                raise RpcError(INVALID_PARAMS, f"{method} needs the taskId of a task")
            if not self.knows(identity, server, params["taskId"]):
                raise _unknown_task(params["taskId"])
        if not self._holders:
            return
        meta = as_object(params.get("_meta")) or {}
        for place in (params, params.get("task"), meta.get(RELATED_TASK_KEY)):
            for name, value in (as_object(place) or {}).items():
                is_known = isinstance(value, str) and (server, value) in self._holders
                if is_known and _names_task(name) and not self.knows(identity, server, value):
                    raise _unknown_task(value)

    def _find(
        self,
        identity: str,
        method: str,
        params: Params,
        seen: Sequence[str],
        capabilities: Mapping[str, Mapping[str, Any]],
    ) -> str:
        named = (as_object(params.get("_meta")) or {}).get(SERVER_KEY)
        if isinstance(named, str):
            if (folded := fold_server_name(named)) in seen:
                return folded
            raise RpcError(METHOD_NOT_FOUND, f"{method}: there is no server {named!r} here")
        task = params.get("taskId")
        if isinstance(task, str):
            owners = self._givers(identity, task) & set(seen)
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

    def _givers(self, identity: str, task: str) -> frozenset[str]:
        return self._tasks.get(identity, task) or frozenset()


def _names_task(name: str) -> bool:
    """Whether a member may be read as the id of a task; one whose name is too long to tell may be."""
    return len(name) > LONGEST_NAME or fold(name) == "taskid"


def _unknown_task(task: object) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Unknown task: {str(task)[:_SHOWN]!r} is none of this client's")


def _task_id(result: Message) -> str | None:
    task = as_object(result.get("task")) or result
    given = task.get("taskId")
    return given if isinstance(given, str) else None
