"""The page of the REST API, from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from docpages.generated import HOW, table
from pegboard.gateway.rest.openapi import document

INTRODUCTION = f"""# REST reference

The gateway answers JSON under `/api`. A running gateway has the same reference at `/docs`, where each request can be
tried, and for programs at `/openapi.json`.

A success is `{{"success": true, "data": …}}`. A failure is
`{{"success": false, "error": {{"code", "message", "retryable"}}}}` with a status that fits the code;
`RATE_LIMITED` (429) comes with `retryAfter` in seconds, and the header `Retry-After`. A request
with a body needs `Content-Type: application/json`.

```sh
curl http://127.0.0.1:7420/api/servers
curl "http://127.0.0.1:7420/api/tools/search?q=what+time+is+it"
curl -X POST http://127.0.0.1:7420/api/tools/time__get_current_time/call \\
  -H "Content-Type: application/json" -d '{{"arguments": {{"timezone": "UTC"}}}}'
```

## Streams

`GET /api/events` tells what changes, as server-sent events. The first event is `hello`; then each event names what is
another now: `server` (its name and state), `call` (who called what, how it went, how long it took), `tools`, `config`,
`sessions`, `logins`, `tokens`, `storage`, `memory`, `tasks`, and `changes` (of which server, and how many definitions
are to be looked at). Values are read from the other addresses, which say who
may see what; that there was something else does not show: neither what changed of a tool, nor a memory in a namespace,
that one may not see. Whoever comes back sends `Last-Event-ID`. `resync` means that
something may have been missed, and that all has to be read anew: events are kept only while somebody reads them.

A call with `Accept: text/event-stream` is answered by `progress` while it runs and `result` at the end. `input` means
that the server asks something: send the call again with the same arguments, `inputResponses` with an answer for each
of `inputRequests`, and the `requestState`. Whoever closes the stream cancels the call.

```sh
curl -N http://127.0.0.1:7420/api/events
```

![The page /docs in a browser](pictures/page.png)

{HOW}
"""


def rest_page() -> str:
    """Every operation, by the first word of its path."""
    parts = [INTRODUCTION]
    group = ""
    for path, method, operation in operations():
        if (found := group_of(path, operation)) != group:
            group = found
            parts.append(f"## {group}\n")
        parts.append(describe(path, method, operation))
    return "\n".join(parts)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation; those of one group stand together."""
    found = [
        (path, method.upper(), operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]
    groups = list(dict.fromkeys(group_of(path, operation) for path, _, operation in found))
    return iter(sorted(found, key=lambda each: groups.index(group_of(each[0], each[2]))))


def group_of(path: str, operation: dict[str, Any]) -> str:
    """The operation's own tag, else by the path."""
    if tags := operation.get("tags"):
        return str(tags[0])
    first = path.removeprefix("/api/").strip("/").split("/")[0]
    return {"memory": "Memories", "chat": "Chats", "health": "Monitoring", "metrics": "Monitoring"}.get(
        first, first.capitalize()
    )


def describe(path: str, method: str, operation: dict[str, Any]) -> str:
    """One operation: what it does, what it takes, what it answers with."""
    parts = [f"### {method} {path}\n", _sentence(str(operation.get("description") or operation["summary"])) + "\n"]
    rows = [*_parameters(operation), *_body(operation)]
    if rows:
        parts.append(table(("parameter", "in", "type", "meaning"), *rows) + "\n")
    if answer := _answer(operation):
        parts.append(f"Answer: {answer}\n")
    return "\n".join(parts)


def _parameters(operation: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in operation.get("parameters", ()):
        yield _row(each["name"], each["in"], each["schema"], each.get("description"), required=each.get("required"))


def _body(operation: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    for name, each in schema.get("properties", {}).items():
        yield _row(name, "body", each, None, required=name in schema.get("required", ()))


def _row(name: str, place: str, schema: dict[str, Any], said: str | None, *, required: bool | None) -> tuple[str, ...]:
    meaning = _cell(said or schema.get("description", ""))
    usual = f"default `{_json(schema['default'])}`" if "default" in schema else ""
    must = "required" if required and place != "path" else ""
    return (f"`{name}`", place, _type(schema), "; ".join(filter(None, (meaning, must, usual))))


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " ".join(f"`{_json(value)}`" for value in schema["enum"])
    kind = schema.get("type", schema.get("$ref", "").rpartition("/")[2] or "any")
    text = " or ".join(kind) if isinstance(kind, list) else str(kind)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return text
    return f"{text}, {least} or more" if most is None else f"{text}, {0 if least is None else least} to {most}"


def _answer(operation: dict[str, Any]) -> str:
    content = operation["responses"].get("200", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    data = schema.get("properties", {}).get("data", {})
    if names := list(data.get("properties", ())):
        return "`data` has " + ", ".join(f"`{name}`" for name in names) + "."
    return f"`{next(iter(content))}`." if content and not schema else ""


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _cell(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
