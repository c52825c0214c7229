"""The options of `mcp-remote` that Pegboard has something for: transport, headers, tools to leave out, and its
sign-in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pegboard import exactjson

_TRANSPORTS = {"sse-only": "sse", "http-only": "http", "sse-first": "", "http-first": ""}
# Options that change nothing about where the server is.
_QUIET_FLAGS = frozenset({"--allow-http", "--debug", "--silent"})
_QUIET_VALUES = frozenset({"--auth-timeout"})
_PORT = re.compile(r"[0-9]{1,5}")


@dataclass(slots=True)
class McpRemoteOptions:
    """What the options say."""

    transport: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    ignored_tools: list[str] = field(default_factory=list[str])
    # The `oauth` section, as far as there is one.
    oauth: dict[str, Any] = field(default_factory=dict[str, Any])
    _host: str = "localhost"
    _port: str = ""
    _path: str = "/oauth/callback"

    @classmethod
    def read(cls, words: Iterable[str]) -> McpRemoteOptions | None:
        """The options, or `None` if there is one that Pegboard has nothing for."""
        options = cls()
        return options if options.take_all(words) else None

    def take_all(self, words: Iterable[str]) -> bool:
        """Take these options; false where there is one that Pegboard has nothing for."""
        rest = iter(words)
        for word in rest:
            if word in _QUIET_FLAGS:
                continue
            if word == "--disable-resource-parameter":
                self.oauth["resource"] = False
            elif _PORT.fullmatch(word) and not self._port:
                self._port = word
            elif not self._take(word, next(rest, "")):
                return False
        if self._port and "clientId" in self.oauth:
            # A client that was registered by hand has this address there.
            self.oauth["redirectUri"] = f"http://{self._host}:{self._port}{self._path}"
        return True

    def _take(self, option: str, value: str) -> bool:
        name, colon, text = value.partition(":")
        match option:
            case "--header" if colon:
                self.headers[name.strip()] = text.strip()
            case "--transport" if value in _TRANSPORTS:
                self.transport = _TRANSPORTS[value]
            case "--ignore-tool" if value:
                self.ignored_tools.append(value)
            case "--host" if value:
                self._host = value
            case "--callback-path" if value.startswith("/"):
                self._path = value
            case _:
                return self._take_sign_in(option, value)
        return True

    def _take_sign_in(self, option: str, value: str) -> bool:
        name, equals, text = value.partition("=")
        match option:
            case "--resource" if value:
                self.oauth.setdefault("resource", value)
            case "--authorize-param" if name and equals:
                self.oauth.setdefault("params", {})[name.strip()] = text
            case "--static-oauth-client-info":
                return self._take_members(value, {"client_id": "clientId", "client_secret": "clientSecret"})
            case "--static-oauth-client-metadata":
                return self._take_members(value, {"scope": "scopes"})
            case _:
                return option in _QUIET_VALUES
        return True

    def _take_members(self, value: str, keys: dict[str, str]) -> bool:
        """Members of a JSON object; one in a file is not ours to read."""
        try:
            members = exactjson.parse_object(value)
        except exactjson.NotJson:
            return False
        self.oauth |= {own: members[key] for key, own in keys.items() if isinstance(members.get(key), str)}
        return True
