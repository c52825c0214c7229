"""Installs the npm packages of a folder's package-lock.json, with the Node from the Python environment.

    python tests/node/install.py [FOLDER] [--lock]

The folder is this file's own unless another is named.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def main() -> None:
    """Install what the lock file says; with `--lock`, resolve package.json anew and write the lock file."""
    from node import node

    binary = node()
    npm = binary.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = f"{binary.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    relock = "--lock" in sys.argv
    folder = next((Path(argument) for argument in sys.argv[1:] if not argument.startswith("--")), HERE)
    if relock:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        (folder / "package-lock.json").unlink(missing_ok=True)
    # Not `npm ci`: it stumbles over other platforms' optional packages in a lock without addresses.
    command = [str(binary), str(npm), "install", "--no-progress", *([] if relock else ["--no-save"])]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PATH": path})
    if relock:
        _tidy_lock(folder)


def _tidy_lock(folder: Path) -> None:
    """Leave addresses out of the lock file: names, versions and checksums say everything."""
    file = folder / "package-lock.json"
    lock = json.loads(file.read_text("utf-8"))
    for entry in lock["packages"].values():
        entry.pop("funding", None)
        entry.pop("resolved", None)
        if "://" in str(entry.get("license")):
            del entry["license"]
    file.write_text(json.dumps(lock, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
