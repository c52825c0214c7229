"""A watchdog for sockets: whoever waits on one for too long is woken by its end.

A server that hangs neither answers nor closes; its own time limits hang with it, and a thread that waits in a driver
cannot be told to stop. When the socket is shut down, the driver finds the connection lost.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

_TICK = 0.25


class Watchdog:
    """Shuts down sockets whose time is over. Its thread runs while there are any."""

    def __init__(self) -> None:
        self._deadlines: dict[int, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._numbers = 0
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, descriptor: int, seconds: float) -> Generator[None]:
        """Shut down this socket, unless what is done meanwhile is done in time."""
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._deadlines[number] = descriptor, time.monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pegboard-watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._deadlines.pop(number, None)

    def end(self) -> None:
        """Everybody's time is over."""
        self._shut_down(float("inf"))

    def _run(self) -> None:
        while True:
            time.sleep(_TICK)
            self._shut_down(time.monotonic())
            with self._lock:
                if not self._deadlines:
                    self._thread = None
                    return

    def _shut_down(self, now: float) -> None:
        # Under the lock: whoever is done, and may close the descriptor, waits for it.
        with self._lock:
            for number, (descriptor, deadline) in list(self._deadlines.items()):
                if deadline <= now:
                    del self._deadlines[number]
                    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as duplicate:
                        duplicate.shutdown(socket.SHUT_RDWR)
