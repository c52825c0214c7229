"""A client program: where its config files are, how they are written, and what an entry in them looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pegboard.client_configs.place import Place, System

FileFormat: TypeAlias = Literal["json", "jsonc", "toml", "yaml"]
KeyPath: TypeAlias = tuple[str, ...]
Scope: TypeAlias = Literal["user", "project"]
Entry: TypeAlias = Mapping[str, Any]
LinkBuilder: TypeAlias = Callable[[str, Entry], str]


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A config file of a client program: its path, its format, and the key path of the servers in it."""

    path: Path
    format: FileFormat
    key: KeyPath
    # Pegboard writes to it. Others are only read on import: older places, files of other formats.
    is_written: bool = True


@dataclass(frozen=True, slots=True)
class FileSpec:
    """Where a config file is: a template for `Place.expand`, and others for systems that differ."""

    template: str
    format: FileFormat = "json"
    key: KeyPath = ("mcpServers",)
    on: Mapping[System, str] = field(default_factory=dict[System, str])
    # It counts only on these systems, or where this exists.
    systems: tuple[System, ...] = ("linux", "macos", "windows")
    needs: str | None = None
    is_written: bool = True

    def files(self, place: Place) -> list[ClientFile]:
        """The files of it at a place, there or not; of a template with a `*` those that are there."""
        if place.system not in self.systems or (self.needs and not place.expand(self.needs).exists()):
            return []
        key = tuple(str(place.project) if part == "{project}" else part for part in self.key)
        paths = place.paths(self.on.get(place.system, self.template))
        return [ClientFile(path, self.format, key, self.is_written) for path in paths]


@dataclass(frozen=True, slots=True)
class EntryStyle:
    """How a client wants its entries: what the transport is called, and where address and command stand."""

    takes_http: bool = True
    http_type: str | None = None
    url_key: str = "url"
    command_type: str | None = None
    command_key: str = "command"
    # One list of command and arguments, instead of two members.
    is_command_list: bool = False
    env_key: str = "env"
    # The entry repeats its own name.
    has_name: bool = False
    # Members that every entry has.
    always: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, eq=False)
class ClientProgram:
    """One client program, as far as its config matters."""

    id: str
    name: str
    user: tuple[FileSpec, ...]
    project: tuple[FileSpec, ...] = ()
    # Folders and programs that show that it is installed, beside its files.
    folders: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    style: EntryStyle = EntryStyle()
    # What `timeout` of an entry counts, where it has one.
    timeout_unit: Literal["s", "ms"] | None = None
    # What a person does so that the client takes over a change.
    reload: str = ""
    # The same once Pegboard is out of it again, where that is something else.
    reload_without: str = ""
    link: LinkBuilder | None = None
    # Its link takes an address, and no command of ours.
    link_needs_http: bool = False
    import_only: bool = False

    @property
    def after_install(self) -> str:
        """What a person does once Pegboard is in its config."""
        return self.reload.format(name=self.name)

    @property
    def after_uninstall(self) -> str:
        """What a person does once Pegboard is out of its config."""
        return (self.reload_without or self.reload).format(name=self.name)

    def user_files(self, place: Place) -> list[ClientFile]:
        """Its config files of the user, there or not, the preferred ones first."""
        return _files(self.user, place)

    def project_files(self, place: Place) -> list[ClientFile]:
        """Its config files of the project folder, there or not."""
        return _files(self.project, place)

    def target(self, place: Place, scope: Scope = "user") -> ClientFile | None:
        """The file that Pegboard is written to: the first that is there, else the first that can be."""
        files = self.user_files(place) if scope == "user" else self.project_files(place)
        candidates = [file for file in files if file.is_written and not self.import_only]
        return next((file for file in candidates if file.path.exists()), candidates[0] if candidates else None)

    def is_present(self, place: Place) -> bool:
        """Whether it seems to be installed: its file, its folder or its program is there."""
        return (
            any(file.path.exists() for file in self.user_files(place))
            or any(place.expand(template).is_dir() for template in self.folders)
            or any(map(place.has_program, self.programs))
        )


def _files(specs: Sequence[FileSpec], place: Place) -> list[ClientFile]:
    """A file that two of them mean (`pegboard.json`, `*.json`) is there once, as the first says."""
    by_place: dict[tuple[Path, KeyPath], ClientFile] = {}
    for spec in specs:
        for file in spec.files(place):
            by_place.setdefault((file.path, file.key), file)
    return list(by_place.values())
