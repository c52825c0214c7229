"""`mcp-remote` makes a command of an address, for clients that know only commands; Pegboard takes the address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.client_configs.mcp_remote_options import McpRemoteOptions
from pegboard.exactjson import as_list, as_object

_RUNNERS = frozenset({"npx", "bunx", "pnpx", "pnpm", "npm", "yarn", "bun", "deno"})
_RUNNER_WORDS = frozenset({"-y", "--yes", "-q", "--quiet", "dlx", "exec", "x", "--"})
_PACKAGE = re.compile(r"mcp-remote(?:@[\w.^~-]+)?")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def open_mcp_remote(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry with the address in place of the command, or `None` where it is no such command, or one with options
    that Pegboard has nothing for."""
    words = _words_behind([entry.get("command", ""), *entry.get("args", ())])
    if words is None:
        return None
    url = next((word for word in words if re.match(r"https?://", word)), None)
    options = McpRemoteOptions.read(word for at, word in enumerate(words) if at != words.index(url)) if url else None
    if url is None or options is None:
        return None
    env: Mapping[str, str] = entry.get("env", {})
    used = {name for value in _texts([options.headers, options.oauth]) for name in _VARIABLE.findall(value)}
    if env.keys() - used:
        # A proxy, a folder for its sign-in: it is more than an address.
        return None
    found: dict[str, Any] = {"type": options.transport} if options.transport else {}
    found["url"] = url
    if options.headers:
        found["headers"] = _fill_all(options.headers, env)
    if options.oauth:
        found["oauth"] = _fill_all(options.oauth, env)
    if options.ignored_tools:
        found["tools"] = {"deny": options.ignored_tools}
    others = {key: value for key, value in entry.items() if key not in {"command", "args", "env", "cwd", "type"}}
    if "startTimeout" in others:
        others["connectTimeout"] = others.pop("startTimeout")
    return {**found, **others}


def _words_behind(command: list[str]) -> list[str] | None:
    """What stands behind `mcp-remote` in a command line, if it is one of mcp-remote."""
    program = re.split(r"[/\\]", command[0])[-1].lower().removesuffix(".exe").removesuffix(".cmd")
    words = command[1:]
    if program == "cmd" and words[:1] and words[0].lower() == "/c":
        return _words_behind(words[1:]) if words[1:] else None
    if _PACKAGE.fullmatch(program):
        return words
    if program not in _RUNNERS:
        return None
    while words and words[0] in _RUNNER_WORDS:
        words = words[1:]
    return words[1:] if words and _PACKAGE.fullmatch(words[0]) else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in as_list(value) or (as_object(value) or {}).values():
        yield from _texts(each)


def _fill_all(value: Any, env: Mapping[str, str]) -> Any:
    if (members := as_object(value)) is not None:
        return {name: _fill_all(each, env) for name, each in members.items()}
    return _fill(value, env) if isinstance(value, str) else value


def _fill(value: str, env: Mapping[str, str]) -> str:
    """mcp-remote fills in variables of its own environment; what is not there stays a variable of ours."""
    # The translation wrote `$${X}` where the client itself leaves `${X}` alone.
    return re.sub(r"\$?\$\{(\w+)\}", lambda match: env.get(match[1], f"${{{match[1]}}}"), value)
