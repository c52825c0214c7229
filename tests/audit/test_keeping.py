"""Keeping records: what a kill, a full disk or a storage that is away can take, and what `strict` makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import stat
import time
from pathlib import Path

import httpx2
import pytest

from audit.readers import records_of
from harness import LIMIT, Gateway, RawClient, eventually, http_client, open_gateway, serving, toy, write_config
from pegboard.audit import recorder as recorder_module
from pegboard.audit import writer as writer_module
from pegboard.audit.audit import Audit
from pegboard.board import Board
from pegboard.config import read_settings
from pegboard.servers.errors import RpcError
from pegboard.storage import health
from postgres import PostgresServer
from storage.test_health import limit_pages

pytestmark = pytest.mark.anyio

FILLING = 200
ECHO = {"name": "one__echo", "arguments": {"text": "x"}}


async def call_until_killed(url: str, config: Path, after: float, pid: int) -> tuple[list[tuple[str, float]], float]:
    """Call from eight clients until the gateway is killed; the texts that were answered, each with when, and when the
    signal was sent."""
    del config
    answered: list[tuple[str, float]] = []
    killed = 0.0

    async def keep_calling(number: int) -> None:
        with contextlib.suppress(Exception):
            async with http_client(url, listen=False) as client:
                for at in range(100_000):
                    text = f"{number}-{at}"
                    await client.request("tools/call", {"name": "one__echo", "arguments": {"text": text}}, timeout=5)
                    answered.append((text, time.time()))

    callers = [asyncio.create_task(keep_calling(number)) for number in range(8)]
    await eventually(lambda: len(answered) > 50)
    await asyncio.sleep(after)
    killed = time.time()
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait(callers, timeout=LIMIT)
    for caller in callers:
        caller.cancel()
    return answered, killed


async def kept_texts(config: Path) -> set[str]:
    """The texts of the calls that are in the audit, which is whole."""
    async with Board(read_settings(config, os.environ)) as board:
        assert (await board.audit.verify()).fault is None
        rows = await board.audit._store.page("", 1_000_000)
    return {json.loads(row[17])["text"] for row in rows if row[5] == "call"}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_gateway_that_is_killed_loses_the_last_moment_and_nothing_if_it_is_strict(
    tmp_path: Path, strict: bool, seed: int
) -> None:
    """SIGKILL at any time: whatever was answered more than a tenth of a second before is there; with `strict`, all."""
    audit = {"arguments": "values", "strict": strict}
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, audit=audit)
    with serving(config) as (process, url):
        async with http_client(url) as client:
            await client.until_in("tools", "one__echo")
        # The signal is for the process that serves, which may be a child of the one that was started.
        pid = _serving_pid(config) or process.pid
        answered, killed = await call_until_killed(url, config, random.Random(seed).uniform(0, 0.5), pid)
    kept = await kept_texts(config)
    missing = [(text, killed - at) for text, at in answered if text not in kept]
    assert len(answered) > 50
    # A machine with other work to do takes its time for a commit: what counts is the bound, not this machine.
    assert missing == [] if strict else all(ago < 1.0 for _, ago in missing)
    assert kept


def _serving_pid(config: Path) -> int | None:
    from pegboard.config.runfile import find_gateways

    return next((gateway.pid for _, gateway in find_gateways(config)), None)


async def test_records_wait_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls go on, health says why, and as soon as there is room every record is there."""
    monkeypatch.setattr(writer_module, "RETRY", 0.05)
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway, http_client(gateway.mcp) as client:
        await ready(gateway, client)
        await limit_pages(gateway.board.storage, 1)
        for at in range(300):
            await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "x" * 50 + str(at)}})
        await eventually(lambda: gateway.board.audit.problem is not None)
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            said = (await http.get("/health")).json()
            assert (said["status"], said["audit"]) == ("degraded", "database or disk is full")
            await limit_pages(gateway.board.storage, 1_000_000)
            await eventually(lambda: gateway.board.audit.problem is None)
            assert len(await records_of(gateway)) == 301
            await eventually(lambda: gateway.board.storage.problem is None)
            assert (await http.get("/health")).json()["status"] == "ok"
        assert (await gateway.board.audit.verify()).fault is None


