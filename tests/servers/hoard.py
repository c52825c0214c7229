"""An MCP server over stdio on the standard library whose lists are too much, in the way that its argument names."""

from __future__ import annotations

import json
import sys
from typing import Any

MB = 1_000_000
OPEN: dict[str, Any] = {"type": "object"}


def tool(number: int, description: str = "") -> str:
    return json.dumps({"name": f"t{number}", "description": description, "inputSchema": OPEN})


def page(how: str, cursor: int) -> str:
    """The members of one page of tools."""
    match how:
        case "many":
            tools = ",".join(tool(number) for number in range(60_000))
        case "pages":
            tools = ",".join(tool(60 * cursor + number, "x" * (MB // 10)) for number in range(60))
            return f'"tools":[{tools}],"nextCursor":"{cursor + 1}"'
        case "nothing":
            tools = ",".join(["{}"] * (10 * MB))
        case "large":
            tools = ",".join(tool(number, "word " * 200) for number in range(9_000))
        case "broken":
            tools = ",".join(json.dumps({"name": f"b{number}", "inputSchema": 5}) for number in range(9_000))
        case "deep":
            tools = f"{tool(0)},{'[' * 5_000}{']' * 5_000},{tool(1)}"
        case _:
            tools = tool(0)
    return f'"tools":[{tools}]'


def main() -> None:
    how = sys.argv[1]
    lists = 0
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if number is None:
            continue
        inner = "{}"
        if method == "initialize":
            info = {"name": "hoard", "version": "1"}
            offered = {"tools": {"listChanged": True}}
            inner = json.dumps({"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info})
        elif method == "tools/list":
            lists += 1
            inner = "{" + page(how, int((message.get("params") or {}).get("cursor", 0))) + "}"
        elif method == "tools/call":
            inner = json.dumps({"content": [{"type": "text", "text": str(lists)}]})
        elif method == "server/discover":
            error = {"code": -32601, "message": "no"}
            print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
            continue
        print(f'{{"jsonrpc":"2.0","id":{number},"result":{inner}}}')
        if method == "tools/list" and how == "restless":
            sys.stdout.write('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
        sys.stdout.flush()


if __name__ == "__main__":
    main()
