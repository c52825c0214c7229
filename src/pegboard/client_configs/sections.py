"""Where the servers are in the data of a client's config, told by its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.client_configs.reading import Steps
from pegboard.exactjson import as_list, as_object
from pegboard.names import correct_spelling

# The keys under which clients have their servers.
SECTIONS = ("mcpServers", "mcp_servers", "servers", "context_servers", "amp.mcpServers", "mcp.servers")
# What may stand around such a section: settings of VS Code, a dev container.
_AROUND = ("mcp", "settings", "customizations", "vscode")
_ADDRESS = ("command", "cmd", "url", "serverUrl", "httpUrl", "uri")
_ENTRY = frozenset({*_ADDRESS, "args", "env", "headers", "transport", "environment", "envs"})
_GOOSE = frozenset({"cmd", "uri", "type", "bundled"})
# What may stand beside servers without being one.
_BESIDE = frozenset({"$schema", "inputs", "sandbox", "version"})


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """A value that stands where a server's entry should be."""

    name: str
    value: Any
    path: Steps
    section: str
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    # The project that it belongs to, in Claude Code's own file.
    folder: Path | None = None


def find_entries(value: Any) -> list[FoundEntry]:
    """Every entry of a config, in its order; none if it has no section that is known."""
    root = as_object(value)
    if root is None:
        return list(_list_entries(value, (), "mcpServers"))
    found = [*_sections(root, ()), *_projects(root)]
    if found or _has_section(root):
        return found
    if looks_like_entry(root):
        return [FoundEntry(_name_in(root), root, (), "", _inputs(root))]
    if _is_misspelt_entry(root):
        return [FoundEntry(_name_in(root), root, (), "")]
    if any(looks_like_entry(each) for each in root.values()):
        return list(_map_entries(root, (), "", _inputs(root)))
    return []


def looks_like_entry(value: Any) -> bool:
    """Whether a value says how one server is reached."""
    members = as_object(value)
    if members is None or _ENTRY.isdisjoint(members):
        return False
    # A map of servers may have one that is called "command".
    return any(not _is_entry_map(members[key]) for key in _ENTRY if key in members)


def _is_misspelt_entry(members: Mapping[str, Any]) -> bool:
    words = [key for key, value in members.items() if isinstance(value, str)]
    return any(correct_spelling(word, ("command", "url")) for word in words)


def _is_entry_map(value: Any) -> bool:
    members = as_object(value)
    return members is not None and any(isinstance(members.get(key), str) for key in _ADDRESS)


def _has_section(root: Mapping[str, Any]) -> bool:
    return any(as_object(root.get(key)) is not None for key in (*SECTIONS, "projects"))


def _sections(root: Mapping[str, Any], path: Steps) -> Iterator[FoundEntry]:
    inputs = _inputs(root)
    for key, value in root.items():
        at = (*path, key)
        if key in SECTIONS and not looks_like_entry(value):
            name = "pegboard" if "pegboard" in root and key in {"mcpServers", "servers"} else key
            yield from _map_entries(value, at, name, inputs)
        elif key == "extensions":
            yield from _extensions(value, at)
        elif key in _AROUND and (inner := as_object(value)) is not None:
            yield from _inside(key, inner, at)


def _inside(key: str, inner: Mapping[str, Any], path: Steps) -> Iterator[FoundEntry]:
    """`mcp` has servers itself (OpenCode), or a section of them (VS Code's settings, newer OpenCode)."""
    found = list(_sections(inner, path))
    if key == "mcp":
        named = {entry.path[len(path)] for entry in found}
        direct = {name: each for name, each in inner.items() if name not in named and looks_like_entry(each)}
        yield from _map_entries(direct, path, "mcp", {})
    for entry in found:
        is_opencode = key == "mcp" and entry.section == "servers" and _is_opencode(entry.value)
        yield FoundEntry(entry.name, entry.value, entry.path, "mcp", entry.inputs) if is_opencode else entry


def _is_opencode(value: Any) -> bool:
    return (as_object(value) or {}).get("type") in {"local", "remote"}


def _map_entries(value: Any, path: Steps, section: str, inputs: Mapping[str, str]) -> Iterator[FoundEntry]:
    if as_list(value) is not None:
        yield from _list_entries(value, path, section)
    for name, each in (as_object(value) or {}).items():
        inner = as_object(each)
        if name in SECTIONS and inner is not None and not looks_like_entry(inner):
            # The whole snippet was pasted where its inside belongs.
            yield from _map_entries(inner, (*path, name), section, inputs)
        elif name not in _BESIDE or (inner is not None and looks_like_entry(inner)):
            yield FoundEntry(name, each, (*path, name), section, inputs)


def _list_entries(value: Any, path: Steps, section: str) -> Iterator[FoundEntry]:
    """A list, in which each has its name (Continue)."""
    for at, each in enumerate(as_list(value) or []):
        members = as_object(each)
        if members is not None or path:
            yield FoundEntry(_name_in(members or {}), each, (*path, at), section)


def _extensions(value: Any, path: Steps) -> Iterator[FoundEntry]:
    """Goose's; others have something else under that name."""
    for name, each in (as_object(value) or {}).items():
        members = as_object(each)
        if members is not None and not _GOOSE.isdisjoint(members):
            yield FoundEntry(name, each, (*path, name), "extensions")


def _projects(root: Mapping[str, Any]) -> Iterator[FoundEntry]:
    """What Claude Code keeps for one project alone ("local" scope)."""
    for folder, project in (as_object(root.get("projects")) or {}).items():
        servers = (as_object(project) or {}).get("mcpServers")
        for entry in _map_entries(servers, ("projects", folder, "mcpServers"), "mcpServers", {}):
            yield FoundEntry(entry.name, entry.value, entry.path, entry.section, entry.inputs, Path(folder))


def _inputs(root: Mapping[str, Any]) -> dict[str, str]:
    items = [as_object(each) or {} for each in as_list(root.get("inputs")) or []]
    return {str(each["id"]): str(each.get("description", "")) for each in items if isinstance(each.get("id"), str)}


def _name_in(members: Mapping[str, Any]) -> str:
    name = members.get("name")
    return name if isinstance(name, str) else ""
