"""Whatever a server or a client sends, nobody holds the event loop: no callback takes long, and others are served."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from harness import HERE, Entry, eventually, http_client, open_gateway, toy
from loopwatch import LoopWatch, loopwatch, served_during
from pegboard.catalog.uri_template import MAX_TEMPLATES
from pegboard.servers.transports.streamable_http import StreamableHttpTransport

pytestmark = pytest.mark.anyio

HOSTILE = HERE / "servers" / "hostile.py"
# As events of a stream, and as lines of a pipe.
FLOODS = ["log flood", "progress flood", "no json", "pings", "batch", "nothing", "one id"]
VALUES = ["lists", "objects", "deep", "many keys", "odd numbers", "wrong id"]
MESSAGES = [*FLOODS, *VALUES]
STREAMS = ["line ends", "packed line ends", "lines", "data lines", "empty events", "tiny chunks", "headers", "status"]
ATTACKS = [
    *(("http", each) for each in STREAMS),
    *(("http", f"events:{each}") for each in MESSAGES),
    *(("stdio", f"lines:{each}") for each in MESSAGES),
    *(("http", f"json:{each}") for each in ("batch", "lists", "objects", "deep")),
]


# A text of 30 MB, or 20 MB of a log line. To read it, and to write it, is one call of a library in C each.
LARGE_ATTACKS = [
    (transport, f"{kind}:{attack}")
    for transport, kind in (("http", "json"), ("http", "events"), ("stdio", "lines"))
    for attack in ("large", "huge notification", "huge error")
    if (kind, attack) != ("json", "huge notification")
]
LARGE_LIMIT = 0.1


@pytest.fixture
def hostile_url() -> Generator[str]:
    """A hostile server over HTTP, in a process of its own."""
    command = [sys.executable, "-I", "-S", str(HOSTILE), "http"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        process.stdin.close()


@pytest.mark.parametrize(("transport", "attack"), ATTACKS)
async def test_others_are_served_during_an_attack(
    transport: str, attack: str, hostile_url: str, tmp_path: Path
) -> None:
    """The attack costs the one who called it what it costs; another client's calls of another server go on."""
    watch = await _watched(transport, attack, hostile_url, tmp_path)
    watch.check()


@pytest.mark.parametrize(("transport", "attack"), LARGE_ATTACKS)
async def test_a_large_message_is_taken_in_slices(
    transport: str, attack: str, hostile_url: str, tmp_path: Path
) -> None:
    """No callback goes over all of a large message more than once or twice."""
    watch = await _watched(transport, attack, hostile_url, tmp_path)
    watch.check(LARGE_LIMIT)


@pytest.mark.parametrize("attack", ["large", "large records"])
@pytest.mark.parametrize(("transport", "kind"), [("http", "json"), ("http", "events"), ("stdio", "lines")])
async def test_a_large_result_is_abridged_beside_others(
    transport: str, kind: str, attack: str, hostile_url: str, tmp_path: Path
) -> None:
    """Also while a thread reads all of it, and while all of it is kept."""
    own = {"results": {"cap": 20_000}, "toolsets": ["discovery", "results"]}
    watch = await _watched(transport, f"{kind}:{attack}", hostile_url, tmp_path, **own)
    watch.check(LARGE_LIMIT)


async def test_thousands_of_prompts_and_resources_are_taken_in_slices(tmp_path: Path) -> None:
    """They are read, given their names, and taken out again while others are served."""
    hostile: Entry = {"command": sys.executable, "args": ["-I", "-S", str(HOSTILE), "stdio", "library"]}
    servers = {"good": toy(tools=["echo"]), "hostile": hostile}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as other:
        await gateway.board.refresh(["good"])
        await other.call("good__echo", {})
        with loopwatch() as watch:
            discovery, library = gateway.board.discovery, gateway.board.library
            assert await served_during(discovery.discover("hostile"), lambda: other.call("good__echo", {})) > 1
            await eventually(lambda: library.knows("hostile"))
            assert len(library.prompts.entries) == len(library.resources.entries) == 10_000
            await discovery.put_away("hostile")
            assert not library.prompts.entries
    watch.check()


async def test_whose_a_resource_is_among_hundreds_of_templates(tmp_path: Path) -> None:
    """Each link of an answer, and what is read, is compared with all of them; others are served meanwhile."""
    hostile: Entry = {"command": sys.executable, "args": ["-I", "-S", str(HOSTILE), "stdio", "library"]}
    async with (
        open_gateway(tmp_path, {"hostile": hostile, "good": toy(tools=["echo"])}) as gateway,
        http_client(gateway.mcp, listen=False) as other,
    ):
        await other.until_listed(lambda names: {"good__echo", "hostile__attack"} <= names)
        await eventually(lambda: len(gateway.board.library.templates.entries) == MAX_TEMPLATES)
        await other.call("good__echo", {})
        with loopwatch() as watch:
            headers = cast("StreamableHttpTransport", other.link.transport)._session_headers()
            linked = _call(gateway.mcp, headers, "lines:links")
            assert await served_during(linked, lambda: other.call("good__echo", {})) > 1
            read = other.request("resources/read", {"uri": "t" + "a" * 4000 + "0"})
            assert await served_during(read, lambda: other.call("good__echo", {})) > 1
    watch.check()


