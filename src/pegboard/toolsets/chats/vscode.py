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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pegboard import exactjson
from pegboard.config import jsonc
from pegboard.exactjson import as_object
from pegboard.toolsets.chats.dialog import DialogLog, chat_of, chat_of_export
from pegboard.toolsets.chats.fields import a_list, a_moment, a_name, an_object, parse_json
from pegboard.toolsets.chats.folders import path_of
from pegboard.toolsets.chats.log import Shape, prune
from pegboard.toolsets.chats.reading import ChatFileStamp, LineReading, Reading, WholeReading, open_to_read
from pegboard.toolsets.chats.session import ChatSession
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
        self._workspaces: dict[str, _Workspace] = {}
        # Those that nobody has to look at again before the files are listed anew.
        self._looked_at: set[str] = set()
        self._indexes: dict[str, tuple[ChatFileStamp, Mapping[str, Any]]] = {}

    def files(self) -> Iterator[ChatFile]:
        """Every session's file, of folders, workspaces and windows that have neither."""
        self._looked_at = set()
        for workspace in entries(str(self._user / "workspaceStorage")):
            yield from self._in(f"{workspace.path}/chatSessions", workspace.path)
        yield from self._in(str(self._user / "globalStorage" / "emptyWindowChatSessions"), "")

    def _in(self, folder: str, home: str) -> Iterator[ChatFile]:
        found: dict[str, list[ChatFile]] = {}
        for entry in entries(folder):
            stem, _, suffix = entry.name.rpartition(".")
            if stem and suffix in {"json", "jsonl"} and (stamp := stamp_of(entry)) is not None:
                found.setdefault(stem, []).append(ChatFile(entry.path, self, stamp, stem, home))
        yield from (max(files, key=_counts) for files in found.values())

    def reading(self, file: ChatFile) -> Reading:
        """A log grows at its end; a document is written anew."""
        return LineReading(DialogLog()) if file.path.endswith(".jsonl") else WholeReading(chat_of)

    def folders(self, file: ChatFile) -> Sequence[str]:
        """The folder of the workspace, or those of a workspace that has several."""
        if not file.home:
            return ()
        known = self._workspaces.get(file.home)
        if known is None or (file.home not in self._looked_at and not known.is_current()):
            known = self._workspaces[file.home] = _Workspace.of(Path(file.home) / "workspace.json")
        self._looked_at.add(file.home)
        return known.folders

    def hint(self, session_id: str) -> ChatSession | None:
        """A session that the editor's own index names, though there is no file of it."""
        workspaces = (entry.path for entry in entries(str(self._user / "workspaceStorage")))
        for folder in (str(self._user / "globalStorage"), *workspaces):
            entry = as_object(self._index(f"{folder}/state.vscdb").get(session_id))
            if entry is not None:
                moment = a_moment(entry.get("lastMessageDate"))
                return ChatSession(
                    session_id, self.name, first_seen=moment, last_seen=moment, title=a_name(entry.get("title"))
                )
        return None

    def _index(self, path: str) -> Mapping[str, Any]:
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            return {}
        stamp = ChatFileStamp.of(found)
        known = self._indexes.get(path)
        if known is None or known[0] != stamp:
            known = self._indexes[path] = (stamp, _index_of(path, found))
        return known[1]


def _counts(file: ChatFile) -> tuple[bool, bool]:
    """Of two files of a session the log counts, unless nothing is in it yet."""
    return file.stamp.size > 0, file.path.endswith(".jsonl")


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
        return LineReading(DialogLog()) if file.path.endswith(".jsonl") else WholeReading(chat_of_export)

    def folders(self, file: ChatFile) -> Sequence[str]:
        """Nobody knows."""
        del file
        return ()

    def hint(self, session_id: str) -> ChatSession | None:
        """What has no file is not there."""
        del session_id
        return None


def find_editors(env: Mapping[str, str], home: Path, platform: str) -> list[VSCode]:
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


@dataclass(frozen=True, slots=True)
class _Workspace:
    """The folders of a workspace, and how the files looked that tell them."""

    folders: tuple[str, ...]
    told_by: Mapping[Path, ChatFileStamp | None]

    @classmethod
    def of(cls, workspace: Path) -> _Workspace:
        """From its own file, and from that of several folders, if there is one."""
        told_by = {workspace: _stamp_at(workspace)}
        described = an_object(_small(workspace))
        if folder := a_name(described.get("folder")):
            return cls((path_of(folder),), told_by)
        if several := a_name(described.get("workspace")) or a_name(described.get("configuration")):
            path = Path(path_of(several))
            return cls(tuple(_folders_within(several)), {**told_by, path: _stamp_at(path)})
        return cls((), told_by)

    def is_current(self) -> bool:
        """Whether those files still look like that."""
        return all(_stamp_at(path) == stamp for path, stamp in self.told_by.items())


def _stamp_at(path: Path) -> ChatFileStamp | None:
    try:
        return ChatFileStamp.of(path.stat())
    except (OSError, ValueError):
        return None


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
        return parse_json(data)
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
        # A number is no index, and `bytes` would make that many of them.
        index = an_object(parse_json(row[0])) if row and isinstance(row[0], bytes) else {}
    except (sqlite3.Error, OSError, ValueError, TypeError, OverflowError):
        # Written to at this moment, damaged, or no database: a hint less.
        return {}
    shape: Shape = {"title": {}, "lastMessageDate": {}}
    return {key: prune(entry, shape) for key, entry in an_object(index.get("entries")).items()}
