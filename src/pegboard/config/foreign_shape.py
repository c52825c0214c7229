"""A config file that is in the shape of another program: without a word about it, it would be one without servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.config.aliases import ALIASES
from pegboard.exactjson import as_object

SECTIONS = ("mcpServers", "servers")
_OWN = frozenset({*SECTIONS, "pegboard"})
_OF_OTHERS = {
    "mcp": "the format of OpenCode",
    "context_servers": "the format of Zed",
    "mcp_servers": "the format of Codex",
    "extensions": "the format of Goose",
    "amp.mcpServers": "the format of Amp",
    "projects": "the file of Claude Code",
}
_ADDRESSES = tuple(name for key in ("command", "url") for name in (key, *ALIASES[key]))


def foreign_shape(root: Mapping[str, Any]) -> str | None:
    """What a config is that has nothing of ours, if it is something that has servers."""
    if not _OWN.isdisjoint(root):
        return None
    for key, what in _OF_OTHERS.items():
        if as_object(root.get(key)):
            return f'is in {what} ("{key}")'
    if _is_entry(root):
        return "is the entry of one server, without a name"
    if any(_is_entry(each) for each in root.values()):
        return 'has servers outside of "mcpServers"'
    return None


def is_nested(name: str, value: Any) -> bool:
    """Whether an entry is no server, but a whole section that was pasted where its inside belongs."""
    members = as_object(value)
    return name in SECTIONS and members is not None and not _is_entry(members) and any(map(_is_entry, members.values()))


def _is_entry(value: Any) -> bool:
    members = as_object(value)
    return members is not None and any(isinstance(members.get(key), (str, list)) for key in _ADDRESSES)
