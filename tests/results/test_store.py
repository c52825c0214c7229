"""Kept results on each database: for their owner, for an hour, as many as there is room for."""

from __future__ import annotations

import time
import zlib

import pytest

from pegboard.result import ToolFailure
from pegboard.results import keeper as keeper_module
from pegboard.results.keeper import LIFETIME, ResultKeeper
from pegboard.storage import Storage, migrations, open_storage
from pegboard.storage.database import DatabaseConnection
from pegboard.storage.migrations import STEPS
from pegboard.storage.results import ResultOwner, size_of_row

pytestmark = pytest.mark.anyio

OWNER = ResultOwner("token:1", "session")
# What a result of one piece of ten bytes takes, and room for many.
ONE, ROOM = size_of_row("{}") + 10, 100 * size_of_row("{}")
# Four pieces of text that no compression helps with much.
TEXT = "".join(chr(0x4E00 + (number * 7919) % 20000) for number in range(1_600_000)) + "\ud83d\x00 end"


@pytest.mark.scenario("results: The whole is kept, and pages put together are the exact text")
async def test_a_text_comes_back_as_it_was_and_in_parts(storage: Storage) -> None:
    """To the last character, whatever piece it stands in."""
    keeper = ResultKeeper(storage.results)
    result_id = await keeper.keep(TEXT, {"start": 1}, OWNER)
    assert result_id is not None
    kept = await keeper.find(result_id, OWNER)
    assert (kept.characters, dict(kept.facts)) == (len(TEXT), {"start": 1})
    assert await keeper.read(kept) == TEXT
    for start, end in ((0, 10), (499_990, 500_010), (500_000, 1_000_000), (1_599_999, 10**9), (10**9, 10**9 + 1)):
        assert await keeper.read(kept, start, end) == TEXT[start:end]
    await keeper.close()


@pytest.mark.scenario("results: A kept result is its principal's and its session's")
async def test_only_its_owner_finds_a_result(storage: Storage) -> None:
    """Not another principal, not another session of the same, and nobody by a guess."""
    keeper = ResultKeeper(storage.results)
    result_id = await keeper.keep("a text", {}, OWNER)
    assert result_id is not None
    strangers = (ResultOwner("token:2", "session"), ResultOwner("token:1", "other"), ResultOwner("token:1"))
    for owner, wanted in [
        *((stranger, result_id) for stranger in strangers),
        (OWNER, "r_x"),
        (OWNER, "%"),
        (OWNER, ""),
    ]:
        with pytest.raises(ToolFailure, match="call the tool again"):
            await keeper.find(wanted, owner)
    await keeper.close()


@pytest.mark.scenario("results: What is not read for an hour is gone, and there is room for so much")
async def test_what_is_not_read_for_an_hour_is_gone(storage: Storage) -> None:
    """Whoever reads it keeps it; the rows of what is gone are gone, too."""
    store = storage.results
    for name in ("old", "read"):
        await store.begin(name, OWNER, "{}", 1, 1000.0)
        await store.add(name, 0, b"x")
        assert await store.finish(name, OWNER, expired=0.0, count=9, share=ROOM, most=ROOM)
    assert await store.find("read", OWNER, 2000.0, 0.0) == ("{}", 1)
    assert await store.find("old", OWNER, 4601.0, 1001.0) is None
    await store.remove_expired(1001.0)
    assert [await store.pieces(name, 0, 1) for name in ("old", "read")] == [[], [b"x"]]


