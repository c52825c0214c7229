"""One-click links of clients, read: the name of a server and its entry."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pegboard.client_configs.reading import UnreadableText
from pegboard.exactjson import NotJson, parse_object

_VSCODE = re.compile(r"(?:vscode|vscode-insiders|vscodium|code-oss):(?://)?mcp/install\?(.*)", re.DOTALL)
_WITH_CONFIG = re.compile(
    r"(?:cursor://[^?]*/mcp/install"
    r"|https://(?:www\.)?cursor\.com/(?:\w+/)?(?:link/)?(?:mcp/)?install(?:-mcp)?"
    r"|lmstudio://add_mcp"
    r"|(?:https://kiro\.dev/launch/mcp/add|kiro://[^?]*mcp/add)"
    r"|https://(?:insiders\.)?vscode\.dev/redirect/mcp/install)/?\?(.*)",
    re.DOTALL,
)
_REDIRECT = re.compile(r"https://(?:insiders\.)?vscode\.dev/redirect\?url=(.*)", re.DOTALL)
_PAGE = re.compile(r"https://lmstudio\.ai/install-mcp\?(.*)", re.DOTALL)
_GOOSE = re.compile(r"goose://extension\?(.*)", re.DOTALL)


def parse_link(text: str) -> dict[str, Any] | None:
    """The entry of a link, with its `name` and its `inputs`, or `None` if it is no such link; raises
    `UnreadableText`."""
    text = text.strip().strip("<>\"'`")
    if redirect := _REDIRECT.fullmatch(text):
        text = unquote(redirect[1])
        if _REDIRECT.fullmatch(text):
            raise UnreadableText("the link leads to another redirect: paste the link that it ends at")
    if link := _VSCODE.fullmatch(text):
        return _parse_json(unquote(link[1]))
    if link := _WITH_CONFIG.fullmatch(text) or _PAGE.fullmatch(text):
        return _with_config(parse_qs(link[1]))
    if link := _GOOSE.fullmatch(text):
        return _goose(parse_qs(link[1]))
    return None


def is_link(text: str) -> bool:
    """Whether a text is an address that is no server's, but one that a client would open."""
    return urlsplit(text).scheme not in {"http", "https", ""} and "://" in text


def _with_config(fields: Mapping[str, list[str]]) -> dict[str, Any]:
    config = fields.get("config", [""])[0].strip()
    if not config:
        raise UnreadableText("the link has no config")
    # A plus sign of base64 is a blank in an address.
    entry = _parse_json(config if config.startswith("{") else _decode(config.replace(" ", "+")))
    named = {"name": fields["name"][0]} if "name" in fields else {}
    inputs = {"inputs": _parse_list(fields["inputs"][0])} if "inputs" in fields else {}
    return {**named, **inputs, **entry}


def _goose(fields: Mapping[str, list[str]]) -> dict[str, Any]:
    name = (fields.get("name") or fields.get("id") or [""])[0]
    entry: dict[str, Any] = {"name": name, "timeout": fields["timeout"][0]} if "timeout" in fields else {"name": name}
    if "timeout" in entry:
        entry["timeout"] = float(entry["timeout"]) if re.fullmatch(r"\d{1,9}", entry["timeout"]) else None
    if "url" in fields:
        return {**entry, "type": fields.get("type", ["streamable_http"])[0], "url": fields["url"][0]}
    if "cmd" not in fields:
        raise UnreadableText("the link has neither a command nor an address")
    names = [each.partition("=")[0] for each in fields.get("env", [])]
    return {**entry, "command": fields["cmd"][0], "args": fields.get("arg", []), "env_keys": names}


def _decode(text: str) -> str:
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_" if re.search("[-_]", text) else None, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise UnreadableText("the config of the link is neither JSON nor base64 of it") from None


def _parse_json(text: str) -> dict[str, Any]:
    try:
        return parse_object(text)
    except NotJson:
        raise UnreadableText("the config of the link is not a JSON object") from None


def _parse_list(text: str) -> Any:
    try:
        return parse_object(f'{{"inputs": {text}}}')["inputs"]
    except NotJson:
        return []
