"""What a service is to run, and on what machine: all that the builders of the three systems need to know."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What the gateway needs to find commands and its own folders as it does now; none of it is secret.
CARRIED = ("PATH", "PEGBOARD_STATE_DIR", "PEGBOARD_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


class ServiceProblem(Exception):  # noqa: N818  it names what is wrong
    """Why there can be no service; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceJob:
    """The program with its arguments, and what it finds around it. Paths are absolute."""

    program: tuple[str, ...]
    config: str | None
    port: int
    # Variables of the environment at run time, none of them secret; secrets stand in a file of the user's.
    environment: Mapping[str, str]
    environment_file: str
    log_file: str

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `serve`."""
        config = () if self.config is None else ("--config", self.config)
        return (*config, "--port", str(self.port))

    def check(self) -> None:
        """Refuse what no service file can hold."""
        for text in (*self.program, self.config or "", *self.environment.values(), self.environment_file):
            if any(character < " " for character in text):
                raise ServiceProblem(f"{text!r} has a character that a service file cannot hold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where the service is to run: the system as Python calls it, and whose session it is."""

    system: str
    home: str
    user: str
    uid: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFile:
    """A service as its system wants it: the file, and the commands around it."""

    system: str
    path: str
    text: str
    encoding: str
    enable: tuple[tuple[str, ...], ...]
    disable: tuple[tuple[str, ...], ...]
    # After the file is gone.
    forget: tuple[tuple[str, ...], ...]
    status: tuple[str, ...]
    logs: str
    # Where the service itself writes what it says; systemd keeps that in its journal.
    log_file: str | None = None
    notes: tuple[str, ...] = ()


def find_program(argv: str, executable: str, system: str = sys.platform) -> tuple[str, ...]:
    """The command of this program by its absolute path, as it was installed."""
    script = Path(argv)
    if system == "win32":
        # Without a console: a window would stand there as long as the session lasts.
        quiet = Path(executable).with_name("pythonw.exe")
        return (str(quiet if quiet.exists() else executable), "-m", "pegboard")
    if script.name == "pegboard" and script.is_file():
        return (str(script.absolute()),)
    return (str(Path(executable).absolute()), "-m", "pegboard")


def is_temporary(program: str) -> bool:
    """Whether a program stands in a cache that may be emptied, as that of `uvx`."""
    parts = {part.lower() for part in Path(program.replace("\\", "/")).parts}
    return bool(parts & {"archive-v0", "builds-v0"}) or ("cache" in parts and "uv" in parts)
