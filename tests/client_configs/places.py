"""Places of the three systems, for tests that run on one."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from pegboard.client_configs.place import Place, System

SYSTEMS: tuple[System, ...] = get_args(System)
HOME, PROJECT = Path("/home/me"), Path("/work/app")


def place_of(system: System, home: Path = HOME, /, **variables: str) -> Place:
    """A place with this home and nothing in the environment but what is given."""
    return Place(system, home, variables, PROJECT)
