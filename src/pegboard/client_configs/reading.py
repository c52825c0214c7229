"""What was read out of a client's config: servers in Pegboard's shape, what was left out, and what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.client_configs.program import ClientProgram

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TextOrigin:
    """Where a text comes from."""

    # What people call it: "Claude Code", a file's path, "the input".
    label: str
    # What stands before a line number.
    place: str
    # The client whose file it is, if it is one's.
    client: ClientProgram | None = None
    # The folder that relative paths and `${workspaceFolder}` mean; a user's own file has none.
    folder: Path | None = None
    # How the file is called, which may tell its format.
    suffix: str = ""
    # Files have data; what somebody pastes can be a command line or a link, too.
    is_file: bool = False

    def at(self, line: int) -> str:
        """A line of it."""
        return f"line {line}" if self == PASTED else f"{self.place}:{line}"


# What somebody typed or pasted has no name.
PASTED = TextOrigin("what you pasted", "what you pasted")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A key of an entry that Pegboard does not take over, and why."""

    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key} ({self.reason})"


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """One server of a client's config, in Pegboard's own shape. Its entry may hold secrets."""

    name: str
    entry: Mapping[str, Any] = field(repr=False)
    origin: TextOrigin
    place: str
    left_out: tuple[LeftOut, ...] = ()
    # What a person should know or do: a variable to set, a value to check.
    notes: tuple[str, ...] = ()
    # The one project that it is for, in a file for all of them (Claude Code's "local" scope).
    project: Path | None = None


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """Something that is no server, or none that Pegboard can use: where it stands, and why."""

    name: str
    place: str
    reason: str
    origin: TextOrigin
    # It is right as it is, and nothing for Pegboard: built into its client, for instance.
    is_skipped: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {f'{self.name}: ' if self.name else ''}{self.reason}"


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """All that one text has."""

    servers: tuple[ForeignServer, ...] = ()
    unreadable: tuple[UnreadableEntry, ...] = ()

    def __add__(self, other: ConfigReading) -> ConfigReading:
        return ConfigReading((*self.servers, *other.servers), (*self.unreadable, *other.unreadable))


class UnreadableText(Exception):  # noqa: N818  it says what the text is
    """A text that is in none of the formats: the line, if it is known, and the reason."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
