"""What makes two entries the same server: where they lead, and the values that they give along.

Two accounts at one address, or two databases behind one command, differ in nothing but a header or a variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.client_configs.mcp_remote import open_mcp_remote
from pegboard.config.aliases import with_own_keys
from pegboard.config.variables import MissingVariable, Variables, names_in
from pegboard.exactjson import as_list, as_object

_VARIABLE = re.compile(r"\$?\$\{[^{}]*\}")
# It is the same folder on both sides, whichever it is.
_FOLDER = Path("${workspaceFolder}")


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Equal for two entries of the same server. Its values may be secret."""

    # The address, or the command with its arguments and its folder.
    target: str = field(repr=False)
    # Headers of an address, variables of a command.
    values: str = field(repr=False)


def identify_server(entry: Mapping[str, Any], environment: Mapping[str, str]) -> ServerIdentity:
    """The identity of an entry in Pegboard's shape. A variable that has a value here counts as that value: whoever puts
    a secret into a variable has the same server as before."""
    members = _without_bridge(with_own_keys(entry))
    variables = Variables(environment, _FOLDER)
    url = members.get("url")
    if isinstance(url, str) and members.get("command") is None:
        headers = {name.lower(): value for name, value in _fill_all(members.get("headers"), variables).items()}
        return ServerIdentity((_fill(url, variables) or "").rstrip("/"), json.dumps(headers, sort_keys=True))
    words = [members.get("command"), *(as_list(members.get("args")) or []), members.get("cwd")]
    env = _fill_all(members.get("env"), variables)
    return ServerIdentity(json.dumps([_fill(word, variables) for word in words]), json.dumps(env, sort_keys=True))


def _without_bridge(members: dict[str, Any]) -> dict[str, Any]:
    words = [members.get("command"), *(as_list(members.get("args")) or [])]
    values = (as_object(members.get("env")) or {}).values()
    if not all(isinstance(text, str) for text in (*words, *values)):
        return members
    return open_mcp_remote(members) or members


def _fill_all(value: object, variables: Variables) -> dict[str, str | None]:
    return {name: _fill(text, variables) for name, text in (as_object(value) or {}).items()}


def _fill(value: object, variables: Variables) -> str | None:
    if not isinstance(value, str):
        return None if value is None else json.dumps(value, default=str)
    try:
        return variables.fill(value)
    except MissingVariable:
        return _VARIABLE.sub(_name, value)


def _name(match: re.Match[str]) -> str:
    """A variable without a value, however it is spelt: `${X}`, `${env:X}`. No text has a NUL of its own."""
    return "".join(f"\0{name}\0" for name in names_in(match.group())) or match.group()
