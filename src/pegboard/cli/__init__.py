"""`pegboard`, the command. Nothing heavy is imported before a command needs it: `--help` must be quick."""

from __future__ import annotations

import io
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["serve"] and sys.platform != "win32":
        # Asked to reload before there is anything to reload: no reason to end, which is what the signal does by itself.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from pegboard.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # What a terminal or pipe cannot write, as in cp1252, is shown as `?`: no reason to end in the middle.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
