"""Commands speak REST: a running gateway and one in this process give the same answers to the same requests."""

from __future__ import annotations

import os
from pathlib import Path

from harness import serving, toy, write_config
from pegboard.cli.http_transport import GatewayTransport, find_running
from pegboard.cli.in_process import InProcessTransport
from pegboard.cli.rest_client import RestClient
from pegboard.config import RunningGateway, read_settings


def in_process(config: Path) -> RestClient:
    return RestClient(InProcessTransport(read_settings(config, os.environ), config))


def test_both_transports_give_the_same_answers(tmp_path: Path) -> None:
    """Good ones and bad, with their codes and their words."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, toolsets=["memory", "tasks"])
    with serving(config):
        found = find_running(config)
        assert found is not None
        running, own = RestClient(found), in_process(config)
        # From here on both know the server's tools.
        assert running.refresh(["one"]) == own.refresh(["one"])
        for ask in (
            lambda gateway: gateway.tools("one", "one__e", None),
            lambda gateway: gateway.find("echo", 3),
            lambda gateway: gateway.find("half \udcff", 3),
            lambda gateway: gateway.describe("one__echo"),
            lambda gateway: gateway.describe("one__ecoh"),
            lambda gateway: gateway.call("one__fails", {}),
            lambda gateway: gateway.call("one__refuses", {}),
            lambda gateway: gateway.call("memory_get", {"key": "none"}),
            lambda gateway: gateway.call("memory_add", {"key": "k", "text": "half \udcff"}),
            lambda gateway: gateway.get("/api/tasks/graph", path=str(tmp_path), format="rows"),
            lambda gateway: gateway.refresh(["none"]),
        ):
            assert ask(own) == ask(running)


def test_a_slash_in_a_name_is_a_part_of_the_name(tmp_path: Path) -> None:
    """Whoever writes server/tool is told what the tool is called."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    own = in_process(config)
    own.refresh(["one"])
    error = own.describe("one/echo")["error"]
    assert error["code"] == "TOOL_NOT_FOUND"
    assert 'Unknown tool "one/echo"' in error["message"]
    assert own.describe("")["error"]["code"] == "TOOL_NOT_FOUND"


def test_what_an_address_cannot_carry_is_a_wrong_call() -> None:
    """It is not sent changed, and nothing has to run for the answer."""
    nobody = RestClient(GatewayTransport(RunningGateway(1, "http://127.0.0.1:1", 1, "secret")))
    assert nobody.find("half \udcff", 3)["error"]["code"] == "TOOL_INVALID_INPUT"
    assert nobody.find("whole", 3)["error"]["code"] == "TOOL_UNAVAILABLE"
