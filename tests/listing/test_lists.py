"""What is kept of the lists that clients see, and when a list is short."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness import eventually
from pegboard import exactjson, pace
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.resources import ResourceCatalog
from pegboard.config import Settings
from pegboard.listing import lists
from pegboard.listing import view as view_module
from pegboard.listing.lists import FEW, FEW_TOKENS, SHORT, Lists
from pegboard.listing.loaded import LoadedTools
from pegboard.listing.view import Filter, ListKey
from pegboard.storage import open_storage
from pegboard.tool import Tool


class ToolFind(Tool):
    """The one that finds others."""

    name = "tool_find"
    description = "Find tools."
    category = "discovery"

    async def call(self, arguments: Any) -> Any:
        return arguments


class Local(ToolFind):
    """One that is not for clients on other machines."""

    name = "local_find"
    local_only = True


def tools(count: int, words: str = "") -> list[dict[str, Any]]:
    schema = {"type": "object"}
    return [{"name": f"t{number}", "description": words, "inputSchema": schema} for number in range(count)]


def build(registry: ToolRegistry) -> Lists:
    loaded = LoadedTools(open_storage("sqlite").boards, lambda: None, lambda: 40)
    return Lists(registry, ResourceCatalog(), loaded, hidden=set, settings=Settings)


@pytest.mark.scenario("first hour: A lean list")
@pytest.mark.parametrize(
    ("count", "words", "scope"),
    [
        (FEW - 1, "", "servers"),
        (FEW, "", "servers"),
        (FEW + 1, "", "chosen"),
        (2, "x" * (FEW_TOKENS * 2 - 200), "servers"),
        (2, "x" * (FEW_TOKENS * 2), "chosen"),
        # A token is counted as four bytes of UTF-8, whatever the script.
        (2, "ü" * (FEW_TOKENS - 100), "servers"),
        (2, "ü" * FEW_TOKENS, "chosen"),
    ],
)
def test_many_or_long_tools_have_to_be_found(count: int, words: str, scope: str) -> None:
    """Thirty tools of 8,000 tokens together are still listed; with more of either they have to be found."""
    registry = ToolRegistry()
    registry.register_tool("tool_find", ToolFind())
    registry.register_mcp_tools("git", tools(count, words))
    assert build(registry).scope(ListKey()) == scope


@pytest.mark.parametrize(
    ("expose", "scope"), [("all", "all"), ("search", "chosen"), ("auto", "servers"), (None, "servers")]
)
def test_a_client_chooses_for_itself(expose: str | None, scope: str) -> None:
    """What an address says of `expose` goes before the setting; a filter has every match."""
    registry = ToolRegistry()
    registry.register_tool("tool_find", ToolFind())
    registry.register_mcp_tools("git", tools(2))
    here = build(registry)
    assert here.scope(ListKey(expose=expose)) == scope
    assert here.scope(ListKey(Filter.of(server="git"), expose=expose)) == "all"


def test_without_the_tool_that_finds_others_everything_is_listed() -> None:
    """A short list would be a dead end."""
    registry = ToolRegistry()
    registry.register_mcp_tools("git", tools(FEW + 1))
    assert build(registry).scope(ListKey()) == "all"


def test_a_short_list_holds_only_what_its_client_may_have() -> None:
    """A tool for clients on this machine is not in the short list of a client on another one."""
    registry = ToolRegistry()
    for tool in (ToolFind(), Local()):
        registry.register_tool(tool.name, tool)
    registry.register_mcp_tools("git", tools(FEW + 1))
    here = build(registry)
    assert here.list_for(ListKey()).names >= {"tool_find", "local_find"}
    remote = here.list_for(ListKey(Filter(remote=True))).names
    assert "tool_find" in remote
    assert "local_find" not in remote


def test_views_are_kept_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many filters there are, what is kept stays within its bounds, and the newest is among it."""
    monkeypatch.setattr(lists, "_MAX_BYTES", 100_000)
    registry = ToolRegistry()
    registry.register_mcp_tools("git", tools(100, "x" * 100))
    here = build(registry)
    for number in range(50):
        view = here.view(Filter.of(server=["git", f"other{number}"]))
        assert here.view(Filter.of(server=["git", f"other{number}"])) is view
        kept = [each for _, each in here._views.values()]
        assert len(kept) == 1 or sum(each.weight for each in kept) <= 100_000
        assert here._weight == sum(each.weight for each in kept)
    registry.remove_server_tools("git")
    for number in range(50):
        here.view(Filter.of(server=["git", f"other{number}"]))
    assert here._weight == 0


