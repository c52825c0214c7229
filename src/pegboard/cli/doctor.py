"""`doctor`: looks at everything that can be wrong and says what to do about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from pegboard.cli.access_check import look_at_access
from pegboard.cli.clients import look_at_clients
from pegboard.cli.common import (
    BAD_CONFIG,
    FAILED,
    UNREACHED,
    ConfigOption,
    JsonOption,
    find_config,
    json_text,
    quiet_logs,
    without_name,
)
from pegboard.cli.page_link import find_page
from pegboard.cli.program import with_program
from pegboard.cli.secrets_check import look_at_secrets
from pegboard.cli.show import count_tools, one_line, say, say_wrapped
from pegboard.cli.wording import may_sign_in

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.board import Board
    from pegboard.cli.discovery_check import SignInCheck
    from pegboard.cli.rest_client import Answer, RestClient
    from pegboard.config import Location, ServerSpec, Settings
    from pegboard.servers.server import Server


# Tools that are left out, of one server.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One thing that was looked at."""

    about: str
    level: str
    said: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A server that was asked: its row, what went wrong, and its entry."""

    row: Mapping[str, Any]
    error: str | None
    spec: ServerSpec | None


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command(short_help="Look for what is wrong, and say what to do about it.")(doctor)


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check config, gateway, commands, connections and storage, and say what to do about each finding.

    A running gateway is asked; without one, every server is started for the check.

    Example: pegboard doctor
    """
    location = find_config(config)
    quiet_logs()
    findings, code = _look(location)
    if as_json:
        ok = all(finding.level != "error" for finding in findings)
        data = {"findings": [asdict(finding) for finding in findings]}
        print(json_text({"success": ok, "data": data}))
    else:
        for finding in findings:
            mark = {"ok": "ok   ", "warning": "warn ", "error": "ERROR"}[finding.level]
            say_wrapped(with_program(f"{mark} {finding.about}: {finding.said}"), indent="      ")
            if finding.advice:
                _show_advice(finding.advice)
        _show_sum(findings)
        if page := _fitting_page(location.path, findings):
            say(f"In a browser: {page}")
    if code:
        raise typer.Exit(code)


def _show_advice(advice: str) -> None:
    text = f"      → {with_program(advice)}"
    if advice.startswith("pegboard "):
        # It may be copied, so no line ends in it.
        say(text)
    else:
        say_wrapped(text, indent="        ")


def _show_sum(findings: Sequence[DoctorFinding]) -> None:
    counts = {level: sum(finding.level == level for finding in findings) for level in ("error", "warning")}
    if not any(counts.values()):
        say("Everything works.")
        return
    said = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items() if count]
    say(f"{' and '.join(said)}. What to do stands behind each →")


def _fitting_page(config: Path, findings: Sequence[DoctorFinding]) -> str:
    """The screen where most is to be seen of what was found: the log of the one server with an error, or the overview,
    which names them all. Empty where no gateway runs."""
    failed = {finding.about for finding in findings if finding.level == "error"}
    (only,) = failed if len(failed) == 1 else ("",)
    kind, _, name = only.partition(" ")
    return find_page(config, "servers", name, tab="log") if kind == "server" else find_page(config)


def _look(location: Location) -> tuple[list[DoctorFinding], int]:
    import os

    from pegboard.config import ConfigError, read_settings

    if not location.exists:
        advice = "pegboard add NAME URL, or pegboard add NAME -- COMMAND ARG…"
        findings = [DoctorFinding("config", "warning", f"there is no {location.path} yet", advice)]
    else:
        findings = [DoctorFinding("config", "ok", str(location.path))]
    try:
        path = location.path if location.exists else None
        settings = read_settings(path, os.environ, needs_trust=location.needs_trust)
    except ConfigError as exc:
        return [DoctorFinding("config", "error", str(exc), "correct the file at that place")], BAD_CONFIG
    findings += [DoctorFinding("config", "warning", remark) for remark in settings.remarks]
    findings += _look_at_servers(location, settings)
    findings += _look_at_lock(settings)
    findings += [DoctorFinding(*found) for found in look_at_secrets(location)]
    findings += [DoctorFinding(*found) for found in look_at_access(location, settings)]
    findings += [DoctorFinding(**asdict(found)) for found in look_at_clients(location)]
    wrong = {finding.about for finding in findings if finding.level == "error"}
    return findings, FAILED if "storage" in wrong else UNREACHED if wrong else 0