async def test_records_wait_while_postgresql_is_away(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is lost while there is room for them."""
    monkeypatch.setattr(writer_module, "RETRY", 0.05)
    place = f"{postgres_url}?connect_timeout=2"
    async with open_gateway(tmp_path, {"one": toy()}, audit={}, storage=place) as gateway:
        async with http_client(gateway.mcp) as client:
            await ready(gateway, client)
            async with postgres.away():
                await asyncio.gather(*(client.request("tools/call", ECHO) for _ in range(50)))
                await eventually(lambda: gateway.board.audit.problem is not None)
            await eventually(lambda: gateway.board.audit.problem is None)
        assert len(await records_of(gateway)) == 51
        assert (await gateway.board.audit.verify()).fault is None
        assert gateway.board.metrics.audit_lost == 0


@pytest.mark.scenario("audit: Records that are lost are counted and said")
async def test_what_there_is_no_room_for_is_counted_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go; the metric, the health and one record say how many."""
    monkeypatch.setattr(writer_module, "RETRY", 0.05)
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway, http_client(gateway.mcp) as client:
        await ready(gateway, client)
        await fill(gateway)
        monkeypatch.setattr(recorder_module, "MAX_EVENTS", 10)
        for number in range(30):
            note(gateway.board.audit, number)
        lost = gateway.board.metrics.audit_lost
        assert lost >= 20
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            assert f"pegboard_audit_lost_total {lost}" in (await http.get("/metrics")).text
        await limit_pages(gateway.board.storage, 1_000_000)
        await eventually(lambda: gateway.board.audit.problem is None)
        records = await records_of(gateway, None)
        told = [record.detail for record in records if record.kind == "audit.lost"]
        noted = [record.detail[:2] for record in records if record.kind == "test"]
        assert told == [str(lost)]
        assert noted[-10:] == [f"{number}" for number in range(20, 30)]
        assert len(noted) == FILLING + 30 - lost
        assert (await gateway.board.audit.verify()).fault is None


async def test_arguments_that_wait_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few large calls take no more room than many small ones."""
    monkeypatch.setattr(recorder_module, "MAX_HELD", 100_000)
    monkeypatch.setattr(writer_module, "DELAY", 3600.0)
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway, http_client(gateway.mcp) as client:
        await ready(gateway, client)
        for _ in range(10):
            await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "y" * 30_000}})
        assert gateway.board.metrics.audit_lost > 0
        recorder = gateway.board.audit.recorder
        assert recorder is not None
        assert 0 < recorder._held <= 100_000


@pytest.mark.scenario("audit: A strict audit refuses what it cannot record")
@pytest.mark.both_paths
async def test_a_strict_audit_refuses_what_it_cannot_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is called while the disk is full, on either path and over REST; afterwards all goes on."""
    monkeypatch.setattr(writer_module, "RETRY", 0.05)
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.05)
    async with open_gateway(tmp_path, {"one": toy()}, audit={"strict": True}) as gateway:
        async with http_client(gateway.mcp) as client:
            await ready(gateway, client)
            counted = await count(client)
            await fill(gateway)
            refused = await client.request("tools/call", ECHO)
            assert refused["isError"] is True
            await eventually(lambda: gateway.board.audit.problem is not None)
            for _ in range(3):
                assert "audit.strict" in json.dumps(await client.request("tools/call", {"name": "one__count"}))
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                answer = await http.post("/api/tools/one__count/call", json={})
                assert answer.status_code == 503
            await limit_pages(gateway.board.storage, 1_000_000)
            await eventually(lambda: gateway.board.audit.problem is None)
            # None of those calls reached the server.
            assert await count(client) == counted + 1
        outcomes = [record.outcome for record in await records_of(gateway)]
        assert outcomes.count("refused:audit") >= 4


