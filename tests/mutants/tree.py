"""A copy of the project with an interpreter of its own, so that a mutant never stands in the working tree."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mutants"
_TIMES = itertools.count(1_000_000_000)


class Tree:
    """One copy; what is written into it is taken back by `restore`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self._changed: dict[Path, str] = {}
        self._process: subprocess.Popen[str] | None = None
        for name in _files():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
        (folder / "tests/node/node_modules").symlink_to(ROOT / "tests/node/node_modules")
        self._make_interpreter()

    def write(self, name: str, text: str) -> None:
        """Change a file, and make sure that no bytecode of another version is taken for it."""
        path = self.root / name
        self._changed.setdefault(path, path.read_text("utf-8"))
        path.write_text(text, "utf-8")
        # Bytecode is matched by size and whole seconds: two mutants of one second could be taken for each other.
        moment = next(_TIMES)
        os.utime(path, (moment, moment))

    def restore(self) -> None:
        for path, text in list(self._changed.items()):
            self.write(str(path.relative_to(self.root)), text)
        self._changed.clear()

    def pytest(self, *args: str, limit: float, env: Mapping[str, str] | None = None) -> tuple[int | None, str]:
        """The exit code (none if it took too long) and the output of a run of tests in this copy."""
        # One of the plugins takes as long to load as all else.
        spared = ["-p", "no:cacheprovider", "-p", "no:schemathesis"]
        command = [str(self.python), "-m", "pytest", "--no-header", *spared, *args]
        # A path of ours would come before the copy's own.
        ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = {**ours, "COLUMNS": "200", **(env or {})}
        self._process = subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = self._process.communicate(timeout=limit)
            return self._process.returncode, output
        except subprocess.TimeoutExpired:
            self.stop()
            self._process.communicate()
            return None, ""
        finally:
            self._process = None

    def stop(self) -> None:
        """End a run that is under way, with everything it started."""
        if (process := self._process) is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    @property
    def python(self) -> Path:
        return self.root / ".venv/bin/python"

    def _make_interpreter(self) -> None:
        """A virtual environment that borrows everything from ours, except that `pegboard` is this copy."""
        ours, site = Path(sys.prefix), Path(sysconfig.get_path("purelib"))
        venv = self.root / ".venv"
        own_site = venv / site.relative_to(ours)
        own_site.mkdir(parents=True)
        shutil.copyfile(ours / "pyvenv.cfg", venv / "pyvenv.cfg")
        (venv / "bin").mkdir()
        for program in (ours / "bin").iterdir():
            if program.name != "pegboard":
                (venv / "bin" / program.name).symlink_to(program)
        # Messages name it, where it is there.
        own_program = venv / "bin/pegboard"
        own_program.write_text((ours / "bin/pegboard").read_text("utf-8").replace(str(ours), str(venv)), "utf-8")
        own_program.chmod(0o755)
        # The order counts, and a .pth file of the folder that is named here is not read: ours stays out.
        (own_site / "copy.pth").write_text(f"{self.root / 'src'}\n{site}\n", "utf-8")
        (own_site / "record.pth").write_text(
            "import os; 'PEGBOARD_COVERED_BY' in os.environ and __import__('record')\n"
        )
        (own_site / "record.py").write_text(_RECORD.format(config=str(self.root / "coverage.toml")), "utf-8")


_RECORD = """\
import os
os.environ["COVERAGE_PROCESS_START"] = {config!r}
import coverage
coverage.process_startup()
"""


def _files() -> list[str]:
    """Everything that git knows or would take up."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]
