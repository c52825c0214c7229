"""Answers stay small, and say how to read on."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard.toolsets.memory.budget import DEFAULT
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.memory import Link
from pegboard.toolsets.memory.tools import memory_tools

pytestmark = pytest.mark.anyio

MARK = re.compile(r"… \[cut: characters (\d+)-(\d+) of (\d+); read on with memory_get, offset (\d+)\]$")
LONG_KEY = "k" * 480
# What the settings allow at least.
LEAST = 12_500
# Plain, full of quotes and line ends, of characters that JSON writes as six, and of wide ones.
TEXTS = {
    "plain": "word " * 30_000,
    "quoted": '{"a": "b\\n"}\n' * 10_000,
    "quotes": '"' * 60_000,
    "control": "\x01" * 60_000,
    "mixed": "x" * 40_000 + "\x02" * 40_000,
    "wide": "日本語🎉" * 20_000,
    "fits": "y" * 23_000,
    "empty": "",
}


@pytest.fixture
def place(tmp_path: Path) -> str:
    """What an answer is cut to does not depend on the database."""
    return f"sqlite:{tmp_path / 'm.db'}"


async def answered(memories: Memories, tool: str, arguments: Mapping[str, Any], size: int = DEFAULT) -> Any:
    """The data of a tool's answer, which must be within its size as it is written, and like its output schema."""
    by_name = {each.name: each for each in memory_tools(memories, lambda: size)}
    result = await by_name[tool].invoke(arguments)
    (part,) = result.content
    answer = json.loads(part.value)
    assert answer["success"], answer
    assert len(part.value) <= size
    return answer["data"]


def many_links(number: int, key: str = LONG_KEY, term: str = "t" * 200) -> list[Link]:
    """Links as long as they can be."""
    return [Link(f"{key}{n:05}", "y" * 64, term, 0.5) for n in range(number)]


@pytest.mark.parametrize("size", [DEFAULT, 3_000])
@pytest.mark.parametrize("kind", TEXTS)
async def test_a_long_text_is_read_in_parts(memories: Memories, kind: str, size: int) -> None:
    """Each part says where it ends; read on from there to the end, the parts are the text, exactly."""
    text = TEXTS[kind][: 40 * size]
    await memories.add("a", "summary", text)
    parts: list[str] = []
    offset = 0
    while True:
        shown = (await answered(memories, "memory_get", {"key": "a", "offset": offset}, size))["text"]
        cut = MARK.search(shown)
        if cut is None:
            parts.append(shown)
            break
        start, end, total, after = map(int, cut.groups())
        assert (start, total, after) == (offset, len(text), end)
        parts.append(shown[: cut.start()])
        assert len(parts[-1]) == end - start > 0
        # No part is so small that reading takes forever.
        assert len(json.dumps(shown, ensure_ascii=False)) > size // 3
        offset = end
    assert "".join(parts) == text
    assert (len(parts) == 1) == (len(text) < size - 1_000)


async def test_an_offset_beyond_the_end_is_empty(memories: Memories) -> None:
    """It is no error to ask for what comes after the last character; numbers may be written as JSON likes."""
    await memories.add("a", text="short")
    for offset in (5, 6, 10**9, 2**53):
        assert (await answered(memories, "memory_get", {"key": "a", "offset": offset}))["text"] == ""
    assert (await answered(memories, "memory_get", {"key": "a", "offset": 2.0}))["text"] == "ort"


async def test_many_links_are_read_in_parts(memories: Memories) -> None:
    """An answer shows the first of very many links and how many more there are; `linksOffset` shows the others."""
    links = many_links(500)
    await memories.add("a", "s" * 4000, TEXTS["plain"], links)
    shown: list[str] = []
    more = 500
    while more:
        data = await answered(memories, "memory_get", {"key": "a", "linksOffset": len(shown), "sortLinks": False})
        shown += [link["key"] for link in data["links"]]
        more = data.get("moreLinks", 0)
        assert len(shown) + more == 500
    assert shown == [link.key for link in links]
    assert (await answered(memories, "memory_get", {"key": "a", "linksOffset": 500}))["links"] == []


async def test_ordinary_links_are_all_shown(memories: Memories) -> None:
    """Fifty links of usual length are there, every one, and nothing says that there are more."""
    await memories.add("a", "s", "t", [Link(f"shop:billing:bug:number-{n}", "bug", "refund") for n in range(50)])
    data = await answered(memories, "memory_get", {"key": "a"})
    assert len(data["links"]) == 50
    assert "moreLinks" not in data


@pytest.mark.parametrize("tool", ["memory_add", "memory_update", "memory_rename"])
async def test_what_was_just_written_is_answered_briefly(memories: Memories, tool: str) -> None:
    """The longest memory there can be gives a small answer when it is written, changed or renamed."""
    links = [link.to_dict() for link in many_links(500)]
    words: dict[str, Any] = {"summary": "\x01" * 4000, "text": TEXTS["plain"], "links": links}
    if tool == "memory_add":
        data = await answered(memories, tool, {"key": LONG_KEY, **words})
    else:
        await memories.add(LONG_KEY, words["summary"], "", many_links(500))
        other = {"old_key": LONG_KEY, "new_key": "b" * 512} if tool == "memory_rename" else {"key": LONG_KEY, **words}
        data = await answered(memories, tool, other)
    assert len(data["links"]) + data["moreLinks"] == 500
    assert "text" not in data


