"""`serve`, `stdio`, `trust`: the gateway itself."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pegboard.cli.common import FAILED, WRONG_CALL, ConfigOption, find_config, load_settings, stop

_HOST, _PORT = "127.0.0.1", 7420
_Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", help="The folder that is worked in, for clients that do not tell.", file_okay=False, exists=True
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(serve)
    app.command()(stdio)
    app.command()(trust)


def serve(
    config: ConfigOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = _HOST,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.", min=0, max=65535)] = _PORT,
    workspace: _Workspace = None,
) -> None:
    """Run the gateway over HTTP."""
    location = find_config(config)
    settings = load_settings(location)
    from pegboard.board import Board
    from pegboard.front.http import serve as serve_http
    from pegboard.log import configure
    from pegboard.storage import StorageError

    configure(os.environ.get("PEGBOARD_LOG", "info"))

    def ready(url: str) -> None:
        print(_banner(url, len(settings.servers), location.path), flush=True)

    async def run() -> None:
        board = Board(settings, workspace=None if workspace is None else str(workspace.resolve()))
        await serve_http(board, location.path, host, port, ready)

    try:
        _run(run())
    except (OSError, StorageError, RuntimeError) as exc:
        stop(str(exc.strerror if isinstance(exc, OSError) and exc.strerror else exc), FAILED)


def stdio(
    board: Annotated[str | None, typer.Option(help="Keep the tools that are loaded on the board of this name.")] = None,
    workspace: _Workspace = None,
    config: ConfigOption = None,
) -> None:
    """Run the gateway over stdio, for a client's config file."""
    location = find_config(config)
    from pegboard.names import is_board_name

    if board is not None and not is_board_name(board):
        stop(f"a board's name has letters, digits, '_', '-' and '.', 64 at most: found {board!r}", WRONG_CALL)
    from pegboard.config import run_file
    from pegboard.front.bridge import cross

    folder = str(workspace.resolve()) if workspace is not None else None
    # A gateway that runs already has every server; a second one would start them all again.
    if cross(run_file(location.path), board, folder):
        os._exit(0)
    settings = load_settings(location)
    from pegboard.board import Board
    from pegboard.front.stdio import serve_stdio
    from pegboard.log import configure
    from pegboard.protocol.client import Address
    from pegboard.storage import StorageError

    configure(os.environ.get("PEGBOARD_LOG", "warning"))
    address = Address({"workspace": folder} if folder else {}, board)

    async def run() -> None:
        await serve_stdio(Board(settings), location.path, address)

    try:
        _run(run())
    except StorageError as exc:
        stop(str(exc), FAILED)
    # The thread that reads our input may still wait for it.
    sys.stderr.flush()
    os._exit(0)


def trust(folder: Annotated[Path, typer.Argument(help="The folder.")] = Path()) -> None:
    """Allow the pegboard.json of a folder to be used: it can run commands."""
    from pegboard.config.locate import LOCAL_NAME
    from pegboard.config.locate import trust as remember

    remember(folder)
    print(f"{(folder / LOCAL_NAME).resolve()} is trusted from now on.")


def _run(main: object) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)  # type: ignore[arg-type]
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)  # type: ignore[arg-type]


def _banner(url: str, servers: int, config: Path) -> str:
    lines = [
        f"Pegboard listens on {url}/mcp with {servers} server{'' if servers == 1 else 's'} ({config}).",
        "",
        "Connect a client:",
        f"  Claude Code   claude mcp add --transport http pegboard {url}/mcp",
        f'  VS Code       .vscode/mcp.json: {{"servers": {{"pegboard": {{"type": "http", "url": "{url}/mcp"}}}}}}',
        f'  Cursor        ~/.cursor/mcp.json: {{"mcpServers": {{"pegboard": {{"url": "{url}/mcp"}}}}}}',
        "",
        "Add a server:" if servers else "Add your first server:",
        "  pegboard add time -- uvx mcp-server-time",
        "  pegboard add docs https://example.com/mcp",
    ]
    return "\n".join(lines)