def _look_at_lock(settings: Settings) -> list[DoctorFinding]:
    """Whether the lock file can be used, where any server is locked to it."""
    from pegboard.pins.lock_file import lock_of, read_lock

    lock = lock_of(settings)
    problem = "" if lock is None else read_lock(lock).problem
    said = f"locked servers have no tools: {problem}"
    return [DoctorFinding("lock file", "error", said, "pegboard lock")] if problem else []


def _look_at_servers(location: Location, settings: Settings) -> list[DoctorFinding]:
    from pegboard.cli.http_transport import find_running
    from pegboard.cli.rest_client import RestClient

    names = [name for name, spec in sorted(settings.servers.items()) if spec.enabled]
    with _Progress(names) as progress:
        if (running := find_running(location.path)) is not None:
            found = DoctorFinding("gateway", "ok", f"runs at {running.url}/mcp")
            return [found, *_ask_gateway(RestClient(running), settings, progress)]
        said = "none runs with this config, so this check starts the servers itself"
        findings, asked = asyncio.run(_ask_servers(settings, progress))
        return [DoctorFinding("gateway", "ok", said), *findings, *_report_all(asked)]


def _ask_gateway(gateway: RestClient, settings: Settings, progress: _Progress) -> list[DoctorFinding]:
    """The findings of a gateway that runs: its servers are not started a second time."""
    status = _data(gateway.status())
    names = [row["name"] for row in _rows(gateway) if row["enabled"] and row["state"] != "invalid"]
    answers = gateway.refresh(names, progress.advance)
    findings: list[DoctorFinding] = []
    if problem := status.get("configProblem"):
        advice = "correct the file at that place; until then the gateway runs with what the file said before"
        findings.append(DoctorFinding("config", "error", problem, advice))
    health = gateway.get("/health")
    if problem := health.get("storage"):
        findings.append(DoctorFinding("storage", "error", str(problem)))
    elif health.get("status") == "ok":
        findings.append(DoctorFinding("storage", "ok", "that of the gateway works"))
    asked: list[_Asked] = []
    for row in _rows(gateway):
        error: dict[str, Any] | None = answers.get(row["name"], {}).get("error")
        asked.append(_Asked(row, error["message"] if error else None, settings.servers.get(row["name"])))
    return findings + _report_all(asked, is_gateways=True)


def _data(answer: Answer) -> dict[str, Any]:
    return answer.get("data") or {}


def _rows(gateway: RestClient) -> list[dict[str, Any]]:
    return _data(gateway.servers()).get("servers") or []


async def _ask_servers(settings: Settings, progress: _Progress) -> tuple[list[DoctorFinding], list[_Asked]]:
    from pegboard.board import Board
    from pegboard.gateway.rest.rows import server_row
    from pegboard.storage import StorageError

    try:
        async with Board(settings) as board:
            findings = [DoctorFinding("storage", "ok", board.storage.database.name)]
            servers = [server for _, server in sorted(board.servers.items())]
            errors = await asyncio.gather(*(_ask_server(board, server, progress) for server in servers))
            each = zip(servers, errors, strict=True)
            return findings, [_Asked(server_row(board, server), error, server.spec) for server, error in each]
    except StorageError as exc:
        return [DoctorFinding("storage", "error", exc.problem, exc.advice)], []


async def _ask_server(board: Board, server: Server, progress: _Progress) -> str | None:
    """What goes wrong when it is asked for its tools."""
    from pegboard.access.principal import LOCAL
    from pegboard.servers.connection_key import is_per_user
    from pegboard.servers.http.refusal import wants_sign_in

    if not server.spec.enabled or server.spec.problem:
        return None
    result = await board.discovery.discover(server.name)
    if result.error is None and is_per_user(server.spec):
        # It was asked with somebody's sign-in; the one who looks may have none.
        await board.discovery.own.discover(LOCAL.id, server.spec.timeout, server.name)
    progress.advance()
    if result.error is None and board.discovery.own.needs_sign_in(server.name, LOCAL.id):
        return wants_sign_in(server.name)
    return result.error.message if result.error is not None else None


def _report_all(asked: Sequence[_Asked], *, is_gateways: bool = False) -> list[DoctorFinding]:
    """The findings about all servers; those that want a sign-in are looked at all at once."""
    from pegboard.cli.discovery_check import check_sign_ins

    waiting = [each.spec for each in asked if each.spec is not None and each.error and may_sign_in(each.error)]
    checks = dict(zip((spec.name for spec in waiting), check_sign_ins(waiting), strict=True))
    findings: list[DoctorFinding] = []
    for each in asked:
        check = checks.get(str(each.row["name"]))
        findings += _report(each, is_gateways=is_gateways) if check is None else _report_sign_in(each, check)
    return findings