async def _watched(transport: str, attack: str, hostile_url: str, tmp_path: Path, **own: Any) -> LoopWatch:
    hostile: Entry = {"type": "http", "url": hostile_url}
    if transport == "stdio":
        hostile = {"command": sys.executable, "args": ["-I", "-S", str(HOSTILE), "stdio"]}
    servers = {"hostile": hostile, "good": toy(tools=["echo"])}
    async with (
        open_gateway(tmp_path, servers, **own) as gateway,
        http_client(gateway.mcp, listen=False) as caller,
        http_client(gateway.mcp, listen=False) as other,
    ):
        await other.until_listed(lambda names: {"good__echo", "hostile__attack"} <= names)
        await other.call("good__echo", {})
        await caller.call("hostile__attack", {"attack": "nothing special"})
        with loopwatch() as watch:
            wire = cast("StreamableHttpTransport", caller.link.transport)
            under_way = _call(gateway.mcp, wire._session_headers(), attack)
            served = await served_during(under_way, lambda: other.call("good__echo", {}))
    assert served > 1
    return watch


async def _call(url: str, headers: Mapping[str, str], attack: str) -> None:
    """Call the hostile tool from another process: what the caller does about the answer is not the gateway's work."""
    params = {"name": "hostile__attack", "arguments": {"attack": attack}}
    body = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
    headers = {**headers, "accept": "application/json, text/event-stream", "content-type": "application/json"}
    command = [sys.executable, "-I", "-S", "-c", CALLER, url, json.dumps(headers), json.dumps(body)]
    process = await asyncio.create_subprocess_exec(*command)
    await process.wait()


CALLER = """
import json, sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[3].encode(), json.loads(sys.argv[2]))
with urllib.request.urlopen(request, timeout=100) as response:
    while response.read(1000000):
        pass
"""


# Combining marks in an order that they do not stay in, and the character that becomes 18 when it is decomposed.
MARKS, PHRASE = "a" + "\u0301\u0316" * 20_000, "\ufdfa" * 200_000
# About a megabyte of arguments each: most of it is wrong.
NAMES = [f"k{number}" for number in range(90_000)]
LINKS = [{"key": name, "weight": 1} for name in NAMES[:25_000]]
CLIENTS_ATTACKS: dict[str, tuple[str, Any]] = {
    "links that are none": ("memory_add", {"key": "a", "text": "a", "links": NAMES}),
    "too many links": ("memory_add", {"key": "a", "text": "a", "links": LINKS}),
    "many keywords": ("memory_fulltext_search", {"keywords": NAMES}),
    "many keywords in a text": ("memory_fulltext_search", {"keywords": ",".join(NAMES)[:200_000]}),
    "many tools": ("tool_load", {"names": NAMES}),
    "many names of parameters": ("memory_get", dict.fromkeys(NAMES[:30_000], 1)),
    "arguments of arguments": ("tool_call", {"name": "good__echo", "arguments": [[each] for each in NAMES]}),
    "a notification of marks": ("notifications/" + MARKS, None),
    "a server of marks": ("tools/list", {"_meta": {"pegboard/server": MARKS * 10}}),
    "a prompt of marks": ("prompts/get", {"name": MARKS * 10}),
    "a query of marks": ("tool_find", {"query": MARKS}),
    "a query of phrases": ("tool_find", {"query": PHRASE[:20_000]}),
    "a question of marks": ("memory_search", {"query": MARKS}),
    "keywords of marks": ("memory_fulltext_search", {"keywords": [MARKS]}),
    "a text of marks": ("memory_add", {"key": "marks", "text": f"note {MARKS * 4}"}),
    "a text of phrases": ("memory_add", {"key": "phrases", "text": f"note {PHRASE[:199_000]}"}),
    "a memory of marks": ("memory_search", {"query": "remembered"}),
}


@pytest.mark.parametrize("attack", CLIENTS_ATTACKS)
async def test_others_are_served_during_a_clients_attack(attack: str, tmp_path: Path) -> None:
    """One message of a few hundred kilobytes costs its sender what it costs."""
    named, arguments = CLIENTS_ATTACKS[attack]
    is_method = "/" in named
    message = {"method": named} if is_method else {"method": "tools/call"}
    params = arguments if is_method else {"name": named, "arguments": arguments}
    body = {"jsonrpc": "2.0", **({} if params is None else {"id": 77, "params": params}), **message}
    text = json.dumps(body, ensure_ascii=False).encode()
    own = {"toolsets": ["discovery", "memory"], "storage": f"sqlite:{tmp_path / 'own.db'}"}
    async with (
        open_gateway(tmp_path, {"good": toy(tools=["echo"])}, **own) as gateway,
        http_client(gateway.mcp, listen=False) as caller,
        http_client(gateway.mcp, listen=False) as other,
    ):
        await other.until_listed(lambda names: {"good__echo", "memory_add"} <= names)
        await other.call("good__echo", {})
        await other.call("tool_find", {"query": "echo"})
        known = f"remembered {MARKS * 4}" if attack == "a memory of marks" else "remembered"
        await other.call("memory_add", {"key": "known", "text": known})
        await other.call("memory_search", {"query": "known"})
        with loopwatch() as watch:
            headers = cast("StreamableHttpTransport", caller.link.transport)._session_headers()
            served = await served_during(_post(gateway.mcp, headers, text), lambda: other.call("good__echo", {}))
    assert served > 1
    watch.check()


async def _post(url: str, headers: Mapping[str, str], body: bytes) -> None:
    """Send a message from another process, whatever the answer is."""
    headers = {**headers, "accept": "application/json, text/event-stream", "content-type": "application/json"}
    command = [sys.executable, "-I", "-S", "-c", POSTER, url, json.dumps(headers)]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    await process.communicate(body)
    assert process.returncode == 0


POSTER = """
import json, sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), json.loads(sys.argv[2]))
try:
    with urllib.request.urlopen(request, timeout=100) as response:
        response.read()
except urllib.error.HTTPError as refused:
    refused.read()
"""
