"""VS Code and the editors made from it: where each keeps its chats, on every system. Nothing is ever written there.

A session is a file in its workspace's folder, `.jsonl` or, before 1.109, `.json`; where both are, the log counts. The
index in `state.vscdb` is a hint and often stale: it only tells a session that has no file from one that never was.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pegboard import exactjson, jsonc
from pegboard.exactjson import as_object
from pegboard.toolsets.chats.dialog import DialogLog, chat_of, exported_chat_of
from pegboard.toolsets.chats.fields import a_list, a_moment, a_name, an_object, parsed
from pegboard.toolsets.chats.folders import path_of
from pegboard.toolsets.chats.log import Shape, pruned
from pegboard.toolsets.chats.reading import LineReading, Reading, Stamp, WholeReading, open_to_read
from pegboard.toolsets.chats.session import Session
from pegboard.toolsets.chats.source import ChatFile, entries, stamp_of

PRODUCTS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Code - OSS")
_SERVERS = {
    ".vscode-server": "Code",
    ".vscode-server-insiders": "Code - Insiders",
    ".vscodium-server": "VSCodium",
    ".cursor-server": "Cursor",
    ".windsurf-server": "Windsurf",
}
_INDEX_KEY = "chat.ChatSessionStore.index"
_MOST_INDEX = 64 << 20
_MOST_SMALL_FILE = 4 << 20


class VSCode:
    """The chats of one user-data folder."""

    def __init__(self, name: str, user_data: Path) -> None:
        self.name = name
        self._user = user_data / "User"
        self._workspaces: dict[str, tuple[str, ...]] = {}
        self._indexes: dict[str, tuple[Stamp, Mapping[str, Any]]] = {}

    def files(self) -> Iterator[ChatFile]:
        """Every session's file, of folders, workspaces and windows that have neither."""
        for workspace in entries(str(self._user / "workspaceStorage")):
            yield from self._in(f"{workspace.path}/chatSessions", workspace.path)
        yield from self._in(str(self._user / "globalStorage" / "emptyWindowChatSessions"), "")

    def _in(self, folder: str, home: str) -> Iterator[ChatFile]:
        found = {entry.name: entry for entry in entries(folder)}
        for name, entry in found.items():
            stem, _, suffix = name.rpartition(".")
            if not stem or suffix not in {"json", "jsonl"} or (suffix == "json" and f"{stem}.jsonl" in found):
                continue
            if (stamp := stamp_of(entry)) is not None:
                yield ChatFile(entry.path, self, stamp, stem, home)

    def reading(self, file: ChatFile) -> Reading:
        """A log grows at its end; a document is written anew."""
        return LineReading(DialogLog()) if file.path.endswith(".jsonl") else WholeReading(chat_of)

    def folders(self, file: ChatFile) -> Sequence[str]:
        """The folder of the workspace, or those of a workspace that has several."""
        if not file.home:
            return ()
        if file.home not in self._workspaces:
            # Its name is a digest of what it says here: that never changes.
            self._workspaces[file.home] = tuple(_folders_of(Path(file.home) / "workspace.json"))
        return self._workspaces[file.home]

    def hint(self, session_id: str) -> Session | None:
        """A session that the editor's own index names, though there is no file of it."""
        workspaces = (entry.path for entry in entries(str(self._user / "workspaceStorage")))
        for folder in (str(self._user / "globalStorage"), *workspaces):
            entry = as_object(self._index(f"{folder}/state.vscdb").get(session_id))
            if entry is not None:
                moment = a_moment(entry.get("lastMessageDate"))
                return Session(
                    session_id, self.name, first_seen=moment, last_seen=moment, title=a_name(entry.get("title"))
                )
        return None

    def _index(self, path: str) -> Mapping[str, Any]:
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            return {}
        stamp = Stamp.of(found)
        known = self._indexes.get(path)
        if known is None or known[0] != stamp:
            known = self._indexes[path] = (stamp, _index_of(path, found))
        return known[1]


