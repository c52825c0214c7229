"""The first page is walked through as a new user does, and shows what the commands say."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator

import pytest

from docpages.newcomer import Newcomer, comparable
from docpages.pages import DOCS
from docpages.walk import outputs, walk

PAGE = DOCS / "get-started.md"


@pytest.fixture
def newcomer() -> Generator[Newcomer]:
    """Somebody with two clients and three servers."""
    somebody = Newcomer()
    yield somebody
    somebody.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the page shows the folders of Linux")
def test_the_first_page_shows_what_its_commands_say(newcomer: Newcomer) -> None:
    """Every command, in the order of the page; `UPDATE_DOCS=1` writes what they say into it."""
    page = PAGE.read_text("utf-8")
    walked = walk(page, newcomer)
    if os.environ.get("UPDATE_DOCS") and essence(walked) != essence(page):
        PAGE.write_text(walked, "utf-8")
        page = walked
    assert essence(walked) == essence(page)
    assert len(outputs(page)) > 5


def essence(page: str) -> dict[str, str]:
    """What each command says, without what differs from run to run."""
    return {command: comparable(text) for command, text in outputs(page).items()}
