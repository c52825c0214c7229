"""What large results cost in a conversation: ten tasks, with all in the prompt, and with a part and what is read on.

`python -m benchmarks.results`. Each task has a result as a real tool gives it, and what a model then asks `result_read`
for to solve the task. A token is four bytes of UTF-8.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.config import Settings
from pegboard.log import configure
from pegboard.results.abridge import META_KEY
from pegboard.results.caps import USUAL_CAP
from pegboard.storage import SqliteDatabase, Storage
from pegboard.tool import RegisteredTool

WORDS = """
crash start window theme login token refresh timeout retry cache proxy config upload render scroll focus editor panel
keyboard plugin release build linux windows macos memory leak socket stream parser schema export import table
""".split()
TOOL = RegisteredTool("server__tool", "server", "tool", {"name": "server__tool", "inputSchema": {"type": "object"}})


@dataclass(frozen=True)
class Task:
    """What somebody wants, the result that it takes, and what is read on."""

    wish: str
    text: Callable[[random.Random], str]
    reads: tuple[dict[str, Any], ...]


def words(rng: random.Random, count: int) -> str:
    """So many words."""
    return " ".join(rng.choices(WORDS, k=count))


def issues(rng: random.Random) -> str:
    """A page of issues of a large project, as GitHub's server gives them."""
    rows = [
        {
            "number": 5000 - number,
            "title": words(rng, 7),
            "state": "open" if rng.random() < 0.7 else "closed",
            "user": {"login": rng.choice(WORDS), "id": rng.randrange(10**7), "type": "User"},
            "labels": [{"name": rng.choice(WORDS), "color": "d73a4a"} for _ in range(2)],
            "comments": rng.randrange(40),
            "body": words(rng, rng.randrange(20, 200)),
        }
        for number in range(800)
    ]
    return json.dumps({"total_count": 5000, "items": rows})


def log(rng: random.Random) -> str:
    """A build log."""
    levels = ["INFO"] * 60 + ["WARN"] * 4 + ["ERROR"]
    lines = (f"2026-11-19T01:{n // 60 % 60:02}:{n % 60:02}Z {rng.choice(levels)} {words(rng, 9)}" for n in range(6000))
    return "\n".join(lines)


def table(rng: random.Random) -> str:
    """Rows of a query, as a database's server gives them."""
    rows = (
        {"id": n, "customer": rng.choice(WORDS), "amount": rng.randrange(10**5) / 100, "day": f"2026-{n % 12 + 1:02}"}
        for n in range(4000)
    )
    return json.dumps(list(rows))


def page(rng: random.Random) -> str:
    """A documentation page as Markdown."""
    return "\n\n".join(f"## {words(rng, 3)} {n}\n\n{words(rng, 160)}" for n in range(160))


def html(rng: random.Random) -> str:
    """A web page."""
    items = (
        f'<div class="row"><a href="/{n}">{words(rng, 5)}</a><span>{words(rng, 12)}</span></div>' for n in range(2500)
    )
    return f"<!doctype html><html><body>{''.join(items)}</body></html>"


def design(rng: random.Random) -> str:
    """A design file: nodes in nodes."""

    def node(depth: int) -> dict[str, Any]:
        children = [node(depth + 1) for _ in range(6)] if depth < 4 else []
        return {
            "id": f"{rng.randrange(10**6)}",
            "name": words(rng, 2),
            "type": "FRAME",
            "fills": [{"r": 0.1, "g": 0.2}],
            "children": children,
        }

    return json.dumps({"document": node(0), "components": {}, "schemaVersion": 0})


def csv(rng: random.Random) -> str:
    """An export."""
    rows = (f"{n},{rng.choice(WORDS)},{rng.randrange(1000)},{rng.random():.4f},{words(rng, 2)}" for n in range(7000))
    return "\n".join(["id,name,count,share,note", *rows])


