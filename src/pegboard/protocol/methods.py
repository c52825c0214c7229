"""The methods of the specification, in every version: what is known here is never relayed as if nobody knew it.

Rules (`tools.deny`, a filter, whose task it is) are applied to a method by its exact name. A server may be less exact,
so a name that differs from one of these only in case, blanks, punctuation or Unicode form must not get around them, nor
one that has something beside it (`tools/call.x`).
"""

from __future__ import annotations

import re

# What extensions use: `com.example/thing`, `$/progress`, `rpc.discover`. Strings of C end at a NUL.
LONGEST_METHOD = 256
_CHARACTERS = re.compile(r"[A-Za-z0-9_$./:-]+")
_WORDS = re.compile(r"[a-z]+|[0-9]+")
# Of the tasks of 2025-11-25, and of the extension that took their place.
TASK_METHODS = frozenset({"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"})
REQUESTS = frozenset(
    {
        "completion/complete",
        "elicitation/create",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "roots/list",
        "sampling/createMessage",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
        *TASK_METHODS,
    }
)
NOTIFICATIONS = frozenset(
    {
        "notifications/cancelled",
        "notifications/elicitation/complete",
        "notifications/initialized",
        "notifications/message",
        "notifications/progress",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/roots/list_changed",
        "notifications/subscriptions/acknowledged",
        "notifications/tasks/status",
        "notifications/tools/list_changed",
    }
)
_TOLD = "notifications/"
# What a client and a server say to each other with nothing in between to decide.
_RELAYED_NOTIFICATIONS = frozenset({"notifications/roots/list_changed", "notifications/tasks/status"})


def is_about_task(method: str) -> bool:
    """Whether a request needs the id of a task: those under `tasks/`, of the specification or not."""
    return method != "tasks/list" and _words(method)[:1] == ["tasks"]


def request_problem(method: str) -> str | None:
    """Why a request of this method may not go on to a server as it is; `None` where it may."""
    return None if method in TASK_METHODS else _problem(method)


def notification_problem(method: str) -> str | None:
    """The same for a notification; a request without an id is none."""
    if method in _RELAYED_NOTIFICATIONS:
        return None
    if not method.startswith(_TOLD):
        return f"its name does not begin with {_TOLD}"
    return _problem(method) or _problem(method.removeprefix(_TOLD))


def _problem(method: str) -> str | None:
    """What is wrong with the name of a method; `None` where it may be an extension's."""
    if len(method) > LONGEST_METHOD:
        return f"the name of a method may have {LONGEST_METHOD} characters"
    if _CHARACTERS.fullmatch(method) is None:
        return "the name of a method may have letters, digits and _ $ . / : -"
    words = _words(method)
    # Whole, or with something before or behind it: some servers look at one end of a name only.
    ends = [part for at in range(1, len(words)) for part in (words[:at], words[at:])]
    if "".join(words) in _FOLDED or not _DISTINCT.isdisjoint(map("".join, ends)):
        return "it resembles a method of MCP, and those have to be called by their exact names"
    return None


def _words(method: str) -> list[str]:
    return _WORDS.findall(method.lower())


_FOLDED = frozenset("".join(_words(method)) for method in REQUESTS | NOTIFICATIONS)
# `com.example/ping` and `ui/initialize` are no attempt to get around a rule: there is none about either.
_DISTINCT = _FOLDED - {"ping", "initialize"}