def _report(asked: _Asked, *, is_gateways: bool) -> list[DoctorFinding]:
    """The findings about one server."""
    from pegboard.cli.advice import advise

    row, error, spec = asked.row, asked.error, asked.spec
    name = str(row["name"])
    about = f"server {name}"
    if not row["enabled"]:
        return [DoctorFinding(about, "ok", "disabled", f"pegboard enable {name} enables it")]
    said = str(row["lastError"]) if row["state"] == "invalid" else error
    if said is not None:
        advice = advise(said, spec, is_gateways=is_gateways) if spec else ""
        return [DoctorFinding(about, "error", without_name(said, name), advice)]
    findings = [DoctorFinding(about, "ok", f"{count_tools(row['tools'])}, protocol {row['protocolVersion'] or '?'}")]
    findings += [
        DoctorFinding(about, "warning", cut, "docs/protocol.md names the limits") for cut in row.get("cut", ())
    ]
    if changed := row.get("changed"):
        findings.append(_report_changed(about, name, changed))
    taken = dict.fromkeys(row.get("conflicts", ()), "a static tool has this name")
    findings += _report_left_out(about, taken, "rename it on the server")
    return findings + _report_left_out(about, row.get("rejected", {}), "the server's author has to fix it")


def _report_changed(about: str, name: str, changed: Mapping[str, Any]) -> DoctorFinding:
    """What there is to say of definitions that are others than those that were approved."""
    waits, withheld = changed["waits"], changed["withheld"]
    advice = f"pegboard changes show {name}"
    said = f"{waits} definition{'' if waits == 1 else 's'} differ{'s' if waits == 1 else ''} from what is approved"
    have = (
        f"{withheld} withheld"
        if withheld
        else "in use" + ("" if changed["policy"] == "tell" else " as approved before")
    )
    have += f", {changed['rejected']} rejected and withheld" if changed.get("rejected") else ""
    look = f"; {changed['wantsLook']} to look at first" if changed["wantsLook"] else ""
    is_fine = changed["policy"] == "tell" and not withheld and not changed["wantsLook"]
    return DoctorFinding(about, "ok" if is_fine else "warning", f"{said}: {have}{look}", advice)


def _report_sign_in(asked: _Asked, check: SignInCheck) -> list[DoctorFinding]:
    """The findings about a server that waits for a sign-in: whether one would come to an end, and if not, which of its
    steps fails and which rule that breaks."""
    from pegboard.cli.advice import advise

    name = str(asked.row["name"])
    about = f"server {name}"
    if check.is_silent:
        said = "wants credentials (HTTP 401), and says nothing of a sign-in"
        advice = advise(said, asked.spec) if asked.spec else ""
        return [
            DoctorFinding(about, "error", said, f"{advice}. Older servers can be signed in to: pegboard login {name}")
        ]
    if not check.problem:
        return [DoctorFinding(about, "warning", f"wants a sign-in, at {check.issuer}", f"pegboard login {name}")]
    taken = [
        DoctorFinding(
            about, "ok" if step.is_fine else "warning", f"{step.name}: {step.url}: {one_line(step.outcome, 300)}"
        )
        for step in check.steps
    ]
    rule = f" ({check.rule})" if check.rule else ""
    said = f"wants a sign-in, which cannot work: {one_line(check.problem, 500)}{rule}"
    return [*taken, DoctorFinding(about, "error", said, check.advice)]


class _Progress:
    """Says on a terminal how many of the servers have been asked."""

    def __init__(self, names: Sequence[str]) -> None:
        from rich.console import Console

        self._total, self._asked = len(names), 0
        self._status = Console(stderr=True, highlight=False).status(self._text())

    def __enter__(self) -> _Progress:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def advance(self) -> None:
        """One more was asked."""
        self._asked += 1
        self._status.update(self._text())

    def _text(self) -> str:
        return f"asking servers for their tools: {self._asked} of {self._total}"


def _report_left_out(about: str, reasons: Mapping[str, str], advice: str) -> list[DoctorFinding]:
    """Why tools are left out. Their names are the server's words: one line each, so that none looks like a finding."""
    findings = [
        DoctorFinding(about, "warning", f"tool {one_line(name, 80)!r} is left out: {one_line(reason, 300)}", advice)
        for name, reason in islice(reasons.items(), _MOST_NAMED)
    ]
    if len(reasons) > _MOST_NAMED:
        rest = f"{len(reasons) - _MOST_NAMED:,} more tools are left out"
        findings.append(DoctorFinding(about, "warning", rest, "pegboard servers --json has all of them"))
    return findings
