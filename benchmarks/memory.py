"""Our memories beside npm's `server-memory`: adding, getting and searching, by size. One run, one table.

    python -m benchmarks.memory [--sizes 1000,10000,100000] [--json FILE]

Ours runs on SQLite in a process of its own; theirs is the real server, over stdio, on a file with the same memories. A
ping tells what the way there costs. An answer counts as right if it has the memory that the query was made from,
or ten that have all of its words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.notebook import KINDS, Note, Question, content, notes, questions, words_of
from benchmarks.server_memory import ServerMemory, TooSlow, entity_of, server_memory, text_of, write_file
from pegboard import exactjson
from pegboard.storage import SqliteDatabase
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.tools import memory_tools
from pegboard.toolsets.memory.transfer import import_memories

ROUNDS = 3
EACH = 40
ADDED, GOT = 200, 200
# What a slow server is given for a size, and for each kind of work; then it is asked no more.
PATIENCE, SHARE = 240.0, 50.0
OURS, THEIRS = "Pegboard", "server-memory"
Numbers = dict[str, Any]


def main() -> None:
    """Measure everything, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="1000,10000,100000")
    options.add_argument("--json", type=Path, help="write the numbers to this file, too")
    given = options.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    results = {size: measure(size) for size in sizes}
    console = Console(width=max(120, Console().width))
    console.print(f"{len(os.sched_getaffinity(0))} cores; medians of {ROUNDS} rounds; one call at a time")
    console.print(table(results))
    console.print(*verdicts(results), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def measure(size: int) -> dict[str, Numbers]:
    """Both at a size, each in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        return {OURS: _alone(ours, size, Path(folder)), THEIRS: _alone(theirs, size, Path(folder))}


def ours(size: int, folder: Path) -> Numbers:
    """Every number of ours."""
    return asyncio.run(_ours(size, folder / "pegboard.db"))


async def _ours(size: int, file: Path) -> Numbers:
    given = notes(size + ADDED)
    database = SqliteDatabase(file)
    await database.open()
    memories = Memories(database)
    before, start = _resident(os.getpid()), time.perf_counter()
    await import_memories(memories, map(_line, given[:size]))
    loaded = time.perf_counter() - start
    tools = {tool.name: tool for tool in memory_tools(memories)}

    async def call(tool: str, arguments: dict[str, Any]) -> str:
        return exactjson.dump(await tools[tool].call(arguments)).decode()

    gets = [await _timed(lambda key: call("memory_get", {"key": key}), _keys(given, size)) for _ in range(ROUNDS)]
    resident = _resident(os.getpid()) - before
    asked = questions(given[:size], EACH)
    held = {note.key: words_of(note) for note in given[:size]}
    numbers = _summed([await _searched(call, asked, held) for _ in range(ROUNDS)])
    numbers["memory MB"] = resident / 1e6
    added = await _timed(lambda note: call("memory_add", _arguments(note)), given[size:])
    await database.close()
    return {**numbers, **_spread("get", gets), **_spread("add", [added]), "load s": loaded, "file MB": _size(file)}


async def _searched(
    call: Callable[[str, dict[str, Any]], Awaitable[str]], asked: Sequence[Question], held: dict[str, set[str]]
) -> Numbers:
    times: dict[str, list[float]] = {}
    right: list[bool] = []
    sizes: list[int] = []
    for question in asked:
        start = time.perf_counter()
        answer = await call("memory_search", {"query": question.query})
        times.setdefault(question.kind, []).append(time.perf_counter() - start)
        sizes.append(len(answer.encode()))
        keys = [result["key"] for result in json.loads(answer)["results"]]
        right.append(question.key in keys or _all_have(keys, content(question.query), held))
    return {"times": times, "sizes": sizes, "right": statistics.fmean(right)}


def _all_have(keys: Sequence[str], words: set[str], held: dict[str, set[str]]) -> bool:
    return len(keys) == 10 and all(words <= held[key] for key in keys)


async def _timed(work: Callable[[Any], Awaitable[object]], inputs: Sequence[Any]) -> list[float]:
    times: list[float] = []
    for each in inputs:
        start = time.perf_counter()
        await work(each)
        times.append(time.perf_counter() - start)
    return times


def theirs(size: int, folder: Path) -> Numbers:
    """Every number of theirs; what it did not get to within the time is left out, and said so."""
    given = notes(size + ADDED)
    file = folder / "memory.jsonl"
    write_file(file, given[:size])
    numbers: Numbers = {"file MB": file.stat().st_size / 1e6}
    try:
        with server_memory(file, PATIENCE) as server:
            _their_work(server, given, size, numbers)
    except TooSlow:
        numbers["stopped"] = f"ended after {PATIENCE:.0f} s"
    return numbers


def _their_work(server: ServerMemory, given: list[Note], size: int, numbers: Numbers) -> None:
    pings = _until_late(lambda _: server.request("ping", {}), range(50))
    numbers.update(_spread("ping", [pings]))
    gets = _until_late(lambda key: server.call("open_nodes", {"names": [key]}), _keys(given, size))
    numbers.update(_spread("get", [gets]))
    rounds: list[Numbers] = []
    start = time.perf_counter()
    while len(rounds) < ROUNDS and (not rounds or time.perf_counter() - start < SHARE):
        rounds.append(_their_searches(server, questions(given[:size], EACH), SHARE - (time.perf_counter() - start)))
    numbers.update(_summed(rounds))
    numbers["memory MB"] = _resident(server.pid) / 1e6
    added = _until_late(lambda note: server.call("create_entities", {"entities": [entity_of(note)]}), given[size:])
    numbers.update(_spread("add", [added]))


def _their_searches(server: ServerMemory, asked: Sequence[Question], patience: float) -> Numbers:
    times: dict[str, list[float]] = {}
    sizes: list[int] = []
    right: list[bool] = []
    began = time.perf_counter()
    for question in asked:
        start = time.perf_counter()
        line = server.call("search_nodes", {"query": question.query})
        times.setdefault(question.kind, []).append(time.perf_counter() - start)
        answer = text_of(line)
        sizes.append(len(answer.encode()))
        right.append(any(entity["name"] == question.key for entity in json.loads(answer)["entities"]))
        if time.perf_counter() - began > patience:
            break
    return {"times": times, "sizes": sizes, "right": statistics.fmean(right)}


def _until_late(work: Callable[[Any], bytes], inputs: Sequence[Any]) -> list[float]:
    times: list[float] = []
    for each in inputs:
        start = time.perf_counter()
        work(each)
        times.append(time.perf_counter() - start)
        if sum(times) > SHARE / 2:
            break
    return times


def _summed(rounds: Sequence[Numbers]) -> Numbers:
    every = [[each for times in one["times"].values() for each in times] for one in rounds]
    numbers = _spread("search", every)
    for kind in KINDS:
        numbers.update(_spread(kind, [one["times"][kind] for one in rounds if kind in one["times"]]))
    sizes = sorted(size for one in rounds for size in one["sizes"])
    numbers["answer bytes p50"], numbers["answer bytes max"] = sizes[len(sizes) // 2], sizes[-1]
    numbers["right"] = statistics.fmean(one["right"] for one in rounds)
    return numbers


def _spread(name: str, rounds: Sequence[list[float]]) -> Numbers:
    """p50 and p99 in milliseconds, each the median of the rounds', and of how many calls."""
    ordered = [sorted(each) for each in rounds if each]
    if not ordered:
        return {}
    return {
        f"{name} p50": statistics.median(each[len(each) // 2] for each in ordered) * 1e3,
        f"{name} p99": statistics.median(each[int(len(each) * 0.99)] for each in ordered) * 1e3,
        f"{name} calls": sum(map(len, ordered)),
    }


def table(results: dict[int, dict[str, Numbers]]) -> Table:
    """Ours, theirs, and how many times more theirs is."""
    found = Table("memories", "", "times", OURS, THEIRS, title="milliseconds, unless it says otherwise")
    rows = ["search p50", "search p99", *(f"{kind} p50" for kind in KINDS), "get p50", "get p99", "add p50", "add p99"]
    rows += [
        "answer bytes p50",
        "answer bytes max",
        "memory MB",
        "file MB",
        "load s",
        "right",
        "search calls",
        "ping p50",
    ]
    for size, numbers in results.items():
        for name in rows:
            one, other = numbers[OURS].get(name), numbers[THEIRS].get(name)
            ratio = f"{other / one:,.1f}" if one and other and name not in ("right", "search calls") else ""
            found.add_row(f"{size:,}" if name == rows[0] else "", name, ratio, _shown(one), _shown(other))
        found.add_section()
    return found


def _shown(number: float | None) -> str:
    if number is None:
        return "–"  # noqa: RUF001
    return f"{number:,.0f}" if number >= 1000 or float(number).is_integer() else f"{number:,.2f}"


def verdicts(results: dict[int, dict[str, Numbers]]) -> list[str]:
    """What the numbers were to show, and what was not measured."""
    said: list[str] = []
    if 10_000 in results:
        ratio = results[10_000][THEIRS].get("search p50", 0) / results[10_000][OURS]["search p50"]
        said.append(f"10,000: search {ratio:,.0f} times faster (10 wanted): {'yes' if ratio >= 10 else 'NO'}")
    if 100_000 in results:
        p50 = results[100_000][OURS]["search p50"]
        said.append(f"100,000: search p50 {p50:.1f} ms (under 20 wanted): {'yes' if p50 < 20 else 'NO'}")
    sizes = sorted(results)
    if len(sizes) > 1:
        for name in (OURS, THEIRS):
            first, last = (results[size][name].get("search p50") for size in (sizes[0], sizes[-1]))
            grown = f"{last / first:,.1f} times" if first and last else "unknown"
            said.append(f"from {sizes[0]:,} to {sizes[-1]:,} memories a search by {name} takes: {grown} as long")
    said += [
        f"{size:,}: {name} {numbers['stopped']}: what it did not get to is missing"
        for size, both in results.items()
        for name, numbers in both.items()
        if "stopped" in numbers
    ]
    return said


def _keys(given: Sequence[Note], size: int) -> list[str]:
    return [note.key for note in random.Random(5).choices(given[:size], k=GOT)]


def _arguments(note: Note) -> dict[str, Any]:
    links = [link.to_dict() for link in note.links]
    return {"key": note.key, "summary": note.summary, "text": note.text, "links": links}


def _line(note: Note) -> bytes:
    return exactjson.dump(_arguments(note))


def _size(file: Path) -> float:
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*")) / 1e6


def _resident(pid: int) -> int:
    """Memory that a process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _alone(work: Callable[[int, Path], Numbers], size: int, folder: Path) -> Numbers:
    """Do some work in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, size, folder).result()


if __name__ == "__main__":
    main()
