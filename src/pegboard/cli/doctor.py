"""`doctor`: looks at everything that can be wrong and says what to do about it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING

import typer

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
from pegboard.cli.show import one_line, say

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.config import Location, Settings
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


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command()(doctor)


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check config, commands, connections and storage, and say what to do about each finding."""
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
            say(f"{mark} {finding.about}: {finding.said}")
            if finding.advice:
                say(f"      → {finding.advice}")
    if code:
        raise typer.Exit(code)


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
    findings += asyncio.run(_look_at_servers(settings))
    findings += [DoctorFinding(**asdict(found)) for found in look_at_clients(location)]
    wrong = {finding.about for finding in findings if finding.level == "error"}
    return findings, FAILED if "storage" in wrong else UNREACHED if wrong else 0


async def _look_at_servers(settings: Settings) -> list[DoctorFinding]:
    from pegboard.board import Board
    from pegboard.storage import StorageError

    try:
        async with Board(settings) as board:
            findings = [DoctorFinding("storage", "ok", board.storage.database.name)]
            servers = [server for _, server in sorted(board.servers.items())]
            for found in await asyncio.gather(*(_look_at_server(board, server) for server in servers)):
                findings += found
            return findings
    except StorageError as exc:
        return [DoctorFinding("storage", "error", exc.problem, exc.advice)]


async def _look_at_server(board: Board, server: Server) -> list[DoctorFinding]:
    about, spec = f"server {server.name}", server.spec
    if not spec.enabled:
        return [DoctorFinding(about, "ok", "disabled", f"pegboard enable {server.name} enables it")]
    if spec.problem:
        return [DoctorFinding(about, "error", spec.problem, "correct its entry in the config")]
    result = await board.discovery.discover(server.name)
    if result.error is not None:
        said = without_name(result.error.message, server.name)
        return [DoctorFinding(about, "error", said, _advice(server))]
    findings = [
        DoctorFinding(about, "ok", f"{result.data} tools, protocol {server.hello.version if server.hello else '?'}")
    ]
    cuts = board.discovery.cuts.get(server.name, {}).values()
    findings += [DoctorFinding(about, "warning", cut, "docs/protocol.md names the limits") for cut in cuts]
    known = board.registry.server(server.name)
    if known is not None:
        taken = dict.fromkeys(known.conflicts, "a static tool has this name")
        findings += _report_left_out(about, taken, "rename it on the server")
        findings += _report_left_out(about, known.rejected, "the server's author has to fix it")
    return findings


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


def _advice(server: Server) -> str:
    from pegboard.config.secrets import display_address

    spec, shown = server.spec, display_address(server.spec)
    if not server.is_process:
        return f'is {shown} the right address, and is it up? Credentials go into "headers"'
    command = spec.command or ""
    if shutil.which(command) is None:
        return f'install {spec.redactor.clean(command)}, or give its full path in "command"'
    if command in {"npx", "uvx"}:
        return f"is the package's name right? Try it by hand: {shown}"
    return f"run it by hand to see what it says: {shown}"
