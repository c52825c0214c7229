"""A survey of the clients of this machine: which are here, and whether Pegboard is in their files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from pegboard.client_configs.context import InstallContext
from pegboard.client_configs.document import ClientFileError
from pegboard.client_configs.entries import EntryTarget, read_target
from pegboard.client_configs.file_change import digest, read_whole
from pegboard.client_configs.install import own_names, read_document
from pegboard.client_configs.program import ClientFile, ClientProgram, Scope
from pegboard.client_configs.table import CLIENTS


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One client: is it here, and how is Pegboard connected."""

    id: str
    name: str
    found: bool
    # Whether Pegboard can be installed there, and whether it writes the file itself.
    installable: bool
    writes: bool
    file: str | None = None
    exists: bool = False
    connected: bool = False
    # How: `http` or `stdio`; by which board; under which name.
    transport: str | None = None
    board: str | None = None
    entry: str | None = None
    # The address, and whether the gateway of this config runs there; none of it for a command.
    address: str | None = None
    running: bool | None = None
    # How many servers the client has beside Pegboard.
    servers: int = 0
    problem: str | None = None
    # Where that is kept which the file held before Pegboard was put into it, and whether it can be put back as it was.
    backup: str | None = None
    restorable: bool = False

    def row(self) -> dict[str, Any]:
        """The status as programs read it."""
        return asdict(self)


def survey(context: InstallContext, scope: Scope = "user") -> list[ClientStatus]:
    """Every client of the table."""
    return [look_at(client, context, scope) for client in CLIENTS]


def look_at(client: ClientProgram, context: InstallContext, scope: Scope = "user") -> ClientStatus:
    """One client. Files of those that are not here are not looked for any further."""
    file = client.target(context.place, scope)
    found = client.is_present(context.place)
    # Of one that we do not write, the file that a person would change.
    named = [file] if file is not None else client.user_files(context.place)
    path = str(named[0].path) if named else None
    status = ClientStatus(client.id, client.name, found, not client.import_only, file is not None, path)
    if file is None or not file.path.exists():
        return status
    try:
        content = read_whole(file.path)
        document = read_document(client, file, content)
        names = own_names(document, client, context)
        servers = document.servers()
    except ClientFileError as exc:
        return replace(status, exists=True, problem=str(exc))
    target = read_target(servers[names[0]]) if names else None
    backup = context.backups.find_content(client.id, file.path) if names else None
    return replace(
        status,
        backup=str(backup) if backup else None,
        restorable=bool(names) and _is_restorable(client, file, context, content),
        exists=True,
        connected=bool(names),
        transport=target.kind if target else None,
        board=target.board if target else None,
        entry=names[0] if names else None,
        address=target.url if target else None,
        running=leads_to_gateway(target, context) if target else None,
        servers=len(servers) - len(names),
    )


def _is_restorable(client: ClientProgram, file: ClientFile, context: InstallContext, content: bytes | None) -> bool:
    """Whether an uninstall makes the file what it was without Pegboard, byte for byte."""
    found = context.backups.find(client.id, file.path)
    if found is None or content is None or found[1].after != digest(content):
        return False
    original = found[1].original(content)
    return original is None or not own_names(read_document(client, file, original), client, context)


def leads_to_gateway(target: EntryTarget, context: InstallContext) -> bool | None:
    """Whether the gateway of this config runs at an entry's address; `None` for a command, which needs none."""
    if target.url is None:
        return None
    return context.gateway is not None and urlsplit(target.url).port == urlsplit(context.gateway).port
