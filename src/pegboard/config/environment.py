"""Servers and switches that come from environment variables alone.

`<NAME>_MCP_URL` defines or overrides a server, `<NAME>_API_KEY` is then its bearer token, and
`<NAME>_MCP_ENABLED` switches it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pegboard.config.address import url_problem, with_bearer
from pegboard.config.secrets import secrets_of
from pegboard.config.settings import ServerSpec, Settings
from pegboard.names import fold_server_name

_VARIABLE = re.compile(r"([A-Z0-9_]+)_MCP_(URL|ENABLED)")
_YES = frozenset({"true", "1", "yes", "on"})
_NO = frozenset({"false", "0", "no", "off"})


def apply_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings with the environment's servers added and its switches thrown."""
    servers = dict(settings.servers)
    for variable in sorted(name.upper() for name in _variables(environment)):
        name = fold_server_name(variable.lower())
        spec = _apply(servers.get(name), name, variable, environment)
        if spec is not None:
            servers[name] = spec
    return replace(settings, servers=servers)


def _variables(environment: Mapping[str, str]) -> set[str]:
    matches = (_VARIABLE.fullmatch(key) for key, value in environment.items() if value.strip())
    return {match.group(1) for match in matches if match}


def _apply(known: ServerSpec | None, name: str, variable: str, environment: Mapping[str, str]) -> ServerSpec | None:
    url = environment.get(f"{variable}_MCP_URL", "").strip()
    spec = known or ServerSpec(name=name, given_name=name, transport="http", transport_guessed=True)
    if url:
        problem = url_problem(url)
        spec = replace(
            spec,
            transport="http",
            transport_guessed=True,
            url=url,
            command=None,
            args=(),
            # A problem of a server whose address is known is one of its headers, and still is one.
            problem=f"{variable}_MCP_URL {problem}" if problem else (spec.problem if _stays(spec) else None),
        )
        spec = replace(spec, secrets=spec.secrets | secrets_of(spec, ()))
        if key := environment.get(f"{variable}_API_KEY", "").strip():
            spec = with_bearer(spec, key)
    spec = _apply_switch(spec, variable, environment.get(f"{variable}_MCP_ENABLED", "").strip().lower())
    if known is None and not url:
        # Switched on, but nobody said where it is; switched off, it is simply not there.
        if not spec.enabled and spec.problem is None:
            return None
        return replace(spec, problem=spec.problem or f'Invalid MCP server config for "{name}": missing url')
    return spec


def _stays(spec: ServerSpec) -> bool:
    return spec.url is not None or spec.malformed


def _apply_switch(spec: ServerSpec, variable: str, word: str) -> ServerSpec:
    if not word:
        return spec
    if word in _YES | _NO:
        return replace(spec, enabled=word in _YES)
    return replace(spec, problem=f"{variable}_MCP_ENABLED must be true or false, found {word!r}")
