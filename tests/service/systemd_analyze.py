"""systemd's own reader of units, for the tests.

    python tests/service/systemd_analyze.py

Sees to it that it is there: the one of this machine, else Debian's package (installed by root, unpacked into the
environment by anybody else). Without any, it fails and says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = "systemd"
UNPACKED = Path(sys.prefix) / "systemd"
HELP = f"systemd-analyze is missing: install the package {PACKAGE} (sudo apt-get install {PACKAGE})"


def find_systemd_analyze() -> Path | None:
    """The program, if it is there and starts."""
    found = shutil.which("systemd-analyze")
    for path in (Path(found) if found else None, UNPACKED / "systemd-analyze"):
        if path is not None and _starts(path):
            return path
    return None


def verify_unit(unit: Path) -> str:
    """What systemd says of a unit of a user; it stands beside the units of the system, which has the targets."""
    program = find_systemd_analyze()
    if program is None:
        raise RuntimeError(HELP)
    # The empty place at the end stands for the folders of the system.
    folders = [str(unit.parent), str(UNPACKED / "usr/lib/systemd/user"), str(UNPACKED / "lib/systemd/user"), ""]
    env = {**os.environ, "SYSTEMD_UNIT_PATH": ":".join(folders), "XDG_RUNTIME_DIR": str(unit.parent)}
    command = [str(program), "--user", "verify", str(unit)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env).stderr


def _starts(path: Path) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def main() -> None:
    """Try one way after the other; other systems than Linux have no systemd."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from debian import install_package, try_ways, unpack_package

    if sys.platform != "linux":
        return
    ways = (lambda: install_package(PACKAGE), lambda: unpack_package(PACKAGE, UNPACKED, "usr/bin/systemd-analyze"))
    found = try_ways(ways, find_systemd_analyze)
    if found is None:
        sys.exit(HELP)
    print(f"systemd-analyze: {found}")


if __name__ == "__main__":
    main()
