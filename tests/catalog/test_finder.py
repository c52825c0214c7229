"""The finder follows the registry, and reads no more than it must."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopwatch import LIMIT, loopwatch
from pegboard import pace
from pegboard.catalog.finder import Finder
from pegboard.catalog.registry import Exposure, ToolRegistry
from pegboard.search import document


def tool(name: str, description: str) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def found(finder: Finder, query: str) -> list[str]:
    """Names, best first."""
    return [hit.tool.name for hit in finder.find(query, 10)[0]]


def test_one_servers_change_does_not_read_the_others_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred servers, one that changes is read, and of it only what is new is weighed."""
    registry = ToolRegistry()
    finder = Finder(registry)
    for number in range(100):
        registry.register_mcp_tools(f"server_{number}", [tool("sing", f"Sing song {number}"), tool("dance", "Dance")])
    assert len(found(finder, "sing")) == 10
    read, weigh = document.read, document.weigh
    seen: list[str] = []
    monkeypatch.setattr(document, "read", lambda *given: seen.append("read") or read(*given))
    monkeypatch.setattr(document, "weigh", lambda *given: seen.append("weighed") or weigh(*given))
    registry.register_mcp_tools("server_7", [tool("sing", "Sing song 7"), tool("whistle", "Whistle")])
    assert found(finder, "whistle") == ["server_7__whistle"]
    assert (seen.count("read"), seen.count("weighed")) == (2, 1)
    seen.clear()
    finder.find("whistle", 10)
    assert seen == []


def test_a_name_of_two_servers_is_found_as_the_one_it_belongs_to() -> None:
    """The first server has it; when that one goes, the other one's tool is found under the name."""
    registry = ToolRegistry()
    finder = Finder(registry)
    bare = Exposure(prefix=False)
    registry.register_mcp_tools("alpha", [tool("run", "Jog around the park")], exposure=bare)
    registry.register_mcp_tools("beta", [tool("run", "Execute a program")], exposure=bare)
    assert found(finder, "jog") == ["run"]
    assert found(finder, "execute program") == []
    registry.remove_server_tools("alpha")
    assert found(finder, "jog") == []
    assert found(finder, "execute program") == ["run"]
    registry.register_mcp_tools("alpha", [tool("run", "Jog around the park")], exposure=bare)
    assert found(finder, "execute program") == []
    assert found(finder, "jog") == ["run"]


def test_only_what_is_admitted_counts() -> None:
    """A filter narrows the hits and their total."""
    registry = ToolRegistry()
    finder = Finder(registry)
    for server in ("alpha", "beta"):
        registry.register_mcp_tools(server, [tool("sing", "Sing"), tool("sing_along", "Sing with others")])
    hits, total = finder.find("sing", 1, lambda tool: tool.server_name == "beta")
    assert ([hit.tool.name for hit in hits], total) == (["beta__sing"], 2)
    assert finder.find("sing", 1)[1] == 4


def test_a_search_in_the_middle_of_catching_up_goes_on_with_it() -> None:
    """Whoever searches while the index is brought up to date finishes that first: nothing is half struck."""
    registry = ToolRegistry()
    finder = Finder(registry)
    registry.register_mcp_tools("alpha", [tool(f"sing_{number}", "Sing") for number in range(20)])
    assert len(found(finder, "sing")) == 10
    registry.register_mcp_tools("alpha", [tool(f"jump_{number}", "Jump") for number in range(20)])
    for _ in range(25):
        finder._step()
    assert found(finder, "sing") == []
    assert len(found(finder, "jump")) == 10


def test_a_config_edit_reads_only_the_servers_whose_keywords_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tools are neither read nor weighed again."""
    keywords = {"alpha": {"sing": ["music"]}, "beta": {}}
    registry = ToolRegistry()
    finder = Finder(
        registry,
        lambda tool: keywords[tool.server_name or ""].get(tool.original_name, []),
        keywords_of=keywords.get,
    )
    for server in keywords:
        registry.register_mcp_tools(server, [tool("sing", "Sing"), tool("jump", "Jump")])
    assert found(finder, "music") == ["alpha__sing"]
    seen: list[str | None] = []
    read = document.read

    def count(tool: object, server: str | None = None) -> document.Texts | None:
        seen.append(server)
        return read(tool, server)

    monkeypatch.setattr(document, "read", count)
    finder.invalidate()
    assert found(finder, "music") == ["alpha__sing"]
    assert seen == []
    keywords["beta"] = {"jump": ["music"]}
    finder.invalidate()
    assert set(found(finder, "music")) == {"alpha__sing", "beta__jump"}
    assert set(seen) == {"beta"}


@pytest.mark.anyio
async def test_a_large_change_is_indexed_in_slices() -> None:
    """Thousands of tools come, change and go: no callback takes long, and others have their turns."""
    registry = ToolRegistry()
    finder = Finder(registry)
    words = ["sing", "jump", "read", "write", "send", "fetch", "open", "close", "list", "merge"]
    many = [tool(f"{words[n % 10]}_{n}", f"{words[n % 7]} the thing {n} of {words[n % 9]}") for n in range(4_000)]
    registry.register_mcp_tools("small", [tool("whistle", "Whistle")])
    await finder.catch_up()
    with loopwatch() as watch:
        for tools in (many, many[::2], []):
            registry.register_mcp_tools("large", tools)
            await asyncio.sleep(0)
            # Only what the index costs is looked at.
            watch.longest, before = 0.0, watch.callbacks
            await finder.catch_up()
            await asyncio.sleep(0)
            assert watch.longest <= LIMIT, watch.culprit
            assert watch.callbacks > before + 2
    assert found(finder, "sing") == []
    assert found(finder, "whistle") == ["small__whistle"]


@pytest.mark.anyio
async def test_a_search_never_begins_in_the_middle_of_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever searches waits for the change that somebody else takes over, however often they get their turns."""
    monkeypatch.setattr(pace, "SLICE", 0.0)
    registry = ToolRegistry()
    finder = Finder(registry)
    registry.register_mcp_tools("alpha", [tool(f"sing_{number}", "Sing") for number in range(20)])
    first = asyncio.ensure_future(finder.find_in_slices("sing", 10))
    for number in range(20):
        await asyncio.sleep(0)
        registry.register_mcp_tools("alpha", [tool(f"jump_{number}_{each}", "Jump") for each in range(20)])
        asyncio.ensure_future(finder.catch_up()).add_done_callback(lambda _: None)
    assert await first is not None
    hits, total = await finder.find_in_slices("jump", 10, lambda tool: not tool.name.endswith("_0"))
    assert (len(hits), total) == (10, 19)


def test_a_change_of_what_the_index_goes_by_loses_no_tool() -> None:
    """By words or by meaning: every server is read anew."""
    setting = [False]
    registry = ToolRegistry()
    finder = Finder(registry, semantic=lambda: setting[0])
    registry.register_mcp_tools("alpha", [tool("run", "Jog around the park")])
    assert found(finder, "jog") == ["alpha__run"]
    for setting[0] in (True, False):
        finder.invalidate()
        assert found(finder, "jog") == ["alpha__run"]


@pytest.mark.anyio
async def test_whoever_has_just_come_goes_before_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a moment after the start nothing is read: clients that shake hands and list come first."""
    monkeypatch.setattr("pegboard.catalog.finder._FIRST_THINGS_FIRST", LIMIT)
    registry = ToolRegistry()
    finder = Finder(registry)
    registry.register_mcp_tools("alpha", [tool("run", "Jog around the park")])
    warming = asyncio.create_task(finder.warm_up())
    for _ in range(10):
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: None)
    assert finder._made is None
    warming.cancel()
