"""`chats …`: what was asked and answered in this machine's editors, for people. The chats are only read."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import (
    FAILED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    find_config,
    finish,
    load_settings,
    quiet_logs,
    stop,
)
from pegboard.cli.show import TerminalTable, ago, highlight, one_line, say, verbatim
from pegboard.terminal import plain

if TYPE_CHECKING:
    from pegboard.toolsets.chats.chats import Chats
    from pegboard.toolsets.chats.session import ChatSession
    from pegboard.toolsets.chats.store import OnProgress

_SHORT_ID, _WHOLE_ID = 8, 36
_MOST_SHOWN = 20
# How many columns a list has on a terminal of at least that width.
_COLUMNS_FROM = {110: 6, 95: 5, 70: 4, 55: 3, 0: 2}
_Limit = Annotated[int, typer.Option(min=1, help="How many at most.")]
_Offset = Annotated[int, typer.Option(min=0, help="How many to skip.")]
_Workspace = Annotated[Path | None, typer.Option("--workspace", "-w", help="Only chats of this folder.")]
_Id = Annotated[str | None, typer.Argument(help="The chat's id, or its beginning; without it, the latest chat.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(no_args_is_help=True, help="What was asked in your editors: list, show, search, export.")
    group.command("list")(list_chats)
    for command in (show, search, export):
        group.command()(command)
    app.add_typer(group, name="chats")


def list_chats(
    limit: _Limit = 20,
    offset: _Offset = 0,
    workspace: _Workspace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List chats, the latest first."""
    from pegboard.toolsets.chats.answers import page_info, session_row

    async def work(chats: Chats) -> dict[str, Any]:
        with _bar("Reading chats") as on_progress:
            page = await chats.list(limit, offset, _absolute(workspace), on_progress=on_progress)
        return {"sessions": [session_row(session) for session in page.items], **page_info(page)}

    finish(_with_chats(config, work), as_json=as_json, show=_show_list)


