"""The log of a server: the newest lines, each with a number, and none of its secrets."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import cast

import pytest

from harness import eventually, open_board, toy
from pegboard.config import ServerSpec
from pegboard.log import Redactor
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.orphan_reaper import OrphanReaper
from pegboard.servers.server_log import PEGBOARD, SERVER, ServerLog
from pegboard.servers.transports.stdio import StdioTransport

pytestmark = pytest.mark.anyio


def make(*secrets: str) -> ServerLog:
    redactor = Redactor.of(secrets)
    return ServerLog(lambda: redactor, clock=lambda: 5.0)


def test_lines_have_a_number_a_time_and_a_source() -> None:
    """Numbers only grow, so that a reader can go on where it was."""
    log = make()
    log.note("started")
    log.write("hello")
    first, second = log.read(10)
    assert (first.number, first.time, first.source, first.text) == (1, 5.0, PEGBOARD, "started")
    assert (second.number, second.source, second.text) == (2, SERVER, "hello")
    assert [line.text for line in log.read(10, after=1)] == ["hello"]
    assert [line.text for line in log.read(1)] == ["hello"]
    assert log.read(0) == []
    assert log.last_number == 2


def test_only_the_newest_lines_are_kept() -> None:
    """However many a server writes, and however long they are."""
    log = make()
    for number in range(5000):
        log.write(str(number))
    kept = log.read(10_000)
    assert (len(kept), kept[-1].text, kept[-1].number) == (2000, "4999", 5000)
    for _ in range(1000):
        log.write("x" * 100_000)
    kept = log.read(10_000)
    assert {len(line.text) for line in kept} == {4000}
    assert sum(len(line.text) for line in kept) <= 500_000


def test_secrets_stay_out_also_one_line_of_a_longer_one() -> None:
    """A key of several lines is written line by line; each of them is a secret."""
    log = make("s3cr3t", "BEGIN KEY\nabcdefgh\nhgfedcba")
    for line in ("the token is s3cr3t", "abcdefgh", "  hgfedcba  "):
        log.write(line)
    said = " ".join(line.text for line in log.read(10))
    assert "s3cr3t" not in said
    assert "abcdefgh" not in said
    assert "hgfedcba" not in said


class _SlowTurn:
    """A turn to start processes that is over only when the process has written something."""

    def __init__(self, log: ServerLog) -> None:
        self._log = log

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await eventually(lambda: any(line.source == SERVER for line in self._log.read(10)))


async def test_the_start_is_noted_before_anything_that_the_process_writes() -> None:
    """Also where whoever started it hears of it late."""
    log, reaper = make(), OrphanReaper()
    reaper.turn = cast("asyncio.Lock", _SlowTurn(log))
    program = "import sys; print('hello', file=sys.stderr, flush=True); sys.stdin.read()"
    spec = ServerSpec(name="s", given_name="s", command=sys.executable, args=("-I", "-S", "-c", program))
    transport = StdioTransport(spec, reaper)
    transport.keep_log(log)
    try:
        await transport.start(JsonRpcPeer(transport, label="s"))
        assert [line.text for line in log.read(10)] == [f"started, process {transport.pid}", "hello"]
    finally:
        await transport.close()
        reaper.close()


async def test_stderr_and_what_happens_are_kept_beyond_the_process(tmp_path: Path) -> None:
    """What a server wrote is there when it has ended, with its indentation, in the order in which it came."""
    program = "import sys; print('one\\n  two', file=sys.stderr); sys.exit(3)"
    servers = {"dies": {"command": sys.executable, "args": ["-I", "-S", "-c", program]}, "good": toy()}
    async with open_board(tmp_path, servers) as board:
        await board.refresh()
        dies, good = board.servers["dies"].log, board.servers["good"].log
        await eventually(lambda: "could not" in dies.read(100)[-1].text)
        said = [line.text for line in dies.read(100)]
        assert said[0].startswith("started, process ")
        assert said[1:3] == ["one", "  two"]
        assert said[-1] == "could not be connected: the process exited with code 3"
        assert good.read(100)[-1].text.startswith("connected, protocol ")
        pid = good.read(100)[0].text
        await board.servers["good"].restart()
        assert await board.refresh(["good"])
        starts = [line.text for line in good.read(100) if line.text.startswith("started")]
        assert len(starts) == 2
        assert starts[0] == pid != starts[1]
