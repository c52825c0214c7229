"""What an install depends on beside the client: this machine, Pegboard's config, the gateway that runs, its program."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pegboard.client_configs.backups import Backups
from pegboard.client_configs.document import ClientFileError, ServerDocument
from pegboard.client_configs.entries import DEFAULT_PORT, EntryKind, EntryTarget
from pegboard.client_configs.file_change import decode, read_whole
from pegboard.client_configs.place import Place, this_place
from pegboard.client_configs.program import ClientProgram, Scope
from pegboard.config.locate import state_folder, user_config

# A process that a client starts has not the variables of this shell.
_CARRIED = ("PEGBOARD_STATE_DIR", "PEGBOARD_CONFIG_DIR")


class InstallUsageError(ValueError):
    """What was asked for does not fit the client."""


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What a person can choose."""

    scope: Scope = "user"
    # Without one, the client's id.
    board: str | None = None
    # Without one, what fits.
    kind: EntryKind | None = None
    # Without one, the name that Pegboard has there, or `pegboard`.
    name: str | None = None
    # Take out the servers that Pegboard serves now.
    replace: bool = False
    # Overwrite an entry of the same name that is not ours.
    force: bool = False


@dataclass(frozen=True, slots=True)
class InstallContext:
    """This machine, as an install sees it."""

    place: Place
    # Pegboard's own config file.
    config: Path
    backups: Backups
    # The address of a gateway of that config, if one runs.
    gateway: str | None = None
    # The command that starts Pegboard, and what it needs in its environment.
    program: tuple[str, ...] = ("pegboard",)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    is_default_config: bool = True
    # Of each of Pegboard's own servers, why it does not work, or `None`; those that are missing were never asked.
    own_problems: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    # Whether the gateway wants a token of everybody who comes over HTTP, the user of this machine included.
    needs_token: bool = False

    @property
    def ports(self) -> set[int]:
        """The ports at which an address of this machine is ours."""
        running = urlsplit(self.gateway).port if self.gateway else None
        return {DEFAULT_PORT} | ({running} if running else set())

    def command(self, board: str) -> EntryTarget:
        """The command that a client starts."""
        program, *first = self.program
        named = () if self.is_default_config else ("--config", str(self.config))
        return EntryTarget(command=program, args=(*first, "stdio", "--board", board, *named), env=self.env)

    def address(self, board: str) -> EntryTarget:
        """The address that a client goes to."""
        return EntryTarget(f"{self.gateway or f'http://127.0.0.1:{DEFAULT_PORT}'}/mcp/{board}")

    def own_servers(self) -> dict[str, Any]:
        """The entries of Pegboard's own config, as they are written there; none where it cannot be read."""
        try:
            text = decode(self.config, read_whole(self.config))
            documents = [ServerDocument(text, "jsonc", (key,)) for key in ("mcpServers", "servers")]
            return {name: entry for document in documents for name, entry in document.servers().items()}
        except ClientFileError:
            return {}


def this_context(
    config: Path, gateway: str | None, project: Path | None = None, *, needs_token: bool = False
) -> InstallContext:
    """This machine, for whoever asks."""
    return InstallContext(
        this_place(project),
        config,
        Backups(state_folder() / "backups"),
        gateway,
        pegboard_program(),
        {name: value for name in _CARRIED if (value := os.environ.get(name))},
        _is_same(config, user_config()),
        needs_token=needs_token,
    )


def choose_target(client: ClientProgram, context: InstallContext, options: InstallOptions) -> tuple[EntryTarget, str]:
    """Where the entry leads, and the reason in words."""
    board = options.board or client.id
    takes_http = client.style.takes_http
    if options.kind == "http" and not takes_http:
        raise InstallUsageError(f"{client.name} starts a command: it takes no address (--http)")
    if options.kind == "http":
        return context.address(board), f"an address (HTTP), as you asked{_open_point(context)}"
    if options.kind is None and takes_http and context.gateway is not None and not context.needs_token:
        return context.address(board), f"an address (HTTP), because a gateway runs at {context.gateway}"
    return context.command(board), f"a command, {_why_command(client, context, options)}"


def _open_point(context: InstallContext) -> str:
    """What is still to be done where an address was asked for."""
    if context.gateway is None:
        return "; no gateway runs now, so start one: pegboard serve"
    if context.needs_token:
        made = "make a token with pegboard token add NAME, or install with --stdio, which needs none"
        return f"; {_WANTS_ONE}, so the entry needs a header Authorization: {made}"
    return ""


def _why_command(client: ClientProgram, context: InstallContext, options: InstallOptions) -> str:
    if options.kind == "stdio":
        return "as you asked"
    if not client.style.takes_http:
        return f"because {client.name} takes nothing else"
    if context.gateway is not None:
        return f"which needs no token, because {_WANTS_ONE}"
    return "because no gateway runs now: the client starts Pegboard when it needs it"


_WANTS_ONE = "the gateway wants a token of everybody who comes over HTTP (auth.required)"


def pegboard_program() -> tuple[str, ...]:
    """The command of this very Pegboard, by its whole path: programs with windows have not the PATH of a shell."""
    for candidate in _program_candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return (str(candidate),)
    return (sys.executable, "-m", "pegboard")


def is_temporary(command: str) -> bool:
    """Whether a program stands in a cache: `uvx` makes an environment there, and takes it away again."""
    parts = Path(command).parts
    return any(part.startswith(("archive-v", "environments-v")) for part in parts) and "uv" in parts


def _program_candidates() -> Iterator[Path]:
    name = "pegboard.exe" if sys.platform == "win32" else "pegboard"
    own = Path(sys.executable).parent / name
    # A link on the PATH stays right when the environment behind it is replaced.
    found = shutil.which("pegboard")
    if found and own.exists() and _is_same(Path(found), own):
        yield Path(found).absolute()
    yield own.absolute()


def _is_same(left: Path, right: Path) -> bool:
    return os.path.realpath(left) == os.path.realpath(right)
