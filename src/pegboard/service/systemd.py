"""A user unit of systemd."""

from __future__ import annotations

import re

from pegboard.service.job import Machine, ServiceFile, ServiceJob

NAME = "pegboard.service"
_UNIT = """\
# Written by `pegboard service install`; `pegboard service remove` takes it away.
[Unit]
Description=Pegboard, one endpoint for many MCP servers

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
{environment}EnvironmentFile=-{file}
Restart=on-failure
RestartSec=5
# Exit codes of a wrong call and of a config that cannot be read: to try again would not help.
RestartPreventExitStatus=2 3
TimeoutStopSec=20

[Install]
WantedBy=default.target
"""
_LINGER = """\
It starts when you log in and ends when you log out.
To let it run from boot on: sudo loginctl enable-linger {user}"""
# What no reader of a unit takes for something else.
_PLAIN = re.compile(r"[\w@:./=+,-]+")


def systemd_unit(machine: Machine, job: ServiceJob) -> ServiceFile:
    """The unit, and how it is enabled for the user."""
    folder = machine.environment.get("XDG_CONFIG_HOME") or f"{machine.home}/.config"
    control = ("systemctl", "--user")
    return ServiceFile(
        system="systemd",
        path=f"{folder}/systemd/user/{NAME}",
        text=_unit(job),
        encoding="utf-8",
        enable=((*control, "daemon-reload"), (*control, "enable", NAME), (*control, "restart", NAME)),
        disable=((*control, "disable", "--now", NAME),),
        forget=((*control, "daemon-reload"), (*control, "reset-failed", NAME)),
        status=(*control, "is-active", NAME),
        logs="journalctl --user --unit pegboard --follow",
        notes=(_LINGER.format(user=machine.user),),
    )


def _unit(job: ServiceJob) -> str:
    lines = (f'Environment="{_escape(f"{name}={value}")}"\n' for name, value in sorted(job.environment.items()))
    # The path of a program may not have these, whatever is done about them; an argument may.
    start = ("/usr/bin/env",) if set(job.program[0]) & set("\"'\\$") else ()
    command = " ".join(_word(word) for word in (*start, *job.program, "serve", *job.options))
    return _UNIT.format(command=command, environment="".join(lines), file=job.environment_file.replace("%", "%%"))


def _word(text: str) -> str:
    """A word of a command; `$` would be a variable, which is nothing that systemd fills in anywhere else."""
    return text if _PLAIN.fullmatch(text) else f'"{_escape(text).replace("$", "$$")}"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
