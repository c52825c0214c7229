"""An MCP server over stdio that never reads a value: it gives back the bytes that it was given.

`echo` answers with its arguments, `nan` with what is not JSON. The definition of `echo` has odd values too. `talk`
tells of its progress, asks, and answers with what it was answered. Each argument of the command is the definition of
one more tool, which does what `echo` does.
"""

from __future__ import annotations

import json
import sys

ODD = r'{"big":1e400,"long":0.1000000000000000055511151231257827,"half":"\ud800"}'
_READER = json.JSONDecoder(parse_int=str, parse_float=str)
_SCHEMA = f'{{"type":"object","properties":{{"x":{{"default":{ODD}}}}}}}'


def member_of(line: str, name: str) -> str:
    """A member of a message, as it stands in it."""
    start = line.find(f'"{name}":')
    if start < 0:
        return "{}"
    start += len(f'"{name}":')
    start += len(line[start:]) - len(line[start:].lstrip())
    return line[start : _READER.raw_decode(line, start)[1]]


def talk(line: str) -> str:
    """Say something with odd values, ask for some, and answer with them."""
    told = f'{{"progressToken":{member_of(line, "progressToken")},"progress":0.50000000000000000000,"odd":{ODD}}}'
    print(f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{told}}}', flush=True)
    asked = f'{{"message":"?","requestedSchema":{{"type":"object","properties":{{}}}},"odd":{ODD}}}'
    print(f'{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{asked}}}', flush=True)
    while '"method"' in (answer := sys.stdin.readline()):
        pass
    return f'{{"content":[],"structuredContent":{member_of(answer, "result")}}}'


def result(message: dict[str, object], line: str) -> str | None:
    """The result of a request, as text."""
    match message.get("method"):
        case "initialize":
            return (
                '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
                '"serverInfo":{"name":"verbatim","version":"1"}}'
            )
        case "tools/list":
            others = ",".join(f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}' for name in ("nan", "talk"))
            more = "".join(f",{definition}" for definition in sys.argv[1:])
            return f'{{"tools":[{{"name":"echo","inputSchema":{_SCHEMA}}},{others}{more}]}}'
        case "tools/call" if '"nan"' in line:
            return '{"content":[],"structuredContent":{"n":NaN}}'
        case "tools/call" if '"talk"' in line:
            return talk(line)
        case "tools/call":
            given = member_of(line, "arguments")
            text = json.dumps(given)
            return f'{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{{"echo":{given}}}}}'
        case "ping":
            return "{}"
        case _:
            return None


def main() -> None:
    """Answer every line that is a request."""
    for line in sys.stdin:
        message = json.loads(line, parse_int=str, parse_float=str)
        if "id" not in message or "method" not in message:
            continue
        found = result(message, line)
        error = '{"code":-32601,"message":"unknown"}'
        outcome = f'"error":{error}' if found is None else f'"result":{found}'
        print(f'{{"jsonrpc":"2.0","id":{message["id"]},{outcome}}}', flush=True)


if __name__ == "__main__":
    main()
