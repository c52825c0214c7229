"""Lists that are too much: cut where the limits are, said so, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from harness import HERE, Entry, eventually, open_board, toy
from loopwatch import loopwatch, served_during
from pegboard.catalog import notice_pace
from pegboard.catalog.registry import Exposure
from pegboard.catalog.uri_template import MAX_TEMPLATES
from pegboard.gateway.rest.rows import server_row
from pegboard.listing.view import ListKey
from pegboard.pace import Pace
from pegboard.servers import pages

pytestmark = pytest.mark.anyio
HOARD, HOSTILE = HERE / "servers" / "hoard.py", HERE / "servers" / "hostile.py"


def hoard(how: str) -> Entry:
    return {"command": sys.executable, "args": ["-I", "-S", str(HOARD), how]}


@pytest.mark.parametrize(
    ("how", "count", "reason"),
    [
        ("many", pages.MAX_ITEMS, "more than 10,000 items"),
        ("pages", 120, "larger than 16,777,216 bytes"),
        ("large", 9_000, None),
        ("broken", 0, None),
    ],
)
async def test_a_list_that_is_too_long_is_cut_and_holds_nobody_up(
    tmp_path: Path, how: str, count: int, reason: str | None
) -> None:
    """What is beyond the limits is left out with a reason, and no callback on the loop takes long."""
    async with open_board(tmp_path, {"hoard": hoard(how), "good": toy(tools=["x"])}) as board:
        assert (await board.refresh(["good"])).success
        await board.call("good__x")
        with loopwatch() as watch, capture_logs() as logs:
            served = await served_during(board.refresh(["hoard"]), lambda: board.call("good__x"))
        watch.check()
        assert served > 1
        known = board.registry.server("hoard")
        assert known is not None
        assert len(known.tools) == count
        row = server_row(board, board.servers["hoard"])
        said = row.get("cut", []) + [entry["reason"] for entry in logs if entry["event"] == "catalog.list.cut"]
        assert len(said) == (0 if reason is None else 2)
        assert all(reason in each for each in said if reason is not None)
        assert len([entry for entry in logs if entry["log_level"] != "debug"]) < 100


async def test_a_server_has_hundreds_of_templates_at_most(tmp_path: Path) -> None:
    """Each may be compared with every resource that nobody lists; the rest is left out and said so."""
    librarian: Entry = {"command": sys.executable, "args": ["-I", "-S", str(HOSTILE), "stdio", "library"]}
    async with open_board(tmp_path, {"library": librarian}) as board:
        await board.refresh(["library"])
        await eventually(lambda: board.library.knows("library"))
        assert len(board.library.templates.entries) == MAX_TEMPLATES
        cut = "the list of resourceTemplates is cut after 500 items: it has more than 500 items"
        assert cut in server_row(board, board.servers["library"])["cut"]


@pytest.mark.parametrize(("how", "reason"), [("nothing", "larger than 16,777,216 bytes"), ("deep", "not valid JSON")])
async def test_a_list_of_which_nothing_can_be_used_is_refused(tmp_path: Path, how: str, reason: str) -> None:
    """The refresh fails with the reason, which stands beside the server; what was known of it stays."""
    async with open_board(tmp_path, {"hoard": hoard(how), "good": toy(tools=["x"])}) as board:
        board.registry.register_mcp_tools("hoard", [{"name": "known", "inputSchema": {"type": "object"}}])
        await board.call("good__x")
        with loopwatch() as watch:
            served = await served_during(board.refresh(["hoard"]), lambda: board.call("good__x"))
        watch.check()
        assert served > 1
        assert reason in server_row(board, board.servers["hoard"])["lastError"]
        assert board.registry.get("hoard__known") is not None


async def test_a_server_that_always_announces_changes_is_asked_less_and_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notice after each list does not lead to a list after each notice; pauses double."""
    monkeypatch.setattr(notice_pace, "_FIRST_NOTICE", 0.02)
    async with open_board(tmp_path, {"one": hoard("restless")}) as board:
        await board.refresh()
        pauses: list[float] = []

        async def watch() -> None:
            while len(pauses) < 6:
                pause = board.discovery.notices._asked.get("one", (0.0, 0.0))[1]
                if pause and (not pauses or pause != pauses[-1]):
                    pauses.append(pause)
                await asyncio.sleep(0.005)

        async with asyncio.timeout(10):
            await watch()
        assert pauses == [0.02 * 2**times for times in range(6)]


async def test_the_last_notice_is_never_lost(tmp_path: Path) -> None:
    """A change that is announced during a pause is listed in the end."""
    async with open_board(tmp_path, {"one": toy()}) as board:
        await board.refresh()
        for number in range(5):
            assert (await board.call("one__change", {"add": [f"new{number}"]})).success
        async with asyncio.timeout(10):
            while board.registry.get("one__new4") is None:
                await asyncio.sleep(0.01)


async def test_fifty_thousand_tools_hold_nobody_up(tmp_path: Path) -> None:
    """They come, a client subscribes to their list, reads it, and they go: others are served all the while."""
    many = [{"name": f"t{number}", "inputSchema": {"type": "object"}} for number in range(50_000)]
    async with open_board(tmp_path, {"many": toy(), "good": toy(tools=["x"])}) as board:
        await board.call("good__x")

        async def come_and_go() -> None:
            pace = Pace(waits=False)
            for tools in (many, many[:1000]):
                await board.registry.register_in_slices(
                    "many", tools, exposure=Exposure(), ttl=300.0, still=lambda: True, pace=pace
                )
                end = board.lists.tools.subscribe(ListKey(), lambda: None)
                assert len((await board.list_tools()).items) > len(tools)
                end()
            await board.discovery.put_away("many")

        with loopwatch() as watch:
            served = await served_during(asyncio.wait_for(come_and_go(), 60), lambda: board.call("good__x"))
        watch.check()
        assert served > 1
        assert board.registry.server("many") is None
