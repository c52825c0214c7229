"""What holds for every result, whatever its shape."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pegboard import exactjson
from pegboard.access.principal import LOCAL
from pegboard.board import Board
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint
from pegboard.config import Settings
from pegboard.result import ToolFailure
from pegboard.results.abridge import META_KEY, Note, abridge
from pegboard.results.contents import texts_of
from pegboard.results.json_part import find_json
from pegboard.results.keeper import owner_of
from pegboard.results.reader import ResultQuery
from pegboard.tool import RegisteredTool
from results.corpus import corpus, text_result

pytestmark = pytest.mark.anyio

TOOL = RegisteredTool("shelf__get", "shelf", "get", {"name": "shelf__get", "inputSchema": {"type": "object"}})
CLIENT = Client(era="modern", name="somebody")
STRANGER = Client(Endpoint(principal=replace(LOCAL, id="token:2")), era="modern", name="somebody")
CORPUS = corpus()
PARTS = 12
WIDE = [{f"field {number}": number for number in range(50)} for _ in range(500)]


@asynccontextmanager
async def open_results(tmp_path: Path) -> AsyncGenerator[Any]:
    """What a board has of large results."""
    async with Board(Settings(expose="search", storage=f"sqlite:{tmp_path}/kept.db")) as board:
        yield board.results


def read(result: Any) -> Any:
    """A result as it comes from a server."""
    return exactjson.parse(json.dumps(result).encode())


async def pages(results: Any, result_id: str, unit: str, cap: int, **more: Any) -> list[dict[str, Any]]:
    """Every page of a kept result."""
    found: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        page = await results.read(ResultQuery(result_id, offset, **more), CLIENT, cap)
        assert page["unit"] == unit
        assert page["offset"] == offset
        assert len(exactjson.dump(page).decode()) <= cap
        assert page["next"] is None or page["next"] > offset
        found.append(page)
        offset = page["next"]
    return found


def others(result: Any) -> list[Any]:
    """Blocks that have no text of their own."""
    blocks = result["content"]
    return [block for block in blocks if block["type"] != "text" and "text" not in block.get("resource", {})]


def test_the_corpus_is_large() -> None:
    """At least three hundred shapes, each with a name of its own."""
    assert len({name for name, _ in CORPUS}) == len(CORPUS) >= 300


@pytest.mark.scenario("results: Under the cap nothing changes")
@pytest.mark.scenario("results: The whole is kept, and pages put together are the exact text")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("cap", [2_000, 20_000])
async def test_any_result_fits_and_all_of_it_can_be_read(part: int, cap: int, tmp_path: Path) -> None:
    """Pages put together are the exact text; another principal finds nothing; what fits is not touched."""
    async with open_results(tmp_path) as results:
        for name, given in CORPUS[part::PARTS]:
            result = read(given)
            before, whole = json.dumps(given), texts_of(result).whole
            fitted = await results.fit(result, CLIENT, TOOL, cap)
            assert exactjson.dump(result) == exactjson.dump(read(json.loads(before))), name
            least = 10_000 if given.get("isError") else 0
            if len(whole) <= max(cap, least):
                assert fitted is result, name
                continue
            assert texts_of(fitted).characters <= max(cap, least), name
            assert fitted.get("isError") == result.get("isError")
            about = fitted["_meta"][META_KEY]
            head = next(block["text"] for block in fitted["content"] if block["type"] == "text")
            assert head.startswith(f"[pegboard] {len(whole):,} characters, shown "), name
            assert f'whole: result_read("{about["id"]}")\n' in head
            assert [block for block in others(fitted) if block["type"] != "resource_link"] == others(result), name
            assert {key: fitted["_meta"][key] for key in result.get("_meta", {})} == result.get("_meta", {})
            assert about["characters"] == len(whole)
            exact = await pages(results, about["id"], "characters", 40_000, path="")
            assert "".join(page["text"] for page in exact) == whole, name
            if "records" in about:
                await check_records(results, about, name)
            for stranger, id_ in ((STRANGER, about["id"]), (CLIENT, "r_" + "A" * 22)):
                with pytest.raises(ToolFailure, match=f'^there is no result "{id_}" any more, or none of yours: call'):
                    await results.read(ResultQuery(id_), stranger, cap)


@pytest.mark.scenario("results: No text is larger than its cap")
@pytest.mark.parametrize("cap", [200, 350])
async def test_any_result_fits_into_very_little(cap: int, tmp_path: Path) -> None:
    """Whatever it is; a name of a member may be all of a result."""
    name = "k" * 200_000
    records = [{"id": number, "t": "x" * 50} for number in range(300)]
    more = [text_result("a" * 300_000, "b" * 300_000), text_result(json.dumps({name: records}))]
    more += [text_result(json.dumps({"a": {name: {"b": records}}})), text_result(json.dumps([{name: 1}] * 3))]
    async with open_results(tmp_path) as results:
        for given in [*(each for _, each in CORPUS[::3]), *more]:
            fitted = await results.fit(read({**given, "isError": False}), CLIENT, TOOL, cap)
            assert texts_of(fitted).characters <= cap
            assert len(json.dumps(fitted.get("_meta", {}))) <= 1000
            if fitted.get("_meta", {}).get(META_KEY, {}).get("characters", 0) > 200_000:
                page = await results.read(ResultQuery(fitted["_meta"][META_KEY]["id"]), CLIENT, 5000)
                assert len(json.dumps(page)) <= 5000


@pytest.mark.scenario("results: No text is larger than its cap")
@pytest.mark.parametrize("note", [Note(None), Note("r_" + "A" * 22, can_read=False)])
def test_any_result_fits_whatever_is_said_of_the_rest(note: Note) -> None:
    """Also where the words about it leave no room for any of the text."""
    for given in (text_result("a" * 300_000), text_result("a" * 300_000, "b" * 300_000), text_result(json.dumps(WIDE))):
        texts = texts_of(given)
        fitted = abridge(given, texts, find_json(texts), 200, note, None)
        assert texts_of(fitted).characters <= 200


async def check_records(results: Any, about: dict[str, Any], name: str) -> None:
    """The records of all pages are those of the text; one that is too large for a page can be read by its path."""
    wanted = await results.reader.value(about["id"], about["path"] or None, owner_of(CLIENT))
    found: list[Any] = []
    keys: list[str] = []
    for page in await pages(results, about["id"], "records", 40_000):
        keys += page.get("keys", ())
        for record in page["records"]:
            if isinstance(record, dict) and "tooLarge" in record:
                parts = await pages(results, about["id"], "characters", 40_000, path=record["path"])
                text = "".join(part["text"] for part in parts)
                is_text = isinstance(wanted, list) and isinstance(wanted[len(found)], str)
                found.append(text if is_text else exactjson.parse(text))
            else:
                found.append(record)
    assert len(found) == about["records"], name
    assert exactjson.is_same(dict(zip(keys, found, strict=True)) if keys else found, wanted), name