@pytest.mark.parametrize("size", [DEFAULT, 6_000])
@pytest.mark.parametrize("kind", ["plain", "quoted", "control", "empty"])
async def test_a_walk_shares_the_room(memories: Memories, kind: str, size: int) -> None:
    """However many memories a walk comes along, and however long: the nearest are shown, all cut texts are marked."""
    onward = [Link(f"m{n}", "bug") for n in range(20)]
    for n in range(20):
        await memories.add(f"m{n}", "s" * 100 * n, TEXTS[kind], [*onward, Link(f"n{n}", "design", weight=1)])
        await memories.add(f"n{n}", "short", "short text", many_links(30))
    data = await answered(memories, "memory_read_linked", {"key": "m0", "breadth": 20, "total": 50}, size)
    assert data["total"] == 40
    assert data["memories"][0]["key"] == "m0"
    assert len(data["memories"]) == 40 or f"{len(data['memories'])} of 40 fit" in data["message"]
    assert len(data["memories"]) >= size // 2_500
    depths = [memory["depth"] for memory in data["memories"]]
    assert depths == sorted(depths)
    for memory in data["memories"]:
        full = await memories.get(memory["key"])
        cut = MARK.search(memory["text"])
        assert memory["text"] == full.text if cut is None else full.text.startswith(memory["text"][: cut.start()])
        if cut is not None:
            rest = await answered(memories, "memory_get", {"key": memory["key"], "offset": int(cut[4])}, size)
            assert rest["text"][:50] == full.text[int(cut[4]) :][:50]


async def test_a_small_walk_is_whole(memories: Memories) -> None:
    """Nothing is cut where there is room for all of it."""
    for n in range(10):
        await memories.add(f"m{n}", "summary", f"text {n} " * 100, [Link(f"m{n + 1}", "bug")])
    data = await answered(memories, "memory_read_linked", {"key": "m0", "depth": 6})
    assert [memory["text"] for memory in data["memories"]] == [f"text {n} " * 100 for n in range(7)]
    assert "message" not in data


@pytest.mark.parametrize("size", [DEFAULT, 6_000])
@pytest.mark.parametrize(
    ("tool", "rows", "asked"),
    [
        ("memory_search", "results", {"query": "needle"}),
        ("memory_fulltext_search", "results", {"keywords": "needle"}),
        ("memory_list", "memories", {}),
    ],
)
async def test_long_results_come_in_pages(
    memories: Memories, tool: str, rows: str, asked: dict[str, Any], size: int
) -> None:
    """What does not fit is left to the next page, which the answer names; the pages together have everything once."""
    for n in range(30):
        summary = "needle " + ("s" * 130 * n if n % 2 else "\x01" * 100 * n)
        await memories.add(f"{'k' * 10 * n}{n}", summary, "needle " * 500, many_links(n))
    seen: list[str] = []
    while True:
        data = await answered(memories, tool, {**asked, "limit": 100, "offset": len(seen)}, size)
        assert data[rows]
        seen += [row["key"] for row in data[rows]]
        assert data["pagination"]["total"] == 30
        assert data["pagination"]["hasMore"] == (len(seen) < 30)
        if not data["pagination"]["hasMore"]:
            break
        assert f"offset {len(seen)}" in data["message"]
    assert len(seen) == len(set(seen)) == 30


async def test_the_longest_result_fits(memories: Memories) -> None:
    """One memory with everything as long as it can be is one result within the size."""
    await memories.add("日" * 511, '"' * 4000, "needle " * 20_000, many_links(500, term='"' * 200))
    for tool, asked in (("memory_search", {"query": "needle"}), ("memory_list", {})):
        data = await answered(memories, tool, asked)
        assert data["pagination"]["hasMore"] is False


async def test_the_least_size_is_enough_for_the_worst(memories: Memories) -> None:
    """With everything as long as it can be, written as long as it can be, each answer is within the least size there is
    for answers."""
    space, key = '"' * 128, '"' * 512
    links = [{"key": f"{n:03}" + '"' * 509, "type": '"' * 64, "term": "\x01" * 200} for n in range(500)]
    words = {"summary": "\x01" * 4000, "text": "needle " + "\x01 needle" * 4000, "links": links}
    there = {"key": key, "namespace": space}
    await answered(memories, "memory_add", {**there, **words}, LEAST)
    await answered(memories, "memory_add", {"key": links[0]["key"], "namespace": space, **words}, LEAST)
    for tool, arguments in (
        ("memory_get", there),
        ("memory_get", {**there, "offset": 7, "linksOffset": 499}),
        ("memory_update", {**there, **words}),
        ("memory_search", {"namespace": space, "query": "needle"}),
        ("memory_fulltext_search", {"namespace": space, "keywords": "needle needle"}),
        ("memory_list", {"namespace": space}),
        ("memory_read_linked", there),
        ("memory_rename", {"namespace": space, "old_key": key, "new_key": '"' * 511}),
    ):
        await answered(memories, tool, arguments, LEAST)


async def test_a_summary_that_is_cut_says_so(memories: Memories) -> None:
    """With how to see more of it; `memory_get` has any summary in full that needs no escapes."""
    summary = "s" * 4000
    await memories.add("a", summary, "needle")
    (hit,) = (await answered(memories, "memory_search", {"query": "needle"}, LEAST))["results"]
    cut = re.search(r"^s+… \[cut: (\d+) of 4000 characters; memory_get or a larger memory.answerSize", hit["summary"])
    assert cut is not None
    assert int(cut[1]) == hit["summary"].count("s", 0, int(cut[1])) > 1000
    assert (await answered(memories, "memory_get", {"key": "a"}, LEAST))["summary"] == summary
