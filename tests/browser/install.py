"""Sees to it that there is a browser for the tests.

    python tests/browser/install.py

Takes the one that is there, else Debian's package (installed by root, unpacked into the environment by anybody else),
else Playwright's own download. Without any, it fails and says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

PACKAGE = "chromium"
HELP = f"""no browser could be installed for the tests. One of these helps:
  sudo apt-get install {PACKAGE}
  {sys.executable} -m playwright install --with-deps chromium"""


def main() -> None:
    """Try one way after the other."""
    from browser import browser

    for install in (_nothing, _install_package, _unpack_package, _download):
        try:
            install()
        except (OSError, subprocess.CalledProcessError) as exc:
            print(f"{install.__name__.strip('_').replace('_', ' ')}: {exc}", file=sys.stderr)
        if (found := browser()) is not None:
            print(f"browser: {found}")
            return
    sys.exit(HELP)


def _nothing() -> None:
    """There may be one."""


def _install_package() -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=quiet)
    subprocess.run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", PACKAGE], check=True, env=quiet)


def _unpack_package() -> None:
    """The package and what it needs and this machine lacks, without any rights: lists and files of our own."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    from browser import UNPACKED

    state = UNPACKED / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    own = [f"Dir::State::lists={state}/lists", f"Dir::Cache={state}/cache", "Debug::NoLocking=1", "APT::Sandbox::User="]
    options = [word for setting in own for word in ("-o", setting)]
    subprocess.run(["apt-get", *options, "update", "-qq"], check=True)
    wanted = ["install", "-qq", "-y", "--no-install-recommends", "--print-uris", PACKAGE]
    listed = subprocess.run(["apt-get", *options, *wanted], check=True, capture_output=True, text=True).stdout
    # A line is 'address' file_name size checksum; a file's name begins with the package's.
    packages = [line.split()[1].partition("_")[0] for line in listed.splitlines() if line.startswith("'")]
    subprocess.run(["apt-get", *options, "download", "-qq", *packages], check=True, cwd=state)
    for file in state.glob("*.deb"):
        subprocess.run(["dpkg", "-x", file, UNPACKED], check=True)
        file.unlink()
    _write_starter(UNPACKED)


def _write_starter(folder: Path) -> None:
    libraries = ":".join(sorted({str(path.parent) for path in (folder / "usr" / "lib").rglob("*.so*")}))
    starter = folder / "chromium"
    program = folder / "usr" / "lib" / "chromium" / "chromium"
    starter.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{program}" "$@"\n')
    starter.chmod(0o755)


def _download() -> None:
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


if __name__ == "__main__":
    main()
