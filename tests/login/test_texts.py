"""What the lines and the banner of `serve` say of a server that waits for a sign-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.cli.banner import show_banner
from pegboard.cli.event_lines import EventLines
from pegboard.config import Location

_WANTS = "linear wants a sign-in: pegboard login linear"


def test_a_line_names_the_command() -> None:
    """Once, and not as a server that cannot be reached."""
    lines = EventLines(coloured=False)
    event = {"event": "server.connect.failed", "server": "linear", "reason": _WANTS}
    line = lines(event)
    assert line is not None
    assert line.endswith("linear  needs sign-in: pegboard login linear")
    assert lines(event) is None


def test_the_banner_names_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Below the table, where a person can copy it."""
    row = {"name": "linear", "state": "needs_auth", "tools": 3, "seen": True, "enabled": True, "lastError": _WANTS}
    location = Location(tmp_path / "pegboard.json", exists=True)
    show_banner("http://127.0.0.1:7420", location, [{**row, "needsLogin": True}], {}, "you")
    shown = capsys.readouterr().out
    assert "needs sign-in" in shown
    assert "linear: sign in with: pegboard login linear\n" in shown
