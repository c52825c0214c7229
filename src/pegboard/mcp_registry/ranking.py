"""Ranks the servers of a registry by name, title and description, with the index that finds tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pegboard.mcp_registry.server_json import RegistryServer

_WORD = re.compile(r"\w+")
# Two forms of a word mostly begin alike.
_STEM = 4


def rank(servers: Mapping[str, RegistryServer], query: str) -> list[RegistryServer]:
    """The servers that fit, best first; those that are deprecated come last."""
    likely = [server for server in servers.values() if _may_fit(server, _beginnings(query))]
    # What is misspelt begins like nothing: then every server is looked at, which takes seconds.
    names = _search(likely, query) or _search(servers.values(), query)
    found = [servers[name] for name in names]
    return sorted(found, key=lambda server: server.status == "deprecated")


def _search(servers: Iterable[RegistryServer], query: str) -> list[str]:
    from pegboard.search import ToolIndex

    index = ToolIndex(map(_document, servers))
    return [hit.name for hit in index.search(query, len(index))]


def _document(server: RegistryServer) -> dict[str, str]:
    fields = {"name": server.name, "server": server.publisher, "title": server.title}
    return {**fields, "description": server.description[:2000]}


def _beginnings(query: str) -> list[str]:
    return [word[:_STEM].casefold() for word in _WORD.findall(query)]


def _may_fit(server: RegistryServer, beginnings: list[str]) -> bool:
    text = f"{server.name} {server.title} {server.description[:2000]}".casefold()
    return any(beginning in text for beginning in beginnings)
