"""The chain: an edited, inserted or deleted record is found, and named, on both databases."""

from __future__ import annotations

import hmac
import stat
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.access.principal import LOCAL
from pegboard.audit.arguments import CUT_MARK, ArgumentsDigest, canonical_json
from pegboard.audit.audit import Audit
from pegboard.audit.composer import AuditBatch, Composer
from pegboard.audit.event import AuditEvent, NoteEvent
from pegboard.audit.file import AuditFile
from pegboard.audit.query import AuditQuery
from pegboard.audit.record import COLUMNS
from pegboard.audit.recorder import pack_arguments
from pegboard.audit.retention import Retention
from pegboard.audit.store import AuditStore
from pegboard.audit.verification import AuditReport, KnownHead, Verification, read_known_head
from pegboard.clients.client import Client
from pegboard.config.audit_settings import MEGABYTE, AuditSettings
from pegboard.metrics import Metrics
from pegboard.storage import Storage, open_storage
from pegboard.storage.database import DatabaseConnection

pytestmark = pytest.mark.anyio

DAY = 86_400
NOW = 1_794_000_000
SETTINGS = AuditSettings()
TOOL = "one__echo"
DIGEST = ArgumentsDigest(b"k")


def call(at: float, text: bytes = b'{"a":1}', tool: str = TOOL) -> AuditEvent:
    client = Client(session="quokka", name="raw", version="1")
    arguments, length = pack_arguments(text)
    at_ns = int(at * 1_000_000_000)
    return (at_ns, client, client.endpoint, tool, "one", "ok", 0.001, arguments, length, 12, "trace", "", "call")


@pytest.fixture
async def storage(place: str) -> AsyncGenerator[Storage]:
    storage = open_storage(place)
    await storage.open()
    yield storage
    await storage.close()


@pytest.fixture
async def store(storage: Storage) -> AuditStore:
    """Two chains: 20 records of one process, ten of another, in turns."""
    store = AuditStore(storage.database)
    key = await store.load_key()
    one, two = Composer(key), Composer(key)
    for at in range(10):
        await store.add(one.compose([call(NOW + at), call(NOW + at)], 0, SETTINGS), 10)
        await store.add(
            two.compose([NoteEvent((NOW + at) * 10**9, "server.added", LOCAL, server="x\0y")], 0, SETTINGS), 10
        )
    return store


async def change(storage: Storage, sql: str, *values: str | int) -> None:
    def write(connection: DatabaseConnection) -> None:
        assert connection.execute(sql, *values) == 1

    await storage.database.write(write)


async def verify(store: AuditStore, *known: KnownHead) -> AuditReport:
    return await Verification(store, known).run()


async def test_what_nobody_touched_is_whole(store: AuditStore) -> None:
    """Every record is looked at, in every chain."""
    report = await verify(store)
    assert report.to_dict() == {"ok": True, "records": 30, "chains": 2}


@pytest.mark.scenario("audit: A record that was changed, put in or taken out is found")
@pytest.mark.parametrize("column", [*COLUMNS, "hash"])
async def test_a_change_of_any_column_is_found(storage: Storage, store: AuditStore, column: str) -> None:
    """The first record that is not as it was written is named."""
    rows = await store.page("", 100)
    changed = rows[12]
    value = changed[[*COLUMNS, "hash"].index(column)]
    other = value + 1 if isinstance(value, int) else f"{value}x" if column != "id" else value[:-1] + "!"
    await change(storage, f"UPDATE audit SET {column} = ? WHERE id = ?", other, changed[0])
    fault = (await verify(store)).fault
    assert fault is not None
    if column not in {"id", "process", "chain"}:
        assert (fault.record, fault.process) == (changed[0], changed[1])


