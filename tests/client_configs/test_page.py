"""docs/clients.md has a section for every client, made from the table: it cannot say anything else than the program."""

from __future__ import annotations

import os
from pathlib import Path

from client_configs.places import SYSTEMS
from pegboard.client_configs.entries import EntryTarget, build_entry, snippet
from pegboard.client_configs.place import Place, System
from pegboard.client_configs.program import ClientProgram, Scope
from pegboard.client_configs.table import CLIENTS

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"
START, END = "<!-- clients: written by tests/client_configs/test_page.py -->\n", "<!-- end of clients -->\n"
LANGUAGES = {"json": "json", "jsonc": "json", "toml": "toml", "yaml": "yaml"}
NAMES = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}


def place_on_paper(system: System) -> Place:
    windows = {"APPDATA": "%APPDATA%", "LOCALAPPDATA": "%LOCALAPPDATA%"}
    home = "%USERPROFILE%" if system == "windows" else "~"
    return Place(system, Path(home), windows if system == "windows" else {}, Path("PROJECT"))


def path_on_paper(client: ClientProgram, system: System, scope: Scope = "user") -> str:
    place = place_on_paper(system)
    files = client.user_files(place) if scope == "user" else client.project_files(place)
    written = client.target(place, scope)
    file = written or (files[0] if files else None)
    path = "" if file is None else file.path.as_posix().removeprefix("PROJECT/")
    return path.replace("/", "\\") if system == "windows" else path


def section(client: ClientProgram) -> str:
    """What a person wants to know about one client."""
    target = EntryTarget(f"http://127.0.0.1:7420/mcp/{client.id}")
    if not client.style.takes_http:
        target = EntryTarget(command="/path/to/pegboard", args=("stdio", "--board", client.id))
    entry = build_entry(client.style, target, "pegboard")
    written = client.target(place_on_paper("linux")) is not None
    language = LANGUAGES[client.user[0].format] if client.user else "json"
    lines = [f"### {client.name}", "", "```sh", f"pegboard install {client.id}", "```", ""]
    lines += [f"- {line}" for line in facts(client, written=written)]
    lines += ["", f"```{language}", snippet(client, "pegboard", entry).rstrip(), "```", ""]
    return "\n".join(lines)


def facts(client: ClientProgram, *, written: bool) -> list[str]:
    paths = {system: path_on_paper(client, system) for system in SYSTEMS}
    unix = f"`{paths['linux']}`"
    if paths["macos"] != paths["linux"]:
        unix = f"`{paths['linux']}` on Linux, `{paths['macos']}` on macOS"
    said = [f"{'File' if written else 'File, which you change yourself'}: {unix}, `{paths['windows']}` on Windows."]
    if not paths["linux"]:
        said = ["It has no file: you paste the entry into its settings."]
    if not written:
        said.append("Pegboard prints the entry, and writes nothing.")
    if project := path_on_paper(client, "linux", "project"):
        said.append(f"Of a project, with `--scope project`: `{project}`.")
    if not client.style.takes_http:
        said.append("The entry is always a command.")
    if client.link is not None:
        said.append(f"One-click link: `pegboard install {client.id} --link`.")
    said.append(f"Then: {client.reload.format(name=client.name)}.")
    return said


def sections() -> str:
    installable = [client for client in CLIENTS if not client.import_only]
    others = [client for client in CLIENTS if client.import_only]
    listed = ", ".join(f"{client.name} (`{client.id}`)" for client in others)
    return "\n".join(
        [*map(section, installable), f"Pegboard knows the files of these, and does not write them: {listed}.\n"]
    )


def test_every_client_has_its_section() -> None:
    """`UPDATE_DOCS=1` writes them again."""
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    page = f"{before}{START}\n{sections()}\n{END}{after}"
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page, "utf-8")
        text = page
    assert text == page


def test_the_table_of_variables_has_those_that_are_read() -> None:
    """A variable that moves a file stands on the page."""
    asked: set[str] = set()

    class Recorder(dict[str, str]):
        def get(self, key: str, default: str = "") -> str:  # type: ignore[override]
            asked.add(key)
            return default

    for system in SYSTEMS:
        place = Place(system, Path("/h"), Recorder(), Path("/p"))
        for client in CLIENTS:
            client.is_present(place)
            client.user_files(place)
    asked -= {"PATH"}
    text = PAGE.read_text("utf-8")
    assert asked
    assert [name for name in sorted(asked) if f"`{name}`" not in text] == []


def test_the_readme_names_every_client() -> None:
    """By the word that `pegboard install` takes."""
    text = (PAGE.parent.parent / "README.md").read_text("utf-8")
    table = text.partition("| client | `pegboard install …` |")[2]
    assert [client.id for client in CLIENTS if not client.import_only and f"`{client.id}`" not in table] == []
