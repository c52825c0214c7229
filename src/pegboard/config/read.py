"""Reads a config file and the environment into `Settings`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pegboard import jsonc
from pegboard.config.address import secrets_of, url_problem, with_bearer
from pegboard.config.environment import apply_environment
from pegboard.config.settings import TOOLSETS, ConfigError, Expose, Instance, ServerSpec, Settings, Transport
from pegboard.config.shape import Node
from pegboard.config.variables import MissingVariable, Variables
from pegboard.names import fold_server_name, nearest

_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_OWN_KEYS = ("expose", "pinned", "toolsets", "renamed", "maxNameLength", "storage")


def read_settings(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """The settings of a file (none is fine) together with the environment; raises `ConfigError`."""
    settings = Settings() if path is None else parse_settings(_read(path), path, environment)
    return apply_environment(settings, environment)


def parse_settings(text: str, path: Path, environment: Mapping[str, str]) -> Settings:
    """The settings a config text stands for, before the environment's own servers are added."""
    try:
        document = jsonc.parse(text)
    except jsonc.JsoncError as exc:
        raise ConfigError(f"{path}:{exc.line}:{exc.column}: {exc.reason}") from None
    root = Node(document, path, (), document.value)
    own = root.get("pegboard")
    remarks: list[str] = []
    settings = _own_settings(own, remarks) if own else Settings()
    servers = _servers(root, environment, remarks)
    return replace(settings, path=path, servers=servers, remarks=tuple(remarks))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: byte {exc.start} is not UTF-8") from None
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror or exc}") from None


def _own_settings(own: Node, remarks: list[str]) -> Settings:
    for key in own.members():
        if key not in _OWN_KEYS:
            close = nearest(key, _OWN_KEYS, limit=1)
            remarks.append(f"pegboard.{key} is not a setting" + (f"; did you mean {close[0]}?" if close else ""))
    changes: dict[str, Any] = {}
    if node := own.get("expose"):
        changes["expose"] = cast("Expose", node.one_of("auto", "all", "search"))
    if node := own.get("pinned"):
        changes["pinned"] = node.texts()
    if node := own.get("toolsets"):
        changes["toolsets"] = _toolsets(node)
    if node := own.get("renamed"):
        changes["renamed"] = {child.key: child.text() for child in node.children()}
    if node := own.get("maxNameLength"):
        changes["max_name_length"] = node.whole_number(16, 128)
    if node := own.get("storage"):
        changes["storage"] = node.text()
    return replace(Settings(), **changes)


def _toolsets(node: Node) -> tuple[str, ...]:
    for name in node.texts():
        if name not in TOOLSETS:
            raise node.wrong(f'names "{name}", which is not a toolset: use {", ".join(TOOLSETS)}')
    return node.texts()


def _servers(root: Node, environment: Mapping[str, str], remarks: list[str]) -> dict[str, ServerSpec]:
    servers: dict[str, ServerSpec] = {}
    for section in ("mcpServers", "servers"):
        node = root.get(section)
        for entry in node.children() if node else []:
            spec = _server(entry, environment)
            if spec.name in servers:
                first = servers[spec.name].given_name
                raise entry.wrong(f'and "{first}" are both "{spec.name}" in snake_case: rename one of them')
            if spec.name != spec.given_name:
                remarks.append(f'server "{spec.given_name}" is called "{spec.name}" here')
            servers[spec.name] = spec
    _check_prefixes(root, servers)
    return servers


def _check_prefixes(root: Node, servers: Mapping[str, ServerSpec]) -> None:
    bare = [spec.given_name for spec in servers.values() if not spec.prefix]
    if len(bare) > 1:
        raise root.wrong(f'has "prefix": false for {", ".join(bare)}: one server at most can go without a prefix')


def _server(entry: Node, environment: Mapping[str, str]) -> ServerSpec:
    folder = entry.file.resolve().parent
    variables = Variables(environment, folder.parent if folder.name in {".vscode", ".cursor"} else folder)
    spec = _treatment(entry)
    try:
        spec = replace(spec, **_address(entry, variables))
    except MissingVariable as exc:
        spec = replace(spec, problem=str(exc))
    if node := entry.get("apiKeyFromEnv"):
        spec = _with_api_key(spec, wanted=node.flag(), environment=environment)
    return replace(spec, secrets=secrets_of(spec, variables.used))


def _treatment(entry: Node) -> ServerSpec:
    """All that does not say where the server is."""
    changes: dict[str, Any] = {}
    for key in ("timeout", "connectTimeout", "startTimeout", "ttl", "idleTimeout"):
        if node := entry.get(key):
            changes[_snake(key)] = node.seconds(zero=key == "idleTimeout")
    if node := entry.get("disabled"):
        changes["enabled"] = not node.flag()
    if node := entry.get("enabled"):
        changes["enabled"] = node.flag()
    if node := entry.get("prefix"):
        changes["prefix"] = node.flag()
    if node := entry.get("instance"):
        changes["instance"] = cast("Instance", node.one_of("shared", "session"))
    if tools := entry.get("tools"):
        changes.update(_tool_patterns(tools))
    if node := entry.get("keywords"):
        changes["keywords"] = {child.key: child.texts() for child in node.children()}
    return ServerSpec(name=fold_server_name(entry.key), given_name=entry.key, **changes)


def _tool_patterns(node: Node) -> dict[str, tuple[str, ...]]:
    # Other clients write a plain list here, or a map of their own; only our shape means something to us.
    if not isinstance(node.value, dict):
        return {"allow": node.texts()} if isinstance(node.value, list) else {}
    patterns = {key: child.texts() for key in ("allow", "deny") if (child := node.get(key))}
    return {key: value for key, value in patterns.items() if value}


def _address(entry: Node, variables: Variables) -> dict[str, Any]:
    command, url, kind = entry.get("command"), entry.get("url") or entry.get("serverUrl"), entry.get("type")
    transport = _TRANSPORTS[kind.one_of(*_TRANSPORTS)] if kind else ("http" if url and not command else "stdio")
    found: dict[str, Any] = {"transport": transport, "transport_guessed": kind is None}
    if transport == "stdio":
        return found | _command(entry, variables)
    if url is None:
        return found | {"problem": f'Invalid MCP server config for "{fold_server_name(entry.key)}": missing url'}
    found["url"] = variables.fill(url.text())
    if problem := url_problem(found["url"]):
        raise url.wrong(problem)
    if headers := entry.get("headers"):
        found["headers"] = {name: variables.fill(value) for name, value in headers.scalars().items()}
    return found


def _command(entry: Node, variables: Variables) -> dict[str, Any]:
    command = entry.get("command")
    if command is None or not command.text().strip():
        return {"problem": f'Invalid MCP server config for "{fold_server_name(entry.key)}": missing url'}
    found: dict[str, Any] = {"command": str(Path(variables.fill(command.text())).expanduser())}
    if node := entry.get("args"):
        found["args"] = tuple(variables.fill(argument) for argument in node.texts())
    if node := entry.get("env"):
        found["env"] = {name: variables.fill(value) for name, value in node.scalars().items()}
    if node := entry.get("cwd"):
        found["cwd"] = str(entry.file.resolve().parent / Path(variables.fill(node.text())).expanduser())
    return found


def _with_api_key(spec: ServerSpec, *, wanted: bool, environment: Mapping[str, str]) -> ServerSpec:
    key = environment.get(f"{spec.name.upper()}_API_KEY")
    return with_bearer(spec, key) if wanted and key else spec


def _snake(key: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match.group().lower()}", key)
