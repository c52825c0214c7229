"""How somebody without servers gets some: what this machine can do at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable

_EXAMPLES = {
    "uvx": ("time", "--", "uvx", "mcp-server-time"),
    "npx": ("everything", "--", "npx", "-y", "@modelcontextprotocol/server-everything"),
}
_ADDRESS = ("docs", "https://example.com/mcp")


def example_server(which: Callable[[str], str | None] = shutil.which) -> tuple[str, ...]:
    """What to give to `add` for a first server: a command only if its program is here."""
    return next((words for program, words in _EXAMPLES.items() if which(program)), _ADDRESS)


def has_client_files() -> bool:
    """Whether a client of this machine has a file in which there may be servers; none is read."""
    from pegboard.client_configs.place import this_place
    from pegboard.client_configs.table import CLIENTS

    place = this_place()
    return any(file.path.exists() for client in CLIENTS for file in client.user_files(place))
