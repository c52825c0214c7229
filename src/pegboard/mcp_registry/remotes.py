"""Remote servers as recipes: an address and headers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pegboard.host_names import host_name, is_loopback_name
from pegboard.mcp_registry.recipe import CannotRun, Ingredient, Recipe, RecipeBuilder
from pegboard.mcp_registry.server_json import RegistryTransport

_TRANSPORTS = {"streamable-http": "http", "streamable": "http", "http": "http", "sse": "sse"}
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)


def remote_recipe(remote: RegistryTransport) -> Recipe:
    """How a remote server is reached, or why it cannot be."""
    about = urlsplit(remote.url).netloc.rpartition("@")[2] if "://" in remote.url else remote.url
    try:
        return _recipe(remote, about)
    except (CannotRun, ValueError) as exc:
        return Recipe(kind="remote", about=about, problem=str(exc))


def _recipe(remote: RegistryTransport, about: str) -> Recipe:
    transport = _TRANSPORTS.get(remote.type)
    if transport is None:
        raise CannotRun(f"servers of the kind {remote.type[:40]!r} are not known here")
    if not remote.url.startswith(("http://", "https://")):
        raise CannotRun(f"{remote.url[:200]!r} is not an http:// or https:// address")
    builder = RecipeBuilder()
    url = builder.address(remote.url, remote.variables)
    headers = {each.name: builder.value(each.name, each) for each in remote.headers}
    _check_headers(headers)
    host = host_name(urlsplit(remote.url.replace("{", "").replace("}", "")).hostname or "")
    if remote.url.startswith("http://") and not is_loopback_name(host):
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


def _check_headers(headers: dict[str, Ingredient]) -> None:
    for name in headers:
        if _HEADER.fullmatch(name) is None:
            raise CannotRun(f"{name[:80]!r} is not the name of a header")
