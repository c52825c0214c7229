"""Install: Pegboard's entry is planned for a client's file, shown, and put there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pegboard.client_configs import claude_cli
from pegboard.client_configs.backups import InstallNote, describe_change
from pegboard.client_configs.context import (
    InstallContext,
    InstallOptions,
    InstallUsageError,
    choose_target,
    is_temporary,
)
from pegboard.client_configs.document import ClientFileError, ServerDocument
from pegboard.client_configs.entries import (
    DEFAULT_PORT,
    EntryTarget,
    build_entry,
    harmless_texts,
    is_own_entry,
    is_own_url,
)
from pegboard.client_configs.file_change import FileChange, decode, digest, follow_links, missing_folders, read_whole
from pegboard.client_configs.overlap import Overlap, find_overlap
from pegboard.client_configs.preview import mask_diff
from pegboard.client_configs.program import ClientFile, ClientProgram
from pegboard.client_configs.toml_text import say_the_same
from pegboard.client_configs.value_mask import literals

USUAL_NAME = "pegboard"
# `paste`: the client has no file that we write. `refused`: the name belongs to another entry.
Outcome: TypeAlias = Literal["create", "add", "update", "none", "paste", "refused"]
# These read JSON without comments alone.
_STRICT = frozenset({"claude-code", "claude-desktop"})


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """What an install will do to one client's file."""

    client: ClientProgram
    target: EntryTarget
    # Why it is this target.
    reason: str
    name: str
    entry: Mapping[str, Any]
    outcome: Outcome
    file: ClientFile | None = None
    change: FileChange | None = None
    diff: str = ""
    # Names of servers that are taken out, since Pegboard serves them.
    replaced: tuple[str, ...] = ()
    # Those that stay although Pegboard's config has them, and why.
    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    # What a person should know before it is written.
    remarks: tuple[str, ...] = ()
    # What an uninstall is to bring back: the content before the first install, and folders that were not there.
    original: bytes | None = None
    folders: tuple[str, ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether something would be written."""
        return self.outcome in {"create", "add", "update"}


def plan_install(client: ClientProgram, context: InstallContext, options: InstallOptions) -> InstallPlan:
    """What would be done; `ClientFileError` for a file that cannot be used, `InstallUsageError` for a wrong choice."""
    if client.import_only:
        raise InstallUsageError(f"{client.name} can be imported from, and not installed to")
    target, reason = choose_target(client, context, options)
    file = client.target(context.place, options.scope)
    if file is None:
        if options.scope == "project":
            raise InstallUsageError(f"{client.name} has no config file for a project that Pegboard writes")
        name = options.name or USUAL_NAME
        return InstallPlan(client, target, reason, name, build_entry(client.style, target, name), "paste")
    return _plan_for_file(client, file, context, options, InstallPlan(client, target, reason, "", {}, "none", file))


def _plan_for_file(
    client: ClientProgram, file: ClientFile, context: InstallContext, options: InstallOptions, plan: InstallPlan
) -> InstallPlan:
    real = follow_links(file.path, context.place.project if options.scope == "project" else None)
    content = read_whole(file.path)
    document = read_document(client, file, content)
    own_name = _own_name(document, client, context, options)
    name = own_name or options.name or USUAL_NAME
    entry = build_entry(client.style, plan.target, name)
    present = document.servers().get(name)
    overlap = find_overlap(client, file, document, context, name) if options.replace else Overlap()
    replaced = overlap.served
    plan = replace(plan, name=name, entry=entry, replaced=replaced, kept=overlap.kept)
    if present == entry and not replaced:
        return plan
    note = _last_note(client, file, context, content)
    original = content if note is None or content is None else note.original(content)
    # Where an install of this entry is all that happened to the file, the new one is made as if that had not been.
    is_again = note is not None and note.name == name and not note.removed.strip()
    # What Claude Code wrote beside the entry is its own.
    is_again = is_again and not claude_cli.is_usable(client, file, context.place)
    base = read_document(client, file, original) if is_again else document
    change = FileChange(real, content, _text_with(base, name, entry, replaced).encode())
    is_foreign = present is not None and own_name is None and not options.force
    return replace(
        plan,
        outcome="refused" if is_foreign else _outcome(content, present),
        change=change,
        diff=show_change(client, file, change, context, entry),
        remarks=(*link_remarks(file, change, context), *_remarks(plan, file, context, options)),
        original=original,
        folders=tuple(map(str, missing_folders(real))) or (note.folders if note else ()),
    )


def link_remarks(file: ClientFile, change: FileChange, context: InstallContext) -> list[str]:
    """Which file changes, if not the one that the path names. A home that is a link itself is not worth a word."""
    roots = [root for root in (context.place.home, context.place.project) if file.path.is_relative_to(root)]
    if change.path in {file.path, *(root.resolve() / file.path.relative_to(root) for root in roots)}:
        return []
    return [f"There is a link in this path. The file that changes: {change.path}"]


def _remarks(plan: InstallPlan, file: ClientFile, context: InstallContext, options: InstallOptions) -> Iterator[str]:
    if not plan.client.is_present(context.place):
        yield f"{plan.client.name} was not found on this machine."
    if plan.target.url is None and options.scope == "project":
        yield "The command is a path of this machine: use --http for a file that others get, too."
    if plan.target.url is None and is_temporary(plan.target.command):
        yield "This Pegboard runs from a cache of uv, which may be emptied: install it first (uv tool install)."
    if plan.target.url is not None and not is_own_url(plan.target.url, {DEFAULT_PORT}):
        port = urlsplit(plan.target.url).port
        yield f"The gateway has to listen on this port each time: pegboard serve --port {port}"
    if claude_cli.is_usable(plan.client, file, context.place):
        yield "`claude mcp add-json` writes it, in its own layout."


def apply_install(plan: InstallPlan, context: InstallContext) -> None:
    """Do it; `ClientFileError` if the file cannot be written, or is not any more what was planned on."""
    change, file = plan.change, plan.file
    if change is None or file is None or not plan.is_change:
        return
    if claude_cli.is_usable(plan.client, file, context.place):
        present = read_document(plan.client, file, change.before).servers()
        leaving = [each for each in (plan.name, *plan.replaced) if each in present]
        claude_cli.install(plan.name, plan.entry, leaving, context.place)
        # Where there was a link, there may be a file now.
        after = FileChange(follow_links(file.path), change.before, read_whole(file.path))
        _keep(plan, context, after)
    else:
        change.apply(lambda: _keep(plan, context, change))


def _keep(plan: InstallPlan, context: InstallContext, change: FileChange) -> None:
    note = describe_change(replace(change, before=plan.original), plan.name, plan.target.url)
    replaced = (*plan.replaced, *_overwritten(plan, context, change.before))
    context.backups.keep(plan.client.id, replace(note, folders=plan.folders, replaced=replaced), change.before)


def _overwritten(plan: InstallPlan, context: InstallContext, before: bytes | None) -> list[str]:
    """The name of ours, if an entry of somebody else had it."""
    if plan.file is None:
        return []
    document = read_document(plan.client, plan.file, before)
    is_foreign = plan.name in document.servers() and plan.name not in own_names(document, plan.client, context)
    return [plan.name] if is_foreign else []


def read_document(client: ClientProgram, file: ClientFile, content: bytes | None) -> ServerDocument:
    """The servers of a client's file; `ClientFileError` with its path if it cannot be read."""
    document = ServerDocument(decode(file.path, content), file.format, file.key, client.id in _STRICT)
    try:
        document.check()
    except ClientFileError as exc:
        raise ClientFileError(f"{file.path}: {exc}") from None
    return document


def own_names(document: ServerDocument, client: ClientProgram, context: InstallContext) -> list[str]:
    """The names of the entries that lead to Pegboard."""
    urls, ports = context.backups.urls(client.id), context.ports
    return [name for name, entry in document.servers().items() if is_own_entry(entry, ports, urls)]


def show_change(
    client: ClientProgram, file: ClientFile, change: FileChange, context: InstallContext, entry: Mapping[str, Any]
) -> str:
    """The change as a diff in which no values can be read but those of the entry, and of entries of ours before it."""
    before, after = decode(file.path, change.before), decode(file.path, change.after)
    document = read_document(client, file, change.before)
    ours = [text for name in own_names(document, client, context) for text in harmless_texts(document.servers()[name])]
    return mask_diff(str(change.path), before, after, file.format, {*literals([dict(entry), ours])})


def _own_name(
    document: ServerDocument, client: ClientProgram, context: InstallContext, options: InstallOptions
) -> str | None:
    """The name of the entry of ours that is to be updated."""
    names = own_names(document, client, context)
    wanted = options.name or USUAL_NAME
    return wanted if wanted in names else next(iter(names), None) if options.name is None else None


def _outcome(content: bytes | None, present: object) -> Outcome:
    if content is None:
        return "create"
    return "add" if present is None else "update"


def _text_with(base: ServerDocument, name: str, entry: Mapping[str, Any], replaced: Collection[str]) -> str:
    added = replace(base, text=base.put(name, entry))
    left = replace(added, text=added.take_out([each for each in replaced if each in added.servers()]))
    names = (name, *replaced)
    if not say_the_same(left.rest(names), base.rest(names)) or left.servers().get(name) != entry:
        raise ClientFileError("the entry cannot be added without changing something else")
    return left.text


def _last_note(
    client: ClientProgram, file: ClientFile, context: InstallContext, content: bytes | None
) -> InstallNote | None:
    """The note of our last install, if nothing else happened to the file since."""
    found = context.backups.find(client.id, file.path)
    return found[1] if found is not None and content is not None and found[1].after == digest(content) else None
