"""A preview: what a change does to a client's file, as a unified diff in which nothing secret can be read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, cast

from pegboard.client_configs.entries import read_target
from pegboard.config.secrets import hide_secrets, is_credential, secrets_of
from pegboard.config.settings import ServerSpec
from pegboard.exactjson import as_object
from pegboard.log import Redactor

_LINE_END = re.compile(r"\r\n|\n|\r")
_HEADERS = ("headers", "http_headers", "env_http_headers", "requestOptions")
_ENVIRONMENTS = ("env", "environment", "envs")
_LEAST_SECRET = 4
# A diff of a long file takes long, and nobody reads it.
_MOST_LINES = 20_000


def mask_diff(path: str, before: str, after: str, data: dict[str, Any]) -> str:
    """The change as a unified diff; `data` is everything that the text says, where secrets are looked for."""
    old, new = _lines_to_compare(before, after)
    lines = list(difflib.unified_diff(old, new, path, path, lineterm="", n=2))
    redactor = Redactor.of(_secrets(data))
    return "\n".join([*lines[:2], *(hide_secrets(redactor.clean(line)) for line in lines[2:])])


def _lines_to_compare(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines of both, without what both begin and end with where they are long."""
    old, new = _LINE_END.split(before.removeprefix("\ufeff")), _LINE_END.split(after.removeprefix("\ufeff"))
    if len(old) + len(new) <= _MOST_LINES:
        return _without_last(old), _without_last(new)
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(start - 2, 0)
    end = 0
    while end < min(len(old), len(new)) - start and old[-end - 1] == new[-end - 1]:
        end += 1
    end = max(end - 2, 0)
    return old[start : len(old) - end], new[start : len(new) - end]


def _without_last(lines: list[str]) -> list[str]:
    return lines[:-1] if lines and not lines[-1] else lines


def _secrets(data: dict[str, Any]) -> set[str]:
    """Every text of a file that is secret, by the place where it stands."""
    found = {value for name, value in _texts(data) if is_credential(name)}
    for entry in _objects(data):
        found |= _entry_secrets(entry)
    return {value for value in found if len(value) >= _LEAST_SECRET}


def _entry_secrets(entry: dict[str, Any]) -> frozenset[str]:
    """What is secret in an object that may be a server's entry."""
    target = read_target(entry)
    if target is None:
        return frozenset()
    env = {name: value for key in _ENVIRONMENTS for name, value in _pairs(entry.get(key))}
    headers = {name: value for key in _HEADERS for name, value in _texts(as_object(entry.get(key)) or {})}
    spec = ServerSpec(name="", given_name="", args=target.args, env=env, headers=headers, url=target.url)
    return secrets_of(spec, ())


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(name, text) for name, text in (as_object(value) or {}).items() if isinstance(text, str)]


def _texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text, with the name that is nearest to it."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _texts(item, name)
    else:
        for key, inner in (as_object(value) or {}).items():
            yield from _texts(inner, key)


def _objects(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _objects(item)
    elif (members := as_object(value)) is not None:
        yield members
        for inner in members.values():
            yield from _objects(inner)
