"""Places of the three systems, for tests that run on one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

from pegboard.client_configs.backups import Backups
from pegboard.client_configs.context import InstallContext
from pegboard.client_configs.place import Place, System

SYSTEMS: tuple[System, ...] = get_args(System)
HOME, PROJECT = Path("/home/me"), Path("/src/app")


def place_of(system: System, home: Path = HOME, /, **variables: str) -> Place:
    """A place with this home and nothing in the environment but what is given."""
    return Place(system, home, variables, PROJECT)


def context_of(
    folder: Path, system: System = "linux", gateway: str | None = "http://127.0.0.1:7420", /, **variables: str
) -> InstallContext:
    """A machine whose home, state and config are in a folder of the test, with a gateway that runs."""
    place = Place(system, folder / "home", variables, folder / "project")
    backups = Backups(folder / "state" / "backups")
    return InstallContext(place, folder / "pegboard.json", backups, gateway, ("/opt/bin/pegboard",))


def with_working_servers(context: InstallContext) -> InstallContext:
    """A machine on which every server of Pegboard's config works."""
    return replace(context, own_problems=dict.fromkeys(context.own_servers()))