@pytest.mark.scenario("audit: A record that was changed, put in or taken out is found")
async def test_a_record_that_was_taken_out_is_found(storage: Storage, store: AuditStore) -> None:
    """In the middle, the one behind it is named; at the end, the head knows of more."""
    rows = [row for row in await store.page("", 100) if row[5] == "call"]
    await change(storage, "DELETE FROM audit WHERE id = ?", rows[-1][0])
    fault = (await verify(store)).fault
    assert fault is not None
    assert (fault.record, "taken out" in fault.reason) == (rows[-2][0], True)
    await change(storage, "DELETE FROM audit WHERE id = ?", rows[7][0])
    fault = (await verify(store)).fault
    assert fault is not None
    assert fault.record == rows[8][0]


@pytest.mark.scenario("audit: A record that was changed, put in or taken out is found")
async def test_a_head_that_was_changed_is_found(storage: Storage, store: AuditStore) -> None:
    """It does not fit the last record of its chain."""
    (head, *_) = await store.heads()
    await change(
        storage,
        "UPDATE audit_chains SET head = ? WHERE process = ? AND chain = ?",
        *("0" * 64, head.process, head.chain),
    )
    fault = (await verify(store)).fault
    assert fault is not None
    assert ("another head" in fault.reason, fault.record, fault.process) == (True, head.last_id, head.process)


@pytest.mark.scenario("audit: A record that was changed, put in or taken out is found")
async def test_a_record_that_was_put_in_is_found(storage: Storage, store: AuditStore) -> None:
    """Also one with a hash that fits the one before it, and one at the end."""
    rows = [row for row in await store.page("", 100) if row[5] == "call"]
    add = f"INSERT INTO audit VALUES ({', '.join('?' * len(rows[0]))})"
    for at, number in ((5, 7), (19, 21)):
        forged = Composer(b"x")
        forged.process = rows[0][1]
        forged._chain = replace(
            forged._chain, process=rows[0][1], head=rows[at][-1], records=number - 1, day="2026-11-06"
        )
        forged._chain = replace(forged._chain, chain=1)
        batch: AuditBatch = forged.compose([call(rows[at][4] / 1e9 + 0.005)], 0, SETTINGS)
        (record,), ((row, value),) = batch.records(), batch.rows
        assert (record.chain, record.number) == (1, number)
        await change(storage, add, *row, value)
        fault = (await verify(store)).fault
        assert fault is not None
        # It fits, so it is the next one that does not, or the head.
        assert (fault.record, "put in" in fault.reason) == ((rows[at + 1][0] if at < 19 else record.id), True)
        await change(storage, "DELETE FROM audit WHERE id = ?", record.id)
        assert (await verify(store)).fault is None


@pytest.mark.scenario("audit: A head that is kept elsewhere shows what a chain hides")
async def test_a_chain_that_was_taken_out_with_its_head_shows_against_a_head_kept_elsewhere(
    storage: Storage, store: AuditStore
) -> None:
    """So does an end that was cut off together with its head, which nothing in the database tells."""
    (head,) = [head for head in await store.heads() if head.records == 20]
    known = read_known_head(f"{head.process}/{head.chain}/{head.records}/{head.head}")
    assert known is not None
    assert (await verify(store, known)).fault is None
    rows = [row for row in await store.page("", 100) if row[1] == head.process]
    await change(storage, "DELETE FROM audit WHERE id = ?", rows[-1][0])
    shorter = "UPDATE audit_chains SET records = ?, head = ?, last_id = ? WHERE process = ?"
    await change(storage, shorter, 19, rows[-2][-1], rows[-2][0], head.process)
    assert (await verify(store)).fault is None
    fault = (await verify(store, known)).fault
    assert fault is not None
    assert "cut off" in fault.reason
    assert (await verify(store, replace(known, records=19))).fault is not None


@pytest.mark.scenario("audit: A head that is kept elsewhere shows what a chain hides")
async def test_a_chain_that_is_gone_shows_against_a_head_kept_elsewhere(storage: Storage, store: AuditStore) -> None:
    """Nothing else in the database tells that there was one."""
    first, second = await store.heads()
    known = KnownHead(first.process, first.chain, first.records, first.head)
    await store.remove(first)
    assert (await verify(store)).fault is None
    fault = (await verify(store, known)).fault
    assert fault is not None
    assert (fault.process, fault.chain) == (first.process, first.chain)
    assert "removed by retention or by hand" in fault.reason
    assert (await verify(store, KnownHead(second.process, 1, 1, "x"))).fault is not None
    del storage


