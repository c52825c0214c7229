"""Commands of Windows that are batch files, checked here by parameter."""

from __future__ import annotations

import socket

import pytest

from pegboard.gateway.listen import _sharing
from pegboard.result import ToolFailure
from pegboard.servers.batch_file import without_cmd

NODE = "C:\\Program Files\\nodejs"
SCRIPT = f"{NODE}\\node_modules\\npm\\bin\\npx-cli.js"
ARGS = ("-y", "mcp-remote", "https://x.example/?a=1&b=2")


def test_npx_is_started_without_its_batch_file() -> None:
    """Node runs its script, and every argument arrives as it is."""
    files = {SCRIPT, f"{NODE}\\node.exe"}
    found = without_cmd(f"{NODE}\\npx.CMD", ARGS, None, files.__contains__)
    assert found == (f"{NODE}\\node.exe", (SCRIPT, *ARGS))


def test_node_may_be_somewhere_else() -> None:
    """npm that updated itself stands in the user's folder, without Node."""
    assert without_cmd(f"{NODE}\\npx.cmd", ARGS, "", {SCRIPT}.__contains__) == ("node", (SCRIPT, *ARGS))


@pytest.mark.parametrize("argument", ["a&calc", "%PATH%", "a|b", "a>b", 'a"b', "a^b", "a\nb"])
def test_what_cmd_would_run_is_refused(argument: str) -> None:
    """Without the argument in the message: it may be secret."""
    with pytest.raises(ToolFailure, match=r"argument 2 of yarn\.cmd has a character") as caught:
        without_cmd("C:\\yarn.cmd", ("dlx", argument), None, lambda _: False)
    assert argument not in str(caught.value)


def test_all_else_is_as_it_was() -> None:
    """Programs are no batch files, and harmless arguments do no harm."""
    assert without_cmd("C:\\uvx.exe", ("a&b",), None) == ("C:\\uvx.exe", ("a&b",))
    assert without_cmd("C:\\yarn.cmd", ("a b", "--c=d"), None) == ("C:\\yarn.cmd", ("a b", "--c=d"))


def test_two_gateways_never_share_a_port() -> None:
    """On Windows the usual option would let them: it has another one, which Python knows there alone."""
    assert _sharing("linux") == socket.SO_REUSEADDR
    assert _sharing("win32") == ~4
