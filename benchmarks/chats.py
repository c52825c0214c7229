"""Chats at size: ten thousand made-up sessions, about 1 GB, read, kept and asked for.

`python -m benchmarks.chats [SESSIONS]`. Half are documents and half are logs, of five requests each; most of a file
is what nobody looks at, as in life.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pegboard.log import configure
from pegboard.toolsets.chats.chats import Chats, local_sources
from pegboard.toolsets.chats.index import ChatIndex
from pegboard.toolsets.chats.tools import PREFIX, chat_tools

START = 1_767_225_600_000
_ROUNDS = 200


def make(home: Path, sessions: int) -> float:
    """Write the sessions; their size in MB."""
    chance = random.Random(7)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 9))) for _ in range(5000)]
    size = 0
    for number in range(sessions):
        store = home / ".config" / "Code" / "User" / "workspaceStorage" / f"w{number % 200}"
        if number < 200:
            (store / "chatSessions").mkdir(parents=True)
            (store / "workspace.json").write_text(json.dumps({"folder": f"file:///home/ada/p{number}"}), "utf-8")
        requests: list[dict[str, Any]] = [
            {
                "requestId": f"request_{at}",
                "timestamp": START + number * 1000 + at,
                "message": {"text": " ".join(chance.choices(words, k=30))},
                "response": [{"value": " ".join(chance.choices(words, k=300))}],
                "result": {"metadata": {"renderedUserMessage": "x" * 16_000}},
                "modelState": {"value": 1},
            }
            for at in range(5)
        ]
        chat = {"version": 3, "sessionId": f"s{number}", "creationDate": START + number, "requests": requests}
        if number % 2:
            path, text = store / "chatSessions" / f"s{number}.json", json.dumps(chat)
        else:
            path = store / "chatSessions" / f"s{number}.jsonl"
            pushes = [{"kind": 2, "k": ["requests"], "v": [each]} for each in requests]
            text = "\n".join(map(json.dumps, [{"kind": 0, "v": {**chat, "requests": []}}, *pushes]))
        path.write_text(text, "utf-8")
        moment = START / 1000 + number
        os.utime(path, (moment, moment))
        size += len(text)
    return size / 1e6


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    """How many milliseconds it takes."""
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def measure(home: Path, database: Path) -> dict[str, float]:
    """Milliseconds, MB and bytes."""
    storage = ChatIndex(database)
    await storage.open()
    chats = Chats(storage, local_sources({}, home, "linux"))
    tools = {tool.name.removeprefix(PREFIX): tool for tool in chat_tools(chats)}
    found: dict[str, float] = {}

    async def ask(name: str, **arguments: Any) -> float:
        return await timed(lambda: tools[name].invoke(arguments))

    found["first call, current dialog, ms"] = await ask("get_request", index=1)
    found["first call, by id, ms"] = await ask("get_request", index=1, sessionId="s77")
    found["read all, ms"] = await timed(chats.list)
    found["index all words, ms"] = await timed(chats.read_all)
    for label, arguments in (("current dialog", {}), ("by id", {"sessionId": "s42"})):
        times = [await ask("get_request", index=1 + at % 5, **arguments) for at in range(_ROUNDS)]
        found[f"get_request, {label}, p50 ms"] = statistics.median(times)
        found[f"get_request, {label}, max ms"] = max(times)
    found["list_sessions, ms"] = await ask("list_sessions")
    text = (await chats.request(await chats.session("s42"), 1)).text.split()
    found["search, one word, ms"] = await ask("search", query=text[0])
    found["search, three words, ms"] = await ask("search", query=" ".join(text[:3]))
    await chats.close()
    again = Chats(storage, local_sources({}, home, "linux"))
    found["first call of the next process, ms"] = await timed(again.newest)
    await again.close()
    await storage.close()
    found["most memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found["database, MB"] = database.stat().st_size / 1e6
    return found


def main() -> None:
    """Make, measure, print."""
    configure("error")
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        size = make(Path(folder) / "home", sessions)
        print(f"{sessions:,} sessions, {size:,.0f} MB")
        for name, value in asyncio.run(measure(Path(folder) / "home", Path(folder) / "chats.db")).items():
            print(f"{name:45} {value:12,.1f}")


if __name__ == "__main__":
    main()
