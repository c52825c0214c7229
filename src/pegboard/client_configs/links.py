"""One-click links: addresses that make a client program offer to add a server."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, urlencode

from pegboard.client_configs.program import Entry, LinkBuilder


def vscode_link(scheme: str) -> LinkBuilder:
    """A link builder for VS Code or a program made from it, which has a scheme of its own."""

    def link(name: str, entry: Entry) -> str:
        return f"{scheme}:mcp/install?{_quote_json({'name': name, **entry})}"

    return link


def cursor_link(name: str, entry: Entry) -> str:
    """A link that Cursor opens."""
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{_encode_config(name, entry)}"


def lm_studio_link(name: str, entry: Entry) -> str:
    """A link that LM Studio opens."""
    return f"lmstudio://add_mcp?{_encode_config(name, entry)}"


def kiro_link(name: str, entry: Entry) -> str:
    """A page that opens Kiro."""
    return f"https://kiro.dev/launch/mcp/add?name={quote(name, safe='')}&config={_quote_json(entry)}"


def goose_link(name: str, entry: Entry) -> str:
    """A link that Goose opens; of commands it takes few, so that the entry must have an address."""
    fields = {
        "type": str(entry["type"]),
        "url": str(entry["uri"]),
        "id": name,
        "name": name,
        "description": "All tools of Pegboard",
    }
    return f"goose://extension?{urlencode(fields, quote_via=quote)}"


def _quote_json(value: Entry) -> str:
    return quote(json.dumps(dict(value), ensure_ascii=False, separators=(",", ":")), safe="")


def _encode_config(name: str, entry: Entry) -> str:
    config = base64.b64encode(json.dumps(dict(entry), separators=(",", ":")).encode()).decode()
    return f"name={quote(name, safe='')}&config={quote(config, safe='')}"
