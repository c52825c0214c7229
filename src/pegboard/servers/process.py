"""A server's process and all that it starts: begun in a group of its own, and gone when it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import cast

from pegboard.result import ToolFailure, invalid, unavailable
from pegboard.servers.backlog import Backlog
from pegboard.servers.batch_file import without_cmd
from pegboard.servers.environment import base_environment
from pegboard.servers.limit import Limit
from pegboard.servers.orphan_reaper import MARKER, OrphanReaper, find_marked_processes

GRACE = 2.0


class Process(asyncio.SubprocessProtocol):
    """A running command with its pipes; output arrives by callbacks, not through tasks."""

    def __init__(
        self,
        reaper: OrphanReaper,
        *,
        out: Callable[[bytes], Iterator[object]],
        err: Callable[[bytes], Iterator[object]],
        ended: Callable[[str], None],
        started: Callable[[int], None] = lambda _pid: None,
    ) -> None:
        self._keeper = reaper
        # What to do about its output, by the number of the pipe, and what is still to be done.
        self._readers = {1: out, 2: err}
        self._backlogs = {fd: Backlog(partial(self._read, fd, False), partial(self._read, fd, True)) for fd in (1, 2)}
        self._on_start = started
        self._on_end = ended
        self._marker = uuid.uuid4().hex
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stopping = False
        self.pid = 0

    async def start(self, command: str, args: tuple[str, ...], env: Mapping[str, str], cwd: str | None) -> None:
        """Begin the command; a clear failure if there is no such command or folder."""
        environment = {**base_environment(), **env, MARKER: self._marker}
        program = find_command(command, environment.get("PATH"), cwd)
        if sys.platform == "win32":
            program, args = without_cmd(program, args, environment.get("PATH"))
        # To start a process holds the loop for many milliseconds: everybody else gets a turn between two of them.
        async with self._keeper.turn:
            self._keeper.start()
            try:
                await self._loop.subprocess_exec(
                    lambda: self,
                    program,
                    *args,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment,
                    cwd=cwd,
                    start_new_session=sys.platform != "win32",
                )
            except OSError as exc:
                raise unavailable(f"command {command!r} could not be started: {exc.strerror or exc}") from None
            await asyncio.sleep(0)
        self._keeper.watch(self.pid, self._marker)

    async def write(self, data: bytes) -> None:
        """Write to the command's input; waits while it does not read."""
        pipe = self._input()
        if pipe is None or pipe.is_closing():
            raise unavailable("the process has ended")
        pipe.write(data)
        await self._writable.wait()

    @property
    def is_writable(self) -> bool:
        """Whether its input takes something without waiting."""
        pipe = self._input()
        return pipe is not None and not pipe.is_closing() and self._writable.is_set()

    @property
    def is_drained(self) -> bool:
        """Whether all is dealt with that was read from its output."""
        return self._backlogs[1].is_empty

    def write_now(self, data: bytes) -> None:
        """Write without waiting; for a word that need not arrive."""
        pipe = self._input()
        if pipe is not None and not pipe.is_closing() and self._writable.is_set():
            pipe.write(data)

    async def stop(self) -> None:
        """End the command and everything it started: close its input, then ask, then kill."""
        self._stopping = True
        if self._transport is None:
            return
        if pipe := self._input():
            pipe.close()
        for number in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            if number is not None:
                self._signal(number)
            if await self._has_ended():
                break
        for backlog in self._backlogs.values():
            backlog.clear()
        self._sweep()
        self._transport.close()
        self._keeper.forget(self.pid)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The command runs; it may have ended before whoever started it hears of it."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        # Before anything that it writes.
        self._on_start(self.pid)

    def pause_writing(self) -> None:
        """The pipe is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The pipe has room again."""
        self._writable.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Output of the command."""
        self._backlogs[fd].add(self._readers[fd](data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """One of the pipes closed; without its output a server is of no use."""
        self._writable.set()
        if fd == 1 and not self._stopping:
            # The exit code, if there is one, makes the better message, and is a moment away.
            self._loop.call_later(0.2, self._end, "it closed its output")

    def process_exited(self) -> None:
        """The command ended; what it started may still run."""
        code = self._transport.get_returncode() if self._transport else None
        if not self._exited.done():
            self._exited.set_result(-1 if code is None else code)
        # Output written just before the end may still be in the pipe.
        self._loop.call_later(0.05, self._end, _exit_reason(code))

    def _end(self, reason: str) -> None:
        if self._stopping:
            return
        self._stopping = True
        # What it wrote before its end is heard before it.
        self._backlogs[2].then(lambda: self._backlogs[1].then(lambda: self._on_end(reason)))

    def _read(self, fd: int, on: bool) -> None:
        """Read on from a pipe, or no further."""
        pipe = self._transport.get_pipe_transport(fd) if self._transport is not None else None
        if pipe is not None and not pipe.is_closing():
            reader = cast("asyncio.ReadTransport", pipe)
            reader.resume_reading() if on else reader.pause_reading()

    async def _has_ended(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with Limit(GRACE):
                await asyncio.shield(self._exited)
                while self._group_alive():
                    await asyncio.sleep(0.02)
                return True
        return False

    def _group_alive(self) -> bool:
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _signal(self, number: int) -> None:
        if sys.platform == "win32":
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(self.pid)], capture_output=True, check=False)  # noqa: S603, S607
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _sweep(self) -> None:
        """A grandchild that made a session of its own left the group, but still carries our mark."""
        for pid in find_marked_processes([self._marker]):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def _input(self) -> asyncio.WriteTransport | None:
        if self._transport is None:
            return None
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))


def find_command(command: str, path: str | None, cwd: str | None) -> str:
    """The program that a command's name stands for."""
    if cwd is not None and not Path(cwd).is_dir():
        raise invalid(f"the folder {cwd} does not exist")
    found = shutil.which(command, path=path)
    if found is None and cwd is not None and (os.sep in command or "/" in command):
        found = shutil.which(str(Path(cwd) / command))
    if found is None:
        raise command_missing(command)
    return found


def command_missing(command: str) -> ToolFailure:
    """The failure of a command that is not there."""
    if os.sep in command or "/" in command:
        return unavailable(f"there is no program at {command}", retryable=False)
    return unavailable(f"command {command!r} was not found on PATH: install it, or give its full path", retryable=False)


def _exit_reason(code: int | None) -> str:
    if code is None:
        return "the process ended"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process exited with code {code}"
