"""Floods: whoever may not come in neither fills the disk nor the memory, nor pushes out records, nor keeps calls
waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from audit.readers import records_of
from harness import LIMIT, eventually, open_gateway
from pegboard.access.principal import ANONYMOUS, LOCAL
from pegboard.audit import audit as audit_module
from pegboard.audit import recorder as recorder_module
from pegboard.audit import refusals as refusals_module
from pegboard.audit import writer as writer_module
from pegboard.audit.audit import Audit
from pegboard.audit.event import NoteEvent
from pegboard.audit.refusals import SINGLE, Refusal, Refusals
from pegboard.audit.store import AuditStore
from pegboard.audit.writer import AuditUnavailable
from pegboard.config.audit_settings import MEGABYTE, AuditSettings
from pegboard.metrics import Metrics
from pegboard.storage import open_storage

pytestmark = pytest.mark.anyio

REFUSAL = Refusal(ANONYMOUS, "refused:no_credentials", "public", "GET /")


@asynccontextmanager
async def open_audit(path: Path, settings: AuditSettings, purpose: str = "serve") -> AsyncGenerator[Audit]:
    storage = open_storage(f"sqlite:{path / 'audit.db'}")
    await storage.open()
    audit = Audit(storage, lambda: settings, Metrics(), purpose)
    await audit.open()
    yield audit
    await audit.close()
    await storage.close()


def tell_nobody(_holder: str, _refusal: Refusal | None, _count: int) -> None:
    """The log is another test's."""


