"""Where the config file is, and whether one found by itself may be used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from pegboard.config.file import read_file
from pegboard.config.trust import TrustStore

LOCAL_NAME = "pegboard.json"
# Without an author, who on Windows would be a folder of the same name around it.
_FOLDERS = platformdirs.PlatformDirs("pegboard", appauthor=False)
CHANGED = "changed since it was trusted. Run `pegboard trust` in that folder to see what changed and to allow it"


@dataclass(frozen=True, slots=True)
class Location:
    """The config file to use (it may not exist yet), and what to tell about the choice."""

    path: Path
    exists: bool
    remark: str | None = None
    # It was found by itself: it is used only as long as it says what was trusted.
    needs_trust: bool = False


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder for what Pegboard keeps between runs."""
    chosen = environment.get("PEGBOARD_STATE_DIR")
    return Path(chosen) if chosen else _FOLDERS.user_state_path


def user_config(environment: Mapping[str, str] = os.environ) -> Path:
    """The config file in the user's own config folder."""
    chosen = environment.get("PEGBOARD_CONFIG_DIR")
    return (Path(chosen) if chosen else _FOLDERS.user_config_path) / "config.json"


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
        if (problem := _distrust(local, trust_store(environment))) is None:
            return Location(local, exists=True, needs_trust=True)
        remark = f"{local} is not used: {problem}"
    path = user_config(environment)
    return Location(path, path.exists(), remark)


def trust_store(environment: Mapping[str, str] = os.environ) -> TrustStore:
    """What was trusted by this user."""
    return TrustStore(state_folder(environment) / "trusted")


def identity(path: Path) -> str:
    """A short name for a config file, the same for every process that uses it."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        # The home of a user nobody knows: a file that is not there.
        return path.absolute()


def _distrust(local: Path, store: TrustStore) -> str | None:
    """Why a config file that was found by itself is not used, or `None`."""
    try:
        if store.holds(local, read_file(local, is_found=True)):
            return None
    except OSError as exc:
        return str(exc.strerror or exc)
    if store.text(local) is None:
        return "it could run commands. Run `pegboard trust` in that folder to allow it."
    return f"it {CHANGED}."
