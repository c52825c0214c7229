"""Processes of a measurement: each in a folder and a group of its own, bounded in time, ended by its id."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What the command line of a server over stdio has in it.
SERVER = "echo.py"
_GRACE = 5.0
_READY = 30.0
# Nothing of the user's own setup may reach what is measured, but these.
_KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "PEGBOARD_FAST_PATH")


class NotStarted(Exception):  # noqa: N818  it says what the process is
    """A process that did not come up; the message says why."""


@dataclass(frozen=True)
class Process:
    """A running process."""

    popen: subprocess.Popen[bytes]
    folder: Path

    @property
    def pid(self) -> int:
        """Its id, which is also its group's."""
        return self.popen.pid

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds now, with what its children hold that are not servers behind it."""
        return _resident(self.pid) + sum(_resident(pid) for pid, line in self.children() if SERVER not in line)

    def children(self) -> list[tuple[int, str]]:
        """The processes that it has started, with their command lines."""
        found: list[tuple[int, str]] = []
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            for pid in (task / "children").read_text("ascii").split():
                with contextlib.suppress(OSError):
                    found.append((int(pid), Path(f"/proc/{pid}/cmdline").read_text("utf-8").replace("\0", " ")))
        return found

    @property
    def worked(self) -> float:
        """Seconds of CPU time that it has used; those of its children are their own."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def require_alive(self) -> None:
        """Raise `NotStarted` if it has ended."""
        if self.popen.poll() is not None:
            raise NotStarted(f"ended with {self.popen.returncode}: {self.last_words()}")

    def first_line(self, limit: float = _READY) -> str:
        """The first line that it writes."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            line, end, _ = (self.folder / "stdout").read_text("utf-8", "replace").partition("\n")
            if end:
                return line
            self.require_alive()
            time.sleep(0.005)
        raise NotStarted(f"said nothing for {limit:.0f} s: {self.last_words()}")

    def last_words(self) -> str:
        """The end of what it wrote, in one line."""
        said = "".join((self.folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return (lines[-1] if lines else "no output")[-300:]


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def python(module: str, *args: str) -> list[str]:
    """The command that runs a module with this interpreter."""
    return [sys.executable, "-m", module, *args]


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(folder: Path) -> dict[str, str]:
    """An environment in which everything a program keeps is kept in this folder."""
    kept = {name: value for name in _KEPT if (value := os.environ.get(name)) is not None}
    paths = [str(ROOT), str(ROOT / "src"), *filter(None, [kept.get("PYTHONPATH")])]
    own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    own |= {f"PEGBOARD_{kind}_DIR": str(folder / f"pegboard-{kind.lower()}") for kind in ("STATE", "CONFIG")}
    own |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "PYTHONPATH": os.pathsep.join(paths)}
    return {**kept, **own}


@contextlib.contextmanager
def scratch() -> Generator[Path]:
    """A folder for what a process keeps."""
    folder = Path(tempfile.mkdtemp(prefix="pegboard-bench-"))
    (folder / "run").mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def started(command: Sequence[str], folder: Path, placed: Callable[[int], None] = lambda _: None) -> Generator[Process]:
    """A process that keeps its things in a folder, until the end of the block; it can be placed on a core by its id."""
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        try:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=environment(folder),
                start_new_session=True,
            )
        except OSError as exc:
            raise NotStarted(f"{exc.strerror}: {Path(command[0]).name}") from exc
    try:
        placed(popen.pid)
        yield Process(popen, folder)
    finally:
        end(popen)


def leave_nothing_running() -> None:
    """Have a request to end treated as an interruption, which still ends whatever was started; a background job has
    interruptions ignored."""

    def interrupt(_: int, __: object) -> None:
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def end(popen: subprocess.Popen[bytes]) -> None:
    """End a process and its group, kindly at first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, number)
        try:
            popen.wait(_GRACE)
        except subprocess.TimeoutExpired:
            continue
        break
    # Whatever it left behind in its group goes, too.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
