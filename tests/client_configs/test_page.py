"""docs/clients.md names everything that moves the files of clients; tests/test_docs.py has their pages."""

from __future__ import annotations

from pathlib import Path

from client_configs.places import SYSTEMS
from pegboard.client_configs.place import Place
from pegboard.client_configs.table import CLIENTS

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"


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
