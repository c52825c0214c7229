"""A value comes out as it went in, or is refused, whichever way it takes through the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forking import warm_start
from harness import Gateway, RawClient, http_client, open_gateway, stdio_client, write_config
from pegboard import Pegboard
from pegboard.exactjson import MAX_DEPTH, dump, parse
from pegboard.result import ToolErrorCode
from servers.verbatim import ODD

pytestmark = pytest.mark.anyio

VERBATIM = {
    "command": sys.executable,
    "args": ["-I", "-S", str(Path(__file__).parent.parent / "servers" / "verbatim.py")],
}
VALUES = (
    r'{"a":1e400,"b":-1E-400,"c":0.1000000000000000055511151231257827,"d":-0.0,"m":-0,"e":1E+2,"f":18446744073709551617,'
    r'"g":"half \ud83d","h":["\udc00",{"i":1e99999999999999999999}],"j":null,"k":"NaN","l":' + "7" * 5000 + "}"
)


async def echo(client: RawClient, text: str, *, through: bool = False) -> str:
    """What a call gives back, having seen that the server was given the same."""
    arguments = parse(text)
    if through:
        result = await client.call("tool_call", {"name": "v__echo", "arguments": arguments})
    else:
        result = await client.call("v__echo", arguments)
    assert result["content"][0]["text"] == text
    return dump(result["structuredContent"]["echo"]).decode()


async def rest_echo(gateway: Gateway, text: str) -> str:
    """The same over REST, as bytes."""
    async with httpx.AsyncClient(base_url=gateway.url, timeout=30) as http:
        head = {"content-type": "application/json"}
        body = f'{{"arguments":{text}}}'.encode()
        answer = await http.post("/api/tools/v__echo/call", content=body, headers=head)
        assert answer.status_code == 200, answer.text
        return dump(parse(answer.content)["data"]["structuredContent"]["echo"]).decode()


@contextlib.asynccontextmanager
async def a_gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway before a server that gives back what it is given."""
    async with open_gateway(tmp_path, {"v": VERBATIM}, toolsets=["discovery"]) as gateway:
        yield gateway


@pytest.mark.both_paths
async def test_a_value_is_exact_on_every_way_of_one_gateway(tmp_path: Path) -> None:
    """Over HTTP in both eras, over the bridge, over REST and through `tool_call`: the same digits, the same escapes."""
    async with a_gateway(tmp_path) as gateway:
        assert await rest_echo(gateway, VALUES) == VALUES
        for version in ("2025-11-25", "2026-07-28"):
            async with http_client(gateway.mcp, version) as client:
                assert await echo(client, VALUES) == VALUES
                assert await echo(client, VALUES, through=True) == VALUES
                listed = {tool["name"]: tool for tool in await client.tools()}
                assert dump(listed["v__echo"]["inputSchema"]["properties"]["x"]["default"]).decode() == ODD
                # Something else in the params takes a call the full path.
                result = await client.request(
                    "tools/call", {"name": "v__echo", "arguments": parse(VALUES), "unheardOf": parse(VALUES)}
                )
                assert dump(result["structuredContent"]["echo"]).decode() == VALUES


@pytest.mark.both_paths
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_value_is_exact_over_a_pipe(tmp_path: Path, version: str) -> None:
    """Also where the SDK reads the lines."""
    config = write_config(tmp_path / "pegboard.json", {"v": VERBATIM}, toolsets=["discovery"])
    async with stdio_client(config, version) as client:
        assert await echo(client, VALUES) == VALUES
        assert await echo(client, VALUES, through=True) == VALUES


@pytest.mark.both_paths
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("over", ["http", "pipe"])
async def test_a_value_is_exact_in_what_is_said_meanwhile(tmp_path: Path, version: str, over: str) -> None:
    """In progress, in a question and in its answer."""
    told: list[Any] = []
    answer = {"action": "accept", "content": {}, "odd": parse(VALUES)}
    options: dict[str, Any] = {
        "capabilities": {"elicitation": {}},
        "answers": {"elicitation/create": lambda _: answer},  # pyright: ignore[reportUnknownLambdaType]
    }
    async with contextlib.AsyncExitStack() as stack:
        if over == "http":
            gateway = await stack.enter_async_context(a_gateway(tmp_path))
            async with http_client(gateway.mcp, version) as other:
                # The server is there before the request, and what it says is heard outside of it.
                assert await echo(other, VALUES) == VALUES
            client = await stack.enter_async_context(http_client(gateway.mcp, version, **options))
        else:
            config = write_config(tmp_path / "pegboard.json", {"v": VERBATIM}, toolsets=["discovery"])
            client = await stack.enter_async_context(stdio_client(config, version, **options))
        result = await client.request("tools/call", {"name": "v__talk"}, on_progress=told.append)
        if client.modern:
            assert dump(result["inputRequests"]).decode().count(ODD) == 1
            result = await client.request("tools/call", {"name": "v__talk", **await client.answered(result)})
        assert dump(told[0]["odd"]).decode() == ODD
        assert dump(told[0]["progress"]) == b"0.50000000000000000000"
        assert dump(client.questions[0][1]["odd"]).decode() == ODD
        assert dump(result["structuredContent"]["odd"]).decode() == VALUES


