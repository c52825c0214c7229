"""What converting tools for model providers takes: the first time, and every time after.

`python -m benchmarks.formats [FILE]`: FILE is JSON, server → tools as `tools/list` gives them; by default
`../shared/real-tools.json`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from pegboard.catalog.registry import ToolRegistry
from pegboard.formats import FORMATS, Conversions, Format, NameBook, definitions
from pegboard.log import configure
from pegboard.names import fold_server_name
from pegboard.tool import RegisteredTool

REPEATED = 50


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and what came out."""
    started = time.perf_counter()
    found = work()
    return (time.perf_counter() - started) * 1000, found


def measure(form: Format, tools: list[RegisteredTool]) -> tuple[float, float, float, list[dict[str, Any]]]:
    """The first conversion, then the median and the worst of many; names are made anew each time."""
    conversions = Conversions()

    def convert() -> list[dict[str, Any]]:
        return definitions(form, tools, NameBook(tools), conversions)

    first, made = timed(convert)
    again = [timed(convert)[0] for _ in range(REPEATED)]
    return first, median(again), max(again), made


def is_strict(definition: dict[str, Any]) -> bool:
    """Whether a definition of OpenAI's is marked so."""
    return bool(definition.get("strict") or definition.get("function", {}).get("strict"))


def main() -> None:
    """Print the table."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("../shared/real-tools.json")
    if not given.exists():
        raise SystemExit(f"{given} is not there: name a file with tools, server → list")
    configure("error")
    catalogue: dict[str, list[dict[str, Any]]] = json.loads(given.read_text("utf-8"))
    registry = ToolRegistry()
    for server, offered in catalogue.items():
        registry.register_mcp_tools(fold_server_name(server), offered).unwrap()
    tools = registry.all()
    print(f"{len(catalogue)} servers, {len(tools)} tools; after the first time {REPEATED} times, milliseconds")
    print(f"{'format':<12} {'first':>7} {'median':>7} {'worst':>7} {'bytes':>9} {'strict':>6}")
    for form in FORMATS:
        first, usual, worst, made = measure(form, tools)
        size = len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode())
        print(f"{form:<12} {first:>7.1f} {usual:>7.2f} {worst:>7.2f} {size:>9,} {sum(map(is_strict, made)):>6}")


if __name__ == "__main__":
    main()
