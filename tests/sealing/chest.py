"""A keyring for processes of their own: a backend as the package loads them, with a folder of texts."""

from __future__ import annotations

# `CHEST_MODE` is how it misbehaves: `hangs` waits as a locked keyring does.
BACKEND = """
import os, time
from pathlib import Path
from keyring.backend import KeyringBackend

class Chest(KeyringBackend):
    priority = 9
    def _file(self, service, name):
        return Path(os.environ["CHEST"], f"{service} {name}")
    def get_password(self, service, name):
        if os.environ.get("CHEST_MODE") == "hangs":
            time.sleep(600)
        file = self._file(service, name)
        return file.read_text() if file.exists() and os.environ.get("CHEST_MODE") != "forgets" else None
    def set_password(self, service, name, text):
        if os.environ.get("CHEST_MODE") == "fails":
            raise RuntimeError(text)
        self._file(service, name).write_text(text)
    def delete_password(self, service, name):
        self._file(service, name).unlink()

class PlaintextChest(Chest):
    pass
"""
