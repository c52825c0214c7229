"""Entries: what stands in a client's config for one server. Pegboard's is built here, and recognized."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from pegboard.client_configs.program import ClientProgram, EntryStyle
from pegboard.client_configs.toml_text import toml_table
from pegboard.exactjson import as_object
from pegboard.host_names import is_loopback_name

# An address, or a command: called as the transport is that the client uses.
EntryKind: TypeAlias = Literal["http", "stdio"]
DEFAULT_PORT = 7420
_URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")
# What a command of ours consists of, beside the program.
_OPTIONS = frozenset({"--board", "--config"})
_WORDS = frozenset({"-m", "pegboard", "stdio", *_OPTIONS})
_TYPES = frozenset({"http", "streamable-http", "streamableHttp", "sse", "stdio", "local", "remote"})
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class EntryTarget:
    """What an entry leads to: an address, or a command."""

    url: str | None = None
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def kind(self) -> EntryKind:
        """Which of both it is."""
        return "stdio" if self.url is None else "http"

    @property
    def board(self) -> str | None:
        """The board that it names."""
        if self.url is not None:
            return urlsplit(self.url).path.removeprefix("/mcp").strip("/") or None
        following = dict(pairwise(self.args))
        named = (arg.removeprefix("--board=") for arg in self.args if arg.startswith("--board="))
        return following.get("--board") or next(named, None)


def build_entry(style: EntryStyle, target: EntryTarget, name: str) -> dict[str, Any]:
    """The entry of Pegboard in the shape that a client wants."""
    if target.url is not None:
        kind, body = style.http_type, {style.url_key: target.url}
    else:
        kind, body = style.command_type, _command_members(style, target)
    typed = {} if kind is None else {"type": kind}
    named = {"name": name} if style.has_name else {}
    return {**typed, **named, **body, **style.always}


def _command_members(style: EntryStyle, target: EntryTarget) -> dict[str, Any]:
    if style.is_command_list:
        command: dict[str, Any] = {style.command_key: [target.command, *target.args]}
    else:
        command = {style.command_key: target.command, "args": list(target.args)}
    return command | ({style.env_key: dict(target.env)} if target.env else {})


def read_target(entry: object) -> EntryTarget | None:
    """Where an entry of any client leads; `None` if that cannot be told."""
    members = as_object(entry)
    if members is None:
        return None
    members = {**members, **(as_object(members.get("transport")) or {})}
    url = next((members[key] for key in _URL_KEYS if isinstance(members.get(key), str)), None)
    if url is not None:
        return EntryTarget(url)
    command = members.get("command", members.get("cmd"))
    args = _texts(members.get("args"))
    words = [command, *args] if isinstance(command, str) else _texts(command)
    return EntryTarget(command=words[0], args=tuple(words[1:])) if words else None


def _texts(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def is_own_entry(entry: object, ports: Collection[int], urls: Collection[str] = ()) -> bool:
    """Whether an entry leads to Pegboard: its command, a bridge to its address, or its address itself.

    An address is ours on this machine at one of the ports, or if it is one that we wrote ourselves.
    """
    target = read_target(entry)
    if target is None:
        return False
    if target.url is not None:
        return target.url in urls or is_own_url(target.url, ports)
    return _is_own_command(target) or any(is_own_url(arg, ports) for arg in target.args if _ADDRESS.match(arg))


def is_own_url(url: str, ports: Collection[int]) -> bool:
    """Whether an address is that of MCP at a gateway on this machine, at one of these ports."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        return False
    is_path = parts.path == "/mcp" or parts.path.startswith("/mcp/")
    return is_path and port in ports and is_loopback_name(parts.hostname or "")


def _is_own_command(target: EntryTarget) -> bool:
    words = [_program_name(target.command), *target.args]
    if words[0] == "pegboard":
        return "stdio" in words
    # As `python -m pegboard stdio`, `uvx pegboard stdio`, `uvx --from PATH pegboard stdio`.
    return any(pair == ("pegboard", "stdio") for pair in pairwise(words))


def harmless_texts(entry: object) -> list[str]:
    """Those texts of an entry of ours that say where Pegboard is; what else it holds may be a secret of somebody's."""
    target = read_target(entry)
    if target is None:
        return []
    if target.url is not None:
        return [*_TYPES] if set("?#@") & set(target.url) else [*_TYPES, target.url]
    named = {value for option, value in pairwise(target.args) if option in _OPTIONS}
    return [*_TYPES, target.command, *(word for word in target.args if word in _WORDS | named)]


def _program_name(command: str) -> str:
    # Whatever system we are on, the file may come from the other.
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    return name.removesuffix(".exe")


def snippet(client: ClientProgram, name: str, entry: Mapping[str, Any]) -> str:
    """The entry as text for a person who pastes it, with everything that stands around it."""
    specs = [*client.user, *client.project]
    kind, key = (specs[0].format, specs[0].key) if specs else ("json", ("mcpServers",))
    if kind == "toml":
        return toml_table((*key, name), entry)
    if kind == "yaml":
        lines = [f"{key[0]}:", f"  {name}:", *(f"    {member}: {json.dumps(entry[member])}" for member in entry)]
        return "\n".join(lines) + "\n"
    value: Any = {name: dict(entry)}
    for part in reversed(key):
        value = {part: value}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
