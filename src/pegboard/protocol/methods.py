"""The methods of the specification, in every version: what is known here is never relayed as if nobody knew it.

Rules (`tools.deny`, a filter, whose task it is) are applied to a method by its exact name. A server may be less exact,
so a name that differs from one of these only in case, blanks, punctuation or Unicode form must not get around them.
"""

from __future__ import annotations

from pegboard.normalization import normalize

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
# What a client and a server say to each other with nothing in between to decide.
_RELAYED_NOTIFICATIONS = frozenset({"notifications/roots/list_changed", "notifications/tasks/status"})


def is_relayed_request(method: str) -> bool:
    """Whether a request of this method may go on to a server as it is."""
    return method in TASK_METHODS or _skeleton(method) not in _SKELETONS


def is_relayed_notification(method: str) -> bool:
    """Whether a notification of this method may; a request without an id is none."""
    if method in _RELAYED_NOTIFICATIONS:
        return True
    return method.startswith("notifications/") and _skeleton(method) not in _SKELETONS


def _skeleton(method: str) -> str:
    """The letters and digits of a name, without case, accents and compatibility forms."""
    folded = normalize("NFKD", normalize("NFKD", method).casefold())
    return "".join(filter(str.isalnum, folded))


_SKELETONS = frozenset(map(_skeleton, REQUESTS | NOTIFICATIONS))
