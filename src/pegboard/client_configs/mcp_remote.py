"""`mcp-remote` makes a command of an address, for clients that know only commands; Pegboard takes the address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_RUNNERS = frozenset({"npx", "bunx", "pnpx", "pnpm", "npm", "yarn", "bun", "deno"})
_RUNNER_WORDS = frozenset({"-y", "--yes", "-q", "--quiet", "dlx", "exec", "x", "--"})
_PACKAGE = re.compile(r"mcp-remote(?:@[\w.^~-]+)?")
_TRANSPORTS = {"sse-only": "sse", "http-only": "http", "sse-first": "", "http-first": ""}
# Options that change nothing about where the server is.
_QUIET_FLAGS = frozenset({"--allow-http", "--debug", "--silent"})
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def open_mcp_remote(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry with the address in place of the command, or `None` where it is no such command, or one with options
    that Pegboard has nothing for."""
    words = _words_behind([entry.get("command", ""), *entry.get("args", ())])
    if words is None:
        return None
    url = next((word for word in words if re.match(r"https?://", word)), None)
    options = _options(word for word in words if word != url)
    if url is None or options is None:
        return None
    kind, headers, ignored = options
    env: Mapping[str, str] = entry.get("env", {})
    used = {name for value in headers.values() for name in _VARIABLE.findall(value)}
    if env.keys() - used:
        # A proxy, a folder for its sign-in: it is more than an address.
        return None
    found: dict[str, Any] = {"type": kind} if kind else {}
    found["url"] = url
    if headers:
        found["headers"] = {name: _fill(value, env) for name, value in headers.items()}
    if ignored:
        found["tools"] = {"deny": ignored}
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


def _options(words: Iterable[str]) -> tuple[str, dict[str, str], list[str]] | None:
    """The transport, the headers and the tools to leave out; `None` if there is anything else."""
    kind, headers, ignored = "", dict[str, str](), list[str]()
    rest = iter(words)
    for word in rest:
        if word in _QUIET_FLAGS:
            continue
        value = next(rest, "")
        name, colon, text = value.partition(":")
        if word == "--header" and colon:
            headers[name.strip()] = text.strip()
        elif word == "--transport" and value in _TRANSPORTS:
            kind = _TRANSPORTS[value]
        elif word == "--ignore-tool" and value:
            ignored.append(value)
        else:
            return None
    return kind, headers, ignored


def _fill(value: str, env: Mapping[str, str]) -> str:
    """mcp-remote fills in variables of its own environment; what is not there stays a variable of ours."""
    # The translation wrote `$${X}` where the client itself leaves `${X}` alone.
    return re.sub(r"\$?\$\{(\w+)\}", lambda match: env.get(match[1], f"${{{match[1]}}}"), value)
