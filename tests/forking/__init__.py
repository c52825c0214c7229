"""`pegboard` as a process that begins with everything imported: forked from a warm interpreter, one for each worker.

Most of what a short command or a gateway costs is the import of the protocol's models. A forked process has a pid,
environment, folder, descriptors and signals of its own, and ends as any other; only how the interpreter starts is left
out, so tests of that use `COLD_START`: closed descriptors, locales, ignored signals, what is imported when.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
# The command as people start it.
COLD_START = (sys.executable, "-m", "pegboard")


def warm_start(main: str | Path = "pegboard") -> tuple[str, ...]:
    """The command that stands for `python -m pegboard`, or for another module or script, before its arguments."""
    # A recording of what each test runs is made by processes that start by themselves.
    if "PEGBOARD_COVERED_BY" in os.environ or not hasattr(os, "pidfd_open"):
        return (sys.executable, str(main)) if isinstance(main, Path) else (sys.executable, "-m", main)
    return (sys.executable, "-I", "-S", str(HERE / "launch.py"), str(_fork_server()), str(main))


@cache
def _fork_server() -> Path:
    """The socket of this worker's fork server, which ends with the worker, whatever ends that."""
    address = Path(tempfile.mkdtemp(prefix="pegboard-forks-")) / "socket"
    command = [sys.executable, "-P", str(HERE / "server.py"), str(address)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    if process.stdout.read(1) != b".":
        raise RuntimeError("the fork server does not start")
    process.stdout.close()
    atexit.register(process.communicate)
    return address
