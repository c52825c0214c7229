"""Addresses of the page's screens: a command names the one that fits, where a gateway runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode


def page_link(url: str, *parts: str, **query: str) -> str:
    """The address of a screen at the gateway of this address: `page_link(url, "servers", "git", tab="log")`."""
    path = "/".join(quote(part, safe="", errors="replace") for part in parts)
    return f"{url}/#/{path}{f'?{urlencode(query)}' if query else ''}"


def find_page(config: Path, *parts: str, **query: str) -> str:
    """The address of a screen at the gateway that serves this config; empty where none runs."""
    from pegboard.cli.http_transport import find_running

    running = find_running(config)
    return page_link(running.url, *parts, **query) if running is not None else ""
