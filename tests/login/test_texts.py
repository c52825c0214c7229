"""What the lines and the banner of `serve` say of a server that waits for a sign-in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pegboard.cli.banner import show_banner
from pegboard.cli.event_lines import EventLines
from pegboard.cli.logins import _show_logins
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


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"renews": True}, "renews by itself"),
        ({"renews": False}, "2026-11-18 15:00, then sign in again"),
        ({"renews": False, "expiresAt": None}, "no end is known"),
        ({"state": "revoked", "reason": "it was revoked", "renews": True}, "over: sign in again"),
    ],
)
def test_the_end_of_a_sign_in_is_not_that_of_its_token(
    more: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever looks wants to know when they have to do something; what is over has the command below."""
    at = datetime(2026, 11, 18, 15).astimezone().isoformat()
    row = {"server": "docs", "state": "live", "issuer": "https://a", "scopes": ["mcp"], "expiresAt": at}
    _show_logins({"logins": [{**row, "signedInAt": at, **more}]})
    shown = capsys.readouterr().out
    assert said in shown
    assert ("login docs" in shown) == (more.get("state") == "revoked")
