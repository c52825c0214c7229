"""What the task registry costs in a large folder: `python -m benchmarks.tasks [--changes N] [--tasks N] [--times N]`.

Each number is of a whole call of the tool, the answer's text included, on SQLite; before each the files are looked at,
as always. Half of the time a file is changed by hand in between, so that nothing can be answered from memory alone.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from pegboard.storage import open_storage
from pegboard.tool import LanguageModelToolResult
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.tools import task_tools

Call = Callable[[], Awaitable[LanguageModelToolResult]]


def write_folder(root: Path, changes: int, tasks: int) -> None:
    """Changes that are more or less done; every third task depends on one before it and on one of the next change."""
    for change in range(changes):
        folder = root / "openspec" / "changes" / f"change-{change:04}"
        folder.mkdir(parents=True)
        (folder / "proposal.md").write_text(f"# Change: number {change}\n\n## Why\nBecause.\n", "utf-8")
        lines = [task_line(change, number, changes, tasks) for number in range(1, tasks + 1)]
        (folder / "tasks.md").write_text("\n".join(["# Tasks", "", *lines, ""]), "utf-8")


def task_line(change: int, number: int, changes: int, tasks: int) -> str:
    """One of them."""
    ticked = "x" if number < change % tasks else " "
    needs = f" <!-- depends: {number - 1}, change-{(change + 1) % changes:04}/{number} -->" if number % 3 == 2 else ""
    return f"- [{ticked}] {number // 10 + 1}.{number % 10 + 1} Do thing {number} of change {change}{needs}"


async def measure(call: Call, times: int, before: Callable[[int], None] = lambda _: None) -> str:
    """Milliseconds of many calls: the median, and what 95 of 100 stay below."""
    taken: list[float] = []
    for turn in range(times):
        before(turn)
        started = time.perf_counter()
        answer = await call()
        taken.append((time.perf_counter() - started) * 1000)
        assert not answer.is_error, answer.content[0].value
    return f"p50 {statistics.median(taken):7.1f} ms   p95 {statistics.quantiles(taken, n=20)[-1]:7.1f} ms"


async def run(changes: int, tasks: int, times: int) -> None:
    """Print the numbers."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write_folder(root, changes, tasks)
        storage = open_storage(f"sqlite:{root / 'tasks.db'}")
        await storage.open()
        registry = Registry(storage.database, Project(here=lambda: root))
        tools = {tool.name: tool for tool in task_tools(registry)}
        print(f"{changes} changes with {changes * tasks:,} tasks")
        started = time.perf_counter()
        await tools["registry_sync"].invoke({})
        print(f"first sync                 {(time.perf_counter() - started) * 1000:7.0f} ms")
        edited = root / "openspec" / "changes" / "change-0007" / "tasks.md"

        def edit(turn: int) -> None:
            if turn % 2:
                text = edited.read_text("utf-8")
                old, new = ("- [ ]", "- [x]") if turn % 4 == 1 else ("- [x]", "- [ ]")
                edited.write_text(text.replace(old, new, 1), "utf-8")

        async def call(name: str, arguments: Mapping[str, object]) -> LanguageModelToolResult:
            return await tools[name].invoke(arguments)

        last = f"change-0003/{tasks}"
        for label, name, arguments in (
            ("registry_list", "registry_list", {}),
            ("registry_list, filtered", "registry_list", {"status": "pending", "unblocked": True}),
            ("registry_next", "registry_next", {"count": 5}),
            ("registry_next of a change", "registry_next", {"change_id": "change-0003"}),
        ):
            print(f"{label:26} {await measure(lambda n=name, a=arguments: call(n, a), times)}")
            print(f"{'  with a file edited':26} {await measure(lambda n=name, a=arguments: call(n, a), times, edit)}")
        statuses = ("completed", "pending")
        turn = iter(range(10**6))
        update = lambda: call("registry_update", {"task_id": last, "status": statuses[next(turn) % 2]})  # noqa: E731
        print(f"{'registry_update':26} {await measure(update, times)}")
        print(f"{'registry_sync':26} {await measure(lambda: call('registry_sync', {}), max(times // 5, 2))}")
        await storage.close()


def main() -> None:
    """Read the arguments and go."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--times", type=int, default=50)
    given = parser.parse_args()
    asyncio.run(run(given.changes, given.tasks, given.times))


if __name__ == "__main__":
    main()