def source(rng: random.Random) -> str:
    """A long source file in an object."""
    lines = (f"def {rng.choice(WORDS)}_{n}(value):\n    return {rng.choice(WORDS)}(value, {n})\n" for n in range(2500))
    return json.dumps({"path": "src/main.py", "sha": "0" * 40, "content": "\n".join(lines)})


def models(rng: random.Random) -> str:
    """Models of a warehouse, with their columns."""
    rows = [
        {
            "name": f"model_{n}",
            "description": words(rng, 25),
            "columns": [{"name": words(rng, 1), "type": "text"} for _ in range(40)],
        }
        for n in range(85)
    ]
    return json.dumps({"data": {"environment": {"applied": {"models": {"edges": [{"node": row} for row in rows]}}}}})


def mails(rng: random.Random) -> str:
    """Search results of a mailbox."""
    rows = [
        {
            "id": f"m{n}",
            "from": f"{rng.choice(WORDS)}@example.com",
            "subject": words(rng, 6),
            "snippet": words(rng, 30),
            "unread": n % 9 == 0,
        }
        for n in range(900)
    ]
    return json.dumps({"messages": rows, "resultSizeEstimate": 900})


TASKS = (
    Task("the ten newest issues", issues, ()),
    Task(
        "open issues with more than 35 comments",
        issues,
        ({"where": "state = open and comments > 35", "fields": ["number", "title", "comments"]},),
    ),
    Task("why the build failed", log, ({"query": "ERROR", "limit": 20},)),
    Task(
        "what one customer paid in March",
        table,
        ({"where": "customer = cache and day = 2026-03", "fields": ["amount"]},),
    ),
    Task("what a page says of a release", page, ({"query": "release build linux", "limit": 8},)),
    Task("one link of a web page", html, ({"query": "keyboard plugin", "limit": 5},)),
    Task(
        "the frames at the top of a design", design, ({"path": "document.children", "fields": ["id", "name", "type"]},)
    ),
    Task("which columns an export has", csv, ()),
    Task(
        "one function of a long file",
        source,
        ({"path": "content", "query": "parser_120"}, {"path": "content", "offset": 7000, "limit": 2000}),
    ),
    Task(
        "unread mails of one sender",
        mails,
        ({"where": "unread = true and from contains token", "fields": ["id", "subject"]},),
    ),
)


def tokens(value: Any) -> int:
    """The size of a message, in tokens."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) // 4


async def measure(cap: int) -> list[tuple[str, int, int, int]]:
    """Of each task: tokens of the whole result, of the part, and of what is read on with its calls."""
    rows: list[tuple[str, int, int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(SqliteDatabase(Path(folder) / "pegboard.db"))
        async with Board(Settings(expose="search"), storage=storage) as board:
            client = Client(era="modern", name="benchmark")
            for number, task in enumerate(TASKS):
                whole = {"content": [{"type": "text", "text": task.text(random.Random(number))}]}
                part = await board.results.fit(whole, client, TOOL, cap)
                read = 0
                for wanted in task.reads:
                    arguments = {"id": part["_meta"][META_KEY]["id"], **wanted}
                    result = await board.calls.call("result_read", {"arguments": arguments}, Caller(client))
                    assert result["isError"] is False, result
                    read += tokens(arguments) + tokens(result["content"][0]["text"])
                rows.append((task.wish, tokens(whole["content"][0]["text"]), tokens(part["content"][0]["text"]), read))
    return rows


def main() -> None:
    """Print the table."""
    configure("warning")
    for cap in (USUAL_CAP, 10_000):
        rows = asyncio.run(measure(cap))
        print(f"\ncap {cap:,}; a token is four bytes")
        print("| task | whole | part | read on | saved |\n| --- | --- | --- | --- | --- |")
        for wish, whole, part, read in rows:
            print(f"| {wish} | {whole:,} | {part:,} | {read:,} | {1 - (part + read) / whole:.0%} |")
        whole, rest = sum(row[1] for row in rows), sum(row[2] + row[3] for row in rows)
        print(f"| all ten | {whole:,} | | {rest:,} | {1 - rest / whole:.0%} |")


if __name__ == "__main__":
    main()
