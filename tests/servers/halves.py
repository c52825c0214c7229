"""An MCP server over stdio that writes half of a surrogate pair wherever it says something, as JavaScript does when it
cuts an emoji. `fail` answers with an error, `link` with links, `large` with more than a mebibyte,
`large_error` with an error of that size."""

from __future__ import annotations

import json
import sys

HALF = r"\ud83d"
ERROR = f'{{"code":-32000,"message":"cut {HALF}","data":{{"x":"{HALF}","n":1e400}}}}'
LARGE = 1_500_000
LARGE_ERROR = f'{{"code":1,"message":"{HALF}{"x" * LARGE}"}}'
_TOOLS = ",".join(
    f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}' for name in ("fail", "large", "large_error", "link")
)
RESULTS = {
    "initialize": '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},'
    f'"serverInfo":{{"name":"halves {HALF}","version":"1"}},"instructions":"cut {HALF}"}}',
    "tools/list": f'{{"tools":[{_TOOLS},{{"name":"titled","title":"cut {HALF}","description":"emoji {HALF}",'
    f'"inputSchema":{{"type":"object"}}}},{{"name":"named {HALF}","inputSchema":{{"type":"object"}}}}]}}',
    "prompts/list": f'{{"prompts":[{{"name":"p{HALF}"}},{{"name":"good","description":"{HALF}"}}]}}',
    "resources/list": f'{{"resources":[{{"uri":"pegboard://x/{HALF}","name":"n"}},{{"uri":"x://{HALF}","name":"n"}},'
    f'{{"uri":"good://x","name":"{HALF}"}}]}}',
    "resources/templates/list": f'{{"resourceTemplates":[{{"uriTemplate":"pegboard://x/{HALF}{{y}}","name":"n"}},'
    f'{{"uriTemplate":"good://{{y}}","name":"{HALF}"}}]}}',
    "ping": "{}",
}
CALLS = {
    "link": f'{{"content":[{{"type":"resource_link","uri":"pegboard://z/{HALF}","name":"l"}}]}}',
    "large": f'{{"content":[{{"type":"text","text":"{HALF}{"x" * LARGE}"}}]}}',
    "titled": '{"content":[]}',
}


def main() -> None:
    """Answer every line that is a request."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        is_call = message["method"] == "tools/call"
        result = CALLS.get(message["params"]["name"]) if is_call else RESULTS.get(message["method"])
        error = LARGE_ERROR if '"large_error"' in line else ERROR
        outcome = f'"error":{error}' if result is None else f'"result":{result}'
        print(f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{outcome}}}', flush=True)


if __name__ == "__main__":
    main()