class ExportedChats:
    """A folder of chats that somebody exported, or copied there."""

    name = "export"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self) -> Iterator[ChatFile]:
        """Every file that may be one; which session it was, only its content tells."""
        for entry in entries(str(self._folder)):
            if entry.name.endswith((".json", ".jsonl")) and (stamp := stamp_of(entry)) is not None:
                yield ChatFile(entry.path, self, stamp, None)

    def reading(self, file: ChatFile) -> Reading:
        """A document, or the log of a session."""
        return LineReading(DialogLog()) if file.path.endswith(".jsonl") else WholeReading(exported_chat_of)

    def folders(self, file: ChatFile) -> Sequence[str]:
        """Nobody knows."""
        del file
        return ()

    def hint(self, session_id: str) -> Session | None:
        """What has no file is not there."""
        del session_id
        return None


def installed(env: Mapping[str, str], home: Path, platform: str) -> list[VSCode]:
    """Every editor of the family that may have chats on this machine, and those that came in over a remote window."""
    if portable := env.get("VSCODE_PORTABLE"):
        editors = [VSCode("Code", Path(portable) / "user-data")]
    else:
        root = _application_data(env, home, platform)
        editors = [VSCode(product, root / product) for product in PRODUCTS]
    servers = [VSCode(product, home / folder / "data") for folder, product in _SERVERS.items()]
    if agent := env.get("VSCODE_AGENT_FOLDER"):
        servers.append(VSCode("Code", Path(agent) / "data"))
    return [*editors, *servers]


def _application_data(env: Mapping[str, str], home: Path, platform: str) -> Path:
    if own := env.get("VSCODE_APPDATA"):
        return Path(own)
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(env.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config")


def _folders_of(workspace: Path) -> Iterator[str]:
    described = an_object(_small(workspace))
    if folder := a_name(described.get("folder")):
        yield path_of(folder)
    elif several := a_name(described.get("workspace")) or a_name(described.get("configuration")):
        yield from _folders_within(several)


def _folders_within(workspace: str) -> Iterator[str]:
    """The folders of a `.code-workspace` file, if it can be read; else the file itself, which names it as well."""
    path = Path(path_of(workspace))
    folders = [an_object(folder) for folder in a_list(an_object(_small(path)).get("folders"))]
    if not workspace.startswith("file:") or not folders:
        yield str(path)
        return
    for folder in folders:
        if uri := a_name(folder.get("uri")):
            yield path_of(uri)
        elif own := a_name(folder.get("path")):
            # A path with NUL in it is none.
            with contextlib.suppress(ValueError):
                yield str((path.parent / own).resolve())


def _small(path: Path) -> Any:
    """The content of a small JSON file, with comments or without."""
    try:
        with open_to_read(str(path)) as stream:
            data = stream.read(_MOST_SMALL_FILE)
    except (OSError, ValueError):
        return None
    try:
        return parsed(data)
    except exactjson.NotJson:
        try:
            return jsonc.parse(data.decode("utf-8", "replace")).value
        except (ValueError, RecursionError):
            return None


def _index_of(path: str, found: os.stat_result) -> Mapping[str, Any]:
    """The index in an editor's state, from the file alone: `immutable` opens no log beside it, and locks nothing."""
    query = f"SELECT value FROM ItemTable WHERE key = ? AND length(value) <= {_MOST_INDEX}"  # noqa: S608
    if not stat.S_ISREG(found.st_mode):
        return {}
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = bytes
            row = cast("tuple[Any, ...] | None", database.execute(query, (_INDEX_KEY,)).fetchone())
        index = an_object(parsed(bytes(row[0]))) if row else {}
    except (sqlite3.Error, OSError, ValueError, TypeError, OverflowError):
        # Written to at this moment, damaged, or no database: a hint less.
        return {}
    shape: Shape = {"title": {}, "lastMessageDate": {}}
    return {key: pruned(entry, shape) for key, entry in an_object(index.get("entries")).items()}
