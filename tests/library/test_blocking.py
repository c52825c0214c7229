"""The library without an event loop: in scripts, in threads, in notebooks."""

from __future__ import annotations

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


def test_a_script_that_just_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    """Without `with` and without `close`: the server's process is gone with the script's."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy()})
    script = (
        "from pegboard import Pegboard\n"
        f"board = Pegboard.sync({str(path)!r})\n"
        "print(board.call('one__pid').unwrap()['content'][0]['text'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    pid = int(done.stdout.splitlines()[-1])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
