"""Trust in config files that are found by themselves: in what was looked at, not in the place where it was."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, cast


class TrustStore:
    """Remembers what trusted files said, one file for each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, config: Path) -> Path:
        """Where the trust in a config file is written down."""
        return self._folder / f"{hashlib.sha256(os.fsencode(config.resolve())).hexdigest()[:16]}.json"

    def holds(self, config: Path, content: bytes) -> bool:
        """Whether this very content of the file is trusted."""
        return self._read(config).get("sha256") == _digest(content)

    def text(self, config: Path) -> str | None:
        """What the file said when it was trusted last, if it ever was."""
        text = self._read(config).get("text")
        return text if isinstance(text, str) else None

    def add(self, config: Path, content: bytes) -> None:
        """Trust this content of the file, in place of what it said before."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = self.record(config)
        draft = record.with_suffix(f".{os.getpid()}")
        data = {"path": str(config.resolve()), "sha256": _digest(content), "text": content.decode("utf-8", "replace")}
        # The text may hold secrets, as the file itself may.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(data, file)
        draft.replace(record)

    def _read(self, config: Path) -> dict[str, Any]:
        try:
            data = json.loads(self.record(config).read_text("utf-8"))
        except (OSError, ValueError, RecursionError, RuntimeError):
            return {}
        return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
