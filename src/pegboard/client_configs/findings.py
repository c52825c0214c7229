"""Findings about clients that Pegboard is installed in: what `pegboard doctor` says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pegboard.client_configs.backups import InstallNote
from pegboard.client_configs.context import InstallContext
from pegboard.client_configs.document import ClientFileError, ServerDocument
from pegboard.client_configs.entries import EntryTarget, read_target
from pegboard.client_configs.file_change import decode, read_whole
from pegboard.client_configs.install import own_names, read_document
from pegboard.client_configs.overlap import find_overlap
from pegboard.client_configs.place import Place
from pegboard.client_configs.program import ClientFile, ClientProgram
from pegboard.client_configs.survey import leads_to_gateway
from pegboard.client_configs.table import CLIENTS
from pegboard.exactjson import as_object

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class ClientFinding:
    """One thing about a client, and what to do about it."""

    about: str
    level: Literal["ok", "warning"]
    said: str
    advice: str = ""


def client_findings(context: InstallContext) -> list[ClientFinding]:
    """What is to be said of every client that Pegboard is, or was, installed in."""
    return [finding for client in CLIENTS if not client.import_only for finding in _look(client, context)]


def _look(client: ClientProgram, context: InstallContext) -> Iterator[ClientFinding]:
    file, about = client.target(context.place), f"client {client.id}"
    if file is None:
        return
    found = context.backups.find(client.id, file.path)
    note = None if found is None else found[1]
    if note is None and not file.path.exists():
        return
    try:
        document = read_document(client, file, read_whole(file.path))
        names = own_names(document, client, context)
    except ClientFileError as exc:
        if note is not None:
            yield ClientFinding(about, "warning", str(exc), "correct the file: the client may not read it either")
        return
    if names:
        yield from _look_at_entry(client, context, file, document, names[0])
    elif note is not None:
        yield _missing(client, about, note)


def _missing(client: ClientProgram, about: str, note: InstallNote) -> ClientFinding:
    said = f"Pegboard was installed in {note.path}, and is not there any more"
    return ClientFinding(about, "warning", said, f"pegboard install {client.id}")


def _look_at_entry(
    client: ClientProgram, context: InstallContext, file: ClientFile, document: ServerDocument, name: str
) -> Iterator[ClientFinding]:
    about, target = f"client {client.id}", read_target(document.servers()[name])
    problem = None if target is None else _target_problem(target, context)
    if problem is not None:
        yield ClientFinding(about, "warning", problem[0], problem[1] or f"pegboard install {client.id}")
    else:
        yield ClientFinding(about, "ok", f"Pegboard is in {file.path}")
    if doubles := find_overlap(client, file, document, context, name).served:
        shown = ", ".join(doubles[:_MOST_NAMED]) + (" …" if len(doubles) > _MOST_NAMED else "")
        said = f"it starts servers itself that Pegboard serves: {shown}"
        yield ClientFinding(about, "warning", said, f"pegboard install {client.id} --replace")
    yield from _particular(client, context, about)


def _target_problem(target: EntryTarget, context: InstallContext) -> tuple[str, str] | None:
    """What is wrong with where an entry leads, and what to do if it is not a new install."""
    if target.url is None:
        path = Path(target.command)
        if path.is_absolute() and not path.exists():
            return f"its command is gone: {target.command}", ""
        return None
    if leads_to_gateway(target, context):
        return None
    if context.gateway is None:
        return f"it goes to {target.url}, and no gateway runs", "pegboard serve"
    return f"it goes to {target.url}, and the gateway is at {context.gateway}", ""


def _particular(client: ClientProgram, context: InstallContext, about: str) -> Iterator[ClientFinding]:
    """What only some clients have: profiles, and folders that must be trusted."""
    if profiles := list(_profiles_without(client, context)):
        said = f"profiles with a list of servers of their own, without Pegboard: {', '.join(profiles[:_MOST_NAMED])}"
        yield ClientFinding(about, "warning", said, "in such a profile, use the command MCP: Add Server")
    if client.id == "gemini" and not _is_trusted(context.place):
        said = f"Gemini CLI uses MCP servers only in folders that it trusts, and {context.place.project} is none"
        yield ClientFinding(about, "warning", said, "start gemini there and choose: Trust folder")


def _profiles_without(client: ClientProgram, context: InstallContext) -> Iterator[str]:
    """The ids of profiles of VS Code that have a list of servers, and no Pegboard in it."""
    for file in client.user_files(context.place):
        if "profiles" not in file.path.parts:
            continue
        try:
            document = read_document(client, file, read_whole(file.path))
        except ClientFileError:
            continue
        if not own_names(document, client, context):
            yield file.path.parent.name


def _is_trusted(place: Place) -> bool:
    """Whether Gemini CLI trusts the project's folder, or one above it."""
    path = place.expand("{gemini}/trustedFolders.json")
    try:
        folders = as_object(json.loads(decode(path, read_whole(path)) or "{}")) or {}
    except (ClientFileError, ValueError, RecursionError):
        return True
    here = (place.project, *place.project.parents)
    return any(folders.get(str(folder)) in {"TRUST_FOLDER", "TRUST_PARENT"} for folder in here)
