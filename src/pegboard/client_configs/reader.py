"""Reads whatever people paste: the config of any client, a part of it, a link, or a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pegboard.client_configs.command_line import parse_command_line
from pegboard.client_configs.dialect import dialect_of
from pegboard.client_configs.entry import UnusableEntry, translate_entry
from pegboard.client_configs.foreign_document import ForeignDocument, clean_text, parse_document
from pegboard.client_configs.foreign_variables import VariableTranslator
from pegboard.client_configs.install_link import parse_link
from pegboard.client_configs.mcp_remote import open_mcp_remote
from pegboard.client_configs.reading import ConfigReading, ForeignServer, TextOrigin, UnreadableEntry, UnreadableText
from pegboard.client_configs.sections import FoundEntry, find_entries
from pegboard.exactjson import as_object, is_well_formed
from pegboard.host_names import is_ip_address, is_loopback

_MOST_SERVERS, _MOST_OF_A_LINK = 1000, 100_000
_VERSION = re.compile(r"(?<=.)@[^/]*\Z|[=<>~!].*\Z")
# Words of a name that say nothing.
_NOISE = re.compile(r"(?:^|[-_])(?:mcp|server|modelcontextprotocol)(?=[-_]|$)")
_RUNNER = re.compile(r"(?:.*[/\\])?(?:npx|uvx|bunx|pnpx|pipx|uv|npm|pnpm|docker|podman|node|python[\d.]*)(?:\.\w+)?")
_NOT_NAMES = frozenset({"run", "exec", "dlx", "x", "tool", "start", "stdio", "serve", "mcp", "c"})


def read_text(text: str, origin: TextOrigin) -> ConfigReading:
    """The servers of a text, in whatever format it is; what cannot be read is named, and the others go on."""
    try:
        document = _parse(text, origin)
        found = find_entries(document.value)
    except UnreadableText as exc:
        return ConfigReading(unreadable=(UnreadableEntry("", origin.at(exc.line), exc.reason, origin),))
    if len(found) > _MOST_SERVERS:
        reason = f"it has {len(found):,} servers, {_MOST_SERVERS:,} is the most"
        return ConfigReading(unreadable=(UnreadableEntry("", origin.at(1), reason, origin),))
    reading = ConfigReading()
    for entry in found:
        reading += _read_entry(entry, document, origin)
    return reading


def read_entry(name: str, value: object, origin: TextOrigin) -> Mapping[str, Any] | None:
    """One entry of a client's file as an import would write it; `None` for one that it would not take."""
    try:
        return _server(FoundEntry(name, value, (name,), ""), origin, origin.place).entry
    except UnusableEntry:
        return None


def no_servers(reading: ConfigReading, origin: TextOrigin) -> ConfigReading:
    """The reading, or if there is nothing in it the reason: for a text that somebody named."""
    if reading.servers or reading.unreadable:
        return reading
    reason = 'there are no servers in it: expected "mcpServers", another client\'s section, or an entry with "command"'
    return ConfigReading(unreadable=(UnreadableEntry("", origin.at(1), reason, origin),))


def _parse(text: str, origin: TextOrigin) -> ForeignDocument:
    if not text.strip("\ufeff \t\r\n"):
        raise UnreadableText("it is empty")
    linked = parse_link(text) if not origin.is_file and len(text) < _MOST_OF_A_LINK else None
    if linked is not None:
        return ForeignDocument(linked)
    document = parse_document(text, origin.suffix)
    if document is None and origin.is_file:
        raise UnreadableText("it is neither JSON, TOML nor YAML")
    if document is None:
        document = _parse_command(clean_text(text))
    _refuse_registry(document.value)
    return document


def _parse_command(text: str) -> ForeignDocument:
    meant = parse_command_line(text)
    if "json" not in meant:
        return ForeignDocument(meant)
    inner = parse_document(str(meant["json"]), ".json")
    members = as_object(inner.value if inner else None)
    if members is None:
        raise UnreadableText("the JSON in it is not an object")
    return ForeignDocument({**members, "name": meant["name"]} if "name" in meant else members)


def _refuse_registry(value: Any) -> None:
    members = as_object(value) or {}
    if "name" in members and ("packages" in members or "remotes" in members) and "command" not in members:
        raise UnreadableText("this is the server.json of a registry: add it with `pegboard add --from NAME`")


