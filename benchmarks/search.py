"""Our search beside others': what is found, how fast, in how much memory. One run, one table.

    python -m benchmarks.search [--sets ../shared/retrieval] [--sizes 500 5000 50000] [--json FILE]

Every measurement of speed has a process of its own. A peer that cannot be imported is reported as such.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from tests.search.quality import QuerySet, met, own_set, shared_set

from benchmarks import catalogue
from benchmarks.rankers import RANKERS

ROOT = Path(__file__).parent.parent
Result = TypeVar("Result")
PLACES = (1, 5, 10)
# A slow peer is asked fewer queries rather than waited for.
QUERIES, PATIENCE = 200, 20.0


def main() -> None:
    """Measure everything, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", type=Path, default=ROOT.parent / "shared" / "retrieval")
    options.add_argument("--sizes", type=int, nargs="*", default=[500, 5_000, 50_000])
    options.add_argument("--json", type=Path, help="write the numbers to this file, too")
    given = options.parse_args()
    sets = query_sets(given.sets)
    results = {name: measure(name, sets, given.sizes) for name in RANKERS}
    console = Console(width=max(120, Console().width))
    console.print(f"{len(os.sched_getaffinity(0))} cores; each size in a process of its own; one query at a time")
    if not (given.sets / "data").is_dir():
        console.print(f"No sets in {given.sets}: only our own is measured.")
    console.print(found_table(results, sets), speed_table(results, given.sizes))
    for name, result in results.items():
        if "missing" in result:
            console.print(f"{name} was not measured: {result['missing']}")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def query_sets(folder: Path) -> dict[str, QuerySet]:
    """The sets of real queries, and last our own, which is not part of the mean."""
    data = folder / "data"
    shared = {path.name: shared_set(path) for path in sorted(data.iterdir())} if data.is_dir() else {}
    return {**shared, "own": own_set()}


def measure(name: str, sets: dict[str, QuerySet], sizes: list[int]) -> dict[str, Any]:
    """All numbers of one ranker."""
    try:
        found = alone(quality, name, sets)
    except ImportError as error:
        return {"missing": str(error)}
    shared = [numbers for set_name, numbers in found.items() if set_name != "own"]
    if shared:
        found["mean"] = {key: statistics.fmean(numbers[key] for numbers in shared) for key in shared[0]}
    return {"found": found, "speed": {str(size): alone(speed, name, size) for size in sizes}}


def alone(work: Callable[..., Result], *arguments: Any) -> Result:
    """Do some work in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def quality(name: str, sets: dict[str, QuerySet]) -> dict[str, dict[str, float]]:
    """Recall and mean reciprocal rank on each set."""
    return {set_name: _quality(name, queries) for set_name, queries in sets.items()}


def _quality(name: str, queries: QuerySet) -> dict[str, float]:
    ranker = RANKERS[name](queries.tools)
    places = [(met(ranker.search(asked.query, 10), asked.needs), len(asked.needs)) for asked in queries.queries]
    recalls = {f"R@{k}": statistics.fmean(sum(p <= k for p in got) / all_ for got, all_ in places) for k in PLACES}
    return {**recalls, "MRR": statistics.fmean(1 / got[0] if got else 0.0 for got, _ in places)}


def speed(name: str, size: int) -> dict[str, float]:
    """Build time, memory and the time of a query at a size."""
    RANKERS[name](catalogue.tools(10)).search("warm up", 1)
    tools = catalogue.tools(size)
    before, start = _resident(), time.perf_counter()
    ranker = RANKERS[name](tools)
    build, memory = time.perf_counter() - start, _resident() - before
    times: list[float] = []
    for query in catalogue.queries(QUERIES):
        start = time.perf_counter()
        ranker.search(query, 10)
        times.append(time.perf_counter() - start)
        if sum(times) > PATIENCE:
            break
    times.sort()
    return {
        "build s": build,
        "memory MB": memory / 1e6,
        "p50 ms": times[len(times) // 2] * 1e3,
        "p95 ms": times[int(len(times) * 0.95)] * 1e3,
        "queries": len(times),
    }


def _resident() -> int:
    """Memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def found_table(results: dict[str, Any], sets: dict[str, QuerySet]) -> Table:
    """Recall@1/5/10 and mean reciprocal rank, a row for each ranker and set."""
    table = Table("set", "tools", "queries", *(name for name in results), title="recall@1 / @5 / @10, MRR")
    for set_name in [*sets, "mean"]:
        cells = [_found(result, set_name) for result in results.values()]
        held = sets.get(set_name)
        size = (str(len(held.tools)), str(len(held.queries))) if held else ("", "")
        table.add_row(set_name, *size, *cells, style="bold" if set_name == "mean" else "")
    return table


def _found(result: dict[str, Any], set_name: str) -> str:
    numbers = result.get("found", {}).get(set_name)
    if numbers is None:
        return "–"  # noqa: RUF001
    recalls = " ".join(f"{numbers[f'R@{k}']:.3f}".removeprefix("0") for k in PLACES)
    return f"{recalls}, {numbers['MRR']:.3f}".replace(", 0", ", ")


def speed_table(results: dict[str, Any], sizes: list[int]) -> Table:
    """Time of a query, build time and memory, by number of tools."""
    table = Table("tools", "", *(name for name in results), title="speed and memory")
    for size in sizes:
        for key in ("p50 ms", "p95 ms", "build s", "memory MB"):
            cells = [_speed(result, size, key) for result in results.values()]
            table.add_row(f"{size:,}" if key == "p50 ms" else "", key, *cells, end_section=key == "memory MB")
    return table


def _speed(result: dict[str, Any], size: int, key: str) -> str:
    numbers = result.get("speed", {}).get(str(size))
    return "–" if numbers is None else f"{numbers[key]:,.2f}"  # noqa: RUF001


if __name__ == "__main__":
    main()
