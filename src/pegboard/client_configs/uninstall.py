"""Uninstall: the entries that lead to Pegboard are taken out of a client's file, and the file is as it was before."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard.client_configs import claude_cli
from pegboard.client_configs.backups import InstallNote
from pegboard.client_configs.context import InstallContext, InstallUsageError
from pegboard.client_configs.document import ClientFileError, ServerDocument
from pegboard.client_configs.file_change import FileChange, digest, follow_links, read_whole
from pegboard.client_configs.install import link_remarks, own_names, read_document, show_change
from pegboard.client_configs.program import ClientFile, ClientProgram, Scope
from pegboard.client_configs.toml_text import say_the_same, without
from pegboard.client_configs.value_mask import find_comments


@dataclass(frozen=True, slots=True)
class UninstallPlan:
    """What an uninstall will do to one client's file; without a change there is nothing to do."""

    client: ClientProgram
    file: ClientFile | None
    names: tuple[str, ...] = ()
    change: FileChange | None = None
    diff: str = ""
    # The file will be byte for byte what it was before the install.
    is_exact: bool = False
    folders: tuple[str, ...] = ()
    # The servers that the install took out, and that are there again.
    restored: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # What a person should know before it is written.
    remarks: tuple[str, ...] = ()


def plan_uninstall(
    client: ClientProgram, context: InstallContext, scope: Scope = "user", *, restore: bool = False
) -> UninstallPlan:
    """What would be done. With `restore`, nothing but the exact state before the install will do."""
    if client.import_only:
        raise InstallUsageError(f"Pegboard is never installed to {client.name}")
    file = client.target(context.place, scope)
    if file is None:
        return UninstallPlan(client, file)
    real = follow_links(file.path, context.place.project if scope == "project" else None)
    content = read_whole(file.path)
    if content is None:
        return UninstallPlan(client, file)
    document = read_document(client, file, content)
    names = tuple(own_names(document, client, context))
    found = context.backups.find(client.id, file.path)
    note = None if found is None else found[1]
    if restore and names and (note is None or note.after != digest(content)):
        reason = "it changed since the install" if note else "there is no backup of it"
        raise ClientFileError(f"{file.path}: {reason}; `pegboard uninstall {client.id}` takes out the entry alone")
    if not names:
        return UninstallPlan(client, file)
    after, is_exact = _after(client, file, context, content, note)
    change = FileChange(real, content, after)
    diff = show_change(client, file, change, context, {})
    folders = note.folders if note and after is None else ()
    restored = _new_servers(document, read_document(client, file, after))
    remarks = tuple(link_remarks(file, change, context))
    return UninstallPlan(client, file, names, change, diff, is_exact, folders, restored, remarks)


def apply_uninstall(plan: UninstallPlan, context: InstallContext) -> None:
    """Do it; `ClientFileError` if the file cannot be written, or is not any more what was planned on."""
    change, file = plan.change, plan.file
    if change is None or file is None:
        return
    by_claude = not plan.is_exact and claude_cli.is_usable(plan.client, file, context.place)
    if by_claude and all(map(claude_cli.takes_name, plan.restored)):
        claude_cli.uninstall(plan.names, plan.restored, context.place)
    else:
        change.apply()
    context.backups.spend(plan.client.id, file.path)
    for folder in plan.folders:
        # Only those that are empty.
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def _after(
    client: ClientProgram, file: ClientFile, context: InstallContext, content: bytes, note: InstallNote | None
) -> tuple[bytes | None, bool]:
    """What the file will hold, and whether that is exactly what it held before the install."""
    if note is not None and note.after == digest(content):
        original = note.original(content)
        if original is None or not own_names(read_document(client, file, original), client, context):
            return original, True
        content = original
    document = read_document(client, file, content)
    names = own_names(document, client, context)
    text = _undo(client, context, document, note)
    if text is None:
        text = document.take_out(names)
    left = _put_back(replace(document, text=text), _find_replaced(client, file, context))
    return (_clean_up(document, left) if note is not None and note.is_new_file else left.text.encode()), False


def _find_replaced(client: ClientProgram, file: ClientFile, context: InstallContext) -> dict[str, Any]:
    """The servers that installs took out of a file, as they were when they were last there."""
    found: dict[str, Any] = {}
    for note, content in context.backups.list_replacing(client.id, file.path):
        servers = read_document(client, file, content).servers()
        found |= {name: servers[name] for name in note.replaced if name in servers and name not in found}
    return found


def _put_back(left: ServerDocument, replaced: Mapping[str, Any]) -> ServerDocument:
    for name, entry in replaced.items():
        # One that somebody wrote under that name since stays.
        if name not in left.servers():
            left = replace(left, text=left.put(name, entry))
    return left


def _new_servers(before: ServerDocument, after: ServerDocument) -> dict[str, Any]:
    known = before.servers()
    return {name: entry for name, entry in after.servers().items() if not say_the_same(known.get(name), entry)}


def _clean_up(before: ServerDocument, left: ServerDocument) -> bytes | None:
    """What stays of a file that the install made: what others wrote into it, comments too. `$schema` alone, which
    clients add by themselves, says nothing, so that the file goes."""
    comments = find_comments(before.text, before.format)
    if find_comments(left.text, left.format) == comments and comments:
        return left.text.encode()
    if left.rest([]).keys() - {"$schema"}:
        return left.drop_empty_section().encode()
    if not comments:
        return None
    # Those that stood above our entry went with it; there is nothing else in the file.
    return "\n".join([*comments, *([] if left.format == "toml" else ["{}"]), ""]).encode()


def _undo(
    client: ClientProgram, context: InstallContext, document: ServerDocument, note: InstallNote | None
) -> str | None:
    """The text as it was before the install but for what others did since, if what was written is still there."""
    text = None if note is None else note.undo(document.text)
    if text is None:
        return None
    own = own_names(document, client, context)
    undone = replace(document, text=text)
    try:
        others = {name: entry for name, entry in document.servers().items() if name not in own}
        is_right = (
            not own_names(undone, client, context)
            and all(say_the_same(undone.servers().get(name), entry) for name, entry in others.items())
            and say_the_same(without(undone.data(), undone.key), without(document.data(), document.key))
        )
    except ClientFileError:
        return None
    return text if is_right else None
