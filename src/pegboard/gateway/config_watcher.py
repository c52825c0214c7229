"""The config file of a running gateway: taken over when it changes, changed when the gateway is told to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pegboard.board import Board
from pegboard.config import ConfigError, read_settings
from pegboard.config.edit import (
    RemovedEntry,
    add_server,
    add_servers,
    change_server,
    entries_of,
    remove_server,
    restore_server,
    switch_server,
)
from pegboard.config.jsonc import JsoncError
from pegboard.config.locate import trust_store
from pegboard.log import logger
from pegboard.task_set import TaskSet

_LOOK_EVERY = 0.5
T = TypeVar("T")


class ConfigFile:
    """The one truth about which servers there are."""

    def __init__(self, board: Board, path: Path) -> None:
        self._board = board
        self.path = path
        self._needs_trust = board.settings.needs_trust
        # Trust in the file may change without the file.
        self._trust = trust_store().record(path) if self._needs_trust else None
        self._stamp = _stamp(path)
        self._trust_stamp = _stamp(self._trust)
        self._value_stamps = self._stamp_values()
        self._is_missing = False
        # Why the file as it is now was not taken over, if it was not.
        self.problem: str | None = None
        self._lock = asyncio.Lock()
        self._reloads = TaskSet()

    async def watch(self) -> None:
        """Look at the file now and then, until cancelled; a look is a stat of it, and of each file that it needs."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if not self._has_changed():
                continue
            try:
                await self.reload()
            except Exception as exc:
                # Whatever it was, the next change of the file must still be seen.
                logger().error("config.reload.failed", error=f"{type(exc).__name__}: {exc}")

    def _has_changed(self) -> bool:
        return (
            _stamp(self.path) != self._stamp
            or _stamp(self._trust) != self._trust_stamp
            or self._stamp_values() != self._value_stamps
        )

    def _stamp_values(self) -> dict[Path, tuple[int, ...] | None]:
        """Those of the files that values of servers come from."""
        return {file: _stamp(file) for file in self._board.settings.files}

    def reload_soon(self) -> None:
        """Reload without waiting for it."""
        self._reloads.spawn(self.reload())

    async def reload(self) -> bool:
        """Take over what the file says now; a bad file changes nothing and is logged."""
        try:
            await self._take_over()
        except ConfigError as exc:
            self.problem = str(exc)
            logger().error("config.reload.refused", reason=self.problem)
            return False
        return True

    async def _take_over(self) -> None:
        async with self._lock:
            was_there = self._stamp is not None or self._is_missing
            self._stamp = _stamp(self.path)
            self._trust_stamp = _stamp(self._trust)
            self._value_stamps = self._stamp_values()
            self._is_missing = was_there and self._stamp is None
            if self._is_missing:
                # Editors replace files: between the old one and the new one there is none.
                raise ConfigError(f"{self.path} is missing; the config stays as it was")
            path = self.path if self.path.exists() else None
            # A long file takes its time, in which others are served.
            settings = await asyncio.to_thread(read_settings, path, os.environ, needs_trust=self._needs_trust)
            # Those that were known before keep the stamp from before they were read.
            stamps = {file: _stamp(file) for file in settings.files} | self._value_stamps
            await self._board.apply(settings)
            self._value_stamps = {file: stamps[file] for file in settings.files}
            self.problem = None
            logger().info("config.reloaded", serverCount=len(settings.servers))

    def entries(self) -> dict[str, dict[str, Any]]:
        """The entries of servers as they stand in the file."""
        return entries_of(self.path)

    async def add(self, name: str, entry: Mapping[str, Any], *, force: bool) -> bool:
        """Write one server into the file and take it over; whether it is new."""
        return await self._change(
            lambda: add_server(self.path, name, entry, force=force, needs_trust=self._needs_trust)
        )

    async def add_all(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Write several new servers into the file in one step."""
        await self._change(lambda: add_servers(self.path, entries, needs_trust=self._needs_trust))

    async def change(self, name: str, members: Mapping[str, Any], digest: str | None) -> str:
        """Set members of a server's entry, if it is still the one with this digest; gives its digest afterwards."""
        return await self._change(
            lambda: change_server(self.path, name, members, digest=digest, needs_trust=self._needs_trust)
        )

    async def remove(self, name: str) -> RemovedEntry:
        """Take a server out of the file."""
        return await self._change(lambda: remove_server(self.path, name, needs_trust=self._needs_trust))

    async def restore(self, removed: RemovedEntry) -> None:
        """Put a server back that was taken out."""
        await self._change(lambda: restore_server(self.path, removed, needs_trust=self._needs_trust))

    async def _change(self, edit: Callable[[], T]) -> T:
        """Change the file, and take that over at once; a file that cannot be used is not changed."""
        await self._take_over()
        try:
            outcome = await asyncio.to_thread(edit)
        except (JsoncError, ValueError, TypeError, KeyError) as exc:
            raise ConfigError(f"{self.path}: the entry cannot be written as JSON: {exc}") from None
        await self._take_over()
        return outcome

    async def switch(self, name: str, *, enabled: bool) -> None:
        """Enable or disable a server in the file, and take that over at once.

        What somebody else changed in the file is taken over first; a file that cannot be used is not changed.
        """
        known = self._board.servers.get(name)
        if known is not None and known.spec.enabled == enabled:
            return
        await self._take_over()
        is_known = name in self._board.servers
        await asyncio.to_thread(
            switch_server,
            self.path,
            name,
            enabled=enabled,
            known_elsewhere=is_known,
            needs_trust=self._needs_trust,
        )
        await self._take_over()
        server = self._board.servers.get(name)
        if server is not None and server.spec.enabled != enabled:
            raise ConfigError(f"{name.upper()}_MCP_ENABLED in the environment overrides the config file")


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
