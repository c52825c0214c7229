"""Servers that a client has beside Pegboard, though Pegboard has them, too: which could go, and which have to stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pegboard.client_configs.document import ServerDocument
from pegboard.client_configs.identity import ServerIdentity, identify_server
from pegboard.client_configs.program import ClientFile, ClientProgram
from pegboard.client_configs.reader import read_entry
from pegboard.client_configs.reading import TextOrigin
from pegboard.exactjson import as_object
from pegboard.names import fold_server_name

if TYPE_CHECKING:
    from pegboard.client_configs.context import InstallContext

_NOT_ASKED = "not asked yet"
_PROBLEMS = {
    **dict.fromkeys(("unreachable", "lost"), "not reached"),
    "needs_auth": "needs sign-in",
    "invalid": "its entry cannot be used",
}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Servers of a client that Pegboard's own config has as well, by the client's names."""

    # Pegboard serves them.
    served: tuple[str, ...] = ()
    # Pegboard would not take their place, and why.
    kept: Mapping[str, str] = field(default_factory=dict[str, str])


def server_problems(rows: Iterable[Mapping[str, Any]]) -> dict[str, str | None]:
    """Of each of Pegboard's servers, as REST shows it, why a client would miss its tools; `None` if it would not."""
    return {str(row["name"]): _problem(row) for row in rows}


def _problem(row: Mapping[str, Any]) -> str | None:
    if not row["enabled"]:
        return "disabled"
    if row["state"] == "invalid" and "has no value" in str(row["lastError"]):
        return "a variable has no value"
    if (problem := _PROBLEMS.get(str(row["state"]))) is not None:
        return problem
    if not row["seen"]:
        return "not reached" if row["lastError"] else _NOT_ASKED
    return None if row["tools"] else "it has no tools"


def find_overlap(
    client: ClientProgram, file: ClientFile, document: ServerDocument, context: InstallContext, own_name: str
) -> Overlap:
    """What a client's file and Pegboard's config both have."""
    own = _OwnServers(context)
    # Relative paths of a project's file mean that project.
    folder = None if file in client.user_files(context.place) else context.place.project
    origin = TextOrigin(client.name, str(file.path), client, folder, is_file=True)
    served: list[str] = []
    kept: dict[str, str] = {}
    for name, value in document.servers().items():
        entry = None if name == own_name else read_entry(name, value, origin)
        if entry is None or (reason := own.find(entry)) is None:
            continue
        if reason:
            kept[name] = reason
        else:
            served.append(name)
    return Overlap(tuple(served), kept)


class _OwnServers:
    """The servers of Pegboard's own config, found by what they are."""

    def __init__(self, context: InstallContext) -> None:
        self._context = context
        self._names: dict[ServerIdentity, list[str]] = {}
        for name, entry in context.own_servers().items():
            if (members := as_object(entry)) is not None:
                self._names.setdefault(self._identify(members), []).append(fold_server_name(name))

    def _identify(self, entry: Mapping[str, Any]) -> ServerIdentity:
        return identify_server(entry, self._context.place.environment)

    def find(self, entry: Mapping[str, Any]) -> str | None:
        """Why Pegboard would not take the place of this server: an empty text if it would, `None` if it has none."""
        identity = self._identify(entry)
        problems = [self._context.own_problems.get(name, _NOT_ASKED) for name in self._names.get(identity, ())]
        if problems:
            return next((problem for problem in problems if problem is None), problems[0]) or ""
        others = (names[0] for each, names in self._names.items() if each.target == identity.target)
        return next((f"{name} of Pegboard has other values" for name in others), None)
