"""`pegboard`, the command. Nothing heavy is imported before a command needs it: `--help` must be quick."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from pegboard.cli.app import app

    app()
