"""Rules as JSON: read from a config, a request or the storage, and written.

Whatever cannot be understood is refused as a whole: a misspelt limit would be no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from pegboard.access.quota import RATE_HINT, Quota, Rate
from pegboard.access.rule import Rule
from pegboard.names import MAX_NAMESPACE, SEPARATOR, fold_server_name, nearest
from pegboard.text import json_path

_MOST = 1000
_LONGEST, _SHOWN = 512, 80
_WILD = frozenset("*?[")
_WHO_KINDS = ("token", "sub", "group", "client", "scope", "issuer")
_WHO_WORDS = ("local", "anonymous", "*")
_WHO_HINT = f'must be "local", "anonymous", "*", or one of {", ".join(f"{kind}:NAME" for kind in _WHO_KINDS)}'


class RuleError(ValueError):
    """What is wrong with a rule, and where in it."""

    def __init__(self, path: tuple[str | int, ...], reason: str) -> None:
        super().__init__(f"{json_path(path) or 'the rule'} {reason}")
        self.path = path
        self.reason = reason


def read_rule(value: object, *, toolsets: tuple[str, ...], needs_who: bool = False) -> Rule:
    """A rule out of its JSON; `RuleError` where it cannot be one. `toolsets` are those that there are."""
    members = _object((), value)
    known = tuple(_FIELDS)
    for key in members:
        if key not in known:
            close = nearest(key, known, 1)
            raise RuleError((key,), f"is not known{f'; did you mean {close[0]}?' if close else ''}")
    if needs_who and not members.get("who"):
        raise RuleError((), f"needs who: a list of whom it is for. Each {_WHO_HINT}")
    fields: dict[str, Any] = {}
    for key, each in members.items():
        # As everywhere in a config, null is what is left out.
        if each is not None:
            fields |= _FIELDS[key]((key,), each)
    quota = Quota(fields.pop("rate", None), fields.pop("in_flight", None))
    rule = Rule(**fields, quota=quota)
    if rule.admin and "anonymous" in rule.who:
        raise RuleError(("admin",), 'cannot be given to "anonymous": whoever comes could run programs as you')
    for at, name in enumerate(rule.toolsets or ()):
        if name not in toolsets:
            raise RuleError(("toolsets", at), f"is not a toolset: there are {', '.join(toolsets)}")
    return rule


def write_rule(rule: Rule) -> dict[str, Any]:
    """A rule as JSON, with nothing that says nothing."""
    tools = {"allow": list(rule.allow), "deny": list(rule.deny)}
    written: dict[str, Any] = {
        "who": list(rule.who),
        "servers": None if rule.servers is None else list(rule.servers),
        "toolsets": None if rule.toolsets is None else list(rule.toolsets),
        "tools": {key: patterns for key, patterns in tools.items() if patterns},
        "readOnly": rule.read_only,
        "boards": None if rule.boards is None else list(rule.boards),
        "namespaces": None if rule.namespaces is None else list(rule.namespaces),
        **_write_quota(rule.quota),
        "perServer": {pattern: _write_quota(quota) for pattern, quota in rule.server_quotas},
        "scopes": {pattern: list(scopes) for pattern, scopes in rule.scopes},
        "admin": rule.admin,
    }
    given = {"servers", "toolsets", "boards", "namespaces"}
    return {key: each for key, each in written.items() if each or (key in given and each is not None)}


def _write_quota(quota: Quota) -> dict[str, Any]:
    rate = {} if quota.rate is None else {"rate": str(quota.rate)}
    return rate if quota.in_flight is None else {**rate, "inFlight": quota.in_flight}


_Path = tuple[str | int, ...]
_Reader = Callable[[_Path, object], Mapping[str, Any]]


def _object(path: _Path, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RuleError(path, "must be an object")
    return cast("dict[str, Any]", value)


def _texts(path: _Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        hint = f': write ["{value}"]' if isinstance(value, str) and len(value) <= _SHOWN else ""
        raise RuleError(path, f"must be a list of texts{hint}")
    if len(cast("list[object]", value)) > _MOST:
        raise RuleError(path, f"must be a list of at most {_MOST} texts")
    texts = cast("list[object]", value)
    for at, text in enumerate(texts):
        if not isinstance(text, str) or not text or len(text) > _LONGEST:
            raise RuleError((*path, at), f"must be a text of 1 to {_LONGEST} characters")
    return tuple(cast("list[str]", texts))


def _flag(path: _Path, value: object) -> bool:
    if not isinstance(value, bool):
        raise RuleError(path, "must be true or false")
    return value


def _who(path: _Path, value: object) -> Mapping[str, Any]:
    names = _texts(path, value)
    for at, name in enumerate(names):
        kind, colon, rest = name.partition(":")
        if name not in _WHO_WORDS and not (kind in _WHO_KINDS and colon and rest):
            raise RuleError((*path, at), _WHO_HINT)
    return {"who": names}


def _tools(path: _Path, value: object) -> Mapping[str, Any]:
    if isinstance(value, list):
        return {"allow": _some(path, cast("object", value))}
    members = _object(path, value)
    for key in members:
        if key not in {"allow", "deny"}:
            raise RuleError((*path, key), "is not known: there are allow and deny")
    read = {"allow": _some, "deny": _patterns}
    return {key: read[key]((*path, key), each) for key, each in members.items() if each is not None}


def fold_pattern(text: str) -> str:
    """A pattern with its server as servers are called here: `GitHub-Docs__*` is `github_docs__*`. What it is not folded
    to would fit nothing, and a `deny` that fits nothing hides nothing."""
    server, separator, tool = text.partition(SEPARATOR)
    return f"{fold_server_pattern(server)}{separator}{tool}" if separator else text


def fold_server_pattern(text: str) -> str:
    """The same for the name of a server alone."""
    if _WILD.isdisjoint(text):
        return fold_server_name(text) if text else text
    return text.lower().replace("-", "_").replace(" ", "_") if "[" not in text else text.lower()


def _patterns(path: _Path, value: object) -> tuple[str, ...]:
    return tuple(map(fold_pattern, _texts(path, value)))


def _some(path: _Path, value: object) -> tuple[str, ...]:
    """Patterns of what is allowed; none of them would allow everything, which nobody means by an empty list."""
    patterns = _patterns(path, value)
    if not patterns:
        raise RuleError(path, 'must name something: leave it out to allow all, or deny "*"')
    return patterns


def _namespaces(path: _Path, value: object) -> Mapping[str, Any]:
    names = _texts(path, value)
    if not names:
        raise RuleError(path, 'must name something: leave it out to give all, or deny "memory_*"')
    if any(len(name) > MAX_NAMESPACE for name in names):
        raise RuleError(path, f"has a name of more than {MAX_NAMESPACE} characters")
    return {"namespaces": names}


def _rate(path: _Path, value: object) -> Mapping[str, Any]:
    rate = Rate.parse(value) if isinstance(value, str) else None
    if rate is None:
        raise RuleError(path, RATE_HINT)
    return {"rate": rate}


def _in_flight(path: _Path, value: object) -> Mapping[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
        raise RuleError(path, "must be a whole number from 1 to 100000")
    return {"in_flight": value}


def _by_pattern(path: _Path, value: object, fold: Callable[[str], str]) -> dict[str, str]:
    """The patterns of an object, folded, with each as it is written. Of two that are the same one would be lost when
    the rule is written again."""
    found: dict[str, str] = {}
    for written in _object(path, value):
        if (other := found.setdefault(fold(written), written)) != written:
            raise RuleError((*path, written), f"is the same as {other}: write one of them")
    return found


def _per_server(path: _Path, value: object) -> Mapping[str, Any]:
    quotas: list[tuple[str, Quota]] = []
    for pattern, written in _by_pattern(path, value, fold_server_pattern).items():
        place, each = (*path, written), _object(path, value)[written]
        fields: dict[str, Any] = {}
        for key, limit in _object(place, each).items():
            if key not in {"rate", "inFlight"}:
                raise RuleError((*place, key), "is not known: there are rate and inFlight")
            fields |= _FIELDS[key]((*place, key), limit)
        quotas.append((pattern, Quota(fields.get("rate"), fields.get("in_flight"))))
    return {"server_quotas": tuple(quotas)}


def _scopes(path: _Path, value: object) -> Mapping[str, Any]:
    members, patterns = _object(path, value), _by_pattern(path, value, fold_pattern)
    return {"scopes": tuple((pattern, _texts((*path, each), members[each])) for pattern, each in patterns.items())}


_FIELDS: dict[str, _Reader] = {
    "who": _who,
    "servers": lambda path, value: {"servers": tuple(map(fold_server_pattern, _texts(path, value)))},
    "toolsets": lambda path, value: {"toolsets": _texts(path, value)},
    "tools": _tools,
    "readOnly": lambda path, value: {"read_only": _flag(path, value)},
    "boards": lambda path, value: {"boards": _texts(path, value)},
    "namespaces": _namespaces,
    "rate": _rate,
    "inFlight": _in_flight,
    "perServer": _per_server,
    "scopes": _scopes,
    "admin": lambda path, value: {"admin": _flag(path, value)},
}

# What a rule may say, but whom it is for.
RULE_KEYS = tuple(key for key in _FIELDS if key != "who")
