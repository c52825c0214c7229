"""Where the config file is, and whether one found by itself may be used."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

LOCAL_NAME = "pegboard.json"


@dataclass(frozen=True, slots=True)
class Location:
    """The config file to use (it may not exist yet), and what to tell about the choice."""

    path: Path
    exists: bool
    remark: str | None = None


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder for what Pegboard keeps between runs."""
    chosen = environment.get("PEGBOARD_STATE_DIR")
    return Path(chosen) if chosen else platformdirs.user_state_path("pegboard")


def user_config(environment: Mapping[str, str] = os.environ) -> Path:
    """The config file in the user's own config folder."""
    chosen = environment.get("PEGBOARD_CONFIG_DIR")
    return (Path(chosen) if chosen else platformdirs.user_config_path("pegboard")) / "config.json"


def locate(given: Path | None, environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> Location:
    """The config file by the contract's order: option, environment, this folder (if trusted), the user's."""
    if given is not None:
        path = _absolute(given)
        return Location(path, path.exists())
    if chosen := environment.get("PEGBOARD_CONFIG"):
        path = _absolute(Path(chosen))
        return Location(path, path.exists())
    local = (folder or Path.cwd()) / LOCAL_NAME
    remark = None
    if local.is_file():
        if is_trusted(local.parent, environment):
            return Location(local, exists=True)
        remark = f"{local} is not used: it could run commands. Run `pegboard trust` in that folder to allow it."
    path = user_config(environment)
    return Location(path, path.exists(), remark)


def trust(folder: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Remember that the config file of this folder may be used."""
    file = _trust_file(environment)
    file.parent.mkdir(parents=True, exist_ok=True)
    trusted = sorted({*_trusted(environment), str(folder.resolve())})
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(trusted, indent=2) + "\n", "utf-8")
    draft.replace(file)


def is_trusted(folder: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether `pegboard trust` was run in this folder."""
    return str(folder.resolve()) in _trusted(environment)


def identity(path: Path) -> str:
    """A short name for a config file, the same for every process that uses it."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        # The home of a user nobody knows: a file that is not there.
        return path.absolute()


def _trust_file(environment: Mapping[str, str]) -> Path:
    return state_folder(environment) / "trusted.json"


def _trusted(environment: Mapping[str, str]) -> list[str]:
    try:
        return [str(item) for item in json.loads(_trust_file(environment).read_text("utf-8"))]
    except (OSError, ValueError, TypeError):
        return []
