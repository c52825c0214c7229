"""A process that has imported all of Pegboard and the SDK, and forks for each request over a socket: see `launch.py`.

It ends when its standard input does, and what it forked ends with it.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import typer

import pegboard
from pegboard.cli.app import app

# What commands and gateways import when they are under way, and a server that is started for every session.
ALSO = (
    *("uvicorn.loops.auto", "uvicorn.lifespan.on", "rich.console", "rich.table", "psycopg", "psycopg_pool"),
    "conformance.fixture_server",
)


@dataclass
class Request:
    """What a process begins with."""

    main: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    descriptors: array.array[int]


@dataclass
class Forked:
    """A process, and who waits for it."""

    pid: int
    handle: int
    launcher: socket.socket


def warm_up() -> None:
    """Import everything, and let the garbage collector leave it alone, so that a fork shares its pages."""
    for module in pkgutil.walk_packages(pegboard.__path__, "pegboard."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    sys.path.insert(0, str(Path(__file__).parents[1]))
    for name in ALSO:
        importlib.import_module(name)
    del sys.path[0]
    keep_commands()
    gc.collect()
    gc.freeze()


def keep_commands() -> None:
    """Build the command line once: it is the same for each process, and most of what a short command costs."""
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)


class ForkServer:
    """Forks on request, and tells each launcher how its process ended."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen(64)
        self._forked: list[Forked] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(0, selectors.EVENT_READ)

    def next_request(self) -> Request | None:
        """Serve until there is a request, which is returned in the forked process, or nothing more to come."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    self._end_all()
                    return None
                if isinstance(key.data, Forked):
                    self._look_after(key.data, is_over=key.fd == key.data.handle)
                elif (request := self._accept()) is not None:
                    return request

    def _accept(self) -> Request | None:
        launcher, _ = self._listener.accept()
        request = read_request(launcher)
        if request is None:
            launcher.close()
            return None
        pid = os.fork()
        if pid == 0:
            return request
        for descriptor in request.descriptors:
            os.close(descriptor)
        forked = Forked(pid, os.pidfd_open(pid), launcher)
        self._forked.append(forked)
        self._selector.register(forked.handle, selectors.EVENT_READ, forked)
        self._selector.register(launcher, selectors.EVENT_READ, forked)
        tell(launcher, pid)
        return None

    def _look_after(self, forked: Forked, *, is_over: bool) -> None:
        if forked not in self._forked:
            return  # both ended at the same moment
        if not is_over:
            # A launcher says nothing more: it was killed, and so is what it stands for.
            signal.pidfd_send_signal(forked.handle, signal.SIGKILL)
        self._forked.remove(forked)
        self._selector.unregister(forked.handle)
        self._selector.unregister(forked.launcher)
        tell(forked.launcher, os.waitpid(forked.pid, 0)[1])
        forked.launcher.close()
        os.close(forked.handle)

    def _end_all(self) -> None:
        # Here, since nobody else is sure to be left.
        shutil.rmtree(Path(self._listener.getsockname()).parent, ignore_errors=True)
        for forked in self._forked:
            signal.pidfd_send_signal(forked.handle, signal.SIGTERM)


def read_request(launcher: socket.socket) -> Request | None:
    """What a launcher asks for; nothing where it is gone already."""
    length, descriptors, _, _ = socket.recv_fds(launcher, 4, 3)
    if not length:
        return None
    with launcher.makefile("rb") as stream:
        text = stream.read(int.from_bytes(length, "big"))
    main, arguments, folder, environment = marshal.loads(text)
    return Request(main, arguments, folder, environment, array.array("i", descriptors))


def tell(launcher: socket.socket, number: int) -> None:
    """Send a number to a launcher that may be gone."""
    with contextlib.suppress(OSError):
        launcher.sendall(number.to_bytes(4, "big"))


def become(request: Request) -> None:
    """Take over all that a process of its own would have from its start."""
    for number, descriptor in enumerate(request.descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 1024)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    # Whoever puts a stream of their own into `sys` counts on the first one to be kept.
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = sys.__stdout__ = open_output(1, "strict", request.environment)
    sys.stderr = sys.__stderr__ = open_output(2, "backslashreplace", request.environment)
    sys.argv = [request.main, *request.arguments]


def open_output(descriptor: int, errors: str, environment: Mapping[str, str]) -> io.TextIOWrapper:
    """A stream as the interpreter makes it."""
    raw = io.FileIO(descriptor, "w", closefd=False)
    unbuffered = bool(environment.get("PYTHONUNBUFFERED"))
    encoding, _, given_errors = environment.get("PYTHONIOENCODING", "").partition(":")
    return io.TextIOWrapper(
        cast("io.BufferedWriter", raw) if unbuffered else io.BufferedWriter(raw),
        encoding=encoding or "utf-8",
        errors=given_errors or errors,
        line_buffering=descriptor == 2 or raw.isatty(),
        write_through=unbuffered,
    )


def main() -> None:
    """Serve; and in each forked process, be what was asked for."""
    warm_up()
    server = ForkServer(sys.argv[1])
    os.write(1, b".")
    request = server.next_request()
    if request is not None:
        become(request)
        try:
            run_main(request.main)
        except SystemExit as exc:
            end(exc)


def run_main(main: str) -> None:
    """Run a script or a module as the interpreter does."""
    if main.endswith(".py"):
        sys.path.insert(0, str(Path(main).parent))
        runpy.run_path(main, run_name="__main__")
    else:
        runpy.run_module(main, run_name="__main__", alter_sys=True)


def end(asked: SystemExit) -> None:
    """End as the interpreter does, save for taking apart each module, which would copy all of the shared pages."""
    if not isinstance(asked.code, int | None):
        raise asked
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        raise asked from None
    os._exit((asked.code or 0) & 0xFF)


if __name__ == "__main__":
    main()
