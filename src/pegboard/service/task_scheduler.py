"""A task of the Windows Task Scheduler."""

from __future__ import annotations

import subprocess
from xml.sax.saxutils import escape

from pegboard.service.job import Machine, ServiceFile, ServiceJob

NAME = "Pegboard"
# In the order that the schema wants.
_TASK = """\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Author>pegboard service install</Author>
    <Description>Pegboard, one endpoint for many MCP servers</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>{user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>3</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{command}</Command>
      <Arguments>{arguments}</Arguments>
      <WorkingDirectory>{folder}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""


def task_of_windows(machine: Machine, job: ServiceJob) -> ServiceFile:
    """The task, and how it is registered for the user."""
    folder = machine.environment.get("LOCALAPPDATA") or f"{machine.home}\\AppData\\Local"
    path = f"{folder}\\pegboard\\pegboard-task.xml"
    return ServiceFile(
        system="Task Scheduler",
        path=path,
        text=_task(machine, job),
        encoding="utf-16",
        enable=(("schtasks", "/Create", "/TN", NAME, "/XML", path, "/F"), ("schtasks", "/Run", "/TN", NAME)),
        disable=(("-schtasks", "/End", "/TN", NAME), ("schtasks", "/Delete", "/TN", NAME, "/F")),
        forget=(),
        status=("schtasks", "/Query", "/TN", NAME),
        logs=f'Get-Content -Wait "{job.log_file}"',
        log_file=job.log_file,
    )


def _task(machine: Machine, job: ServiceJob) -> str:
    # The Task Scheduler keeps no output and knows no file of variables: the command does both.
    run = ("service", "run", "--env-file", job.environment_file, "--log-file", job.log_file, *job.options)
    domain = machine.environment.get("USERDOMAIN")
    program, *words = job.program
    return _TASK.format(
        user=escape(f"{domain}\\{machine.user}" if domain else machine.user),
        command=escape(program),
        arguments=escape(subprocess.list2cmdline([*words, *run])),
        folder=escape(machine.home),
    )
