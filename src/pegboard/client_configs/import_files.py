"""The files that an import reads: those of clients by the table, or one that somebody names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pegboard.client_configs.place import Place
from pegboard.client_configs.program import ClientFile, ClientProgram
from pegboard.client_configs.reader import no_servers, read_text
from pegboard.client_configs.reading import ConfigReading, TextOrigin, UnreadableEntry
from pegboard.client_configs.table import CLIENTS
from pegboard.config.file import read_file

# Folders of a project in which clients have their files.
_INSIDE = frozenset(
    {".vscode", ".cursor", ".roo", ".zed", ".gemini", ".codex", ".warp", ".github", ".amazonq", ".opencode"}
    | {".kiro", ".junie", ".continue"}
)


def read_clients(clients: Iterable[ClientProgram], place: Place, *, with_project: bool) -> ConfigReading:
    """The servers of these clients: of the user's files first, then of the project's."""
    reading = ConfigReading()
    read: set[tuple[Path, bool]] = set()
    chosen = list(clients)
    for is_project in (False, True) if with_project else (False,):
        for client, file in _files(chosen, place, is_project=is_project):
            # Several clients share `.mcp.json`.
            if (file.path, is_project) not in read:
                read.add((file.path, is_project))
                reading += _read_client_file(client, file, place.project if is_project else None)
    return reading


def project_counts(clients: Iterable[ClientProgram], place: Place) -> Counter[Path]:
    """How many servers the user's files have for each single project, which only `--project` takes over."""
    found: Counter[Path] = Counter()
    for client, file in _files(list(clients), place, is_project=False):
        servers = _read(file.path, _client_origin(client, file)).servers
        found.update(server.project for server in servers if server.project is not None)
    return found


def read_named_file(path: Path, place: Place) -> ConfigReading:
    """The servers of a file in any format."""
    client = next((each for each in CLIENTS if _is_user_file(path, each, place)), None)
    origin = TextOrigin(
        str(path),
        str(path),
        client,
        folder=None if client else _project_of(path.absolute()),
        suffix=path.suffix.lower(),
        is_file=True,
    )
    return no_servers(_read(path, origin), origin)


def _files(
    clients: list[ClientProgram], place: Place, *, is_project: bool
) -> Iterator[tuple[ClientProgram, ClientFile]]:
    for client in clients:
        for file in client.project_files(place) if is_project else client.user_files(place):
            if file.path.exists():
                yield client, file


def _read_client_file(client: ClientProgram, file: ClientFile, project: Path | None) -> ConfigReading:
    reading = _read(file.path, _client_origin(client, file, project))
    if file.key[0] == "projects":
        return ConfigReading(tuple(each for each in reading.servers if each.project == project))
    return replace(reading, servers=tuple(each for each in reading.servers if each.project is None))


def _client_origin(client: ClientProgram, file: ClientFile, project: Path | None = None) -> TextOrigin:
    # A key with a folder in it is of a user's file.
    folder = None if file.key[0] == "projects" else project
    label = client.name if folder is None else f"{client.name} ({_path_inside(file.path, folder)})"
    return TextOrigin(label, str(file.path), client, folder, f".{file.format}", is_file=True)


def _path_inside(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _read(path: Path, origin: TextOrigin) -> ConfigReading:
    try:
        text = read_file(path, is_found=origin.client is not None).decode("utf-8-sig")
    except OSError as exc:
        return ConfigReading(unreadable=(UnreadableEntry("", origin.place, exc.strerror or str(exc), origin),))
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        return ConfigReading(unreadable=(UnreadableEntry("", origin.at(line), "it is not UTF-8", origin),))
    if not text.strip() and origin.client is not None:
        # Clients make empty files.
        return ConfigReading()
    return read_text(text, origin)


def _is_user_file(path: Path, client: ClientProgram, place: Place) -> bool:
    return any(file.path == path.absolute() for file in client.user_files(place))


def _project_of(path: Path) -> Path:
    """The folder that relative paths of a file mean."""
    for folder in (path.parent, path.parent.parent):
        if folder.name in _INSIDE:
            return folder.parent
    return path.parent
