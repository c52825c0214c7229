"""Words of other clients for keys of a server's entry, where they can mean nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.config.oauth_spellings import OAUTH_ENTRY_KEYS, own_oauth

ALIASES: Mapping[str, tuple[str, ...]] = {
    "command": ("cmd",),
    "args": ("arguments",),
    "env": ("environment", "envs"),
    "envFile": ("env_file",),
    "cwd": ("working_directory", "workingDirectory"),
    "url": ("serverUrl", "httpUrl", "uri"),
    "headers": ("http_headers", "httpHeaders"),
}
ALL_ALIASES = frozenset(alias for aliases in ALIASES.values() for alias in aliases)


def with_own_keys(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an entry under the keys that Pegboard reads them by; one that is there under its own key stays."""
    own = dict(members)
    for key, aliases in ALIASES.items():
        source = next((alias for alias in aliases if members.get(alias) is not None), None)
        if source is not None and members.get(key) is None:
            own[key] = own.pop(source)
    oauth = own_oauth(members)
    if oauth is not None:
        own = {key: value for key, value in own.items() if key not in OAUTH_ENTRY_KEYS}
        own["oauth"] = oauth
    return own


def with_own_tools(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an entry with its `tools` in our shape: a plain list, as other clients write it, names those that
    are let through."""
    tools = members.get("tools")
    return {**members, "tools": {"allow": tools}} if isinstance(tools, list) else dict(members)


def place_of(key: str, members: Mapping[str, Any]) -> str:
    """Under which key an entry has what Pegboard reads by this one."""
    own = next((own for own, aliases in ALIASES.items() if key in aliases), key)
    known = (each for each in (own, *ALIASES.get(own, ())) if members.get(each) is not None)
    return next(known, key)
