"""`completion`: shells complete commands, options, and the names of servers and tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pegboard.config import Location

_PROGRAM, VARIABLE = "pegboard", "_PEGBOARD_COMPLETE"
# Like typer's own, but that no blank follows `key=`.
_BASH = """\
_pegboard_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
                   _PEGBOARD_COMPLETE=complete_bash "$1" 2>/dev/null ) )
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
    return 0
}

complete -o default -F _pegboard_completion pegboard
"""
# A shell takes words apart at anything else, or runs it.
_SAFE = re.compile(r"[A-Za-z0-9_.-]+=?")
_STATUSES = ("available", "unavailable")
# What completes a word: with the context that was read so far, and the word. A parameter's method `shell_complete`.
Completer = Callable[[Any, str], list[Any]]


class Shell(StrEnum):
    """A shell that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command(short_help="Print a script that completes commands and names.")(completion)


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a script that makes a shell complete commands, options, and names of servers and tools.

    \b
    bash:        pegboard completion bash > ~/.local/share/bash-completion/completions/pegboard
    zsh:         pegboard completion zsh > ~/.zfunc/_pegboard    (with fpath+=~/.zfunc before compinit in ~/.zshrc)
    fish:        pegboard completion fish > ~/.config/fish/completions/pegboard.fish
    PowerShell:  pegboard completion powershell >> $PROFILE
    Only for now: eval "$(pegboard completion bash)"
    """
    print(completion_script(shell.value))


def completion_script(shell: str) -> str:
    """The script of a shell."""
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

    return (
        _BASH if shell == "bash" else get_completion_script(prog_name=_PROGRAM, complete_var=VARIABLE, shell=shell)
    ).strip()


def complete(app: typer.Typer) -> None:
    """Answer a shell that wants to complete a line; ends the process."""
    from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

    completion_init()
    command = typer.main.get_command(app)
    for path, completer in _COMPLETERS.items():
        _attach(command, path, completer)
    command(prog_name=_PROGRAM)


def _attach(command: Any, path: str, completer: Completer) -> None:
    """Let a parameter of a command be completed."""
    *names, parameter = path.split()
    for name in names:
        command = command.commands.get(name)
        if command is None:
            return
    for known in command.params:
        if known.name == parameter:
            known.shell_complete = completer


def _completer(names: Callable[[Location, Any], Iterable[str]]) -> Completer:
    """Those names that begin as the word does. Nothing that goes wrong may end up on the line that is typed."""

    def complete_word(context: Any, word: str) -> list[Any]:
        from typer.core import CompletionItem  # pyright: ignore[reportPrivateImportUsage]

        from pegboard.cli.common import quiet_logs
        from pegboard.config import locate

        try:
            quiet_logs()
            given: Path | None = context.params.get("config")
            found = names(locate(given), context)
            fitting = sorted(name for name in found if name.startswith(word) and _SAFE.fullmatch(name))
            return list(map(CompletionItem, fitting))
        except Exception:
            return []

    return complete_word


def _servers(location: Location, _context: object) -> Iterable[str]:
    import os

    from pegboard.config import read_settings

    return read_settings(location.path, os.environ, needs_trust=location.needs_trust).servers


def _tools(location: Location, _context: object) -> Iterable[str]:
    """From a running gateway, else from the catalog on disk; no server is asked."""
    from pegboard.cli.http_transport import find_running
    from pegboard.cli.rest_client import RestClient

    if (running := find_running(location.path)) is not None:
        return [row["name"] for row in RestClient(running).get("/api/tools")["data"]["tools"]]
    return _read_catalog(location, lambda board: [tool.name for tool in board.all_tools()])


def _keys(location: Location, context: Any) -> Iterable[str]:
    """The arguments of the tool that is being called, as far as they are not given yet."""
    from pegboard.cli.arguments import argument_names
    from pegboard.cli.http_transport import find_running
    from pegboard.cli.rest_client import RestClient

    tool = str(context.params["tool"])
    given = {word.partition("=")[0] for word in context.params.get("arguments") or ()}
    if (running := find_running(location.path)) is not None:
        schema = RestClient(running).describe(tool)["data"]["inputSchema"]
    else:
        schema = _read_catalog(location, lambda board: board.lookup_tool(tool).definition["inputSchema"])
    return [f"{name}=" for name in argument_names(schema) if name not in given]


def _read_catalog(location: Location, read: Callable[[Any], Any]) -> Any:
    import asyncio
    import os

    from pegboard.board import Board
    from pegboard.config import read_settings

    async def look() -> Any:
        async with Board(read_settings(location.path, os.environ, needs_trust=location.needs_trust)) as board:
            return read(board)

    return asyncio.run(look())


def _statuses(_location: Location, _context: object) -> Iterable[str]:
    return _STATUSES


_SERVER, _TOOL = _completer(_servers), _completer(_tools)
# Commands with the parameter of theirs that is completed. Those of other groups are named here, too: only whoever
# completes needs to know.
_COMPLETERS: dict[str, Completer] = {
    **dict.fromkeys(("remove name", "enable name", "disable name", "refresh names"), _SERVER),
    **dict.fromkeys(("login server", "logout server"), _SERVER),
    **dict.fromkeys(("logs name", "restart name", "tools server"), _SERVER),
    **dict.fromkeys(("describe tool", "call tool"), _TOOL),
    "call arguments": _completer(_keys),
    "tools status": _completer(_statuses),
}
