"""`status`, `logs`, `restart`: the gateway that runs, and its servers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from pegboard.cli.common import (
    UNREACHED,
    ConfigOption,
    JsonOption,
    check_servers,
    find_config,
    finish,
    json_text,
)
from pegboard.cli.page_link import page_link
from pegboard.cli.program import command_for, with_program
from pegboard.cli.rest_client import Answer, RestClient
from pegboard.cli.show import ago, count_found, say, say_wrapped, state_word

if TYPE_CHECKING:
    from pegboard.config import Location, RunningGateway

_LOOK_EVERY = 0.4
_ServerName = Annotated[str, typer.Argument(help="The server's name.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(short_help="Show whether a gateway runs, and how its servers are.")(status)
    app.command(short_help="Show what servers wrote on their stderr.")(logs)
    app.command()(restart)


def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show whether a gateway runs, where, since when, and how its servers are.

    Exit code 4 if none runs.

    Example: pegboard status
    """
    location = find_config(config)
    running, others = _find_gateways(location)
    if as_json:
        data = {"running": bool(running), "config": str(location.path), "gateways": running, "others": others}
        print(json_text({"success": True, "data": data}))
    elif not running:
        say(f"No gateway runs with {location.path}.")
        say(f"  Start it: {command_for('serve')}")
    for row in () if as_json else running:
        _show_status(row)
    if others and not as_json:
        say("\nOther gateways of yours:")
        for row in others:
            say(f"  {row['url']}/mcp with {row['config']}")
    if not running:
        raise typer.Exit(UNREACHED)