async def test_a_value_is_exact_in_python(tmp_path: Path) -> None:
    """What a program has read with its digits keeps them; what is no JSON is refused before anything is sent."""
    async with Pegboard({"v": VERBATIM}) as board:
        result = (await board.call("v__echo", parse(VALUES))).unwrap()
        assert dump(result["structuredContent"]["echo"]).decode() == VALUES
        half = (await board.call("v__echo", {"a": "half \ud83d"})).unwrap()
        assert half["structuredContent"]["echo"] == {"a": "half \ud83d"}
        assert half["content"][0]["text"] == r'{"a":"half \ud83d"}'
        for wrong in (float("nan"), [float("inf")], {"x": -float("inf")}, {"\ud800": 1}, object()):
            error = (await board.call("v__echo", {"a": wrong})).error
            assert error is not None
            assert error.code is ToolErrorCode.INVALID_INPUT
        nan = (await board.call("v__nan")).error
        assert nan is not None
        assert (nan.code, "NaN and Infinity are not JSON" in nan.message) == (ToolErrorCode.EXECUTION_FAILED, True)
        (tool,) = [each for each in await board.get_tool_definitions(format="json") if each["name"] == "v__echo"]
        assert dump(tool["inputSchema"]["properties"]["x"]["default"]).decode() == ODD


def test_a_value_is_exact_on_the_command_line(tmp_path: Path) -> None:
    """With `--json` the answer has every digit; what is no JSON is refused in one plain sentence."""
    config = write_config(tmp_path / "pegboard.json", {"v": VERBATIM}, toolsets=["discovery"])

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [*warm_start(), *args, "--config", str(config), "--json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))

    done = run("call", "v__echo", VALUES)
    assert done.returncode == 0, done.stderr
    assert dump(parse(done.stdout)["data"]["structuredContent"]["echo"]).decode() == VALUES
    shown = run("describe", "v__echo")
    assert dump(parse(shown.stdout)["data"]["inputSchema"]["properties"]["x"]["default"]).decode() == ODD
    deep = '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)
    for wrong in ('{"a": NaN}', '{"a": -Infinity}', r'{"\ud800": 1}', deep):
        refused = run("call", "v__echo", wrong)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "Traceback" not in refused.stderr
        assert "set_int_max_str_digits" not in refused.stderr


@pytest.mark.both_paths
async def test_what_is_no_json_is_refused_on_every_way(tmp_path: Path) -> None:
    """NaN, a name that is half of a surrogate pair, and what is nested too deep; from a client and from a server."""
    deep = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    wrong = ('{"a":NaN}', '{"a":[Infinity]}', r'{"\ud800":1}', deep)
    async with a_gateway(tmp_path) as gateway, http_client(gateway.mcp) as client:
        head = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-session-id": client.link.transport._session,
            "mcp-protocol-version": "2025-11-25",
        }
        async with httpx.AsyncClient(base_url=gateway.url, timeout=30) as http:
            for text in wrong:
                answer = await http.post(
                    "/api/tools/v__echo/call",
                    content=f'{{"arguments":{text}}}'.encode(),
                    headers={"content-type": "application/json"},
                )
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, "TOOL_INVALID_INPUT")
                params = f'{{"name":"v__echo","arguments":{text}}}'
                body = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}'
                answer = await http.post("/mcp", content=body.encode(), headers=head)
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700), text
        result = await client.call("v__nan")
        assert result["isError"] is True
        assert "NaN and Infinity are not JSON" in result["content"][0]["text"]


@pytest.mark.both_paths
async def test_an_answer_that_is_nested_too_deep_fails_on_every_way(tmp_path: Path) -> None:
    """The server wraps what it is given, so the deepest arguments that may pass make an answer that may not."""
    deepest = MAX_DEPTH - 2
    async with a_gateway(tmp_path) as gateway, http_client(gateway.mcp) as client:
        for depth, fails in ((deepest - 1, False), (deepest, True)):
            result = await client.call("v__echo", parse('{"a":' * depth + "1" + "}" * depth))
            assert result.get("isError", False) is fails
        assert f"nested deeper than {MAX_DEPTH} levels" in result["content"][0]["text"]


numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,5})?", fullmatch=True)
texts = st.text(alphabet=st.characters(codec=None, exclude_characters="\x7f"), max_size=12).map(json.dumps)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(numbers | texts | st.sampled_from(["null", "true", "[]", "{}"]), min_size=25, max_size=60))
def test_any_values_are_the_same_on_every_interface(parts: list[str]) -> None:
    """Whatever they are: MCP in both eras, `tool_call`, REST and Python agree on them."""
    text = dump(parse(f'{{"all":[{",".join(parts)}]}}')).decode()

    async def compare(folder: Path) -> None:
        async with a_gateway(folder) as gateway, http_client(gateway.mcp) as old:
            async with http_client(gateway.mcp, "2026-07-28") as new:
                for client in (old, new):
                    assert await echo(client, text) == text
                    assert await echo(client, text, through=True) == text
            assert await rest_echo(gateway, text) == text
            result: Any = (await gateway.board.call("v__echo", parse(text))).unwrap()
            assert dump(result["structuredContent"]["echo"]).decode() == text

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder)))
