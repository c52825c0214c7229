"""Reads a config file and the environment into `Settings`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pegboard.config import jsonc
from pegboard.config.address import url_problem, with_bearer
from pegboard.config.aliases import ALIASES, ALL_ALIASES
from pegboard.config.dotenv import DotEnv, read_environment_file
from pegboard.config.environment import apply_environment
from pegboard.config.file import read_file
from pegboard.config.foreign_shape import SECTIONS, foreign_shape, is_nested
from pegboard.config.locate import CHANGED, trust_store
from pegboard.config.oauth import fill_oauth, list_oauth_remarks, read_oauth
from pegboard.config.oauth_spellings import OAUTH_ENTRY_KEYS
from pegboard.config.own import own_settings, remark_misplaced, tool_patterns
from pegboard.config.results import read_server_results
from pegboard.config.secrets import secrets_of
from pegboard.config.settings import CHANGE_POLICIES, LOCK_NAME, ConfigError, Instance, ServerSpec, Settings, Transport
from pegboard.config.shape import ConfigNode
from pegboard.config.value_sources import ValueSources
from pegboard.config.variables import MissingVariable, Variables
from pegboard.exactjson import as_object
from pegboard.names import correct_spelling, fold_server_name

_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
    # OpenCode's words.
    "local": "stdio",
    "remote": "http",
}
# All that an entry can say to Pegboard.
KEYS = frozenset(
    {"type", "command", "args", "env", "envFile", "cwd", "url", "headers", "oauth", "apiKeyFromEnv"}
    | {"enabled", "disabled"}
    | {"timeout", "connectTimeout", "startTimeout", "idleTimeout", "ttl", "prefix", "instance", "tools", "keywords"}
    | {"changes", "unicode"}
    | {"results"}
)
_IMPORT = "To take its servers over, run: pegboard import"


def read_settings(path: Path | None, environment: Mapping[str, str], *, needs_trust: bool = False) -> Settings:
    """The settings of a file (none is fine) together with the environment; raises `ConfigError`.

    One that needs trust is used only if it says what was trusted.
    """
    if path is None:
        return apply_environment(Settings(), environment)
    content = _read(path)
    # Asked of what was read: the file may change between any two looks at it.
    if needs_trust:
        check_trust(path, content, environment)
    settings = parse_settings(decode(content, path), path, environment, is_found=needs_trust)
    return apply_environment(replace(settings, needs_trust=needs_trust), environment)


def check_trust(path: Path, content: bytes, environment: Mapping[str, str] = os.environ) -> None:
    """A file that says something else than what was trusted is refused."""
    if not trust_store(environment).holds(path, content):
        raise ConfigError(f"{path}: it {CHANGED}")


def parse_settings(
    text: str, path: Path, environment: Mapping[str, str], *, is_found: bool = False, reads_files: bool = True
) -> Settings:
    """The settings a config text stands for, before the environment's own servers are added.

    `is_found`: nobody named the file. Text of somebody else must not make us read files or the keyring.
    """
    try:
        document = jsonc.parse(text)
    except jsonc.JsoncError as exc:
        hint = f". It seems to be TOML. {_IMPORT} {path}" if re.match(r"\s*\[mcp_servers", text) else ""
        raise ConfigError(f"{path}:{exc.line}:{exc.column}: {exc.reason}{hint}") from None
    root = ConfigNode(document, path, (), document.value)
    if shape := foreign_shape(root.members()):
        raise root.wrong(f"{shape}. {_IMPORT} {path}")
    own = root.get("pegboard")
    remarks: list[str] = []
    settings = own_settings(own, environment, remarks) if own else Settings()
    remarks += remark_misplaced(root)
    of_settings = tuple(remarks)
    dotenv = DotEnv(path.resolve().parent / ".env") if reads_files else DotEnv()
    sources = ValueSources(environment, dotenv, is_found, reads_files)
    servers = _servers(root, sources, remarks)
    remarks += [f"{dotenv.problem}"] if dotenv.problem else []
    files = frozenset(sources.files | dotenv.files)
    settings = replace(settings, path=path, servers=servers, remarks=tuple(remarks), own_remarks=of_settings)
    return replace(settings, files=files | ({path.with_name(LOCK_NAME)} if settings.has_locks else set()))


def decode(data: bytes, path: Path) -> str:
    """The text of a config file, its BOM and line endings as they are."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        before = re.split(r"\r\n|\n|\r", data[: exc.start].decode("utf-8").removeprefix("\ufeff"))
        place = f"{len(before)}:{len(before[-1]) + 1}"
        raise ConfigError(f"{path}:{place}: byte 0x{data[exc.start]:02x} is not UTF-8") from None


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror or exc}") from None


