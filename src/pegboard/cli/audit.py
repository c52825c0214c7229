"""`audit`, `audit verify`, `audit head`: who called what, when, and with which outcome."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from pegboard.cli.common import FAILED, ConfigOption, JsonOption, find_config, finish
from pegboard.cli.program import with_program
from pegboard.cli.rest_client import Answer, RestClient, connect
from pegboard.cli.show import TerminalTable, colour_state, cut_line, is_on_terminal, one_line, say
from pegboard.terminal import plain_data

_MOST_AT_ONCE = 1000
# Seconds between two looks, and how far back each goes: what several processes record is kept a moment later.
_LOOK_EVERY, _LOOK_BACK = 0.5, 5.0
# Where a name has less room than this, how long it took is left out.
_LEAST_NAME = 8
# A record as REST gives it; ids are in the order of time.
Record = Mapping[str, Any]
_Since = Annotated[str | None, typer.Option(help="From then on: 30m, 2h or 7d ago, a day, or a day and a time (UTC).")]
_Until = Annotated[str | None, typer.Option(help="Before then, in the same words.")]
_Who = Annotated[
    str | None,
    typer.Option(help="Only of this principal: a token's name, local, anonymous, or an id; or of this client."),
]
_Server = Annotated[str | None, typer.Option(help="Only of this server; * stands for anything.")]
_Tool = Annotated[str | None, typer.Option(help="Only of this tool; * stands for anything.")]
_Outcome = Annotated[str | None, typer.Option(help="Only ok, tool_error, rpc_error, timeout, cancelled, refused …")]
_Denied = Annotated[bool, typer.Option("--denied", help="Only what was refused.")]
_Kind = Annotated[str | None, typer.Option(help="Only call, read, access, server.added, token.*, …")]
_Limit = Annotated[int, typer.Option(help="How many records at most, the newest.", min=1, max=100_000)]
_Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")]
_Head = Annotated[
    list[str] | None,
    typer.Option("--head", metavar="HEAD", help="A head kept elsewhere, as audit head shows it; can be repeated."),
]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(invoke_without_command=True, help="Who called what, when, and with which outcome.")
    group.callback()(audit)
    group.command(short_help="Check that no record was changed, added or removed.")(verify)
    group.command(short_help="Show where each chain of records stands.")(head)
    app.add_typer(group, name="audit")


def audit(
    context: typer.Context,
    since: _Since = None,
    until: _Until = None,
    who: _Who = None,
    server: _Server = None,
    tool: _Tool = None,
    outcome: _Outcome = None,
    denied: _Denied = False,
    kind: _Kind = None,
    limit: _Limit = 50,
    follow: _Follow = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Who called what, when, and with which outcome; what was refused, and what was changed.

    Example: pegboard audit --since 2h --denied
    """
    if context.invoked_subcommand is not None:
        return
    wanted = {"since": since, "until": until, "who": who, "server": server, "tool": tool, "outcome": outcome}
    client = connect(find_config(config))
    filters = {**wanted, "kind": kind, "denied": "true" if denied else None}
    answer = _read(client, limit, filters)
    if not follow:
        finish(answer, as_json=as_json, show=_show_table)
        return
    _follow_records(client, answer, filters, as_json=as_json)


