"""The check after an install: Pegboard is asked as a client asks, by the address and by the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forking import warm_start
from harness import open_gateway, serving, toy, write_config
from pegboard.client_configs.check import check_target
from pegboard.client_configs.entries import EntryTarget
from servers.toy import BUILT_IN


def test_a_gateway_answers_at_its_address(tmp_path: Path) -> None:
    """With as many tools as it lists; the session is ended again."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (_, url):
        subprocess.run([*warm_start(), "refresh", "--config", str(config)], check=True, timeout=60, capture_output=True)
        outcome = check_target(EntryTarget(f"{url.removesuffix('/mcp')}/mcp/cursor"))
    assert (outcome.tools, outcome.problem) == (len(BUILT_IN), None)


def test_a_command_answers(tmp_path: Path) -> None:
    """It is started as the client will start it, and ends afterwards."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    # A list does not wait for a server that was never seen.
    subprocess.run([*warm_start(), "refresh", "--config", str(config)], check=True, timeout=60, capture_output=True)
    args = ("-m", "pegboard", "stdio", "--board", "b", "--config", str(config))
    outcome = check_target(EntryTarget(command=sys.executable, args=args, env={"PEGBOARD_LOG": "error"}))
    assert (outcome.tools, outcome.problem) == (len(BUILT_IN), None)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (EntryTarget("http://127.0.0.1:1/mcp"), "Connection refused"),
        (EntryTarget("http://127.0.0.1:99999/mcp"), "Port out of range"),
        (EntryTarget(command="/no/such/program"), "No such file or directory"),
        (EntryTarget(command=sys.executable, args=("-c", "import sys; sys.exit('no luck')")), "no luck"),
        (
            EntryTarget(command=sys.executable, args=("-c", "print('{}'); print('nonsense')")),
            "it ended without an answer",
        ),
        (
            EntryTarget(command=sys.executable, args=("-c", "print('{\"id\": 1}'); print('{\"id\": 2}')")),
            "it ended without an answer",
        ),
        # Its input is closed, so that what was written for it cannot be sent; all is closed here as well.
        (
            EntryTarget(command=sys.executable, args=("-c", "import os; os.close(0); print('{\"id\": 1}')")),
            "it ended without an answer",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_in_the_outcome(target: EntryTarget, problem: str) -> None:
    """Whatever answers there, or does not: nothing is raised."""
    outcome = check_target(target)
    assert outcome.tools is None
    assert problem in (outcome.problem or "")


@pytest.mark.anyio
async def test_an_address_that_is_no_mcp_is_said(tmp_path: Path) -> None:
    """Somebody else may have the port."""
    import asyncio

    async with open_gateway(tmp_path, {}) as gateway:
        refused = await asyncio.to_thread(check_target, EntryTarget(f"{gateway.url}/nothing"))
        odd = await asyncio.to_thread(check_target, EntryTarget(f"{gateway.url}/mcp?nonsense=1"))
    assert (refused.problem, odd.problem) == ("it answers with HTTP status 404", "it answers with HTTP status 400")


def test_no_process_is_left(tmp_path: Path) -> None:
    """Also one that never answers is ended when it closes its output."""
    mark = tmp_path / "pid"
    code = f"import os, sys; open({str(mark)!r}, 'w').write(str(os.getpid())); os.close(1); sys.stdin.read()"
    outcome = check_target(EntryTarget(command=sys.executable, args=("-c", code)))
    assert outcome.problem == "it ended without an answer"
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
