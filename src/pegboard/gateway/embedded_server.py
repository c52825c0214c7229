"""uvicorn inside of a program that has its own signals."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import uvicorn


class EmbeddedServer(uvicorn.Server):
    """uvicorn without its own signal handling, which would end us by the signal instead of by a clean exit."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave them alone."""
        yield
