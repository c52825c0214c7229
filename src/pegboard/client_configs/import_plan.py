"""What an import would do: which servers are new, which the config has, which get another name or are skipped."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from pegboard.client_configs.entries import DEFAULT_PORT, is_own_entry
from pegboard.client_configs.identity import ServerIdentity, identify_server
from pegboard.client_configs.reading import ConfigReading, ForeignServer, UnreadableEntry
from pegboard.config.entry_effects import display_command, entry_effects
from pegboard.config.literal_secrets import literal_secrets
from pegboard.config.read import parse_settings
from pegboard.config.settings import ConfigError
from pegboard.config.shown_entry import show_entry
from pegboard.exactjson import as_object
from pegboard.names import fold_server_name, nearest

Outcome = Literal["new", "renamed", "same", "skipped"]
_NOWHERE = Path("pasted")
# What READMEs write where a value of one's own belongs: it stands alone, or behind a word such as `Bearer`.
_PLACEHOLDER = re.compile(
    r"(?:\w+ )?(?:<[^<>]+>|[xX*.…]{3,}|(?i:(?:your|insert|replace)[-_ ][\w -]+|[\w-]*change[-_]?me))"
)


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """One server and what becomes of it."""

    name: str
    server: ForeignServer
    entry: Mapping[str, Any] = field(repr=False)
    outcome: Outcome
    # The name that it had, or the server that is the same.
    other: str = ""
    # Whether a server of the config has the name that it had.
    is_taken: bool = False

    @property
    def is_written(self) -> bool:
        """Whether it goes into the config."""
        return self.outcome in {"new", "renamed"}

    @property
    def outcome_text(self) -> str:
        """What becomes of it, for people."""
        if self.outcome == "same":
            return f"same as {self.other}"
        if self.outcome == "renamed":
            return f"new, as {self.name}"
        return "skipped: Pegboard itself" if self.outcome == "skipped" else "new"

    def to_dict(self) -> dict[str, Any]:
        """For programs and pages, with nothing in it that may be secret and is not run."""
        shown = show_entry(self.entry)
        return {
            "name": self.name,
            "from": self.server.origin.label,
            "file": self.server.origin.place,
            "place": self.server.place,
            "outcome": self.outcome,
            **({"other": self.other} if self.other else {}),
            **({"taken": True} if self.is_taken else {}),
            **({"missing": True} if _lacks_program(self.entry) else {}),
            **({"placeholders": places} if (places := _find_placeholders(self.entry)) else {}),
            "runs": display_command(self.entry, shown),
            "does": entry_effects(self.entry, shown),
            "entry": shown,
            "leftOut": [{"key": each.key, "reason": each.reason} for each in self.server.left_out],
            "notes": list(self.server.notes),
            "secrets": literal_secrets(self.entry),
        }


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """Everything that was found, in its order."""

    servers: tuple[PlannedServer, ...]
    unreadable: tuple[UnreadableEntry, ...]

    @property
    def entries(self) -> dict[str, Mapping[str, Any]]:
        """What goes into the config."""
        return {each.name: each.entry for each in self.servers if each.is_written}

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "servers": [each.to_dict() for each in self.servers],
            "unreadable": [
                {"name": each.name, "from": each.origin.label, "place": each.place, "reason": each.reason}
                for each in self.unreadable
            ],
        }


class _SeenServers:
    """The servers that the config has, or gets: found by what they are."""

    def __init__(self, known: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._same: dict[ServerIdentity, str] = {}
        self._similar: dict[str, str] = {}
        for name, entry in known.items():
            self.add(name, entry)

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """One more."""
        identity = identify_server(entry, self._environment)
        self._same.setdefault(identity, name)
        self._similar.setdefault(identity.target, name)

    def same(self, entry: Mapping[str, Any]) -> str | None:
        """The name of the same server."""
        return self._same.get(identify_server(entry, self._environment))

    def similar(self, entry: Mapping[str, Any]) -> str | None:
        """The name of one that leads to the same place, with other values."""
        return self._similar.get(identify_server(entry, self._environment).target)


class UnknownNameError(ValueError):
    """A name that none of the servers has; the message offers the nearest."""


def plan_import(
    reading: ConfigReading,
    known: Mapping[str, Mapping[str, Any]],
    *,
    ports: Collection[int] = (),
    is_off: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> ImportPlan:
    """What becomes of each server, beside those that the config has."""
    taken = {fold_server_name(name): name for name in known}
    of_config = frozenset(taken)
    seen = _SeenServers(known, environment)
    planned: list[PlannedServer] = []
    unreadable = list(reading.unreadable)
    for server in reading.servers:
        entry = {**server.entry, "enabled": False} if is_off else dict(server.entry)
        if problem := entry_problem(server.name, entry):
            unreadable.append(UnreadableEntry(server.name, server.place, problem, server.origin))
            continue
        row = _place(server, entry, taken, seen, ports)
        if row.outcome == "renamed" and fold_server_name(server.name) in of_config:
            row = replace(row, is_taken=True)
        planned.append(row)
        if row.is_written:
            taken[fold_server_name(row.name)] = row.name
            seen.add(row.name, entry)
    return ImportPlan(tuple(planned), tuple(unreadable))


def choose(reading: ConfigReading, names: Sequence[str]) -> ConfigReading:
    """The servers of these names alone; raises `UnknownNameError` for one that none has."""
    there = {fold_server_name(each.name) for each in (*reading.servers, *reading.unreadable) if each.name}
    for name in names:
        if fold_server_name(name) not in there:
            close = nearest(fold_server_name(name), there, limit=1)
            hint = f": did you mean {close[0]}?" if close else ""
            raise UnknownNameError(f"none of the servers found is called {name[:80]!r}{hint}")
    wanted = {fold_server_name(name) for name in names}
    return ConfigReading(
        tuple(each for each in reading.servers if fold_server_name(each.name) in wanted),
        tuple(each for each in reading.unreadable if fold_server_name(each.name) in wanted),
    )


def choose_exactly(reading: ConfigReading, wanted: Collection[tuple[str, str]]) -> ConfigReading:
    """The servers of these files and names alone; raises `UnknownNameError` for one that is not there."""
    there = {(each.origin.place, each.name) for each in reading.servers}
    for file, name in wanted:
        if (file, name) not in there:
            raise UnknownNameError(f"{file[:200]} has no server {name[:80]!r}")
    return ConfigReading(tuple(each for each in reading.servers if (each.origin.place, each.name) in wanted))


def _lacks_program(entry: Mapping[str, Any]) -> bool:
    """Whether its command is none that there is here, as far as that can be told."""
    command, env = entry.get("command"), as_object(entry.get("env")) or {}
    if not isinstance(command, str) or "${" in command or command.startswith("~"):
        return False
    if not Path(command).is_absolute() and ("/" in command or os.sep in command):
        return False
    path = env.get("PATH")
    return shutil.which(command, path=path if isinstance(path, str) and "${" not in path else None) is None


def _find_placeholders(entry: Mapping[str, Any]) -> list[str]:
    """Where a value stands for one that somebody has to put there."""
    groups = ((key, as_object(entry.get(key)) or {}) for key in ("env", "headers"))
    places = [f"{key} {name}" for key, values in groups for name, value in values.items() if _is_placeholder(value)]
    args = entry.get("args")
    return places + (["args"] if isinstance(args, list) and any(map(_is_placeholder, cast("list[Any]", args))) else [])


def _is_placeholder(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= 200
        and _PLACEHOLDER.fullmatch(value.rpartition("=")[2].strip()) is not None
    )


def entry_problem(name: str, entry: Mapping[str, Any]) -> str | None:
    """Why the config could not be read with this entry, or `None`."""
    try:
        settings = parse_settings(json.dumps({"mcpServers": {name: entry}}), _NOWHERE, {}, reads_files=False)
    except ConfigError as exc:
        return str(exc).partition(": ")[2]
    spec = settings.servers[fold_server_name(name)]
    return (spec.problem or "").partition(": ")[2] if spec.malformed else None


def _place(
    server: ForeignServer,
    entry: Mapping[str, Any],
    taken: Mapping[str, str],
    seen: _SeenServers,
    ports: Collection[int],
) -> PlannedServer:
    row = PlannedServer(server.name, server, entry, "new")
    if is_own_entry(entry, {DEFAULT_PORT, *ports}):
        return replace(row, outcome="skipped")
    if (other := seen.same(entry)) is not None:
        return replace(row, outcome="same", other=other)
    if (other := seen.similar(entry)) is not None:
        note = f"the same address or command as {other}, with other values: it is added beside it"
        row = replace(row, server=replace(server, notes=(*server.notes, note)))
    name = _free_name(server.name, taken)
    return row if name == server.name else replace(row, name=name, outcome="renamed", other=server.name)


def _free_name(name: str, taken: Collection[str]) -> str:
    number = 1
    free = name
    while fold_server_name(free) in taken:
        number += 1
        free = f"{name}_{number}"
    return free
