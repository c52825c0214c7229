"""Real MCP client programs in a home of their own, without an account and without internet."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from node import NODE_MODULES, node

HERE = Path(__file__).parent
MORE_MODULES = HERE / "node_modules"
# Where each program is, and what installs it.
_SHORT = ("claude", "mcporter")
_LIMIT = 180
# Some print colours whatever they are told.
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Home:
    """A home folder with a folder to work in; nothing outside of it is read or written."""

    path: Path

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)

    @property
    def work(self) -> Path:
        """The folder to work in."""
        return self.path / "work"

    def environment(self, **more: str) -> dict[str, str]:
        """What programs see: this home, our Node, the client programs, and nobody's account."""
        names = {"LANG", "PYTHONPATH", "TMPDIR"}
        kept = {key: value for key, value in os.environ.items() if key in names or key.startswith("PEGBOARD_")}
        programs = [node().parent, NODE_MODULES / ".bin", MORE_MODULES / ".bin"]
        path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        folders = {"CONFIG": ".config", "STATE": ".local/state", "DATA": ".local/share", "CACHE": ".cache"}
        places = {f"XDG_{kind}_HOME": str(self.path / folder) for kind, folder in folders.items()}
        quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "NO_COLOR": "1"}
        return {**kept, **places, **quiet, "HOME": str(self.path), "PATH": path, **more}

    def pegboard(self, *arguments: str) -> str:
        """What `pegboard` prints; it has to succeed."""
        return run([sys.executable, "-m", "pegboard", *arguments], self.environment(), self.work, check=True)

    def run(self, program: str, *arguments: str, **more: str) -> str:
        """What a client program prints, both streams."""
        return run([str(find_program(program)), *arguments], self.environment(**more), self.work)


def find_program(name: str) -> Path:
    """A client program, or the command that installs it."""
    found = (NODE_MODULES if name in _SHORT else MORE_MODULES) / ".bin" / name
    if not found.exists():
        raise RuntimeError(f"{name} is missing: `make {'test' if name in _SHORT else 'test-clients'}` installs it")
    return found


def run(command: list[str], environment: dict[str, str], folder: Path, *, check: bool = False) -> str:
    """What a command prints; it is given nothing to read."""
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_LIMIT,
        check=False,
    )
    said = _STYLE.sub("", done.stdout.decode("utf-8", "replace"))
    assert not check or done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{said}"
    return said
