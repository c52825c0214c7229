"""A server that says what a file says at the moment, over stdio: `python shifting.py FILE`.

The file is JSON: `version`, `instructions`, `tools`, `prompts`, `templates`, `resources`; lists in `broken` are
refused, and lists in `silent` are not answered for. `counted` is a file that has a letter for each list of tools; then
descriptions end with their number. A call answers with the arguments it was given, as text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LISTS = {
    "tools/list": ("tools", "tools"),
    "prompts/list": ("prompts", "prompts"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("templates", "resourceTemplates"),
}


def answer(message: dict[str, Any], said: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; `None` for what is not known here."""
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        hello: dict[str, Any] = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
            "serverInfo": {"name": "shifting", "version": said.get("version", "1")},
        }
        if "instructions" in said:
            hello["instructions"] = said["instructions"]
        return hello
    if method in LISTS:
        key, field = LISTS[method]
        if key in said.get("broken", ()):
            return None
        items = said.get(key, [])
        return {field: count(items, Path(said["counted"])) if "counted" in said and key == "tools" else items}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}
    if method == "prompts/get":
        return {"messages": []}
    return {} if method == "ping" else None


def count(tools: list[Any], file: Path) -> list[Any]:
    """The tools with another description each time."""
    with file.open("a") as counter:
        counter.write("x")
    return [{**tool, "description": f"{tool['description']} {file.stat().st_size}"} for tool in tools]


def is_silent(method: str, said: dict[str, Any]) -> bool:
    """Whether a request is not answered."""
    return method in LISTS and LISTS[method][0] in said.get("silent", ())


def main(file: Path) -> None:
    """Answer line by line."""
    for line in sys.stdin:
        message, said = json.loads(line), json.loads(file.read_text("utf-8"))
        if "id" not in message or "method" not in message or is_silent(message["method"], said):
            continue
        result = answer(message, said)
        error = {"code": -32601, "message": f"{message['method']} is not known"}
        reply = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
