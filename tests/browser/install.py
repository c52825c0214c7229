"""Sees to it that there is a browser for the tests.

    python tests/browser/install.py

Takes the one that is there, else Debian's package (installed by root, unpacked into the environment by anybody else),
else Playwright's own download. Without any, it fails and says what to do.
"""

from __future__ import annotations

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
    from browser import UNPACKED, browser
    from debian import install_package, try_ways, unpack_package

    ways = (
        lambda: install_package(PACKAGE),
        lambda: unpack_package(PACKAGE, UNPACKED, "usr/lib/chromium/chromium"),
        _download,
    )
    found = try_ways(ways, browser)
    if found is None:
        sys.exit(HELP)
    print(f"browser: {found}")


def _download() -> None:
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


if __name__ == "__main__":
    main()
