"""Sets up Pegboard in a Python environment of its own, and says what is happening. Nothing but the standard library.

It runs before anything is installed, with whatever Python there is: an old one has to get as far as the message.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn, TextIO

OLDEST = (3, 11)
# Lines of pip, and what they are to a person; the first that fits counts.
STEPS = (
    (re.compile(r"\s*(?:Collecting|Downloading|Using cached) ([A-Za-z0-9][\w.]*(?:-[A-Za-z]\w*)*)"), "downloading"),
    (re.compile(r"\s*(?:Obtaining|Preparing|Getting|Checking|Installing build)\b()"), "preparing"),
    (re.compile(r"\s*Building (?:wheel|editable) for ([\w.-]+)"), "building"),
    (re.compile(r"\s*Installing collected packages: (.*)"), "installing"),
)
MOST_SHOWN = 30
WIDTH = 70


class Steps:
    """Says which step it is: on a terminal on one line that changes, elsewhere on a line for each step."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.is_terminal = out.isatty()
        self.step = ""
        self.packages: set[str] = set()

    def take(self, line: str) -> None:
        """A line of pip."""
        for pattern, step in STEPS:
            match = pattern.match(line)
            if match:
                self.say(step, match.group(1))
                return

    def say(self, step: str, detail: str) -> None:
        """What is happening now."""
        if step == "downloading":
            self.packages.add(detail.lower().replace("_", "-"))
            text = (
                f"downloading packages: {len(self.packages)} ({detail})" if self.is_terminal else "downloading packages"
            )
        elif step == "installing":
            count = len(detail.split(","))
            text = f"installing {count} package{'' if count == 1 else 's'}"
        else:
            text = f"{step} {detail}".strip()
        if self.is_terminal:
            self.out.write(f"\r\033[K  {text[:WIDTH]} ...")
        elif step != self.step:
            self.out.write(f"  {text} ...\n")
        self.step = step
        self.out.flush()

    def end(self) -> None:
        """Leave a clean line."""
        if self.is_terminal:
            self.out.write("\r\033[K")
            self.out.flush()


def make_environment(folder: Path) -> None:
    """A new environment, unless there is one."""
    if python_of(folder).exists():
        return
    print(f"  making a Python environment in {folder} ...", flush=True)
    command = [sys.executable, "-m", "venv", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # noqa: S603
    if done.returncode:
        print(done.stdout.decode("utf-8", "replace"))
        fail("the environment could not be made. On Debian and Ubuntu: install the package python3-venv")


def install(folder: Path, arguments: list[str]) -> None:
    """Run pip and show what it does; where it fails, what it said last."""
    pip = [str(python_of(folder)), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
    steps, said = Steps(sys.stdout), [""]
    process = subprocess.Popen([*pip, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603
    assert process.stdout is not None
    try:
        for raw in process.stdout:
            said.append(raw.decode("utf-8", "replace").rstrip())
            steps.take(said[-1])
    finally:
        steps.end()
        process.stdout.close()
        code = process.wait()
    if code:
        print("\n".join(said[-MOST_SHOWN:]))
        fail("pip could not install Pegboard: what it said last stands above")


def python_of(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def fail(message: str) -> NoReturn:
    """End with a message."""
    sys.stdout.flush()
    sys.exit(f"pegboard: {message}")


def main() -> None:
    """Make the environment, install, and say how long it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of the environment")
    parser.add_argument("pip", nargs=argparse.REMAINDER, help="what pip is to install")
    given = parser.parse_args()
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:2]))
        fail(f"Python 3.11 or newer is needed, and {sys.executable} is {version}: make serve PYTHON=python3.12")
    started = time.monotonic()
    print(f"Setting up Pegboard in {given.folder}. This is done once, and may take a minute.", flush=True)
    try:
        make_environment(given.folder)
        install(given.folder, given.pip)
    except KeyboardInterrupt:
        fail("stopped; run it again to go on")
    print(f"  done in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
