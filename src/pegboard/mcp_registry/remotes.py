"""Remote servers as recipes: an address and headers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pegboard.config.address import url_problem
from pegboard.host_names import host_name, is_loopback_name
from pegboard.mcp_registry.recipe import CannotRun, Ingredient, Recipe, RecipeBuilder
from pegboard.mcp_registry.server_json import RegistryTransport

_TRANSPORTS = {"streamable-http": "http", "streamable": "http", "http": "http", "sse": "sse"}
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)


def remote_recipe(remote: RegistryTransport) -> Recipe:
    """How a remote server is reached, or why it cannot be."""
    about = _host(remote.url) or remote.url
    try:
        return _recipe(remote, about)
    except CannotRun as exc:
        return Recipe(kind="remote", about=about, problem=str(exc))


def _recipe(remote: RegistryTransport, about: str) -> Recipe:
    transport = _TRANSPORTS.get(remote.type)
    if transport is None:
        raise CannotRun(f"servers of the kind {remote.type[:40]!r} are not known here")
    builder = RecipeBuilder()
    url = builder.address(remote.url, remote.variables)
    # Any value will do to see whether it is an address: it may be one of a port.
    example = "".join(part if isinstance(part, str) else "1" for part in url)
    if problem := url_problem(example):
        raise CannotRun(f"its address {problem}")
    headers = {each.name: builder.value(each.name, each) for each in remote.headers}
    _check_headers(headers)
    if remote.url.startswith("http://") and not is_loopback_name(host_name(urlsplit(example).hostname or "")):
        builder.warn("its address is not encrypted (http): whoever is on the way can read and change everything")
    return Recipe(
        kind="remote",
        about=about,
        transport=transport,
        url=url,
        headers=headers,
        questions=builder.questions,
        warnings=tuple(builder.warnings),
    )


def _host(url: str) -> str:
    """The host and port of an address; what only looks like it, behind a `?` or a `#`, is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def _check_headers(headers: dict[str, Ingredient]) -> None:
    for name in headers:
        if _HEADER.fullmatch(name) is None:
            raise CannotRun(f"{name[:80]!r} is not the name of a header")
