"""A launch agent of macOS."""

from __future__ import annotations

import plistlib

from pegboard.service.job import Machine, ServiceFile, ServiceJob

LABEL = "pegboard.gateway"


def launchd_agent(machine: Machine, job: ServiceJob) -> ServiceFile:
    """The agent, and how it is started for the user."""
    path = f"{machine.home}/Library/LaunchAgents/{LABEL}.plist"
    domain, target = f"gui/{machine.uid}", f"gui/{machine.uid}/{LABEL}"
    return ServiceFile(
        system="launchd",
        path=path,
        text=plistlib.dumps(_agent(job)).decode(),
        encoding="utf-8",
        # One that is there already has to go first; it is no fault if there is none.
        enable=(("-launchctl", "bootout", target), ("launchctl", "bootstrap", domain, path)),
        disable=(("launchctl", "bootout", target),),
        forget=(),
        status=("launchctl", "print", target),
        logs=f'tail -f "{job.log_file}"',
        log_file=job.log_file,
    )


def _agent(job: ServiceJob) -> dict[str, object]:
    # launchd knows no file of variables: the command reads it.
    run = ("service", "run", "--env-file", job.environment_file, *job.options)
    return {
        "Label": LABEL,
        "ProgramArguments": [*job.program, *run],
        "EnvironmentVariables": dict(job.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "StandardOutPath": job.log_file,
        "StandardErrorPath": job.log_file,
    }
