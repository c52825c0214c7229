"""Brings the page's third-party modules into the project, as their authors published them.

    python scripts/vendor.py            # what vendor.json names, again
    python scripts/vendor.py --update   # and write down the digests of what came

A browser resolves no bare names, and an import map would be an inline script, which the page's content security policy
refuses: so `from "preact"` becomes `from "./preact.js"`. Nothing else is changed. Needs npm.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "src/pegboard/gateway/page"
VENDOR = PAGE / "modules/vendor"
MANIFEST = PAGE / "vendor.json"
_BARE = re.compile(r'(\bfrom\s*)"([a-z0-9-]+)"')
_SOURCE_MAP = re.compile(r"\n//# sourceMappingURL=.*\n?$")


def main() -> None:
    """Fetch every package, and write its module and its licence."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--update", action="store_true", help="take over the digests of what comes")
    update = options.parse_args().update
    packages: list[dict[str, Any]] = json.loads(MANIFEST.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for package in packages:
            write(package, Path(folder), update=update)
    if update:
        MANIFEST.write_text(json.dumps(packages, indent=2) + "\n", "utf-8")


def write(package: dict[str, Any], folder: Path, *, update: bool) -> None:
    """Fetch one package into a folder, and take over what the page uses of it."""
    spec = f"{package['name']}@{package['version']}"
    command = ["npm", "pack", "--json", spec]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S603
    packed: dict[str, Any] = json.loads(said)[0]
    if update:
        package["integrity"] = packed["integrity"]
    elif packed["integrity"] != package["integrity"]:
        sys.exit(f"{spec} is not the package that was vendored: its digest is another")
    with tarfile.open(folder / packed["filename"]) as archive:
        for target, source in package["files"].items():
            text = rewrite(read(archive, source))
            (VENDOR / target).write_text(text, "utf-8")
            digest = hashlib.sha256(text.encode()).hexdigest()
            if update:
                package.setdefault("sha256", {})[target] = digest
            elif digest != package["sha256"][target]:
                sys.exit(f"{target} of {spec} is not what was vendored: its digest is another")
        (PAGE / f"licenses/{package['name']}.txt").write_text(read(archive, "LICENSE"), "utf-8")


def read(archive: tarfile.TarFile, name: str) -> str:
    """The text of a file of a package."""
    file = archive.extractfile(f"package/{name}")
    assert file is not None
    return file.read().decode()


def rewrite(text: str) -> str:
    """The same module for a browser: neighbours by their address, and no source map that is not there."""
    return _SOURCE_MAP.sub("\n", _BARE.sub(r'\1"./\2.js"', text))


if __name__ == "__main__":
    main()