@pytest.mark.scenario("audit: Whoever may not come in pushes no records out")
async def test_a_flood_of_refusals_is_a_few_records_and_a_number(tmp_path: Path) -> None:
    """Other reasons have their own; of a path there is a beginning."""
    path = "/" + "x" * 900
    async with open_gateway(tmp_path, {}, audit={}, auth={"required": True}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for _ in range(SINGLE + 30):
                assert (await http.get(path)).status_code == 401
            await http.get("/api/servers", headers={"authorization": "Bearer quokka"})
        gateway.board.audit._refusals.flush()
        records = await records_of(gateway, "access")
    told = [record.detail for record in records if record.outcome == "refused:no_credentials"]
    assert told[:SINGLE] == ["GET " + path[:199] + "…"] * SINGLE
    assert len(told) == SINGLE + 1
    assert told[-1].startswith("… and 30 more within a minute")
    assert [record.outcome for record in records].count("refused:invalid_token") == 1


async def test_what_is_left_of_a_minute_is_recorded_at_its_end_and_when_the_audit_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then each address begins anew."""
    noted: list[str] = []
    refusals = Refusals(lambda _, detail: noted.append(detail), tell_nobody)
    monkeypatch.setattr(refusals_module, "WINDOW", 0.01)
    for _ in range(SINGLE + 5):
        refusals.add("192.0.2.1", REFUSAL)
    await eventually(lambda: len(noted) == SINGLE + 1)
    refusals.add("192.0.2.1", REFUSAL)
    assert noted[-2:] == ["… and 5 more within a minute, the last one: GET /", "GET /"]
    refusals.flush()
    monkeypatch.setattr(refusals_module, "WINDOW", 3600.0)
    async with open_audit(tmp_path, AuditSettings()) as audit:
        for _ in range(SINGLE + 7):
            audit.note_refusal("192.0.2.1", REFUSAL)
    storage = open_storage(f"sqlite:{tmp_path / 'audit.db'}")
    await storage.open()
    rows = await AuditStore(storage.database).page("", 100)
    assert sum("and 7 more" in row[-2] for row in rows) == 1
    await storage.close()


async def test_the_log_has_a_line_for_the_first_and_one_for_the_minute() -> None:
    """However many there are, and from however many addresses."""
    told: list[tuple[str, int]] = []

    def tell(holder: str, refusal: Refusal | None, count: int) -> None:
        told.append((holder if refusal else "*", count))

    refusals = Refusals(lambda _, __: None, tell)
    most = refusals_module.MOST_TOLD
    for _ in range(12):
        refusals.add("192.0.2.0", REFUSAL)
    for at in range(1, most + 500):
        refusals.add(f"192.0.2.{at}", REFUSAL)
    assert told == [(f"192.0.2.{at}", 1) for at in range(most)]
    refusals.flush()
    assert told[most:] == [("192.0.2.0", 12), ("*", 500)]
    refusals.flush()
    assert len(told) == most + 2


async def test_many_addresses_take_no_more_room_than_some() -> None:
    """Those beyond the bound are counted together, and not one is left out of the numbers."""
    noted: list[str] = []
    refusals = Refusals(lambda _, detail: noted.append(detail), tell_nobody)
    most = refusals_module.MOST_SENDERS
    for at in range(most + 5000):
        refusals.add(f"2001:db8:0:{at:x}::/64", REFUSAL)
    assert len(refusals) == most + 1
    assert len(noted) == most + SINGLE
    refusals.flush()
    assert noted[-1].startswith(f"… and {5000 - SINGLE} more within a minute from other addresses")
    assert len(refusals) == 0


async def test_retention_looks_when_a_chain_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept stays about as large as wanted, whatever the hour; and it can be verified."""
    monkeypatch.setattr(audit_module, "_FIRST_LOOK", 3600.0)
    settings = AuditSettings(bytes=MEGABYTE)
    async with open_audit(tmp_path, settings) as audit:
        for _ in range(40):
            for _ in range(200):
                audit.note("test", detail="x" * 400)
            await audit.settle()

        async def is_small() -> bool:
            return sum(head.bytes for head in await audit.heads()) < MEGABYTE * 1.3

        async with asyncio.timeout(LIMIT):
            while not await is_small():
                await asyncio.sleep(0.01)
        assert audit._writer is not None
        assert audit._writer.written >= 8000
        assert (await audit.verify()).fault is None


async def test_whoever_waits_for_its_record_does_not_wait_for_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others go on recording, faster than it can be kept, it is told as soon as its own is."""
    monkeypatch.setattr(writer_module, "_MOST_AT_ONCE", 10)
    async with open_audit(tmp_path, AuditSettings(strict=True), "call") as audit:
        assert audit._writer is not None
        add = audit._writer._store.add

        async def add_while_others_come(*given: object) -> None:
            for _ in range(20):
                audit.note("flood")
            await add(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(audit._writer._store, "add", add_while_others_come)
        audit.note("mine")
        async with asyncio.timeout(LIMIT):
            await audit.settle()
        assert audit.recorder is not None
        assert len(audit.recorder) > 0
        assert any(row[5] == "mine" for row in await audit._store.page("", 1000))
        monkeypatch.setattr(audit._writer._store, "add", add)


@pytest.mark.scenario("audit: Records that are lost are counted and said")
async def test_whoever_waits_for_a_record_that_is_dropped_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for kept because those behind it are."""
    monkeypatch.setattr(recorder_module, "MAX_EVENTS", 10)
    async with open_audit(tmp_path, AuditSettings(strict=True), "call") as audit:
        audit.note("mine")
        waiting = asyncio.ensure_future(audit.settle())
        await asyncio.sleep(0)
        for _ in range(30):
            audit.note("flood")
        with pytest.raises(AuditUnavailable):
            await waiting


async def test_texts_that_wait_are_cut_and_weigh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note holds no more than its record will, and all of them no more than the bound."""
    monkeypatch.setattr(writer_module, "DELAY", 3600.0)
    monkeypatch.setattr(recorder_module, "MAX_HELD", 100_000)
    async with open_audit(tmp_path, AuditSettings(), "call") as audit:
        recorder = audit.recorder
        assert recorder is not None
        for _ in range(500):
            audit.note("test", LOCAL, tool="y" * 60_000, detail="€" * 60_000)
        events = [event for event in recorder._events if isinstance(event, NoteEvent)]
        assert {(len(event.tool), len(event.detail)) for event in events} == {(200, 500)}
        assert 50_000 < recorder._held <= 100_000
        assert 10 < len(events) < 100
        recorder.take(1000)
        assert recorder._held == 0


async def test_whoever_waits_does_not_wait_for_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one transaction's worth is kept in one go."""
    monkeypatch.setattr(writer_module, "DELAY", 3600.0)
    monkeypatch.setattr(writer_module, "_MOST_AT_ONCE", 2)
    async with open_audit(tmp_path, AuditSettings(), "call") as audit:
        for _ in range(9):
            audit.note("mine")
        async with asyncio.timeout(LIMIT):
            await audit.settle()
        assert len(await audit._store.page("", 100)) == 9