@pytest.mark.anyio
@pytest.mark.parametrize("piece", [0, 100, 10**6])
async def test_the_text_of_a_view_is_its_definitions(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is joined from the tools' own texts is what writing the whole list would give, in both eras."""
    monkeypatch.setattr(view_module, "_PIECE", piece)
    registry = ToolRegistry()
    odd = {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {"type": "string"}, "x": 2**70}
    registry.register_mcp_tools("git", [*tools(3), odd])
    view = build(registry).view(Filter())
    assert b"".join(view.definition_pieces) == exactjson.dump(view.definitions)
    assert b"".join(view.handshake_pieces) == exactjson.dump(view.handshake_definitions)
    assert b"outputSchema" not in b"".join(view.handshake_pieces)
    assert len(view.definition_pieces) == {0: 4, 100: 3}.get(piece, 1)
    assert build(ToolRegistry()).view(Filter()).definition_pieces == [b"[]"]
    again = build(registry).view(Filter())
    await asyncio.gather(again.write(), again.write())
    assert (again.definition_pieces, again.handshake_pieces) == (view.definition_pieces, view.handshake_pieces)


@pytest.mark.anyio
async def test_a_long_list_is_made_in_slices_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have turns while it is made, and a change meanwhile is in the next list, whole, not in this one."""
    monkeypatch.setattr(pace, "SLICE", 0.0)
    registry = ToolRegistry()
    registry.register_mcp_tools("git", tools(SHORT + 1, "before"))
    made = build(registry)
    turns = 0
    making = asyncio.ensure_future(made.list_in_slices(ListKey()))
    sharing = asyncio.ensure_future(made.list_in_slices(ListKey()))
    while not making.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 50:
            registry.register_mcp_tools("git", tools(SHORT + 2, "after"))
    assert turns > SHORT
    assert await sharing is making.result()
    assert {tool.definition["description"] for tool in making.result().items} == {"before"}
    assert len(making.result().items) == SHORT + 1
    now = await made.list_in_slices(ListKey())
    assert [tool.definition["description"] for tool in now.items] == ["after"] * (SHORT + 2)
    assert await made.list_in_slices(ListKey()) is now is made.list_for(ListKey())


@pytest.mark.anyio
async def test_a_notice_of_a_long_list_is_looked_for_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it, nor for the view that a client begins with; a change during either is told."""
    monkeypatch.setattr(pace, "SLICE", 0.0)
    registry = ToolRegistry()
    registry.register_mcp_tools("git", tools(SHORT + 1))
    made = build(registry)
    told: list[int] = []
    made.tools.subscribe(ListKey(), lambda: told.append(registry.generation))
    assert not made._views
    registry.register_mcp_tools("git", tools(SHORT + 2))
    made.tell()
    while made.tools._looking is None:
        await asyncio.sleep(0.001)
    registry.register_mcp_tools("git", tools(SHORT + 3))
    made.tell()
    await eventually(lambda: told[-1:] == [registry.generation])
    made.close()


def test_whether_a_tool_is_listed_makes_no_long_list() -> None:
    """One name is looked up, however many there are."""
    registry = ToolRegistry()
    registry.register_mcp_tools("git", tools(SHORT + 1))
    made = build(registry)
    assert made.is_listed("git__t0", ListKey())
    assert not made.is_listed("git__t0", ListKey(Filter.of("hub")))
    assert not made.is_listed("git__none", ListKey())
    assert made._views == {}
