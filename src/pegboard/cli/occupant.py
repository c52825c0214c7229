"""A port that `serve` cannot have: who has it, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.cli.program import command_for, command_line, find_program

if TYPE_CHECKING:
    from pegboard.config import Location
    from pegboard.gateway.listen import PortInUseError


def explain_occupant(problem: PortInUseError, host: str, port: int, location: Location) -> str:
    """The problem, and commands that help."""
    from pegboard.gateway.listen import find_free_port

    found = _config_there(problem, location)
    lines = [f"{problem.strerror}."]
    if problem.is_same:
        lines = [f"{problem.strerror}, with this config. Clients can use it as it is."]
    elif problem.other is not None:
        lines = [f"{problem.strerror}, with {'another config' if found is None else found}."]
    if found is not None:
        other = command_line([*find_program().words, "status", "--config", str(found)])
        lines.append(f"  To see it:    {command_for('status') if problem.is_same else other}")
    return "\n".join([*lines, f"  Another port: {command_for('serve', '--port', str(find_free_port(host, port)))}"])


def _config_there(problem: PortInUseError, location: Location) -> Path | None:
    """The config file of the gateway that has the port, as far as this user's run files tell."""
    from pegboard.config import identity
    from pegboard.config.runfile import find_all_gateways

    if problem.is_same:
        return location.path
    configs = {Path(gateway.config) for _, gateway in find_all_gateways() if gateway.config}
    return next((path for path in configs if identity(path) == problem.other), None)
