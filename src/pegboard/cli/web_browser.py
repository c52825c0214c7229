"""The browser of whoever sits at this terminal, if there is one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping

# What opens an address on a desktop, the most usual one first.
_OPENERS = (("xdg-open",), ("gio", "open"), ("wslview",), ("x-www-browser",))
# Seconds within which an opener that cannot open anything has ended.
_MOMENT = 1.0


def browser_command(
    environ: Mapping[str, str] = os.environ,
    *,
    system: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
) -> list[str] | None:
    """The words that open an address in a browser that the person sees, or `None`.

    `BROWSER` is what they chose themselves; an editor that is connected to another machine sets it, too. Else a browser
    needs a display: without one a text browser would take over the terminal.
    """
    if chosen := environ.get("BROWSER"):
        words = shlex.split(chosen.split(os.pathsep)[0].replace("%s", "").strip(), posix=system != "win32")
        return words if words and which(words[0]) else None
    if system in {"darwin", "win32"}:
        # Over SSH it would open on a screen that somebody else looks at, or nobody.
        if is_remote_shell(environ):
            return None
        return ["open"] if system == "darwin" else ["rundll32", "url.dll,FileProtocolHandler"]
    if not environ.get("DISPLAY") and not environ.get("WAYLAND_DISPLAY"):
        return None
    return next((list(words) for words in _OPENERS if which(words[0])), None)


def open_address(url: str) -> bool:
    """Open an address, without waiting for the browser to end; whether nothing went wrong within a moment."""
    command = browser_command()
    if command is None or not url.startswith(("https://", "http://")):
        return False
    try:
        opener = subprocess.Popen(  # noqa: S603  what the person chose, or their desktop's own
            [*command, url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        return opener.wait(_MOMENT) == 0
    except subprocess.TimeoutExpired:
        # It is the browser itself, or takes its time.
        return True


def is_remote_shell(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this terminal is reached over SSH."""
    return bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def forward_command(port: int, environ: Mapping[str, str] = os.environ) -> str:
    """What brings a port of this machine to the one whose browser is used, typed in there."""
    # The address of the client and its port, then those by which it reached this machine.
    words = environ.get("SSH_CONNECTION", "").split()
    host = words[2] if len(words) == 4 else "HOST"
    return f"ssh -L {port}:127.0.0.1:{port} {host}"
