"""Documented or it does not exist: commands, settings, routes, clients, packages; and links lead somewhere."""

from __future__ import annotations

import inspect
import re
import tomllib

import pytest

from docpages.clients import OVERVIEW, client_pages, overview
from docpages.commands import commands_page
from docpages.generated import check_page
from docpages.messages import is_said, quoted_messages
from docpages.pages import DOCS, ROOT, DocPage, all_pages
from docpages.rest import rest_page
from pegboard.config import own, read, settings
from pegboard.toolsets.installed import load_parts

PAGES = {page.name: page for page in all_pages()}
CLIENT_PAGES = client_pages()


def test_the_page_of_commands_is_their_help() -> None:
    """The docs cannot say anything else than the program."""
    check_page(DOCS / "commands.md", commands_page())


def test_the_page_of_rest_is_the_openapi_document() -> None:
    """Every route with its parameters, as the gateway describes it itself."""
    check_page(DOCS / "rest.md", rest_page())


@pytest.mark.parametrize("name", sorted(CLIENT_PAGES))
def test_the_page_of_a_client_is_written_from_the_table_that_install_uses(name: str) -> None:
    """Files, keys and entries on a page are those that `pegboard install` writes."""
    check_page(DOCS / "clients" / name, CLIENT_PAGES[name])


def test_the_page_of_all_clients_leads_to_each() -> None:
    """Every client that Pegboard can be put into."""
    check_page(OVERVIEW, overview())


def test_there_is_no_page_of_a_client_that_the_table_does_not_have() -> None:
    """A client that leaves the table takes its page along."""
    assert {page.name for page in (DOCS / "clients").glob("*.md")} == set(CLIENT_PAGES)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_links_lead_to_a_page_and_a_heading(page: DocPage) -> None:
    """A link to a file names one of this project; behind `#` stands one of its headings."""
    for link in page.links():
        path, _, heading = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.path.parent / path).resolve() if path else page.path
        assert target.exists(), link
        assert not heading or heading in DocPage(target).anchors(), link


def keys_in_table(heading: str) -> set[str]:
    """The keys in the first column of the table under a heading of docs/config.md."""
    section = (DOCS / "config.md").read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`([\w.]+)`", cell)}


def test_the_settings_of_a_server_are_documented_and_no_others() -> None:
    """The table has the keys that the reader knows; other words for them stand in the texts."""
    documented = {key.partition(".")[0] for key in keys_in_table("A server")}
    assert documented == read.KEYS - {"serverUrl", "disabled"}


def test_the_settings_of_pegboard_are_documented_and_no_others() -> None:
    """The table has the keys of the `pegboard` section, those of toolsets included."""
    assert {key.partition(".")[0] for key in keys_in_table("`pegboard`")} == set(own.settings_keys())


@pytest.mark.parametrize("toolset", sorted(load_parts("settings")))
def test_the_settings_of_a_toolset_are_documented_and_no_others(toolset: str) -> None:
    """`memory.namespace` and the like: each key that the toolset's reader asks for."""
    asked = re.findall(r'\.get\("(\w+)"\)', inspect.getsource(load_parts("settings")[toolset]))
    documented = {key for key in keys_in_table("`pegboard`") if key.startswith(f"{toolset}.")}
    assert documented == {f"{toolset}.{key}" for key in asked}


def test_defaults_are_documented_as_they_are() -> None:
    """The table's default is the code's."""
    page = (DOCS / "config.md").read_text("utf-8")
    spec = settings.ServerSpec(name="x", given_name="x")
    for key, value in {
        "timeout": spec.timeout,
        "connectTimeout": spec.connect_timeout,
        "startTimeout": spec.start_timeout,
        "idleTimeout": spec.idle_timeout,
        "ttl": spec.ttl,
        "maxNameLength": settings.Settings().max_name_length,
    }.items():
        assert re.search(rf"\| `{key}` \| {value:g} \|", page), key


def test_every_dependency_has_its_reason() -> None:
    """A package at run time has a line in docs/dependencies.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (DOCS / "dependencies.md").read_text("utf-8")
    names = [re.split(r"[\[>=<]", dependency)[0] for dependency in project["dependencies"]]
    assert [name for name in names if name not in page] == []


def test_versions_are_pinned_by_name_alone() -> None:
    """constraints.txt holds `name==version` lines; no lock file holds an address."""
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
    for folder in ("node", "screenshots"):
        assert "://" not in (ROOT / "tests" / folder / "package-lock.json").read_text("utf-8")


@pytest.mark.parametrize("message", quoted_messages(PAGES["docs/troubleshooting.md"]))
def test_a_message_that_is_explained_is_one_of_the_program(message: str) -> None:
    """People search the page for the words that they see."""
    assert is_said(message)


@pytest.mark.parametrize(
    ("message", "said"),
    [("server … is disabled", True), ("server … is disbled", False), ("disabled … is server", False)],
)
def test_a_message_that_nobody_says_is_noticed(message: str, said: bool) -> None:
    """The check itself can fail."""
    assert is_said(message) is said