def verify(heads: _Head = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check that no record was changed, put in or taken out; exit code 1 if one was.

    Example: pegboard audit verify
    """
    answer = connect(find_config(config)).get("/api/audit/verify", head=heads or None)
    finish(answer, as_json=as_json, show=_show_report)
    if not answer["data"]["ok"]:
        raise typer.Exit(FAILED)


def head(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show where each chain stands: kept elsewhere, that shows whether an end was cut off.

    Example: pegboard audit head
    """
    finish(connect(find_config(config)).get("/api/audit/head"), as_json=as_json, show=_show_heads)


def _read(client: RestClient, limit: int, filters: Mapping[str, Any]) -> Answer:
    """So many of the newest records, page by page."""
    records: list[Any] = []
    cursor: str | None = None
    while True:
        most = min(limit - len(records), _MOST_AT_ONCE)
        answer = client.get("/api/calls", **filters, limit=most, cursor=cursor)
        if answer.get("error") is not None:
            return answer
        records += answer["data"]["records"]
        cursor = answer["data"].get("nextCursor")
        if cursor is None or len(records) >= limit:
            return {"success": True, "data": {"records": records}}


def _follow_records(client: RestClient, first: Answer, filters: Mapping[str, Any], *, as_json: bool) -> None:
    if first.get("error") is not None:
        finish(first, as_json=as_json, show=_show_table)
    records: list[Record] = first["data"]["records"]
    order = RecordOrder()
    try:
        while True:
            for record in order.take(records, time.monotonic()):
                _show_line(record, as_json=as_json)
            time.sleep(_LOOK_EVERY)
            back = f"{int(_LOOK_BACK)}s"
            answer = _read(client, 100_000, {**filters, "since": back})
            # A gateway that is away for a moment comes back.
            records = answer["data"]["records"] if answer.get("error") is None else []
    except KeyboardInterrupt:
        for record in order.rest():
            _show_line(record, as_json=as_json)
        raise typer.Exit from None


class RecordOrder:
    """Puts records in the order of time, each once. What one process recorded may be kept a moment after what another
    one recorded later, so that a new one waits for the next look."""

    def __init__(self) -> None:
        self._waiting: dict[str, Record] = {}
        # When each was seen first.
        self._seen: dict[str, float] = {}
        self._has_begun = False

    def take(self, records: Iterable[Record], now: float) -> list[Record]:
        """Those that are to be shown now: what has waited, and what came before that."""
        settled = set(self._waiting)
        new = {record["id"]: record for record in records if record["id"] not in self._seen}
        self._waiting |= new
        self._seen |= dict.fromkeys(new, now)
        self._seen = {name: at for name, at in self._seen.items() if now - at < 2 * _LOOK_BACK}
        # What there was before is in order.
        last = max(settled if self._has_begun else self._waiting, default="")
        self._has_begun = True
        return [self._waiting.pop(name) for name in sorted(self._waiting) if name <= last]

    def rest(self) -> list[Record]:
        """Those that still wait."""
        return [self._waiting.pop(name) for name in sorted(self._waiting)]


def _show_line(record: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps(record, ensure_ascii=True), flush=True)
        return
    time_, who, what, outcome, took = _cells(plain_data(record))
    if not is_on_terminal():
        say(f"{time_}  {who:<12}  {what:<30}  {outcome:<12}  {took}".rstrip(), flush=True)
        return
    from rich.console import Console

    # How it went is read even where there is no room for all.
    beginning, ending = f"{time_}  {cut_line(who, 12):<12}  ", f"  {outcome:<12}  {took}".rstrip()
    if (room := Console().width - len(beginning) - len(ending)) < _LEAST_NAME:
        ending = f"  {outcome}"
        room = max(Console().width - len(beginning) - len(ending), 1)
    say(f"{beginning}{cut_line(what, room):<{min(room, 30)}}{ending}", flush=True)


def _show_table(data: Any) -> None:
    records = data["records"]
    if not records:
        say("Nothing was recorded that fits.")
        return
    columns = ("time (UTC)", "who", "what", "outcome", "took")
    table = TerminalTable(*columns, droppable=("took",), whole=("outcome",))
    for record in reversed(records):
        when, who, what, outcome, took = _cells(record)
        table.add(when, who, what, colour_state(outcome), took)
    table.show()


def _cells(record: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    at = str(record["at"])
    principal: Mapping[str, str] = record.get("principal") or {}
    subject = record.get("tool") or record.get("server") or record.get("detail") or ""
    what = subject if record["kind"] == "call" else f"{record['kind']} {subject}"
    took = f"{record['ms']:.0f} ms" if "ms" in record else ""
    return (
        f"{at[5:10]} {at[11:19]}",
        one_line(principal.get("name", "")),
        one_line(what),
        record.get("outcome", ""),
        took,
    )


def _show_report(data: Any) -> None:
    counted = f"{data['records']} records in {data['chains']} chains"
    if data["ok"]:
        say(f"{counted}: none was changed, put in or taken out.")
        for line in data.get("removed", ()):
            say(line)
        text = "Whether the end of a chain was cut off shows only against a head kept elsewhere: pegboard audit head"
        say(with_program(text))
        return
    fault = data["fault"]
    which = f"record {fault['record']}" if fault["record"] else "a chain"
    say(f"The audit is not as it was written. First fault, after {counted}:", error=True)
    say(f"{which} (process {fault['process']}, chain {fault['chain']}) {fault['reason']}", error=True)


def _show_heads(data: Any) -> None:
    for each in data["heads"]:
        say(f"{each['process']}/{each['chain']}/{each['records']}/{each['head']}  {each['day']}")
    if not data["heads"]:
        say("Nothing was recorded yet.")
