"""`service install|remove|status`: the gateway in the background, started with the user's session."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import (
    FAILED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    find_config,
    json_text,
    load_settings,
    stop,
)
from pegboard.cli.show import say

if TYPE_CHECKING:
    from pegboard.config import Location
    from pegboard.service.job import Machine, ServiceFile

_PORT = 7420
_LIMIT = 60.0
_START = 20.0
_MAX_LOG = 5 * 1024 * 1024

_Port = Annotated[int, typer.Option(help="The port that it listens on.", min=1, max=65535)]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Run the gateway in the background.", no_args_is_help=True, rich_markup_mode=None)
    group.command()(install)
    group.command()(remove)
    group.command()(status)
    group.command(hidden=True)(run)
    app.add_typer(group, name="service")


def install(
    port: _Port = _PORT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Print the file, and do nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that says something else.")] = False,
    config: ConfigOption = None,
) -> None:
    """Let the gateway run in the background from now on.

    A user unit of systemd, a launch agent of macOS, or a task of the Windows Task Scheduler.

    Example: pegboard service install --dry-run
    """
    location = find_config(config)
    if location.needs_trust:
        stop(
            f"a service uses its config without asking: say that you want it with --config {location.path}", WRONG_CALL
        )
    names = _variables(location)
    service = _service(location, port)
    if only_print:
        print(service.text, end="")
        return
    _show_service(service)
    if not dry_run:
        _write(service, force=force)
    _show_advice(service, names)
    if dry_run:
        say("\nNothing was done (--dry-run).")
        return
    _enable(service, location)


def remove() -> None:
    """End the service and take its file away.

    Example: pegboard service remove
    """
    service = _service(None, _PORT)
    path = Path(service.path)
    if not path.exists():
        say(f"There is no service: {path} does not exist.")
        return
    reasons = _run_all(service.disable)
    try:
        path.unlink()
    except OSError as exc:
        stop(f"{path}: {exc.strerror or exc}", FAILED)
    _run_all(service.forget)
    _remove_logs(service)
    for reason in reasons:
        say(f"note: {reason}", error=True)
    say(f"The service was removed, and {path} with it.")


def _remove_logs(service: ServiceFile) -> None:
    """What the service wrote goes with it."""
    if service.log_file is None:
        return
    for name in (service.log_file, f"{service.log_file}.1"):
        with contextlib.suppress(OSError):
            Path(name).unlink(missing_ok=True)


def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show whether the service is installed and runs.

    Example: pegboard service status
    """
    from pegboard.cli.http_transport import find_running

    location = find_config(config)
    service = _service(location, _PORT)
    is_installed = Path(service.path).exists()
    active = _is_active(service) if is_installed else False
    running = find_running(location.path)
    data: dict[str, Any] = {
        "system": service.system,
        "file": service.path,
        "installed": is_installed,
        "active": active,
        "gateway": None if running is None else running.url,
        "logs": service.logs,
    }
    if as_json:
        print(json_text({"success": True, "data": data}))
        return
    state = "unknown: " + service.status[0] + " is not here" if active is None else "runs" if active else "does not run"
    say(f"{service.system}: {'installed, ' + state if is_installed else 'not installed'} ({service.path})")
    say(f"gateway: {data['gateway'] or 'none runs with this config'}")
    if is_installed:
        say(f"logs: {service.logs}")


def run(
    env_file: Annotated[Path | None, typer.Option("--env-file", help="A file of NAME=VALUE lines.")] = None,
    log_file: Annotated[Path | None, typer.Option("--log-file", help="Where output goes.")] = None,
    port: _Port = _PORT,
    config: ConfigOption = None,
) -> None:
    """Run the gateway as a service does, on systems that know no file of variables and keep no output.

    Example: pegboard service run --env-file environment --log-file pegboard.log
    """
    from pegboard.service.environment_file import read_environment_file
    from pegboard.service.job import ServiceProblem

    if log_file is not None:
        _redirect(log_file)
    try:
        variables = read_environment_file(env_file) if env_file is not None else {}
    except ServiceProblem as exc:
        stop(str(exc), FAILED)
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    from pegboard.cli.app import app

    app(["serve", *([] if config is None else ["--config", str(config)]), "--port", str(port)])


def _variables(location: Location) -> list[str]:
    """The variables of the environment that the config names."""
    from pegboard.config.file import read_file
    from pegboard.config.variables import names_in

    load_settings(location)
    if not location.exists:
        return []
    with contextlib.suppress(OSError):
        return sorted(set(names_in(read_file(location.path).decode("utf-8", "replace"))))
    return []


def has_service() -> bool:
    """Whether the gateway is installed as a service of this user."""
    from pegboard.service.job import ServiceProblem

    try:
        return Path(_build(None, _PORT).path).exists()
    except ServiceProblem:
        return False