async def test_a_chain_that_retention_took_out_is_told_from_one_that_somebody_did(storage: Storage) -> None:
    """A record of the process that removed it says where it stood; a head that does not fit that is a fault."""
    store = AuditStore(storage.database)
    composer = Composer(await store.load_key())
    for day in range(2):
        await store.add(composer.compose([call(NOW + (day - 900) * DAY)], 0, SETTINGS), 10)
    known, _ = [KnownHead(head.process, head.chain, head.records, head.head) for head in await store.heads()]
    audit = Audit(storage, lambda: SETTINGS, Metrics(), "call")
    await audit.open()
    audit.note("test")
    await audit.settle()
    assert await audit.prune() == 2
    report = await audit.verify([known])
    assert report.fault is None
    (told,) = report.removed
    assert told.startswith(f"{known}: taken out by retention")
    assert report.to_dict()["removed"] == [told]
    for other in (replace(known, records=5), replace(known, head="x"), replace(known, chain=9)):
        assert (await audit.verify([other])).fault is not None
    await audit.close()


async def test_a_process_begins_another_chain_each_day_and_when_one_is_long(storage: Storage) -> None:
    """Each begins with the head of the one before; one that is missing in between is found."""
    store = AuditStore(storage.database)
    composer = Composer(await store.load_key())
    small = replace(SETTINGS, bytes=MEGABYTE)
    for day in range(3):
        for hour in range(3):
            events = [call(NOW + day * DAY + hour * 3600 + at / 100) for at in range(200)]
            await store.add(composer.compose(events, 0, small), 10)
    heads = await store.heads()
    assert len({head.day for head in heads}) == 3
    assert len(heads) >= 6
    assert (await verify(store)).to_dict() == {"ok": True, "records": 1800, "chains": len(heads)}
    await store.remove(heads[3])
    fault = (await verify(store)).fault
    assert fault is not None
    assert fault.chain == heads[4].chain


