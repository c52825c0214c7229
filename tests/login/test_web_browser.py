"""Which browser is opened, where there is one that the person sees."""

from __future__ import annotations

import pytest

from pegboard.cli.web_browser import browser_command, forward_command


@pytest.mark.parametrize(
    ("environ", "system", "command"),
    [
        ({}, "linux", None),
        ({"DISPLAY": ":0"}, "linux", ["xdg-open"]),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", ["xdg-open"]),
        ({"SSH_CONNECTION": "a 1 b 2"}, "linux", None),
        ({"SSH_TTY": "/dev/pts/0", "DISPLAY": "localhost:10.0"}, "linux", ["xdg-open"]),
        ({"BROWSER": "/opt/helper --open %s"}, "linux", ["/opt/helper", "--open"]),
        ({"BROWSER": "gone"}, "linux", None),
        ({}, "darwin", ["open"]),
        ({"SSH_CONNECTION": "a 1 b 2"}, "darwin", None),
        ({}, "win32", ["rundll32", "url.dll,FileProtocolHandler"]),
    ],
)
def test_the_browser_that_a_person_sees(environ: dict[str, str], system: str, command: list[str] | None) -> None:
    """The one that is named, else the desktop's; none without a display, and none on somebody else's screen."""
    found = {"xdg-open": "/usr/bin/xdg-open", "/opt/helper": "/opt/helper"}
    assert browser_command(environ, system=system, which=found.get) == command


@pytest.mark.parametrize(
    ("connection", "host"), [("192.0.2.1 50000 192.0.2.7 22", "192.0.2.7"), ("", "HOST"), ("odd", "HOST")]
)
def test_the_port_is_forwarded_to_where_the_shell_is(connection: str, host: str) -> None:
    """By the address that the SSH client used."""
    assert forward_command(7420, {"SSH_CONNECTION": connection}) == f"ssh -L 7420:127.0.0.1:7420 {host}"
