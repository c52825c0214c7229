"""The library without an event loop: in scripts, in threads, in notebooks."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness import toy, write_config
from pegboard import Pegboard, ToolErrorCode
from pegboard.config import ConfigError
from pegboard.library.blocking import BlockingPegboard
from pegboard.storage import StorageError

QUIET: dict[str, Any] = {"toolsets": ["discovery"]}


def test_the_same_without_waiting_for_it() -> None:
    """Every method, inside a block; afterwards no thread is left."""
    with Pegboard.sync(servers={"one": toy()}, settings=QUIET) as board:

        @board.tool
        def double(number: int) -> int:
            """Double a number."""
            return 2 * number

        assert double(2) == 4
        assert "one__echo" in [each["name"] for each in board.get_tool_definitions()]
        assert board.call("one__echo", {"text": "hi"}).unwrap()["content"][0]["text"] == '{"text": "hi"}'
        assert board.call("double", {"number": 4}).unwrap()["structuredContent"]["data"] == 8
        assert board.is_discovery_stale("one") is False
        assert board.is_discovery_stale("nobody") is True
        found = board.get_mcp_tool("one__echo")
        assert found is not None
        assert found.server_name == "one"
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        made = board.register_static_tool("next", lambda given: given["n"] + 1, {"inputSchema": schema})
        assert made.unwrap() == "next"
        assert board.call("next", {"n": 1}).unwrap()["structuredContent"]["data"] == 2
        assert board.discover_all_tools().success
        assert board.find("echo").unwrap()["tools"]
        assert board.load("one__echo").success
        assert board.refresh().success
        assert board.disable("one").success
        assert board.enable("one").success
        reply = {"content": [{"type": "tool_use", "id": "t1", "name": "double", "input": {"number": 1}}]}
        assert board.answer(reply)[0]["content"][0]["tool_use_id"] == "t1"
        missing = board.call("nothing")
        assert missing.error is not None
        assert missing.error.code is ToolErrorCode.NOT_FOUND
    assert "pegboard" not in [thread.name for thread in threading.enumerate()]
    board.close()


def test_no_method_of_the_board_is_missing() -> None:
    """What a program can do with an event loop it can do without one."""
    own_way = {"open", "from_config", "sync"}
    methods = {name for name, _ in inspect.getmembers(Pegboard, callable) if not name.startswith("_")}
    assert methods - own_way <= set(dir(BlockingPegboard))


def test_several_threads_share_one_board() -> None:
    """Each gets its own answer."""
    with Pegboard.sync(servers={"one": toy()}, settings=QUIET) as board, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: board.call("one__echo", {"text": str(n)}).unwrap(), range(40)))
    assert [json.loads(each["content"][0]["text"])["text"] for each in results] == list(map(str, range(40)))


def test_what_is_wrong_with_a_config_is_raised_at_once(tmp_path: Path) -> None:
    """Where the program said it."""
    with pytest.raises(ConfigError):
        Pegboard.sync(tmp_path / "nowhere.json")
    with pytest.raises(TypeError, match="not both"):
        Pegboard.sync(tmp_path / "x.json", servers={})


def test_a_board_that_cannot_be_opened_leaves_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a loop: there is nothing to close afterwards."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "file" / "state"))
    loops: list[asyncio.AbstractEventLoop] = []
    made = asyncio.new_event_loop
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: loops.append(made()) or loops[-1])
    board = Pegboard.sync(settings=QUIET)
    with pytest.raises(StorageError):
        board.find("anything")
    assert [loop.is_closed() for loop in loops] == [True]
    assert "pegboard" not in [thread.name for thread in threading.enumerate()]
    board.close()


def test_a_script_that_just_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    """Without `with` and without `close`: the server's process is gone with the script's."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy()})
    script = (
        "from pegboard import Pegboard\n"
        f"board = Pegboard.sync({str(path)!r})\n"
        "print(board.call('one__pid').unwrap()['content'][0]['text'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_closing_ends_whatever_is_waited_for() -> None:
    """Another thread that waits for a tool gets a failed result, and so does one that comes too late."""
    board = Pegboard.sync(settings=QUIET)
    begun = threading.Event()

    @board.tool
    async def endless() -> None:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(board.call, "endless")
        assert begun.wait(10)
        board.close()
        ended = waiting.result(timeout=10)
    late = board.call("endless")
    for result in (ended, late):
        assert result.error is not None
        assert (result.error.code, result.error.message) == (ToolErrorCode.UNAVAILABLE, "the board is closed")
    with pytest.raises(RuntimeError, match="closed"):
        board.get_tool_definitions()
    assert "pegboard" not in [thread.name for thread in threading.enumerate()]
    with board:
        assert board.find("anything").success


def test_an_async_tool_that_waits_for_its_own_board_is_refused() -> None:
    """It would wait for itself; a plain function, which has a thread of its own, may."""
    with Pegboard.sync(servers={"one": toy()}, settings=QUIET) as board:

        @board.tool
        async def circle() -> str:
            """Call another tool and wait."""
            return str(board.call("one__echo", {"text": "x"}).success)

        @board.tool(annotations={"readOnlyHint": True})
        def straight() -> str:
            """Call another tool and wait."""
            return str(board.call("one__echo", {"text": "x"}, trace_id="abc").success)

        refused = board.call("circle")
        assert refused.error is not None
        assert "plain function" in refused.error.message
        assert board.call("straight").unwrap()["structuredContent"]["data"] == "True"
        assert "straight" in [each["name"] for each in board.get_tool_definitions(patience=5)]


def test_closing_does_not_wait_for_a_plain_function() -> None:
    """Its thread cannot be cancelled; whoever waits for it gets a failed result at once."""
    board = Pegboard.sync(settings=QUIET)
    begun, may_end = threading.Event(), threading.Event()

    @board.tool
    def slow() -> None:
        """Wait until the test is over."""
        begun.set()
        may_end.wait(60)

    with ThreadPoolExecutor(1) as pool:
        try:
            waiting = pool.submit(board.call, "slow")
            assert begun.wait(10)
            board.close()
            assert not may_end.is_set()
            assert not waiting.result(timeout=10).success
        finally:
            may_end.set()


def test_a_call_that_is_interrupted_does_not_go_on() -> None:
    """After Ctrl-C it is cancelled, once, so that it can clean up; and the board can be used as before."""
    script = (
        "import asyncio, os, signal, threading\n"
        "from pegboard import Pegboard\n"
        "stopped = threading.Event()\n"
        "with Pegboard.sync(settings={'toolsets': []}) as board:\n"
        "    @board.tool\n"
        "    async def endless() -> None:\n"
        "        try:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            await asyncio.Event().wait()\n"
        "        finally:\n"
        "            await asyncio.sleep(0.01)\n"
        "            print('stopped', flush=True)\n"
        "            stopped.set()\n"
        "    @board.tool\n"
        "    async def other() -> None:\n"
        "        print('other', flush=True)\n"
        "    try:\n"
        "        board.call('endless')\n"
        "    except KeyboardInterrupt:\n"
        "        board.call('other')\n"
        # The end of the board would cancel it a second time.
        "        stopped.wait(30)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    # Which of them comes to speak first is the event loop's business.
    assert sorted(done.stdout.split()) == ["other", "stopped"]
