"""How much of what queries need stands among the first five."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN_SET = Path(__file__).parent / "own_set.json"
SHARED_SETS = Path(__file__).parents[3] / "shared" / "retrieval" / "data"


@dataclass(frozen=True)
class Asked:
    """A query, and for each thing that it needs the names of the tools that would do."""

    query: str
    needs: list[set[str]]


@dataclass(frozen=True)
class QuerySet:
    """Tools, and queries for them."""

    tools: list[dict[str, Any]]
    queries: list[Asked]


def own_set() -> QuerySet:
    """The set that comes with the checkout."""
    held = json.loads(OWN_SET.read_text("utf-8"))
    return QuerySet(held["tools"], [Asked(row["query"], [set(row["right"])]) for row in held["queries"]])


def shared_set(folder: Path) -> QuerySet:
    """One of the sets of real queries, its tools named as the gateway would."""
    tools = _rows(folder / "tools.jsonl")
    names = {tool["id"]: _full_name(tool) for tool in tools}
    queries = [
        Asked(row["query"], [{names[one] for one in need if one in names} for need in _needs(row)])
        for row in _rows(folder / "queries.jsonl")
    ]
    return QuerySet([{**tool, "name": names[tool["id"]]} for tool in tools], queries)


def met(found: Iterable[str], needs: Collection[set[str]]) -> list[int]:
    """Places, from 1, at which a need was met first."""
    open_needs = list(needs)
    places: list[int] = []
    for place, name in enumerate(found, 1):
        need = next((need for need in open_needs if name in need), None)
        if need is not None:
            open_needs.remove(need)
            places.append(place)
    return places


def recall(search: Callable[[str], list[str]], queries: list[Asked], first: int = 5) -> float:
    """Mean share of needs met within the first places."""
    shares = [len(met(search(asked.query)[:first], asked.needs)) / len(asked.needs) for asked in queries]
    return sum(shares) / len(shares)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _full_name(tool: dict[str, Any]) -> str:
    return f"{tool['server']}__{tool['name']}" if tool.get("server") else tool["name"]


def _needs(row: dict[str, Any]) -> list[list[str]]:
    return row.get("need") or [[one] for one in row["relevant"]]
