"""A real browser for tests: whichever Chromium is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# What Debian's packages are unpacked into where nobody may install them.
UNPACKED = Path(sys.prefix) / "browser"
_COMMANDS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "microsoft-edge")


def browser() -> Path | None:
    """A browser that starts, if there is one."""
    return next((path for path in _candidates() if _starts(path)), None)


def _candidates() -> Iterator[Path]:
    yield from (Path(path) for name in _COMMANDS if (path := shutil.which(name)))
    yield UNPACKED / "chromium"
    # What `playwright install` has downloaded.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield Path(playwright.chromium.executable_path)


def _starts(path: Path) -> bool:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0