@pytest.mark.scenario("results: What is not read for an hour is gone, and there is room for so much")
async def test_an_hour_later_nobody_finds_a_result(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before its rows are removed."""
    keeper = ResultKeeper(storage.results)
    kept = await keeper.keep("text", {}, OWNER)
    assert kept is not None
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began + LIFETIME - 60)
    await keeper.find(kept, OWNER)
    # It was read just now.
    monkeypatch.setattr(time, "time", lambda: began + 2 * LIFETIME - 120)
    await keeper.find(kept, OWNER)
    monkeypatch.setattr(time, "time", lambda: began + 3 * LIFETIME)
    with pytest.raises(ToolFailure, match="call the tool again"):
        await keeper.find(kept, OWNER)
    await keeper.close()


@pytest.mark.scenario("results: What is not read for an hour is gone, and there is room for so much")
async def test_the_oldest_go_where_there_is_no_room(storage: Storage) -> None:
    """Of one principal, and of all together; what is not whole yet is not there."""
    store = storage.results
    other = ResultOwner("token:2")
    for number, owner in enumerate((other, OWNER, OWNER, OWNER)):
        await store.begin(f"r{number}", owner, "{}", 10, 1000.0 + number)
        await store.add(f"r{number}", 0, b"x" * 10)
        assert await store.find(f"r{number}", owner, 2000.0, 0.0) is None
        assert await store.finish(f"r{number}", owner, expired=0.0, count=9, share=2 * ONE + 5, most=ROOM)
    owners = (other, OWNER, OWNER, OWNER)
    found = [await store.find(f"r{number}", owner, 2000.0, 0.0) is not None for number, owner in enumerate(owners)]
    assert found == [True, False, True, True]
    await store.begin("r4", OWNER, "{}", 10, 1004.0)
    await store.add("r4", 0, b"x" * 10)
    assert await store.finish("r4", OWNER, expired=0.0, count=9, share=ROOM, most=2 * ONE + 5)
    assert [await store.pieces(f"r{number}", 0, 1) != [] for number in range(5)] == [False, False, False, True, True]


@pytest.mark.scenario("results: What is not read for an hour is gone, and there is room for so much")
async def test_so_many_results_of_one_principal(storage: Storage) -> None:
    """However small they are, and whatever others have."""
    store, other = storage.results, ResultOwner("token:2")
    for number in range(8):
        owner = other if number < 3 else OWNER
        await store.begin(f"r{number}", owner, "{}", 1, 1000.0 + number)
        await store.add(f"r{number}", 0, b"x")
        assert await store.finish(f"r{number}", owner, expired=0.0, count=3, share=ROOM, most=ROOM)
    owners = [other] * 3 + [OWNER] * 5
    found = [await store.find(f"r{number}", owner, 2000.0, 0.0) is not None for number, owner in enumerate(owners)]
    assert found == [True] * 3 + [False] * 2 + [True] * 3


async def totals(storage: Storage) -> list[tuple[str, int, int]]:
    """What is said of each principal, after a look at its rows."""
    counted = "SELECT principal, COUNT(*), CAST(SUM(bytes) AS BIGINT) FROM kept_results WHERE is_whole = 1 GROUP BY 1"
    said, there = await storage.database.read(
        lambda connection: (
            sorted(connection.rows("SELECT principal, results, bytes FROM kept_result_totals")),
            sorted(connection.rows(counted)),
        )
    )
    assert said == there
    return said


@pytest.mark.scenario("results: What is not read for an hour is gone, and there is room for so much")
async def test_all_that_is_kept_counts(storage: Storage) -> None:
    """Pieces, what is known of a result, and its row; the sums stay true whichever way a result goes."""
    store, other = storage.results, ResultOwner("token:2")
    facts = '{"path": "' + "k" * 5000 + '"}'
    for number, owner in enumerate((OWNER, OWNER, other)):
        await store.begin(f"r{number}", owner, facts, 1, 1000.0 + number)
        await store.add(f"r{number}", 0, b"x" * 10)
        assert await store.finish(f"r{number}", owner, expired=0.0, count=9, share=ROOM, most=ROOM)
    each = size_of_row(facts) + 10
    assert each > 6000
    assert await totals(storage) == [("token:1", 2, 2 * each), ("token:2", 1, each)]
    # What is not whole is not counted, and its end is no loss.
    await store.begin("half", other, facts, 1, 1004.0)
    await store.remove("half")
    await store.remove("r0")
    await store.remove("r0")
    assert await totals(storage) == [("token:1", 1, each), ("token:2", 1, each)]
    await store.remove_expired(1001.0)
    assert await totals(storage) == [("token:2", 1, each)]
    await store.begin("r3", OWNER, "{}", 1, 1003.0)
    assert await store.finish("r3", OWNER, expired=0.0, count=9, share=ROOM, most=each)
    assert await totals(storage) == [("token:1", 1, size_of_row("{}"))]


async def test_expired_results_go_however_many_they_are(storage: Storage) -> None:
    """In several transactions."""
    row = ("token:1", "", "{}", 1, 1001, 1, 1000.0, 1000.0)
    insert = f"INSERT INTO kept_results VALUES ({', '.join('?' * 9)})"

    def fill(connection: DatabaseConnection) -> None:
        connection.execute_many(insert, [(f"r{number}", *row) for number in range(450)])
        connection.execute("INSERT INTO kept_result_totals VALUES ('token:1', 450, 450450)")

    await storage.database.write(fill)
    await storage.results.remove_expired(1000.0)
    assert await totals(storage) == []


async def test_results_of_an_older_pegboard_are_counted(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay readable, and are the first to go."""
    monkeypatch.setattr(migrations, "STEPS", STEPS[:13])
    storage = open_storage(place)
    await storage.open()
    row = ("token:1", "session", '{"start": 0}', 2, 10, 1, 1000.0, 1000.0)

    def fill(connection: DatabaseConnection) -> None:
        connection.execute(f"INSERT INTO kept_results VALUES ({', '.join('?' * 9)})", "r_old", *row)
        connection.execute("INSERT INTO kept_result_pieces VALUES (?, 0, ?)", "r_old", zlib.compress(b"ab"))

    await storage.database.write(fill)
    await storage.close()
    monkeypatch.undo()
    await storage.open()
    assert await totals(storage) == [("token:1", 1, size_of_row('{"start": 0}') + 10)]
    found = await storage.results.find("r_old", OWNER, 1001.0, 0.0)
    assert found == ('{"start": 0}', 2)
    assert await storage.results.pieces("r_old", 0, 1) == [zlib.compress(b"ab")]
    await storage.close()


async def test_what_is_larger_than_a_share_is_not_kept(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would push out all else, and itself."""
    monkeypatch.setattr(keeper_module, "SHARE", 100_000)
    keeper = ResultKeeper(storage.results)
    assert await keeper.keep(TEXT, {}, OWNER) is None
    assert await keeper.keep("short", {}, OWNER) is not None
    rows = await storage.database.read(lambda connection: connection.rows("SELECT COUNT(*) FROM kept_results"))
    assert rows == [(1,)]
    await keeper.close()


async def test_without_a_storage_nothing_is_kept(storage: Storage) -> None:
    """Which is no error: whoever called gets a part all the same."""
    await storage.close()
    keeper = ResultKeeper(storage.results)
    assert await keeper.keep("a text", {}, OWNER) is None
    await keeper.close()
    await storage.open()
