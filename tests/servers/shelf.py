"""A small MCP server over stdio that gives results as they stand in files; on the standard library alone.

Its argument is a folder: `tools.json` is what it lists, and a call of any tool with `{"file": NAME}` is answered with
what is in that file, byte for byte.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Answer until the input ends."""
    folder = Path(sys.argv[1])
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "shelf", "version": "1"},
    }
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        result, error = b"{}", b""
        match message["method"]:
            case "initialize":
                result = json.dumps(hello).encode()
            case "tools/list":
                result = (folder / "tools.json").read_bytes()
            case "tools/call":
                arguments = message["params"].get("arguments") or {}
                result = (folder / arguments["file"]).read_bytes() if "file" in arguments else echo(arguments)
            case "ping":
                pass
            case _:
                error = b'{"code":-32601,"message":"not here"}'
        answer = b'"error":' + error if error else b'"result":' + result
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,%b}\n' % (message["id"], answer))
        sys.stdout.buffer.flush()


def echo(arguments: object) -> bytes:
    """What a call without a file is answered with."""
    return json.dumps({"content": [{"type": "text", "text": json.dumps(arguments)}]}).encode()


if __name__ == "__main__":
    main()
