"""Debian's packages for the tests: installed by root, unpacked into a folder by anybody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path


def try_ways(ways: Iterable[Callable[[], None]], find: Callable[[], Path | None]) -> Path | None:
    """What is found, at once or after one way of installing it after the other; each that fails says why."""
    found = find()
    for way in ways:
        if found is not None:
            break
        try:
            way()
        except (OSError, subprocess.CalledProcessError) as exc:
            print(exc, file=sys.stderr)
        found = find()
    return found


def install_package(package: str) -> None:
    """Install it, if we are root and this is such a system."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=quiet)
    subprocess.run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", package], check=True, env=quiet)


def unpack_package(package: str, folder: Path, program: str) -> None:
    """Unpack it with what it needs and this machine lacks, without any rights; a script in the folder starts it."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    state = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    own = [f"Dir::State::lists={state}/lists", f"Dir::Cache={state}/cache", "Debug::NoLocking=1", "APT::Sandbox::User="]
    options = [word for setting in own for word in ("-o", setting)]
    subprocess.run(["apt-get", *options, "update", "-qq"], check=True)
    wanted = ["install", "-qq", "-y", "--no-install-recommends", "--print-uris", package]
    listed = subprocess.run(["apt-get", *options, *wanted], check=True, capture_output=True, text=True).stdout
    # A line is 'address' file_name size checksum; a file's name begins with the package's.
    packages = [line.split()[1].partition("_")[0] for line in listed.splitlines() if line.startswith("'")]
    subprocess.run(["apt-get", *options, "download", "-qq", *(packages or [package])], check=True, cwd=state)
    for file in state.glob("*.deb"):
        subprocess.run(["dpkg", "-x", file, folder], check=True)
        file.unlink()
    _write_starter(folder, folder / program)


def _write_starter(folder: Path, program: Path) -> None:
    libraries = ":".join(sorted({str(path.parent) for path in (folder / "usr" / "lib").rglob("*.so*")}))
    starter = folder / program.name
    starter.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{program}" "$@"\n')
    starter.chmod(0o755)
