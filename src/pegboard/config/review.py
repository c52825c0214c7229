"""What a config file would do, in lines for whoever decides whether to trust it.

Everything stands there as in the file, with no variable filled in: what is left out, or hidden, could be a command.
Only values of `env` and `headers` that are secrets by their name are hidden: nothing runs them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard import jsonc
from pegboard.config.secrets import is_credential
from pegboard.config.variables import names_in
from pegboard.exactjson import as_list, as_object
from pegboard.log import REDACTED

_SECTIONS = ("mcpServers", "servers")


def review(text: str) -> list[str]:
    """The lines for a text that is a config."""
    document = as_object(jsonc.parse(text).value) or {}
    lines: list[str] = []
    for name, entry in _servers(document):
        lines += [f"{name}:", *(f"  {line}" for line in _server(entry))]
    if own := as_object(document.get("pegboard")):
        lines += ["pegboard:", *(f"  {key}: {_written(value)}" for key, value in own.items())]
    return lines


def variables(text: str) -> dict[str, list[str]]:
    """Which variables of the environment are filled in, and for which servers."""
    document = as_object(jsonc.parse(text).value) or {}
    found: dict[str, list[str]] = {}
    for name, entry in [*_servers(document), ("pegboard", document.get("pegboard"))]:
        own = (as_object(entry) or {}).get("apiKeyFromEnv")
        for variable in [*names_in(_written(entry)), *([own] if isinstance(own, str) else [])]:
            found.setdefault(variable, [])
            if name not in found[variable]:
                found[variable].append(name)
    return found


def _servers(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for section in _SECTIONS:
        yield from (as_object(document.get(section)) or {}).items()


def _server(entry: Any) -> Iterator[str]:
    members = dict(as_object(entry) or {})
    given = [members.pop("command", None), *(as_list(members.pop("args", None)) or [])]
    if words := [word if isinstance(word, str) else _written(word) for word in given if word is not None]:
        yield f"runs {shlex.join(words)}"
    for key, value in members.items():
        inner = as_object(value) if key in {"env", "headers"} else None
        if inner is None:
            yield f"{key}: {value if isinstance(value, str) else _written(value)}"
        for name, each in (inner or {}).items():
            yield f"{key} {name}={_value(name, each, is_header=key == 'headers')}"


def _value(name: str, value: Any, *, is_header: bool) -> str:
    text = value if isinstance(value, str) else _written(value)
    return REDACTED if (is_header or is_credential(name)) and not names_in(text) else text


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
