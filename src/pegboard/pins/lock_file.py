"""The lock file: approved definitions beside the config, for servers whose definitions are to be exactly these."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pegboard import exactjson
from pegboard.config.settings import LOCK_NAME, Settings
from pegboard.pins.canonical import FORMAT, digest_of_definition
from pegboard.pins.pin_set import KINDS

# A lock file with all that a thousand servers say is smaller.
_MOST_BYTES = 256 * 1024 * 1024


class LockedItem(NamedTuple):
    """One definition."""

    definition: Any
    digest: str


@dataclass(frozen=True, slots=True)
class LockFile:
    """What it says: definitions with their digests by server, kind and name; and why it cannot be used, if it
    cannot."""

    servers: Mapping[str, Mapping[str, Mapping[str, LockedItem]]] = field(
        default_factory=dict[str, "dict[str, dict[str, LockedItem]]"], compare=False
    )
    # Server, kind and name of each entry whose digest is not its own.
    edited: frozenset[tuple[str, str, str]] = frozenset()
    problem: str = ""
    # Of the whole file.
    digest: str = ""

    def items(self, server: str, kind: str) -> Mapping[str, LockedItem]:
        """Those of one server and one kind, by name."""
        return self.servers.get(server, {}).get(kind, {})


def lock_path(config: Path) -> Path:
    """Where the lock file of a config is."""
    return config.with_name(LOCK_NAME)


def lock_of(settings: Settings) -> Path | None:
    """The lock file that settings need; `None`: no server is locked."""
    return lock_path(settings.path) if settings.path is not None and settings.has_locks else None


def read_lock(path: Path) -> LockFile:
    """The lock file at a place. One that is missing or cannot be read approves nothing, and says why."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return LockFile(problem=f"{path} is larger than {_MOST_BYTES // 1024 // 1024} MB")
        content = path.read_bytes()
        document = exactjson.parse_object(content)
    except FileNotFoundError:
        return LockFile(problem=f"there is no {path}")
    except OSError as exc:
        return LockFile(problem=f"{path} cannot be read: {exc.strerror or exc}")
    except exactjson.NotJson as exc:
        return LockFile(problem=f"{path} cannot be read: {exc}")
    if document.get("format") != FORMAT:
        return LockFile(problem=f"{path} has another format than {FORMAT}: `pegboard lock` writes it anew")
    edited: set[tuple[str, str, str]] = set()
    servers = _read_servers(exactjson.as_object(document.get("servers")) or {}, edited)
    return LockFile(servers, frozenset(edited), digest=hashlib.sha256(content).hexdigest())


def lock_document(servers: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """What a lock file says of these definitions, by server, kind and name."""
    return {
        "format": FORMAT,
        "servers": {
            server: {kind: [_pack(kind, item) for _, item in sorted(items.items())] for kind, items in kinds.items()}
            for server, kinds in sorted(servers.items())
        },
    }


class LockWriteError(Exception):
    """The lock file cannot be written."""


def write_lock(config: Path, document: dict[str, Any], *, is_partial: bool) -> dict[str, Any]:
    """Put a document in place of the lock file beside a config, in one step. Where it is about some servers alone,
    those of others stay; so does what hides text now (`hiding`). What that changes, in words."""
    path = lock_path(config)
    before = read_lock(path)
    document, hidden = _keep_hidden(document, before)
    if is_partial:
        if before.problem and path.exists():
            raise LockWriteError(f"{before.problem}: run `pegboard lock` without names to write all of it anew")
        known = {
            server: {kind: {name: item.definition for name, item in items.items()} for kind, items in kinds.items()}
            for server, kinds in before.servers.items()
        }
        kept = lock_document(known)["servers"]
        document = {**document, "servers": dict(sorted({**kept, **document["servers"]}.items()))}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(exactjson.dump(document, indent=2) + b"\n")
        temporary.replace(path)
    except exactjson.NotJson:
        temporary.unlink(missing_ok=True)
        raise LockWriteError(f"{path} cannot be written: {_find_unwritable(document)}") from None
    except OSError as exc:
        temporary.unlink(missing_ok=True)
        raise LockWriteError(f"{path} cannot be written: {exc.strerror or exc}") from None
    after = read_lock(path)
    count = sum(len(items) for kinds in after.servers.values() for items in kinds.values())
    # Of a file that was not there all is new.
    changes = [] if before.problem else list(_compare(before, after))
    return {
        "file": str(path),
        "servers": len(after.servers),
        "definitions": count,
        "changes": changes,
        "hidden": hidden,
    }


def _keep_hidden(document: Mapping[str, Any], before: LockFile) -> tuple[dict[str, Any], list[str]]:
    """A document with what the file has of definitions that hide text now, for these are in use; and what that is."""
    servers, said = {**document["servers"]}, list[str]()
    for server, kinds in document.get("hiding", {}).items():
        for kind, names in kinds.items():
            known = before.items(server, kind)
            kept = {name: known[name].definition for name in names if name in known}
            packed = [*servers[server].get(kind, ()), *(_pack(kind, item) for item in kept.values())]
            packed.sort(key=lambda item: item["definition"][KINDS[kind]])
            servers[server] = {**servers[server], kind: packed}
            for name in names:
                done = "kept as it was in the file" if name in kept else "it is not in the file"
                said.append(f"{server}: {kind} {name} hides text now: {done}")
    return {"format": document["format"], "servers": servers}, said


def _find_unwritable(document: Mapping[str, Any]) -> str:
    """Which definition is nested too deeply for a file."""
    for server, kinds in document["servers"].items():
        for kind, items in kinds.items():
            for item in items:
                try:
                    exactjson.dump({"servers": {server: {kind: [item]}}}, indent=2)
                except exactjson.NotJson as exc:
                    name = str(item["definition"].get(KINDS[kind]))[:80]
                    return f"{kind} {name} of server {server}: {exc}. Deny it in the config to lock the others"
    return "it is nested too deeply"


def _compare(before: LockFile, after: LockFile) -> Iterator[str]:
    for server in sorted(before.servers.keys() | after.servers.keys()):
        for kind in KINDS:
            old, new = before.items(server, kind), after.items(server, kind)
            for name in sorted(old.keys() | new.keys()):
                if name not in new:
                    yield f"{server}: {kind} {name} is gone"
                elif name not in old:
                    yield f"{server}: {kind} {name} is new"
                elif old[name].digest != new[name].digest:
                    yield f"{server}: {kind} {name} changed"


def _pack(kind: str, definition: Any) -> dict[str, Any]:
    return {"digest": digest_of_definition(definition, has_hints=kind == "tool"), "definition": definition}


def _read_servers(
    given: Mapping[str, Any], edited: set[tuple[str, str, str]]
) -> dict[str, dict[str, dict[str, LockedItem]]]:
    return {
        server: {kind: _read_kind(server, kind, kinds.get(kind), edited) for kind in KINDS}
        for server, said in given.items()
        if (kinds := exactjson.as_object(said)) is not None
    }


def _read_kind(server: str, kind: str, given: Any, edited: set[tuple[str, str, str]]) -> dict[str, LockedItem]:
    """Definitions by name. One whose digest is not its own was edited by hand, and is left out, and named."""
    found: dict[str, LockedItem] = {}
    for packed in map(exactjson.as_object, exactjson.as_list(given) or ()):
        definition = exactjson.as_object((packed or {}).get("definition"))
        name = (definition or {}).get(KINDS[kind])
        if packed is None or not isinstance(name, str):
            continue
        digest = digest_of_definition(definition, has_hints=kind == "tool")
        if packed.get("digest") == digest:
            found[name] = LockedItem(definition, digest)
        else:
            edited.add((server, kind, name))
    return found
