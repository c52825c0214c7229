"""A place: the system, home folder, environment and project folder that the paths of client programs depend on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

System: TypeAlias = Literal["linux", "macos", "windows"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where client programs are looked for. Tests give all three systems; a command uses `this_place`."""

    system: System
    home: Path
    environment: Mapping[str, str]
    project: Path

    def variable(self, name: str) -> str | None:
        """The value of an environment variable; one that is empty or blank counts as not set."""
        return self.environment.get(name, "").strip() or None

    def folder(self, variable: str, usual: Path) -> Path:
        """The folder that a variable names, or the usual one."""
        chosen = self.variable(variable)
        return Path(chosen) if chosen else usual

    def expand(self, template: str) -> Path:
        """The path of a template: `{root}/rest`, where the root is one of `ROOTS`."""
        root, _, rest = template.removeprefix("{").partition("}")
        return ROOTS[root](self).joinpath(*rest.split("/")[1:])

    def paths(self, template: str) -> list[Path]:
        """The paths of a template in order: with a `*` in it those that are there, else the one, there or not."""
        fixed, star, _ = template.partition("*")
        if not star:
            return [self.expand(template)]
        folder = fixed.rpartition("/")[0]
        return sorted(self.expand(folder).glob(template[len(folder) + 1 :]))

    def has_program(self, name: str) -> bool:
        """Whether a program of this name is on the PATH."""
        return shutil.which(name, path=self.environment.get("PATH", "")) is not None


def this_place(project: Path | None = None, environment: Mapping[str, str] = os.environ) -> Place:
    """This machine, for the user who asks, in the given folder or the one that is worked in."""
    return Place(this_system(), Path.home(), environment, (project or Path.cwd()).absolute())


def this_system() -> System:
    """The system that we run on."""
    if sys.platform == "win32":
        return "windows"
    return "macos" if sys.platform == "darwin" else "linux"


def _config(place: Place) -> Path:
    return place.folder("XDG_CONFIG_HOME", place.home / ".config")


def _roaming(place: Place) -> Path:
    return place.folder("APPDATA", place.home / "AppData" / "Roaming")


def _support(place: Place) -> Path:
    return place.home / "Library" / "Application Support"


def _cline(place: Place) -> Path:
    return place.folder("CLINE_DATA_DIR", place.folder("CLINE_DIR", place.home / ".cline") / "data")


_APPLICATIONS: Mapping[System, Callable[[Place], Path]] = {"linux": _config, "macos": _support, "windows": _roaming}

# What a template can begin with.
ROOTS: Mapping[str, Callable[[Place], Path]] = {
    "home": lambda place: place.home,
    "project": lambda place: place.project,
    "config": _config,
    # Where desktop programs made with Electron keep their data.
    "applications": lambda place: _APPLICATIONS[place.system](place),
    "roaming": _roaming,
    "local": lambda place: place.folder("LOCALAPPDATA", place.home / "AppData" / "Local"),
    "claude": lambda place: place.folder("CLAUDE_CONFIG_DIR", place.home),
    "cline": _cline,
    "cline settings": lambda place: place.folder(
        "CLINE_MCP_SETTINGS_PATH", _cline(place) / "settings" / "cline_mcp_settings.json"
    ),
    "codex": lambda place: place.folder("CODEX_HOME", place.home / ".codex"),
    "continue": lambda place: place.folder("CONTINUE_GLOBAL_DIR", place.home / ".continue"),
    "copilot": lambda place: place.folder("COPILOT_HOME", place.home / ".copilot"),
    "gemini": lambda place: place.folder("GEMINI_CLI_HOME", place.home) / ".gemini",
    "zed": lambda place: place.folder("FLATPAK_XDG_CONFIG_HOME", _config(place)) / "zed",
}
