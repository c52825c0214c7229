"""The keyring of the user's system, if there is one that works. The package for it is an extra.

A backend counts only if it keeps what it is given: it is tried by a write and a read. Some hang while they wait for a
person to unlock them, so everything has a time limit. Backends that keep plain text are refused.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from pegboard.log import logger

T = TypeVar("T")
SERVICE = "pegboard"
# Seconds for one thing that is asked of a keyring.
LIMIT = 3.0
# Backends that keep nothing, or keep it for everybody to read; those of `keyrings.alt` are files, too.
_REFUSED_MODULES = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt")
_REFUSED_WORDS = ("plaintext", "null", "fail")


def add(text: str) -> str | None:
    """The name of a new entry with this text, if there is a keyring that keeps it."""
    backend = _in_time(_find_backend)
    if backend is None:
        return None
    name = f"key-{secrets.token_hex(8)}"

    def write() -> str | None:
        backend.set_password(SERVICE, name, text)
        return name if backend.get_password(SERVICE, name) == text else None

    return _in_time(write)


def find(name: str, service: str = SERVICE) -> str | None:
    """The text of an entry, if it can be read."""
    backend = _in_time(_find_backend)
    return None if backend is None else _in_time(lambda: cast("str | None", backend.get_password(service, name)))


def delete(name: str) -> None:
    """Take an entry out, if there is one."""
    if (backend := _in_time(_find_backend)) is not None:
        _in_time(lambda: backend.delete_password(SERVICE, name))


def is_installed() -> bool:
    """Whether the package is there; it is not loaded."""
    import importlib.util

    return importlib.util.find_spec("keyring") is not None


def _find_backend() -> Any:
    """The backend that the package has chosen, unless it is one that we refuse."""
    try:
        import keyring
    except ImportError:
        return None
    backend: Any = keyring.get_keyring()
    backends = [backend, *getattr(backend, "backends", ())]
    return None if any(map(_is_refused, backends)) else backend


def _is_refused(backend: object) -> bool:
    kind = type(backend)
    return kind.__module__.startswith(_REFUSED_MODULES) or any(word in kind.__name__.lower() for word in _REFUSED_WORDS)


def _in_time(work: Callable[[], T]) -> T | None:
    """What this gives, or `None` if it fails or takes too long; its thread is then left to itself."""
    found: list[T] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as exc:
            logger().info("secrets.keyring.failed", reason=type(exc).__name__)

    thread = threading.Thread(target=run, name="pegboard-keyring", daemon=True)
    thread.start()
    thread.join(LIMIT)
    return found[0] if found else None