async def test_retention_takes_out_what_is_old_and_then_the_oldest_until_the_rest_is_small_enough(
    storage: Storage,
) -> None:
    """Whole chains, and what stays can be verified."""
    store = AuditStore(storage.database)
    composer = Composer(await store.load_key())
    small = replace(SETTINGS, bytes=MEGABYTE)
    for day in range(10):
        events = [call(NOW + day * DAY + at / 100) for at in range(100)]
        await store.add(composer.compose(events, 0, small), 10)
    await Retention(store).run(replace(SETTINGS, keep=4), NOW + 9 * DAY)
    days = {row[4] // 10**9 // DAY - NOW // DAY for row in await store.page("", 2000)}
    assert days == {5, 6, 7, 8, 9}
    assert (await verify(store)).fault is None
    half = sum(head.bytes for head in await store.heads()) // 2
    await Retention(store).run(replace(SETTINGS, bytes=half), NOW + 9 * DAY)
    kept = await store.heads()
    assert half * 0.7 < sum(head.bytes for head in kept) <= half
    assert (await verify(store)).to_dict() == {
        "ok": True,
        "records": sum(head.records for head in kept),
        "chains": len(kept),
    }
    await Retention(store).run(replace(SETTINGS, keep=1), NOW + 900 * DAY)
    assert len(await store.heads()) == 1


async def test_what_was_given_twice_is_kept_once(storage: Storage) -> None:
    """Whoever does not know whether a commit came through may try it again."""
    store = AuditStore(storage.database)
    batch = Composer(await store.load_key()).compose([call(NOW)], 0, SETTINGS)
    await store.add(batch, 10)
    await store.add(batch, 10)
    assert (await verify(store)).to_dict() == {"ok": True, "records": 1, "chains": 1}


async def test_a_clock_that_is_set_back_does_not_break_the_order(storage: Storage) -> None:
    """Records of one process are in the order in which they happened."""
    store = AuditStore(storage.database)
    composer = Composer(await store.load_key())
    await store.add(composer.compose([call(NOW, tool="first"), call(NOW - DAY, tool="second")], 3, SETTINGS), 10)
    found = await store.find(AuditQuery())
    assert [record.tool or record.kind for record in found] == ["second", "first", "audit.lost"]
    assert found[-1].detail == "3"
    assert (await verify(store)).fault is None


async def test_queries_narrow_by_everything_that_a_record_says(storage: Storage, store: AuditStore) -> None:
    """Time, principal, server, tool, outcome, kind; with a cursor to go on behind."""
    del storage

    async def found(**wanted: object) -> int:
        return len(await store.find(AuditQuery(**{"limit": 100, **wanted})))  # type: ignore[arg-type]

    assert await found() == 30
    assert await found(kind="call", since=NOW + 5, until=NOW + 7) == 4
    assert await found(who="local") == 30
    assert await found(who="nobody") == 0
    assert await found(who="raw") == await found(who="raw/1") == 20
    assert await found(who="ra") == await found(who="%") == 0
    assert await found(tool=TOOL) == await found(tool="one__*") == await found(server="o*", outcome="ok") == 20
    assert await found(tool="one%") == 0
    assert await found(kind="server.*") == 10
    assert await found(denied=True) == 0
    first = await store.find(AuditQuery(limit=10))
    rest = await store.find(AuditQuery(limit=100, cursor=first[9].id))
    assert [record.id for record in (*first[:10], *rest)] == [
        record.id for record in await store.find(AuditQuery(limit=50))
    ]


def test_equal_arguments_have_equal_digests() -> None:
    """Whatever the order, the blanks and the escapes; numbers of any size and odd texts included."""
    alike = [b'{"a":1,"b":[{"x":1,"y":2}]}', b'{ "b": [{"y":2, "x":1}], "a": 1 }', rb'{"\u0061":1,"b":[{"y":2,"x":1}]}']
    assert len({DIGEST(*pack_arguments(text)) for text in alike}) == 1
    odd = [
        rb'{"n":1e400,"t":"\ud800","a":123456789012345678901234567890}',
        rb'{"a":123456789012345678901234567890, "t":"\ud800","n":1e400}',
    ]
    assert len({DIGEST(*pack_arguments(text)) for text in odd}) == 1
    assert DIGEST(None, 0) == DIGEST(b"{}", 2)
    assert DIGEST(b"{}", 2) != ArgumentsDigest(b"other")(b"{}", 2)
    assert canonical_json(b"[2, 1]") == b"[2,1]"
    for key in (b"k", b"k" * 64, b"k" * 65):
        assert ArgumentsDigest(key)(b"{}", 2)[1] == hmac.digest(key, b"{}", "sha256").hex()


def test_the_digest_of_large_arguments_is_of_their_beginning_and_length() -> None:
    """It is marked as such, and so are those of which only the beginning was kept."""
    big = b'{"a":"%b"}' % (b"x" * 100_000)
    length, digest = DIGEST(*pack_arguments(big))
    assert (length, digest.endswith(CUT_MARK)) == (len(big), True)
    assert digest != DIGEST(*pack_arguments(big[:-2] + b'x"}'))[1]
    huge = b'{"a":"%b"}' % (b"x" * 2_000_000)
    packed, length = pack_arguments(huge)
    assert packed is not None
    assert (len(packed), length) == (64 * 1024, len(huge))
    assert DIGEST(packed, length)[1].endswith(CUT_MARK)


def test_composing_is_quick_enough_to_be_off_the_loop() -> None:
    """A thousand records are made in one go and have a thousand ids, in order."""
    batch = Composer(b"k").compose([call(time.time()) for _ in range(1000)], 0, SETTINGS)
    ids = [record.id for record in batch.records()]
    assert ids == sorted(set(ids))
    assert len(ids) == 1000


def test_the_folder_of_the_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Where there is none."""
    batch = Composer(b"k").compose([call(NOW)], 0, SETTINGS)
    AuditFile(tmp_path / "new" / "audit.jsonl").append(batch.records())
    (file,) = (tmp_path / "new").iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file)] == [0o700, 0o600]
