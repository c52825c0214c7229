"""What an echo server says in both protocol eras; run as a program it is one over stdio.

    python -I -S echo.py [--name NAME] [--tools N] [--era handshake|modern|both] [--cores N,N]

Only the standard library, so that it starts in a moment, and strings put together by hand, so that it is never what a
measurement waits for.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Literal, cast

Era = Literal["handshake", "modern"]
ERAS: tuple[Era, ...] = ("handshake", "modern")
VERSIONS: dict[Era, str] = {"handshake": "2025-11-25", "modern": "2026-07-28"}
META = "io.modelcontextprotocol/"
METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_VERSION, HEADER_MISMATCH = -32601, -32602, -32022, -32020
TTL_MS = 300_000
_PADDING = "x" * 1_000_000
_READ = 1 << 20


class Echo:
    """One server: `echo` is the first of its tools, the others are only there to be listed."""

    def __init__(self, name: str = "echo", tools: int = 1, era: str = "both") -> None:
        self.eras: tuple[Era, ...] = ERAS if era == "both" else (cast("Era", era),)
        info = {"name": name, "version": "1"}
        self._info = info
        stamp = f'"resultType":"complete","_meta":{{"{META}serverInfo":{json.dumps(info)}}}'
        caching = f'"ttlMs":{TTL_MS},"cacheScope":"public"'
        listed = json.dumps([_tool(name, number) for number in range(tools)])
        known = f'"supportedVersions":["{VERSIONS["modern"]}"],"capabilities":{{"tools":{{}}}}'
        # Results that are always the same, by era and method.
        self._fixed: dict[Era, dict[str, str]] = {
            "handshake": {"tools/list": f'{{"tools":{listed}}}', "ping": "{}"},
            "modern": {
                "tools/list": f'{{{stamp},{caching},"tools":{listed}}}',
                "server/discover": f"{{{stamp},{caching},{known}}}",
            },
        }
        self._before_content: dict[Era, str] = {"handshake": "{", "modern": f"{{{stamp},"}

    def answer(self, line: bytes) -> bytes | None:
        """The reply to a line, if it wants one."""
        return self.reply(json.loads(line))

    def reply(self, message: dict[str, Any]) -> bytes | None:
        """The reply to a message, if it wants one."""
        if "id" not in message or "method" not in message:
            return None
        method, params = message["method"], message.get("params") or {}
        result = self._result(method, params)
        kind = "result" if isinstance(result, str) else "error"
        said = result if isinstance(result, str) else json.dumps(result)
        return f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"{kind}":{said}}}'.encode()

    def _result(self, method: str, params: dict[str, Any]) -> str | dict[str, Any]:
        era = era_of(params)
        if era not in self.eras:
            return self._other_era(method)
        if method == "tools/call":
            return self._call(era, params)
        if method == "initialize" and era == "handshake":
            return self._initialized(params)
        return self._fixed[era].get(method) or {"code": METHOD_NOT_FOUND, "message": f"there is no {method}"}

    def _other_era(self, method: str) -> dict[str, Any]:
        if "modern" in self.eras:
            supported = {"supported": [VERSIONS["modern"]], "requested": VERSIONS["handshake"]}
            return {"code": UNSUPPORTED_VERSION, "message": "only the modern era", "data": supported}
        return {"code": METHOD_NOT_FOUND, "message": f"there is no {method}"}

    def _initialized(self, params: dict[str, Any]) -> str:
        version = params.get("protocolVersion") or VERSIONS["handshake"]
        said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": self._info}
        return json.dumps(said)

    def _call(self, era: Era, params: dict[str, Any]) -> str | dict[str, Any]:
        if params.get("name") != "echo":
            return {"code": INVALID_PARAMS, "message": f"there is no tool {params.get('name')}"}
        arguments = params.get("arguments") or {}
        text: str = arguments.get("text", "")
        padding = _PADDING[: max(0, arguments.get("size", 0) - len(text))]
        said = f'{json.dumps(text)[:-1]}{padding}"'
        return f'{self._before_content[era]}"content":[{{"type":"text","text":{said}}}],"isError":false}}'


def era_of(params: dict[str, Any]) -> Era:
    """The era that a request is of."""
    return "modern" if f"{META}protocolVersion" in (params.get("_meta") or {}) else "handshake"


def _tool(server: str, number: int) -> dict[str, Any]:
    """A tool about as wordy as real ones are."""
    if number == 0:
        properties: dict[str, Any] = {"text": {"type": "string"}, "size": {"type": "integer"}}
        schema = {"type": "object", "properties": properties, "required": ["text"]}
        return {"name": "echo", "description": "Says again what it was told.", "inputSchema": schema}
    properties = {
        "path": {"type": "string", "description": "Where to look, relative to the root of the workspace."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50, "description": "At most so many."},
        "kind": {"type": "string", "enum": ["file", "folder", "link"], "description": "What is looked for."},
        "filters": {
            "type": "array",
            "items": {"type": "object", "properties": {"field": {"type": "string"}, "value": {"type": "string"}}},
        },
    }
    return {
        "name": f"tool_{number:04}",
        "title": f"Tool {number} of {server}",
        "description": f"Number {number} of the tools of {server}: looks up entries that match and tells of each.",
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": ["path"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def options() -> argparse.ArgumentParser:
    """What an echo server can be told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="echo")
    parser.add_argument("--tools", type=int, default=1)
    parser.add_argument("--era", choices=(*ERAS, "both"), default="both")
    parser.add_argument("--cores", default="", help="run on these, with commas between, whoever starts it")
    return parser


def serve_stdio(echo: Echo) -> None:
    """Answer lines, all that are there at once, until there are no more."""
    rest = b""
    while data := os.read(0, _READ):
        *lines, rest = (rest + data).split(b"\n")
        answers = [answer for line in lines if line.strip() and (answer := echo.answer(line)) is not None]
        if answers:
            _write(b"\n".join(answers) + b"\n")


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    """Be an echo server over stdio."""
    given = options().parse_args()
    if given.cores:
        os.sched_setaffinity(0, {int(core) for core in given.cores.split(",")})
    serve_stdio(Echo(given.name, given.tools, given.era))


if __name__ == "__main__":
    main()
