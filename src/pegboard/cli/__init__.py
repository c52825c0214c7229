"""`pegboard`, the command. Nothing heavy is imported before a command needs it: `--help` must be quick."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["serve"] and sys.platform != "win32":
        # Asked to reload before there is anything to reload: no reason to end, which is what the signal does by itself.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from pegboard.cli.streams import output_failed, prepare_streams

    prepare_streams()
    from pegboard.cli.app import app

    if "_PEGBOARD_COMPLETE" in os.environ:
        from pegboard.cli.completion import complete

        complete(app)
    try:
        app()
    except SystemExit as exc:
        if not exc.code and output_failed():
            raise SystemExit(1) from None
        raise
