"""The members of params in the specification: a name that only resembles one of theirs is refused, never relayed.

Rules are applied to `name`, `uri` and `taskId` as they are written. A server may be less exact: Go's `encoding/json`
reads `Name` as `name`, the JSON of Protocol Buffers `task_id` as `taskId`. It would act on another tool, or on another
client's task, than was checked here. What resembles nothing is passed on, as everything that nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.exactjson import as_list, as_object, is_well_formed
from pegboard.normalization import normalize
from pegboard.protocol.eras import HOP_KEYS, RELATED_TASK_KEY
from pegboard.protocol.methods import NOTIFICATIONS, REQUESTS

# Folding a name takes longer than looking it up; nobody needs more, or longer ones.
MOST_MEMBERS = 256
LONGEST_NAME = 128
_SHOWN = 80

_PAGE = "cursor"
_ROUND = "inputResponses requestState"
_TASK = "taskId status statusMessage createdAt lastUpdatedAt ttl pollInterval"
# Beside `_meta`, which all of them may have; of every version.
_OF_METHODS = {
    "completion/complete": "ref argument context",
    "elicitation/create": "mode message requestedSchema url elicitationId task",
    "initialize": "protocolVersion capabilities clientInfo",
    "logging/setLevel": "level",
    "notifications/cancelled": "requestId reason",
    "notifications/elicitation/complete": "elicitationId",
    "notifications/message": "level logger data",
    "notifications/progress": "progressToken progress total message",
    "notifications/resources/updated": "uri",
    "notifications/subscriptions/acknowledged": "notifications",
    "notifications/tasks/status": _TASK,
    "prompts/get": f"name arguments {_ROUND}",
    "prompts/list": _PAGE,
    "resources/list": _PAGE,
    "resources/read": f"uri {_ROUND}",
    "resources/subscribe": "uri",
    "resources/templates/list": _PAGE,
    "resources/unsubscribe": "uri",
    "sampling/createMessage": "messages modelPreferences systemPrompt includeContext temperature maxTokens"
    " stopSequences metadata tools toolChoice task",
    "subscriptions/listen": "notifications",
    "tasks/cancel": "taskId",
    "tasks/get": "taskId",
    "tasks/list": _PAGE,
    "tasks/result": "taskId",
    "tasks/update": "taskId inputResponses",
    "tools/call": f"name arguments task {_ROUND}",
    "tools/list": _PAGE,
}
# Texts that something is found by, here or on a server; the last is one whatever the method.
_FINDING = ("name", "uri", "cursor", "level", "taskId")
_FILTERS = ("pegboard/server", "pegboard/prefix")
# Objects inside of params; what is in `arguments` is between the client and the tool.
_OF_OBJECTS = {"ref": "type name title uri", "argument": "name value", "context": "arguments", "task": "ttl taskId"}


def fold(name: str) -> str:
    """The letters and digits of a name, without case, accents and compatibility forms."""
    if not name.isascii():
        # By way of upper case, as some compare: the dotless i of Turkish has no other way to an i. Accents go before:
        # one of them is a letter in upper case, the iota of Greek.
        name = normalize("NFKD", _plain(normalize("NFKD", name)).upper().casefold())
    return _plain(name.lower())


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text))


@dataclass(frozen=True, slots=True)
class _Members:
    """The names that an object's members have in the specification, and how these look when they are folded."""

    names: frozenset[str]
    folded: Mapping[str, str]
    # Those that are objects with members of their own here.
    objects: tuple[str, ...]

    @classmethod
    def of(cls, names: Collection[str]) -> _Members:
        folded = {fold(name): name for name in names}
        return cls(frozenset(names), folded, tuple(name for name in names if name in _OF_OBJECTS))

    def problem(self, given: Mapping[str, Any], *, is_open: bool = False) -> str | None:
        """What is wrong with the names of an object's members; in an `open` one, others may resemble each other."""
        if given.keys() <= self.names:
            return None
        if len(given) > MOST_MEMBERS:
            return f"an object has {len(given):,} members, {MOST_MEMBERS} is the most here"
        seen: dict[str, str] = {}
        for name in given:
            if len(name) > LONGEST_NAME:
                return f"the name of a member has {len(name):,} characters, {LONGEST_NAME} is the most here"
            folded = fold(name)
            if name not in self.names and folded in self.folded:
                return f"{_visible(name)} resembles {_visible(self.folded[folded])}, which has to be written exactly so"
            if not is_open and folded and folded in seen:
                return f"{_visible(seen[folded])} and {_visible(name)} are too much alike"
            seen[folded] = name
        return None


def members_problem(method: str, params: Mapping[str, Any]) -> str | None:
    """Which member of a request's or notification's params could be taken for another; `None` where none could."""
    known = _METHODS.get(method, _ANYTHING)
    if known is not _ANYTHING and (problem := known.problem(params)) is not None:
        return f"params of {method}: {problem}"
    for name in known.objects:
        given = params.get(name)
        if isinstance(given, dict) and (problem := _OBJECTS[name].problem(cast("dict[str, Any]", given))) is not None:
            return f"{name} of {method}: {problem}"
    meta = params.get("_meta")
    return meta_problem(cast("dict[str, Any]", meta)) if isinstance(meta, dict) else None


def meta_problem(meta: Mapping[str, Any]) -> str | None:
    """The same for `_meta`, whose other members are anybody's to name."""
    problem = _META.problem(meta, is_open=True)
    return None if problem is None else f"_meta: {problem}"


def unicode_problem(method: str, params: Mapping[str, Any]) -> str | None:
    """Which name or URI in params has half of a surrogate pair, so that nobody can be asked for it; `None` where none
    has. What it is asked with (`arguments`, `argument`) may have it."""
    finding = _FINDING if method in _METHODS else _FINDING[-1:]
    texts = {name: params.get(name) for name in finding}
    if method in _METHODS:
        ref = as_object(params.get("ref")) or {}
        texts |= {f"ref.{name}": ref.get(name) for name in ("name", "uri")}
        followed = (as_object(params.get("notifications")) or {}).get("resourceSubscriptions")
        texts |= {f"resourceSubscriptions.{place}": uri for place, uri in enumerate(as_list(followed) or [])}
    meta = as_object(params.get("_meta")) or {}
    texts |= {f"_meta.{name}": meta.get(name) for name in _FILTERS}
    wrong = next((name for name, text in texts.items() if isinstance(text, str) and not is_well_formed(text)), None)
    return None if wrong is None else f"{wrong} must be valid Unicode, not half of a surrogate pair"


def without_look_alikes(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """An object without the members that could be taken for one of these, or whose names are too long to tell."""
    folded = {fold(name) for name in names}
    return {
        name: value
        for name, value in given.items()
        if name in names or (len(name) <= LONGEST_NAME and fold(name) not in folded)
    }


def _visible(name: str) -> str:
    """A name so that what cannot be seen of it can be."""
    return ascii(name[:_SHOWN])


_METHODS = {method: _Members.of(("_meta", *_OF_METHODS.get(method, "").split())) for method in REQUESTS | NOTIFICATIONS}
# Those of what nobody here knows.
_ANYTHING = _Members.of(())
_OBJECTS = {name: _Members.of(names.split()) for name, names in _OF_OBJECTS.items()}
_META = _Members.of(HOP_KEYS | {RELATED_TASK_KEY})