def _servers(root: ConfigNode, sources: ValueSources, remarks: list[str]) -> dict[str, ServerSpec]:
    servers: dict[str, ServerSpec] = {}
    for section in SECTIONS:
        node = root.get(section)
        for entry in node.children() if node else []:
            spec = _server_or_mistake(entry, sources)
            if spec.name in servers:
                first = servers[spec.name].given_name
                raise entry.wrong(f'and "{first}" are both "{spec.name}" in snake_case: rename one of them')
            if spec.name != spec.given_name:
                remarks.append(f'server "{spec.given_name}" is called "{spec.name}" here')
            servers[spec.name] = spec
            if not spec.malformed:
                remarks += list_oauth_remarks(entry)
    _check_prefixes(root, servers)
    return servers


def _check_prefixes(root: ConfigNode, servers: Mapping[str, ServerSpec]) -> None:
    bare = [spec.given_name for spec in servers.values() if not spec.prefix]
    if len(bare) > 1:
        raise root.wrong(f'has "prefix": false for {", ".join(bare)}: one server at most can go without a prefix')


def _server_or_mistake(entry: ConfigNode, sources: ValueSources) -> ServerSpec:
    """One server; a mistake inside its entry is its own problem, and the others go on."""
    try:
        if is_nested(entry.key, entry.value):
            raise entry.wrong(f'has servers inside: take the outer "{entry.path[0]}" away. {_IMPORT} {entry.file}')
        _check_keys(entry)
        return _server(entry, sources)
    except ConfigError as exc:
        members = as_object(entry.value) or {}
        return ServerSpec(
            name=fold_server_name(entry.key),
            given_name=entry.key,
            enabled=members.get("enabled") is not False and members.get("disabled") is not True,
            problem=str(exc),
            malformed=True,
        )


def _check_keys(entry: ConfigNode) -> None:
    """Other clients have keys of their own, which mean nothing here; one that is almost ours is a mistake."""
    members = entry.members()
    for key in members:
        meant = None if key in KEYS | ALL_ALIASES | OAUTH_ENTRY_KEYS else correct_spelling(key, KEYS)
        if meant is not None and meant not in members:
            raise ConfigNode(entry.document, entry.file, (*entry.path, key), None).wrong(f'is not a key: use "{meant}"')


def _server(entry: ConfigNode, sources: ValueSources) -> ServerSpec:
    folder = entry.file.resolve().parent
    variables = sources.variables(folder)
    spec = replace(_treatment(entry), **_address(entry))
    if spec.problem is None:
        spec = _fill_variables(spec, variables, folder)
    if spec.problem is None and spec.command is not None and (node := _env_file(entry)):
        spec = _with_env_file(spec, node.text(), variables, folder)
    if node := entry.get("apiKeyFromEnv"):
        spec = _with_api_key(spec, wanted=node.flag(), environment=sources.environment)
    return replace(spec, secrets=secrets_of(spec, variables.used))


def _treatment(entry: ConfigNode) -> ServerSpec:
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
        changes.update(tool_patterns(tools))
        if isinstance(tools.value, dict) and (node := tools.get("readOnly")):
            changes["read_only"] = node.texts()
    if results := entry.get("results"):
        changes.update(read_server_results(results))
    if node := entry.get("keywords"):
        changes["keywords"] = {child.key: child.texts() for child in node.children()}
    changes.update(_trust(entry))
    return ServerSpec(name=fold_server_name(entry.key), given_name=entry.key, **changes)


def _trust(entry: ConfigNode) -> dict[str, Any]:
    """What is let through of what it says of itself."""
    changes: dict[str, Any] = {}
    if node := entry.get("changes"):
        changes["changes"] = node.one_of(*CHANGE_POLICIES)
    if node := entry.get("unicode"):
        changes["allows_hidden_text"] = node.one_of("refuse", "allow") == "allow"
    return changes


def _address(entry: ConfigNode) -> dict[str, Any]:
    """Where the server is, as the file has it: wrong kinds are found whatever the environment says."""
    command = entry.get("command") or _other_name(entry, "command")
    url, kind = entry.get("url") or _other_name(entry, "url"), entry.get("type")
    transport = _TRANSPORTS[kind.one_of(*_TRANSPORTS)] if kind else ("http" if url and not command else "stdio")
    is_guess = kind is None or kind.value == "remote"
    found: dict[str, Any] = {"transport": transport, "transport_guessed": is_guess}
    if transport == "stdio":
        return found | _command(entry, command)
    if url is None:
        return found | {"problem": _missing_in(entry, "url")}
    found["url"] = url.text()
    if "${" not in url.text() and (problem := url_problem(url.text())):
        raise url.wrong(problem)
    if headers := entry.get("headers") or _other_name(entry, "headers"):
        found["headers"] = headers.scalars()
    return found | {"oauth": read_oauth(entry)}


