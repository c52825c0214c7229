"""Chooses the builder for a system."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.service.job import Machine, ServiceFile, ServiceJob, ServiceProblem
from pegboard.service.launchd import launchd_agent
from pegboard.service.systemd import systemd_unit
from pegboard.service.task_scheduler import task_of_windows

_BUILDERS: dict[str, Callable[[Machine, ServiceJob], ServiceFile]] = {
    "linux": systemd_unit,
    "darwin": launchd_agent,
    "win32": task_of_windows,
}


def build_service(machine: Machine, job: ServiceJob) -> ServiceFile:
    """The service as the machine's system wants it; raises `ServiceProblem`."""
    if machine.system not in _BUILDERS:
        raise ServiceProblem(f"services are not known on {machine.system}: start `pegboard serve` by other means")
    job.check()
    return _BUILDERS[machine.system](machine, job)