@pytest.mark.scenario("audit: What is read of servers is recorded")
async def test_a_strict_audit_refuses_to_read_what_it_cannot_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt is not got while the disk is full."""
    monkeypatch.setattr(writer_module, "RETRY", 0.05)
    server = toy(name="one", features=["tools", "prompts"])
    async with open_gateway(tmp_path, {"one": server}, audit={"strict": True}) as gateway:
        async with http_client(gateway.mcp) as client:
            await ready(gateway, client)
            asked = {"name": "one__greet", "arguments": {"who": "Ada"}}
            assert "messages" in await client.request("prompts/get", asked)
            await fill(gateway)
            await client.request("tools/call", ECHO)
            await eventually(lambda: gateway.board.audit.problem is not None)
            with pytest.raises(RpcError, match=r"audit\.strict"):
                await client.request("prompts/get", asked)
            await limit_pages(gateway.board.storage, 1_000_000)
            await eventually(lambda: gateway.board.audit.problem is None)
        assert [record.outcome for record in await records_of(gateway, "prompt")] == ["ok"]


@pytest.mark.scenario("audit: A strict audit refuses what it cannot record")
@pytest.mark.both_paths
async def test_a_strict_audit_has_the_record_before_the_answer_is_there(tmp_path: Path) -> None:
    """Somebody else who looks into the database after each answer finds the record of it."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={"strict": True}) as gateway:
        async with http_client(gateway.mcp) as client:
            await ready(gateway, client)
            with contextlib.closing(sqlite3.connect(tmp_path / "state" / "pegboard.db")) as other:
                for number in range(1, 20):
                    await client.request("tools/call", ECHO)
                    assert other.execute("SELECT count(*) FROM audit WHERE kind = 'call'").fetchone() == (number + 1,)


async def test_the_same_records_are_lines_of_json_in_a_file_of_the_day(tmp_path: Path) -> None:
    """For its owner alone; a line that was cut off by a kill does not spoil the next one, and old files go."""
    target = tmp_path / "logs" / "audit.jsonl"
    target.parent.mkdir()
    old, other = target.with_name("audit-2020-01-01.jsonl"), target.with_name("audit-notes.jsonl")
    for file in (old, other):
        file.write_text("{}\n")
    async with open_gateway(tmp_path, {"one": toy()}, audit={"file": "logs/audit.jsonl"}) as gateway:
        async with http_client(gateway.mcp) as client:
            await ready(gateway, client)
            await gateway.board.audit.settle()
            (today,) = [file for file in target.parent.iterdir() if file not in {old, other}]
            assert stat.S_IMODE(today.stat().st_mode) == 0o600
            with today.open("ab") as file:
                file.write(b'{"cut')
            await client.request("tools/call", ECHO)
        records = await records_of(gateway, None)
        await gateway.board.audit.prune()
    lines = today.read_text().splitlines()
    read = [json.loads(line) for line in lines if line != '{"cut']
    assert read[: len(records)] == [record.to_dict() for record in records]
    assert len(read) >= len(records)
    assert (old.exists(), other.exists()) == (False, True)


async def test_a_file_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """The database has the records all the same."""
    (tmp_path / "logs").write_text("no folder")
    async with open_gateway(tmp_path, {"one": toy()}, audit={"file": "logs/audit.jsonl"}) as gateway:
        async with http_client(gateway.mcp) as client:
            await ready(gateway, client)
        assert len(await records_of(gateway)) == 1
        assert "logs" in (gateway.board.audit.problem or "")


async def ready(gateway: Gateway, client: RawClient) -> None:
    """One call was made and recorded: whatever has to be there for the next is there."""
    await client.until_in("tools", "one__echo")
    await client.request("tools/call", ECHO)
    await gateway.board.audit.settle()


async def count(client: RawClient) -> int:
    answer = await client.request("tools/call", {"name": "one__count"})
    return int(answer["content"][0]["text"])


async def fill(gateway: Gateway) -> None:
    """Leave no room for another record."""
    await limit_pages(gateway.board.storage, 1)
    for at in range(FILLING):
        note(gateway.board.audit, at)
    await eventually(lambda: gateway.board.audit.problem is not None)


def note(audit: Audit, number: int) -> None:
    """Something with a long remark."""
    audit.note("test", detail=f"{number:02d} {'x' * 480}")