def _other_name(entry: ConfigNode, key: str) -> ConfigNode | None:
    """What stands under another client's word for a key; two that say different things are a mistake."""
    first, *others = [node for alias in ALIASES[key] if (node := entry.get(alias))] or [None]
    for other in others:
        if first is not None and other is not None and other.value != first.value:
            raise other.wrong(f'and "{first.key}" mean the same key: use "{key}"')
    return first


def _command(entry: ConfigNode, command: ConfigNode | None) -> dict[str, Any]:
    if command is None:
        meant = entry.get("type") or entry.get("args")
        return {"problem": _missing_in(entry, "command" if meant else "command or url")}
    found: dict[str, Any] = {"command": command.text()}
    if node := entry.get("args") or _other_name(entry, "args"):
        found["args"] = node.texts()
    if node := entry.get("env") or _other_name(entry, "env"):
        found["env"] = node.scalars()
    if node := entry.get("cwd") or _other_name(entry, "cwd"):
        found["cwd"] = node.text()
    return found


def _fill_variables(spec: ServerSpec, variables: Variables, folder: Path) -> ServerSpec:
    """The server with its variables filled in; one without a value is this server's problem."""
    fill, fill_target = variables.fill, variables.fill_target
    reached = replace(spec, command=None, args=(), cwd=None, url=None)
    try:
        if spec.url is not None:
            url = fill_target(spec.url)
            if problem := url_problem(url):
                return replace(reached, problem=f'Invalid MCP server config for "{spec.name}": url {problem}')
            reached = replace(reached, url=url)
        if spec.command is not None:
            command = _at_home(fill_target(spec.command))
            if not command.strip():
                return replace(reached, problem=_missing(spec.name, "command"))
            cwd = None if spec.cwd is None else str(folder / _at_home(fill_target(spec.cwd)))
            reached = replace(reached, command=command, args=tuple(map(fill_target, spec.args)), cwd=cwd)
        if spec.oauth:
            oauth, problem = fill_oauth(spec.oauth, fill, fill_target)
            if problem is not None:
                return replace(reached, problem=f'Invalid MCP server config for "{spec.name}": {problem}')
            reached = replace(reached, oauth=oauth)
        env = {name: fill(value) for name, value in spec.env.items()}
        return replace(reached, env=env, headers={name: fill(value) for name, value in spec.headers.items()})
    except MissingVariable as exc:
        return replace(reached, problem=str(exc))


def _env_file(entry: ConfigNode) -> ConfigNode | None:
    return entry.get("envFile") or _other_name(entry, "envFile")


def _with_env_file(spec: ServerSpec, path: str, variables: Variables, folder: Path) -> ServerSpec:
    """The server with the variables of a file below those of its `env`; all of them are secrets."""
    if variables.base is None:
        return spec
    try:
        file = folder / _at_home(variables.fill_target(path))
        variables.files.add(file)
        found = read_environment_file(file)
    except MissingVariable as exc:
        return replace(spec, problem=str(exc))
    except (OSError, ValueError) as exc:
        return replace(spec, problem=f"envFile {path} cannot be read: {getattr(exc, 'strerror', None) or exc}")
    variables.used |= set(found.values())
    return replace(spec, env={**found, **spec.env})


def _at_home(path: str) -> str:
    try:
        # pathlib would turn ./server into server, which is looked for elsewhere.
        return os.path.expanduser(path)  # noqa: PTH111
    except ValueError:
        return path


def _missing_in(entry: ConfigNode, what: str) -> str:
    name = fold_server_name(entry.key)
    if entry.value and not entry.members().keys() - {"enabled", "disabled"}:
        # It only switches a server that the environment was to define.
        return _missing(name, "url")
    return f"{entry.place}: {_missing(name, what)}"


def _missing(name: str, what: str) -> str:
    return f'Invalid MCP server config for "{name}": missing {what}'


def _with_api_key(spec: ServerSpec, *, wanted: bool, environment: Mapping[str, str]) -> ServerSpec:
    key = environment.get(f"{spec.name.upper()}_API_KEY", "").strip()
    return with_bearer(spec, key) if wanted and key else spec


def _snake(key: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match.group().lower()}", key)
