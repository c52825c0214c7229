"""Large results for people and programs: over REST, on the command line, in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT
from pegboard import Pegboard
from pegboard.formats.content import TEXT_LIMIT
from results.shelf import GET, Shelf, about, open_shelf, records, text_of, text_result

pytestmark = pytest.mark.anyio

LARGE = text_result(json.dumps(records(4000)))
TEXT = text_of(LARGE)


@pytest.mark.scenario("results: People and programs get everything")
async def test_rest_gives_everything_unless_it_is_asked_for_less(tmp_path: Path) -> None:
    """Whatever the caps of agents are; a part is read on like any other."""
    async with (
        open_shelf(tmp_path, results={"cap": 5000}) as (gateway, shelf),
        httpx2.AsyncClient(base_url=f"{gateway.url}/api/tools", timeout=LIMIT) as web,
    ):
        body = {"arguments": shelf.put(LARGE)}
        assert (await web.post(f"/{GET}/call", json=body)).json()["data"] == LARGE
        for off in ("0", "off"):
            assert (await web.post(f"/{GET}/call?cap={off}", json=body)).json()["data"] == LARGE
        part = (await web.post(f"/{GET}/call?cap=3000", json=body)).json()["data"]
        assert len(text_of(part)) <= 3000
        page = (await web.post("/result_read/call", json={"arguments": {"id": about(part)["id"], "limit": 3}})).json()
        assert page["data"]["structuredContent"]["data"]["records"] == records(3)
        for wrong in ("1", "many", "-3"):
            assert (await web.post(f"/{GET}/call?cap={wrong}", json=body)).status_code == 400
        assert (await web.post(f"/{GET}/call?cup=3000", json=body)).status_code == 400


async def test_the_config_has_a_cap_for_rest(tmp_path: Path) -> None:
    """By the name that it has among clients."""
    async with (
        open_shelf(tmp_path, results={"clients": {"REST": 4000}}) as (gateway, shelf),
        httpx2.AsyncClient(base_url=f"{gateway.url}/api/tools", timeout=LIMIT) as web,
    ):
        part = (await web.post(f"/{GET}/call", json={"arguments": shelf.put(LARGE)})).json()["data"]
        assert 3000 < len(text_of(part)) <= 4000


def asks(name: str, arguments: Any) -> dict[str, Any]:
    """A model's reply that calls a tool."""
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": name, "input": arguments}]}


def answered(messages: list[dict[str, Any]]) -> str:
    """The text that the model is given."""
    content = messages[0]["content"][0]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.scenario("results: An agent loop sends no more than its cap")
@pytest.mark.parametrize(
    ("deferred", "results", "most"),
    [
        (True, {}, 40_000),
        (False, {}, TEXT_LIMIT),
        (False, {"cap": 5000}, 5000),
        (True, {"cap": 0}, TEXT_LIMIT),
        (False, {"cap": 10**6}, TEXT_LIMIT),
        (False, {"tools": {"shelf__*": 6000}}, 6000),
    ],
)
async def test_an_agent_loop_sends_no_more_than_the_cap(
    *, deferred: bool, results: dict[str, Any], most: int, tmp_path: Path
) -> None:
    """And the model reads on with the tool that it was offered."""
    shelf = Shelf(tmp_path / "shelf")
    settings = {"toolsets": ["discovery", "results"], "storage": f"sqlite:{tmp_path}/kept.db", "results": results}
    async with Pegboard({"shelf": shelf.entry()}, settings=settings) as board:
        offered = await board.get_tool_definitions(deferred=deferred)
        assert "result_read" in [tool["name"] for tool in offered if not tool.get("defer_loading")]
        arguments = shelf.put(LARGE)
        given = answered(await board.answer(asks(GET, arguments)))
        assert most * 0.9 < len(given) <= most
        assert given.startswith(f"[pegboard] {len(TEXT):,} characters, shown ")
        kept = given.partition('result_read("')[2].partition('"')[0]
        page = json.loads(answered(await board.answer(asks("result_read", {"id": kept, "offset": 3999}))))
        assert page["data"]["records"] == records(4000)[3999:]
        # A program that calls by itself gets everything.
        assert (await board.call(GET, arguments)).unwrap() == LARGE


async def test_without_the_reader_an_answer_is_cut_as_before(tmp_path: Path) -> None:
    """Nothing is promised that could not be read."""
    shelf = Shelf(tmp_path / "shelf")
    settings = {"toolsets": [], "storage": f"sqlite:{tmp_path}/kept.db"}
    async with Pegboard({"shelf": shelf.entry()}, settings=settings) as board:
        await board.get_tool_definitions()
        given = answered(await board.answer(asks(GET, shelf.put(LARGE))))
        assert given.startswith(TEXT[:1000])
        assert "characters are left out" in given
