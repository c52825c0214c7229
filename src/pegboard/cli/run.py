"""`serve`, `stdio`: the gateway itself."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import (
    BAD_CONFIG,
    FAILED,
    WRONG_CALL,
    ConfigOption,
    find_config,
    load_settings,
    log_level,
    stop,
)

if TYPE_CHECKING:
    from pegboard.auth.authenticator import Authenticator
    from pegboard.board import Board
    from pegboard.cli.event_lines import EventLines
    from pegboard.config import Location

_HOST, _PORT = "127.0.0.1", 7420
_HOSTS = """Requests must name a host of this machine; others are allowed by --allow-host NAME or by pegboard.hosts."""
_INSECURE = """
WARNING: --insecure lets in whoever reaches this address. They can call every tool, with your servers' credentials.
To let in only those who have a token: pegboard token add NAME, then start again without --insecure."""
_Workspace = Annotated[
    Path | None,
    typer.Option("--workspace", help="The workspace folder, for clients that name none.", file_okay=False, exists=True),
]
_ClientWorkspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        help="The workspace folder of this client; its roots are not asked for.",
        file_okay=False,
        exists=True,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(serve)
    app.command()(stdio)


def serve(
    config: ConfigOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = _HOST,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.", min=0, max=65535)] = _PORT,
    workspace: _Workspace = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name that requests may have; can be repeated."),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Let in whoever reaches it, without a token.")] = False,
) -> None:
    """Run the gateway over HTTP.

    On an address that other machines reach it starts if it can tell who comes: by a token (pegboard token add), or by
    an issuer of the config (auth.issuers).

    Example: pegboard serve --port 7421
    """
    from pegboard.host_names import host_problem

    for name in allow_host or ():
        if problem := host_problem(name):
            stop(f"--allow-host: {problem}", WRONG_CALL)
    location = find_config(config)
    settings = load_settings(location)
    if insecure and settings.auth.required is True:
        stop("--insecure contradicts auth.required, which is true in the config", WRONG_CALL)
    listener = _listen(host, port, location)
    from pegboard.auth.reach import UnprotectedError
    from pegboard.board import Board
    from pegboard.cli.event_lines import EventLines
    from pegboard.cli.program import command_for
    from pegboard.gateway.http import serve as serve_http
    from pegboard.log import configure, logger
    from pegboard.sealing.key_search import find_key_problem
    from pegboard.storage import StorageError

    # Whoever asks for a level wants the events themselves.
    lines = None if os.environ.get("PEGBOARD_LOG") else EventLines()
    configure(log_level("info"), lines=lines)

    async def run() -> None:
        folder = None if workspace is None else str(workspace.resolve())
        board = Board(settings, workspace=folder, audit="serve")

        def ready(url: str, authenticator: Authenticator) -> None:
            _greet(url, location, board, authenticator, lines)
            if problem := find_key_problem(os.environ):
                logger().warning("secrets.key.refused", reason=problem)
            if authenticator.reach.beyond_loopback:
                _show_network(
                    host, listener.getsockname()[1], board, needs_token=authenticator.requirement is not False
                )
            if insecure:
                print(_INSECURE, file=sys.stderr, flush=True)

        await serve_http(board, location.path, host, listener, ready, allow_host or (), insecure=insecure)

    try:
        _run(run())
    except UnprotectedError as exc:
        words = ("token", "rotate", exc.expired, "--expires", "30d") if exc.expired else ("token", "add", "NAME")
        first = f"  {command_for(*words)}"
        stop(f"{exc} First:\n{first}\nOr let in whoever comes: --insecure", BAD_CONFIG if exc.is_config else FAILED)
    except (OSError, StorageError, RuntimeError) as exc:
        stop(str(exc.strerror if isinstance(exc, OSError) and exc.strerror else exc), FAILED)


def stdio(
    board: Annotated[str | None, typer.Option(help="Use the board of this name, which keeps loaded tools.")] = None,
    workspace: _ClientWorkspace = None,
    config: ConfigOption = None,
) -> None:
    """Run the gateway over stdio, for a client's config file.

    Example: pegboard stdio --board my-editor
    """
    location = find_config(config)
    from pegboard.names import is_board_name

    if board is not None and not is_board_name(board):
        stop(f"a board's name has letters, digits, '_', '-' and '.', 64 at most: found {board!r}", WRONG_CALL)
    from pegboard.gateway.bridge import cross

    folder = str(workspace.resolve()) if workspace is not None else None
    # A gateway that runs already has every server; a second one would start them all again.
    client_left = cross(location.path, board, folder)
    if client_left is not None:
        if not client_left:
            print("pegboard: the gateway that answered has ended; start this again", file=sys.stderr, flush=True)
        os._exit(0 if client_left else FAILED)
    settings = load_settings(location)
    from pegboard.board import Board
    from pegboard.cli.program import command_for
    from pegboard.clients.endpoint import Endpoint
    from pegboard.gateway.stdio import serve_stdio
    from pegboard.log import configure
    from pegboard.storage import StorageError

    configure(log_level("warning"))
    endpoint = Endpoint({"workspace": folder} if folder else {}, board, private=True)

    async def run() -> None:
        await serve_stdio(
            Board(settings, audit="stdio"), location.path, endpoint, lambda server: command_for("login", server)
        )

    try:
        _run(run())
    except StorageError as exc:
        stop(str(exc), FAILED)
    # The thread that reads our input may still wait for it.
    sys.stderr.flush()
    os._exit(0)


def _show_network(host: str, port: int, board: Board, *, needs_token: bool) -> None:
    """Say where colleagues find the gateway, and what they give their clients."""
    from pegboard.gateway.network_addresses import network_urls

    urls = network_urls(host, port, board.settings.auth.public_url)
    header = ' --header "Authorization: Bearer TOKEN"' if needs_token else ""
    lines = ["", "Other machines reach it at:", *(f"  {url}/mcp" for url in urls)]
    lines += ["For example:", f"  claude mcp add --transport http pegboard {urls[0]}/mcp{header}", _HOSTS]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _listen(host: str, port: int, location: Location) -> socket.socket:
    """The port, before anything else is begun."""
    from pegboard.config import identity
    from pegboard.gateway.listen import PortInUseError, listen_on

    try:
        return listen_on(host, port, identity(location.path))
    except PortInUseError as exc:
        from pegboard.cli.occupant import explain_occupant

        stop(explain_occupant(exc, host, port, location), FAILED)
    except OSError as exc:
        stop(exc.strerror or str(exc), FAILED)


def _run(main: object) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)  # type: ignore[arg-type]
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)  # type: ignore[arg-type]


def _greet(url: str, location: Location, board: Board, authenticator: Authenticator, lines: EventLines | None) -> None:
    """Say where it listens, and what there is."""
    from pegboard.cli.banner import show_banner
    from pegboard.gateway.rest.rows import server_rows

    rows = server_rows(board)
    show_banner(url, location, rows, board.toolsets.counts(), authenticator.describe_admission())
    sys.stdout.flush()
    if lines is not None:
        lines.begin(row["name"] for row in rows if not row["seen"] and row["enabled"] and row["state"] != "invalid")