def _read_entry(found: FoundEntry, document: ForeignDocument, origin: TextOrigin) -> ConfigReading:
    if found.folder is not None:
        label = f"{origin.label} ({found.folder})"
        origin = replace(origin, label=label, folder=found.folder)
    place = origin.at(document.line(found.path))
    try:
        server = _server(found, origin, place)
    except UnusableEntry as exc:
        refused = UnreadableEntry(found.name, place, str(exc), origin, is_skipped=exc.is_skipped)
        return ConfigReading(unreadable=(refused,))
    return ConfigReading((server,))


def _server(found: FoundEntry, origin: TextOrigin, place: str) -> ForeignServer:
    raw = as_object(found.value)
    if raw is None:
        raise UnusableEntry("it is not an object")
    if not found.path:
        # Beside the keys of one entry stand those of its link: they were read.
        raw = {key: value for key, value in raw.items() if key not in {"name", "inputs"}}
    elif isinstance(found.path[-1], int):
        raw = {key: value for key, value in raw.items() if key != "name"}
    variables = VariableTranslator(dialect_of(origin.client, found.section), origin.folder, dict(found.inputs))
    meant = translate_entry(raw, variables)
    opened = open_mcp_remote(meant.entry)
    notes = meant.notes if opened is None else (*meant.notes, "its address is used without mcp-remote")
    entry = _anchor_paths(opened or meant.entry, origin)
    name = found.name.strip() or suggest_name(entry)
    if not is_well_formed([name, entry]):
        raise UnusableEntry("it has half of a surrogate pair")
    return ForeignServer(name, entry, origin, place, meant.left_out, notes, found.folder)


def _anchor_paths(entry: Mapping[str, Any], origin: TextOrigin) -> dict[str, Any]:
    """Relative paths of a project's file mean that project, wherever Pegboard is started."""
    if origin.folder is None or "command" not in entry:
        return dict(entry)
    command, cwd = entry["command"], entry.get("cwd")
    changed = dict(entry)
    if _is_relative(command) and re.search(r"[/\\]", command):
        changed["command"] = str(origin.folder / command)
    if cwd is not None and _is_relative(cwd):
        changed["cwd"] = str(origin.folder / cwd)
    elif cwd is None and any(_names_file(origin.folder, arg) for arg in entry.get("args", ())):
        changed["cwd"] = str(origin.folder)
    return changed


def _is_relative(path: str) -> bool:
    return not Path(path).is_absolute() and not re.match(r"[~$%]|[A-Za-z]:[\\/]", path)


def _names_file(folder: Path, arg: str) -> bool:
    if not arg or arg.startswith("-") or not _is_relative(arg) or "\0" in arg or len(arg) > 1000:
        return False
    try:
        return (folder / arg).exists()
    except OSError:
        return False


def suggest_name(entry: Mapping[str, Any]) -> str:
    """A name for a server that has none: its package's, its program's, or its host's."""
    if "url" in entry:
        try:
            host, port = (parts := urlsplit(str(entry["url"]))).hostname or "", parts.port
        except ValueError:
            host, port = "", None
        if is_ip_address(host):
            # A part of an address says nothing.
            place = "local" if is_loopback(host) else f"server_{host}"
            return f"{place}_{port}" if port else place
        parts = [part for part in host.split(".")[:-1] if part not in {"mcp", "www", "api"}]
        return (parts[-1] if parts else host) or "server"
    words = [str(word) for word in (*entry.get("args", ()), entry.get("command", ""))]
    # What a runner runs is the first word that is no option and no word of its own.
    named = [word for word in words if not word.startswith("-") and word not in _NOT_NAMES]
    return _short_name(named[0] if len(named) > 1 and _RUNNER.fullmatch(words[-1]) else words[-1])


def _short_name(word: str) -> str:
    last = re.split(r"[/\\]", _VERSION.sub("", word).rstrip("/\\"))[-1]
    stem = re.sub(r"\.(?:py|js|mjs|ts|exe|cmd|sh)\Z", "", last)
    return _NOISE.sub("", stem).strip("-_ ") or stem or "server"
