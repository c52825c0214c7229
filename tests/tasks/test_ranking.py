"""The task tools are found among hundreds of real others, with every tool of Pegboard's own in the catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import HERE, open_board
from pegboard.board import Board
from real_servers.test_real_servers import real_servers
from search.quality import SHARED_SETS, own_set, shared_set
from search.test_index import filler

pytestmark = pytest.mark.anyio

EVERY = ["discovery", "memory", "chats", "tasks"]
# What real servers said to `tools/list`, where that stands beside the checkout.
REAL_TOOLS = HERE.parents[1] / "shared" / "real-tools.json"


async def first_found(board: Board, query: str) -> list[str]:
    """The names of the first ten."""
    hits, _ = await board.find(query)
    return [hit.tool.name for hit in hits]


def written_tools() -> dict[str, list[dict[str, Any]]]:
    """The tools of thirty servers that come with the checkout, by server."""
    found: dict[str, list[dict[str, Any]]] = {}
    for tool in own_set().tools:
        own = {**tool, "name": tool["name"].removeprefix(f"{tool['server']}__")}
        found.setdefault(tool["server"], []).append(own)
    return found


def more_tools(count: int) -> list[dict[str, Any]]:
    """Tools that say "task", "list" and "update" all the time and mean something else."""
    return [{**tool, "inputSchema": {"type": "object"}} for tool in filler(count)]


def tools_beside() -> list[dict[str, list[dict[str, Any]]]]:
    """Sets of real tools that stand beside the checkout, if they do; none of them is a part of it."""
    found: list[dict[str, list[dict[str, Any]]]] = []
    if REAL_TOOLS.is_file():
        found.append(json.loads(REAL_TOOLS.read_text("utf-8")))
    if SHARED_SETS.is_dir():
        found += [{"beside": shared_set(folder).tools} for folder in sorted(SHARED_SETS.iterdir())]
    return found


async def check(board: Board) -> None:
    """By the words of the first specification, and by others."""
    found = await first_found(board, "registry list tasks")
    assert found[0] == "registry_list", found
    assert "registry_next" in found[:5], found
    for query, wanted in (
        ("list the tasks of the registry", "registry_list"),
        ("next task of the registry", "registry_next"),
        ("update a task in the registry", "registry_update"),
        ("task dependencies in the registry", "registry_deps"),
        ("sync the task registry with tasks.md", "registry_sync"),
        ("validate an openspec change", "spec_validate"),
    ):
        assert wanted in (await first_found(board, query))[:3], (query, await first_found(board, query))


@pytest.mark.parametrize("search", ["lexical", "semantic"])
async def test_among_real_and_written_tools(tmp_path: Path, search: str) -> None:
    """Six real servers, thirty written ones, and whatever real tools stand beside; by words as by meaning."""
    async with open_board(tmp_path, real_servers(tmp_path), toolsets=EVERY, search=search) as board:
        (await board.refresh()).unwrap()
        for server, tools in {**written_tools(), "more": more_tools(150)}.items():
            board.registry.register_mcp_tools(server, tools).unwrap()
        assert board.registry.server_tools >= 500
        await check(board)
        for number, beside in enumerate(tools_beside()):
            for at, tools in enumerate(beside.values()):
                distinct = list({tool["name"]: tool for tool in tools}.values())
                board.registry.register_mcp_tools(f"beside_{number}_{at}", distinct).unwrap()
        await check(board)
