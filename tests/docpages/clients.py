"""A page for each client program, from the table that `pegboard install` uses and from words of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from docpages.client_notes import NOTES
from docpages.generated import HOW, table
from docpages.pages import DOCS
from pegboard.client_configs.entries import EntryTarget, build_entry, snippet
from pegboard.client_configs.place import Place, System
from pegboard.client_configs.program import ClientProgram, FileSpec
from pegboard.client_configs.table import CLIENTS

SYSTEMS: tuple[tuple[System, str], ...] = (("linux", "Linux"), ("macos", "macOS"), ("windows", "Windows"))
FORMATS = {"json": "JSON", "jsonc": "JSON with comments", "toml": "TOML", "yaml": "YAML"}
FENCES = {"json": "json", "jsonc": "json", "toml": "toml", "yaml": "yaml"}
OTHERS = "others.md"
OVERVIEW = DOCS / "clients.md"
START, END = "<!-- clients: written by tests/test_docs.py -->\n", "<!-- end of clients -->\n"


def installable() -> list[ClientProgram]:
    """The clients that Pegboard can be put into: each has a page."""
    return [client for client in CLIENTS if not client.import_only]


def client_pages() -> dict[str, str]:
    """The text of each page by its file name, and one page for all that are only read."""
    pages = {f"{client.id}.md": client_page(client) for client in installable()}
    return {**pages, OTHERS: others_page()}


def overview() -> str:
    """The page of all clients, with a table that leads to each page."""
    text = OVERVIEW.read_text("utf-8")
    rows = [
        (f"[{client.name}](clients/{client.id}.md)", f"`pegboard install {client.id}`", _kind(client))
        for client in installable()
    ]
    listed = table(("client", "command", "connected by"), *rows)
    rest = f"[Other clients](clients/{OTHERS}): their servers can be taken over, their files are not written."
    return f"{text.partition(START)[0]}{START}\n{listed}\n\n{rest}\n\n{END}{text.partition(END)[2]}"


def _kind(client: ClientProgram) -> str:
    return "address or command" if client.style.takes_http else "command"


def client_page(client: ClientProgram) -> str:
    """Connect, take over, undo; where the files are; what to paste by hand."""
    parts = [
        f"# {client.name}\n",
        *_notes(client),
        *_connect(client),
        *_take_over(client),
        *_files(client),
        *_by_hand(client),
        f"{HOW}\n",
    ]
    return "\n".join(parts)


def _notes(client: ClientProgram) -> Iterator[str]:
    if client.id in NOTES:
        yield f"{NOTES[client.id]}\n"


def _connect(client: ClientProgram) -> Iterator[str]:
    yield "## Connect\n"
    if _is_written(client):
        yield f"```sh\npegboard install {client.id}\n```\n"
        yield (
            "The command shows what will change in the file, and asks. A backup is kept. "
            "`--dry-run` only shows the change."
        )
    else:
        yield f"```sh\npegboard install {client.id} --print\n```\n"
        yield f"Pegboard does not write a file of {client.name}. The command prints what to paste."
    reload = client.reload.format(name=client.name)
    yield f"Then {reload}.\n" if _is_written(client) else f"{reload[0].upper()}{reload[1:]}.\n"
    if client.link is not None:
        yield (
            f"`pegboard install {client.id} --link` prints a link. When you open it, "
            f"{client.name} offers to add Pegboard.\n"
        )
    if any(spec.is_written for spec in client.project):
        yield f"`pegboard install {client.id} --scope project` writes the file of the project in this folder.\n"
    if _is_written(client):
        yield f"To undo it:\n\n```sh\npegboard uninstall {client.id}\n```\n"


def _take_over(client: ClientProgram) -> Iterator[str]:
    if client.user:
        yield "## Take over its servers\n"
        yield f"```sh\npegboard import {client.id}\n```\n"
        yield (
            f"The command lists the servers of {client.name}, and asks before it adds them to Pegboard. "
            f"It does not change the file of {client.name}. "
            "See [Move in from another client](../moving-in.md).\n"
        )


def _files(client: ClientProgram) -> Iterator[str]:
    if not client.user:
        return
    yield "## Where its config is\n"
    rows = [*_file_rows("you", client.user), *_file_rows("a project", client.project)]
    yield table(("for", *(name for _, name in SYSTEMS), "format", "key", "Pegboard"), *rows) + "\n"


def _file_rows(whose: str, specs: Sequence[FileSpec]) -> Iterator[tuple[str, ...]]:
    for spec in specs:
        paths = [shown_path(spec, system) for system, _ in SYSTEMS]
        key = ".".join("(the folder)" if part == "{project}" else part for part in spec.key)
        use = "writes and reads" if spec.is_written else "reads"
        yield (whose, *paths, FORMATS[spec.format], f"`{key}`", use)


def shown_path(spec: FileSpec, system: System) -> str:
    """The path of a file as people write it: `~` or `%APPDATA%`, not one machine's own."""
    if system not in spec.systems:
        return "-"
    home = "%USERPROFILE%" if system == "windows" else "~"
    folders = {name: f"%{name}%" for name in ("APPDATA", "LOCALAPPDATA")}
    place = Place(system, Path(home), folders if system == "windows" else {}, Path())
    path = place.expand(spec.on.get(system, spec.template)).as_posix()
    return f"`{path.replace('/', chr(92)) if system == 'windows' else path}`"


def _by_hand(client: ClientProgram) -> Iterator[str]:
    yield "## By hand\n"
    fence = FENCES[client.user[0].format if client.user else "json"]
    if client.style.takes_http:
        yield "If `pegboard serve` is running:\n"
        yield _snippet(client, EntryTarget(url=f"http://127.0.0.1:7420/mcp/{client.id}"), fence)
        yield f"If not, {client.name} can start Pegboard itself:\n"
    yield _snippet(client, EntryTarget(command="pegboard", args=("stdio", "--board", client.id)), fence)
    yield (
        f"`{client.id}` is the name of the [board](../guides/boards.md): it keeps the tools that were loaded. "
        "If the client cannot find the command, write its whole path: `which pegboard` shows it.\n"
    )


def _snippet(client: ClientProgram, target: EntryTarget, fence: str) -> str:
    return f"```{fence}\n{snippet(client, 'pegboard', build_entry(client.style, target, 'pegboard'))}```\n"


def _is_written(client: ClientProgram) -> bool:
    return any(spec.is_written for spec in client.user)


def others_page() -> str:
    """The clients whose servers can be taken over, and no more."""
    rows = [
        (client.name, f"`{client.id}`", *(shown_path(spec, system) for system, _ in SYSTEMS))
        for client in CLIENTS
        if client.import_only
        for spec in client.user
    ]
    words = (
        "`pegboard import ID` takes over the servers of these clients. Pegboard does not write into their files. "
        "To connect such a client, paste the [address or the command](../clients.md) into its settings."
    )
    return "\n".join(
        [
            "# Other clients\n",
            f"{words}\n",
            table(("client", "id", *(name for _, name in SYSTEMS)), *rows) + "\n",
            f"{HOW}\n",
        ]
    )
