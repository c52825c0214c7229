"""What stands in a cloned repository holds up nobody, whatever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwatch import in_thread, loopwatch, served_during
from pegboard.toolsets.tasks.markdown import headings, plain_lines
from pegboard.toolsets.tasks.requirements import sections
from tasks.project import write
from tasks.test_rest import rest

pytestmark = pytest.mark.anyio

BLANKS = " " * 25_000
HOSTILE = {
    "changes/a/proposal.md": f"# a{BLANKS}b\n",
    "changes/a/tasks.md": "- " * 200_000 + "\n" + f"- [ ] {'1' * 25_000}\n" + "- [ ] x\n" * 2_000,
    "changes/a/specs/s/spec.md": (
        f"## RENAMED Requirements\n{BLANKS}-{BLANKS}FROM\n- FROM: `### Requirement: a{BLANKS}b\n"
    ),
    "specs/s/spec.md": "### Requirement: a\n" + "x\n" * 50_000,
}


async def test_hostile_files_hold_up_nobody(tmp_path: Path) -> None:
    """While they are listed, synced and checked, everybody else is served."""
    async with rest(tmp_path) as (http, root):
        await in_thread(lambda: write(root, HOSTILE))
        for path in ("/api/tasks", "/api/tasks/next", "/api/tasks/graph"):
            with loopwatch() as watch:
                served = await served_during(http.get(path, timeout=60), lambda: http.get("/health"))
            watch.check()
            assert served


async def test_twenty_thousand_tasks_are_listed_beside_the_loop(tmp_path: Path) -> None:
    """To filter, count and show them is no work of the event loop."""
    async with rest(tmp_path) as (http, root):
        lines = "\n".join(f"- [ ] {number}.1 Task {number}" for number in range(1_000))
        await in_thread(lambda: write(root, {f"changes/c{number}/tasks.md": lines for number in range(20)}))
        await http.post("/api/tasks/sync", timeout=60)
        with loopwatch() as watch:
            answer = await http.get("/api/tasks", params={"limit": 5}, timeout=60)
        assert answer.json()["data"]["total"] >= 20_000
        watch.check(0.03)


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Words", "Words"),
        ("#  Words  ##", "Words"),
        ("# Words #not", "Words #not"),
        ("# Words#", "Words#"),
        ("# #", "#"),
        ("# ", ""),
        ("###### Six", "Six"),
    ],
)
def test_headings_are_read_as_commonmark_does(line: str, title: str) -> None:
    """With and without marks that close them."""
    assert [heading.title for heading in headings(plain_lines(line).plain)] == [title]


@pytest.mark.parametrize("line", ["#", "#Words", "####### Seven"])
def test_other_lines_are_no_headings(line: str) -> None:
    """A blank has to follow one to six marks."""
    assert headings(plain_lines(line).plain) == []


def test_names_of_requirements_may_stand_between_backquotes() -> None:
    """In lists of what is removed or renamed."""
    (_, section) = sections(
        "## RENAMED Requirements\n- FROM: `### Requirement: Old `\n  - TO: ### requirement:  New  \n"
        "- `### Requirement: Third`"
    )
    assert list(section.renames()) == [("Old", "New", 3)]
    assert [name for name, _ in section.names()] == ["Third"]