def show(
    chat: _Id = None,
    request: Annotated[int | None, typer.Option("--request", "-r", min=1, help="Only this request, from 1.")] = None,
    workspace: _Workspace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a chat: what was asked, done and answered."""
    from pegboard.toolsets.chats.answers import session_row, turn
    from pegboard.toolsets.chats.export import markdown

    async def work(chats: Chats) -> dict[str, Any]:
        session = await _session(chats, chat, workspace)
        if request is None:
            found = await chats.requests(session)
        else:
            found = [await chats.request(session, request)]
        first = request or 1
        turns = [turn(index, each) for index, each in enumerate(found, first)]
        return {**session_row(session), "requests": turns, "markdown": markdown(session, found, first)}

    answer = _with_chats(config, work)
    text = answer["data"].pop("markdown") if answer["success"] else ""
    finish(answer, as_json=as_json, show=lambda _: _show_markdown(text))


def search(
    query: Annotated[str, typer.Argument(help='Words, and "phrases" in quotes.')],
    limit: _Limit = 10,
    offset: _Offset = 0,
    workspace: _Workspace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search what was asked and answered."""
    if not query.strip():
        stop("say what to search for", WRONG_CALL)
    from pegboard.toolsets.chats.answers import hit_row, page_info

    async def work(chats: Chats) -> dict[str, Any]:
        with _bar("Reading chats") as on_progress:
            page = await chats.search(query, limit, offset, _absolute(workspace), on_progress=on_progress)
        return {"results": [hit_row(hit) for hit in page.items], **page_info(page)}

    finish(_with_chats(config, work), as_json=as_json, show=_show_hits)


def export(
    chats: Annotated[
        list[str] | None, typer.Argument(metavar="CHAT", help="Ids of chats, or their beginnings.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", "-o", help="The file to write; for several chats, a folder. Without it, the text is printed."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    every: Annotated[bool, typer.Option("--all", help="All chats, or all of --workspace.")] = False,
    workspace: _Workspace = None,
    config: ConfigOption = None,
) -> None:
    """Write chats as Markdown."""
    if every == bool(chats):
        stop("name the chats to export, or say --all", WRONG_CALL)
    into_folder = every or len(chats or ()) > 1 or (to is not None and to.is_dir())
    if into_folder and to is None:
        stop("several chats need a folder: --to FOLDER", WRONG_CALL)
    if to is not None and not into_folder and not force and to.exists():
        stop(f"{to} is there already: name another file, or say --force", WRONG_CALL)

    async def work(open_chats: Chats) -> dict[str, Any]:
        sessions = await _select(open_chats, chats or (), every=every, workspace=workspace)
        written: list[str | None] = []
        failed: list[str] = []
        for session in sessions:
            try:
                written.append(await _export(open_chats, session, to, into_folder))
            except OSError as exc:
                # The others can still be written.
                failed.append(f"{session.session_id}: {exc}")
        return {"files": written, "failed": failed}

    finish(_with_chats(config, work), as_json=False, show=_show_files)


async def _select(chats: Chats, names: Sequence[str], *, every: bool, workspace: Path | None) -> list[ChatSession]:
    if not every:
        return [await _session(chats, name, workspace) for name in dict.fromkeys(names)]
    with _bar("Reading chats") as on_progress:
        page = await chats.list(sys.maxsize, 0, _absolute(workspace), on_progress=on_progress)
    return list(page.items)


async def _export(chats: Chats, session: ChatSession, to: Path | None, into_folder: bool) -> str | None:
    from pegboard.toolsets.chats.export import file_name, markdown

    text = markdown(session, await chats.requests(session))
    if to is None:
        print(plain(text) if sys.stdout.isatty() else text)
        return None
    if into_folder:
        to.mkdir(parents=True, exist_ok=True)
    file = to / file_name(session) if into_folder else to
    # Beside it first: whoever has the file open never sees half of it.
    draft = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, "utf-8")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return str(file)


async def _session(chats: Chats, name: str | None, workspace: Path | None) -> ChatSession:
    """The chat of that id, or the only one whose id begins so; without a name the latest."""
    from pegboard.result import invalid
    from pegboard.toolsets.chats.chats import NotThere

    folder = _absolute(workspace)
    if name is None:
        newest = await chats.newest([folder] if folder else None)
        if newest is None:
            raise NotThere("there are no chats here")
        return newest
    try:
        return await chats.session(name)
    except NotThere:
        page = await chats.list(sys.maxsize)
        alike = [session for session in page.items if session.session_id.startswith(name)]
        if len(alike) > 1:
            ids = ", ".join(session.session_id for session in alike[:5])
            raise invalid(f"{len(alike)} chats begin with {name}: {ids}{' …' if len(alike) > 5 else ''}") from None
        if not alike or not name:
            raise
        return alike[0]


def _with_chats(config: Path | None, work: Callable[[Chats], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    settings = load_settings(find_config(config))
    quiet_logs()
    from pegboard.result import as_result
    from pegboard.toolsets.chats.chats import Chats, local_sources
    from pegboard.toolsets.chats.index import chat_index
    from pegboard.toolsets.chats.settings import ChatsSettings

    async def run() -> dict[str, Any]:
        index = chat_index()
        chats = Chats(index, local_sources(exports=map(Path, settings.of(ChatsSettings).exports)))
        try:
            return (await as_result(_on_own_storage(work(chats)))).to_dict()
        finally:
            await chats.close()
            await index.close()

    return asyncio.run(run())


async def _on_own_storage(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Work of a command itself: that its storage cannot be used says nothing about a server, and it may say where."""
    from pegboard.result import ToolErrorCode, ToolFailure
    from pegboard.storage import StorageError

    try:
        return await work
    except StorageError as exc:
        raise ToolFailure(ToolErrorCode.EXECUTION_FAILED, str(exc), retryable=False) from None


@contextmanager
def _bar(what: str) -> Generator[OnProgress | None]:
    """A progress bar on a terminal; the first time there may be thousands of files."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def on_progress(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield on_progress


def _absolute(workspace: Path | None) -> str | None:
    if workspace is None:
        return None
    folder = workspace.expanduser().resolve()
    if not folder.is_dir():
        # Chats may well be of a folder that was deleted since.
        say(f"note: there is no folder {folder}", error=True)
    return str(folder)


def _show_list(data: dict[str, Any]) -> None:
    columns = _columns()
    ids = [each["sessionId"] for each in data["sessions"]]
    # On a terminal as much of an id as `show` needs; a program gets it whole.
    length = _SHORT_ID if sys.stdout.isatty() and len({each[:_SHORT_ID] for each in ids}) == len(ids) else None
    # Whatever else is cut, what `show` takes is not.
    rows = TerminalTable(*columns, least=min(max((len(each[:length]) for each in ids), default=0), _WHOLE_ID))
    for each in data["sessions"]:
        title = one_line(each["title"] or "")
        cells = (
            *(each["sessionId"][:length], title, ago(each["lastActivity"])),
            *(str(each["requestsCount"]), each["workspace"] or "", each["source"]),
        )
        rows.add(*cells[: len(columns)])
    if not data["sessions"]:
        print("No chats.")
        return
    rows.show()
    _show_rest(data, len(data["sessions"]))


def _columns() -> Sequence[str]:
    """What there is room for; what a chat is called by comes first."""
    from rich.console import Console

    console = Console()
    room = console.width if console.is_terminal else sys.maxsize
    shown = next(count for least, count in _COLUMNS_FROM.items() if room >= least)
    return ("id", "title", "last activity", "requests", "workspace", "source")[:shown]


def _show_hits(data: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for hit in data["results"]:
        where = f" in {hit['workspace']}" if hit["workspace"] else ""
        title = one_line(hit["title"] or "")
        console.print(verbatim("").append(title, "bold").append(where))
        console.print(verbatim("  ").append(f"{hit['sessionId']} --request {hit['index']}", "dim"))
        console.print(verbatim("  ").append(highlight(hit["excerpt"], "bold yellow")))
    if not data["results"]:
        print("Nothing found.")
    _show_rest(data, len(data["results"]))


def _show_rest(data: dict[str, Any], shown: int) -> None:
    page = data["pagination"]
    if page["hasMore"]:
        print(f"{page['total']} in all; the next: --offset {page['offset'] + shown}")


def _show_markdown(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    text = plain(text)
    console = Console()
    if console.is_terminal:
        # A link would be an escape sequence with an address of others in it.
        console.print(Markdown(text, hyperlinks=False))
    else:
        print(text)


def _show_files(data: dict[str, Any]) -> None:
    written = [file for file in data["files"] if file is not None]
    for file in written[:_MOST_SHOWN]:
        print(file)
    if len(written) > _MOST_SHOWN:
        print(f"… {len(written)} files in all")
    failed: list[str] = data["failed"]
    if failed:
        stop("\n".join([f"{len(failed)} could not be written", *failed]), FAILED)