def logs(
    name: Annotated[str | None, typer.Argument(help="The server's name; without it, all servers.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the newest lines.", min=0, max=2000)] = 100,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what servers wrote on their stderr, and when they were started and stopped.

    The running gateway keeps the newest 2,000 lines of each server. With --json, each line is a JSON object.

    Example: pegboard logs github --follow
    """
    gateway = require_gateway(find_config(config), "the logs of servers are kept by a running gateway")
    known = [row["name"] for row in _data(gateway.servers())["servers"]]
    check_servers([name] if name else [], known)
    reader = _LogReader(gateway, [name] if name else known, as_json=as_json)
    found = reader.show(lines)
    if not found and not follow:
        say("Nothing is in the log yet.", error=True)
    try:
        while follow:
            time.sleep(_LOOK_EVERY)
            reader.show(None)
    except KeyboardInterrupt:
        return


def restart(name: _ServerName, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Stop a server, start it again and ask it for its tools.

    Calls to it that are under way fail.

    Example: pegboard restart github
    """
    gateway = require_gateway(find_config(config), "without a gateway no server is kept running")
    check_servers([name], [row["name"] for row in _data(gateway.servers())["servers"]])
    answer = gateway.restart(name)
    finish(answer, as_json=as_json, show=lambda data: _show_restarted(name, data))


def _show_restarted(name: str, found: Mapping[str, int]) -> None:
    say(with_program(f"{name} was restarted: {count_found(name, found)}"))


class _LogReader:
    """Shows lines of some servers in the order in which they came, each once."""

    def __init__(self, gateway: RestClient, names: list[str], *, as_json: bool) -> None:
        self._gateway = gateway
        self._names = names
        self._as_json = as_json
        self._last: dict[str, int] = {}
        self._width = max(map(len, names), default=0)

    def show(self, most: int | None) -> int:
        """Show the newest lines, at most so many of all servers together; how many there were."""
        found: list[tuple[str, Mapping[str, Any]]] = []
        for name in self._names:
            data = _data(self._gateway.log(name, most, self._last.get(name, 0)))
            self._last[name] = data["last"]
            found += [(name, line) for line in data["lines"]]
        found.sort(key=lambda entry: entry[1]["time"])
        shown = found if most is None else found[-most:] if most else []
        for name, line in shown:
            self._show_line(name, line)
        return len(shown)

    def _show_line(self, name: str, line: Mapping[str, Any]) -> None:
        if self._as_json:
            from pegboard.exactjson import dump
            from pegboard.terminal import plain_json

            print(plain_json(dump({"server": name, **line}).decode()), flush=True)
            return
        text = line["text"] if line["source"] == "server" else f"[pegboard] {line['text']}"
        whose = "" if len(self._names) == 1 else f"{name:{self._width}}  "
        say(f"{_clock_time(line['time'])}  {whose}{text}", flush=True)


def _clock_time(moment: str) -> str:
    from datetime import datetime

    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")


def require_gateway(location: Location, why: str, *, bearer: str = "") -> RestClient:
    """The gateway that serves this config, for this user or for whoever has a token; the end with exit code 4 if none
    runs."""
    from pegboard.cli.http_transport import find_running

    transport = find_running(location.path)
    if transport is None:
        _stop_without_gateway(location, why)
    return RestClient(transport.with_bearer(bearer) if bearer else transport)


def _stop_without_gateway(location: Location, why: str) -> NoReturn:
    say_wrapped(f"pegboard: no gateway runs with {location.path}, and {why}.", error=True)
    say(f"  Start it: {command_for('serve')}", error=True)
    raise typer.Exit(UNREACHED)


def _data(answer: Answer) -> dict[str, Any]:
    """The data of an answer, or the end with its error."""
    if "error" in answer:
        finish(answer, as_json=False, show=lambda _: None)
    return answer["data"]


def _find_gateways(location: Location) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The gateways that run: those of this config, as they answer, and this user's others."""
    from pegboard.cli.http_transport import GatewayTransport, is_running
    from pegboard.config import identity
    from pegboard.config.runfile import find_all_gateways

    own = identity(location.path)
    running: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for file, gateway in find_all_gateways():
        if not is_running(file, gateway):
            continue
        if file.name.startswith(own):
            running.append(_status_row(gateway, RestClient(GatewayTransport(gateway)).status()))
        else:
            others.append({"url": gateway.url, "pid": gateway.pid, "config": gateway.config})
    return running, others


def _status_row(gateway: RunningGateway, answer: Answer) -> dict[str, Any]:
    """What a gateway says of itself, and what its run file does."""
    from datetime import UTC, datetime

    started = datetime.fromtimestamp(gateway.started, UTC).isoformat(timespec="seconds")
    known = {
        "url": gateway.url,
        "page": page_link(gateway.url),
        "pid": gateway.pid,
        "config": gateway.config,
        "startedAt": started,
    }
    return {**known, **(answer.get("data") or {})}


def _show_status(row: Mapping[str, Any]) -> None:
    since = f", started {ago(row['startedAt'])}" if row.get("startedAt") else ""
    say(f"Pegboard {row.get('version', '')} runs at {row['url']}/mcp (pid {row['pid']}{since}).")
    say(f"  page:     {row['page']}")
    say(f"  config:   {row.get('config', '')}")
    if problem := row.get("configProblem"):
        say(f"            the file as it is now cannot be used: {problem}")
    say(f"  clients:  {row.get('sessions', 0)} connected")
    counts: dict[str, int] = {}
    for exact, count in row.get("servers", {}).items():
        word = state_word({"state": exact, "needsLogin": True})
        counts[word] = counts.get(word, 0) + count
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    say(f"  servers:  {said or 'none yet'}")
    for name in row.get("needLogin", ()):
        say(f"            {name}: sign in with: {command_for('login', name)}")
    say(f"  tools:    {row.get('tools', 0)}")
    if (access := row.get("access")) is not None:
        say(f"  access:   {_describe_access(access)}")
        beyond = "this machine only" if row["reach"] == "machine" else f"other machines, at {_first_address(row)}"
        say(f"  reached:  from {beyond}")


def _describe_access(access: Mapping[str, Any]) -> str:
    if access["anonymous"]:
        return "everybody, without a token"
    counts = {"token": access["tokens"], "issuer": access["issuers"]}
    said = [f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items() if count]
    own = ["this machine's user"] if access["local"] else []
    return "; ".join([*own, *said]) or "nobody: there is no token"


def _first_address(row: Mapping[str, Any]) -> str:
    return f"{next(iter(row.get('addresses', ())), row['url'])}/mcp"
