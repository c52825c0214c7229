"""Chats as editors write them, made up here."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pegboard.toolsets.chats.chats import local_sources
from pegboard.toolsets.chats.source import ChatSource

START = 1_767_225_600_000
OLD = START / 1000 - 1000
ADA = "file:///home/ada/shop"


def request(text: str, number: int = 1, **more: Any) -> dict[str, Any]:
    """A request with a short answer, as version 3 has it."""
    return {
        "requestId": f"request_{number}",
        "timestamp": START + number * 1000,
        "message": {"text": text, "parts": [{"kind": "text", "text": text}]},
        "response": [{"value": f"Answer to {text}", "supportThemeIcons": False}],
        "result": {"timings": {"totalElapsed": 12}, "metadata": {"sessionId": "inner"}},
        "modelState": {"value": 1, "completedAt": START + number * 1000 + 500},
        "agent": {"id": "github.copilot.editsAgent", "name": "agent"},
        "modelId": "copilot/gpt-5",
        "variableData": {"variables": [{"id": "x" * 20}]},
        **more,
    }


def session(*texts: str, session_id: str = "abc-123", **more: Any) -> dict[str, Any]:
    """A session of version 3 with these requests."""
    return {
        "version": 3,
        "sessionId": session_id,
        "creationDate": START,
        "responderUsername": "GitHub Copilot",
        "initialLocation": "panel",
        "requests": [request(text, number) for number, text in enumerate(texts, 1)],
        **more,
    }


def log(*entries: Mapping[str, Any]) -> bytes:
    """A log of these changes."""
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def whole(value: Any) -> dict[str, Any]:
    return {"kind": 0, "v": value}


def put(path: Sequence[str | int], value: Any) -> dict[str, Any]:
    return {"kind": 1, "k": list(path), "v": value}


def push(path: Sequence[str | int], *items: Any, cut: int | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": 2, "k": list(path), "v": list(items)}
    return entry if cut is None else {**entry, "i": cut}


def delete(path: Sequence[str | int]) -> dict[str, Any]:
    return {"kind": 3, "k": list(path)}


class Home:
    """A home folder with the chats of a few editors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def sources(self, **env: str) -> list[ChatSource]:
        """Where Pegboard would look here."""
        return local_sources(env, self.folder, "linux", [self.folder / "exports"])

    def user(self, product: str = "Code") -> Path:
        return self.folder / ".config" / product / "User"

    def workspace(self, name: str = "w1", folder: str | None = ADA, product: str = "Code") -> Path:
        """A workspace's storage."""
        store = self.user(product) / "workspaceStorage" / name
        (store / "chatSessions").mkdir(parents=True, exist_ok=True)
        if folder is not None:
            write(store / "workspace.json", json.dumps({"folder": folder}).encode())
        return store

    def chat(
        self, session_id: str, content: object, *, workspace: str = "w1", folder: str | None = ADA, at: float = OLD
    ) -> Path:
        """A session's file: an object is a `.json`, a list of changes or bytes a `.jsonl`."""
        store = self.workspace(workspace, folder)
        suffix = "json" if isinstance(content, dict) else "jsonl"
        data = json.dumps(content).encode() if isinstance(content, dict) else content
        assert isinstance(data, bytes)
        return write(store / "chatSessions" / f"{session_id}.{suffix}", data, at)

    def index(self, *session_ids: str, workspace: str = "w1") -> Path:
        """The editor's own index of sessions."""
        path = self.workspace(workspace) / "state.vscdb"
        entries = {
            each: {"sessionId": each, "title": f"Title of {each}", "lastMessageDate": START} for each in session_ids
        }
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
            value = json.dumps({"version": 1, "entries": entries})
            database.execute("INSERT INTO ItemTable VALUES ('chat.ChatSessionStore.index', ?)", (value,))
        database.close()
        return path

    def transcript(self, session_id: str, lines: Iterable[Mapping[str, Any]], at: float = OLD) -> Path:
        """A session of Claude Code."""
        return write(self.folder / ".claude" / "projects" / "-home-ada" / f"{session_id}.jsonl", log(*lines), at)

    def export(self, name: str, content: object) -> Path:
        return write(self.folder / "exports" / name, json.dumps(content).encode())


def write(path: Path, data: bytes, at: float = OLD) -> Path:
    """A file of that time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (at, at))
    return path


def append(path: Path, data: bytes) -> None:
    """Write on, as an editor does; the time goes on by a second."""
    at = path.stat().st_mtime + 1
    with path.open("ab") as file:
        file.write(data)
    os.utime(path, (at, at))