def _service(location: Location | None, port: int) -> ServiceFile:
    from pegboard.service.job import ServiceProblem

    try:
        return _build(location, port)
    except ServiceProblem as exc:
        stop(str(exc), FAILED)


def _build(location: Location | None, port: int) -> ServiceFile:
    from pegboard.config import state_folder
    from pegboard.config.locate import user_config
    from pegboard.service.builders import build_service
    from pegboard.service.job import CARRIED, ServiceJob, find_program

    log = Path.home() / "Library" / "Logs" / "pegboard" if sys.platform == "darwin" else state_folder()
    job = ServiceJob(
        program=find_program(sys.argv[0], sys.executable),
        config=str(location.path) if location is not None and location.exists else None,
        port=port,
        environment={name: os.environ[name] for name in CARRIED if os.environ.get(name)},
        environment_file=str(user_config().absolute().with_name("environment")),
        log_file=str(log.absolute() / "pegboard.log"),
    )
    return build_service(_machine(), job)


def _machine() -> Machine:
    import getpass

    from pegboard.service.job import Machine

    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A user without a name, as some containers have.
        user = str(_uid())
    return Machine(system=sys.platform, home=str(Path.home()), user=user, uid=_uid(), environment=os.environ)


def _uid() -> int:
    return 0 if sys.platform == "win32" else os.getuid()


def _show_service(service: ServiceFile) -> None:
    say(f"{service.path}\n")
    for line in service.text.splitlines():
        say(f"  {line}")
    say("")


def _show_advice(service: ServiceFile, names: list[str]) -> None:
    from pegboard.config.locate import user_config
    from pegboard.service.job import find_program, is_temporary

    if names:
        file = user_config().absolute().with_name("environment")
        say(f"Your config reads {', '.join(names)} from the environment. A service does not have that of your shell.")
        say(f"Write NAME=VALUE lines into {file}, and let nobody else read it (chmod 600).")
    program = find_program(sys.argv[0], sys.executable)[0]
    if is_temporary(program):
        say(f"warning: {program} stands in a cache, which may be emptied. Install Pegboard first (docs/install.md).")
    for note in service.notes:
        say(note)
    say(f"Logs: {service.logs}")


def _write(service: ServiceFile, *, force: bool) -> None:
    path, content = Path(service.path), service.text.encode(service.encoding)
    try:
        if path.exists() and path.read_bytes() != content and not force:
            stop(f"{path} is there and says something else. Replace it with --force", FAILED)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        draft.write_bytes(content)
        draft.replace(path)
        if service.log_file is not None:
            Path(service.log_file).parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        stop(f"{path}: {exc.strerror or exc}", FAILED)
    say(f"{path} was written.")


def _enable(service: ServiceFile, location: Location) -> None:
    commands = [" ".join(command).removeprefix("-") for command in service.enable]
    if shutil.which(service.enable[-1][0]) is None:
        say(f"\n{service.enable[-1][0]} is not here, so that nothing was started. Where it is: {' && '.join(commands)}")
        return
    if reasons := _run_all(service.enable):
        stop(f"the file was written, but the service did not start: {reasons[0]}. Try: {' && '.join(commands)}", FAILED)
    from pegboard.cli.http_transport import find_running

    until = time.monotonic() + _START
    while (running := find_running(location.path)) is None and time.monotonic() < until:
        time.sleep(0.2)
    if running is None:
        stop(f"the service was started, but no gateway answers yet. See: {service.logs}", FAILED)
    say(f"\nThe gateway runs: {running.url}/mcp")


def _run_all(commands: tuple[tuple[str, ...], ...]) -> list[str]:
    """Run commands one after the other up to one that fails; those with a `-` before them may fail."""
    for command in commands:
        reason = _run((command[0].removeprefix("-"), *command[1:]))
        if reason is not None and not command[0].startswith("-"):
            return [f"{' '.join(command)}: {reason}"]
    return []


def _run(command: tuple[str, ...]) -> str | None:
    """Why a command failed, or `None`."""
    program = shutil.which(command[0])
    if program is None:
        return f"{command[0]} is not here"
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, timeout=_LIMIT, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    said = (done.stderr or done.stdout).decode(errors="replace").strip()
    return None if done.returncode == 0 else said or f"it ended with code {done.returncode}"


def _is_active(service: ServiceFile) -> bool | None:
    """Whether the system says that it runs; `None` where it cannot be asked."""
    return None if shutil.which(service.status[0]) is None else _run(service.status) is None


def _redirect(log_file: Path) -> None:
    """Write what is said into a file; one that is large is put aside first."""
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        if log_file.exists() and log_file.stat().st_size > _MAX_LOG:
            log_file.replace(log_file.with_name(f"{log_file.name}.1"))
        handle = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as exc:
        stop(f"{log_file}: {exc.strerror or exc}", FAILED)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
