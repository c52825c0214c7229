"""A year of a real server's releases, taken through every policy; and real tools, looked through for hidden text.

The figures stand in docs/changes.md.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness import HERE
from pegboard.catalog.definitions import hiding_problem
from pegboard.config import ServerSpec
from pegboard.config.settings import ChangePolicy
from pegboard.pins.lock_file import lock_document, lock_path, write_lock
from pegboard.pins.pins import Pins
from pegboard.storage import Storage
from pins.corpus import load_history, load_tools

pytestmark = pytest.mark.anyio

SPEC = ServerSpec(name="github", given_name="github", command="github")
DOCS = (HERE.parent / "docs" / "changes.md").read_text("utf-8")


@dataclass
class Figures:
    """What a replay adds up to."""

    counts: Counter[str] = field(default_factory=Counter[str])
    # How much of each release changed.
    changed: list[int] = field(default_factory=list[int])
    # In how many releases there was something to decide.
    decisions: int = 0


async def replay(storage: Storage, policy: ChangePolicy, *, decides: bool) -> Figures:
    """All releases, one after the other; whoever decides accepts each at once."""
    pins, figures = Pins(storage.pins, lambda _: policy), Figures()
    await pins.open()
    for release in load_history():
        tools = list(release.tools)
        review = await pins.review(SPEC, "tool", tools, version=release.version)
        said = {tool["name"]: tool for tool in tools}
        served = {tool["name"]: tool for tool in review.served}
        changes = [change for change in review.changes if change.what != "gone"]
        figures.changed.append(sum(change.what == "changed" for change in changes))
        for change in changes:
            name = change.name
            state = (
                "withheld" if name in review.withheld else "as said" if served[name] == said[name] else "as approved"
            )
            figures.counts[f"{change.what} {state}"] += 1
        figures.counts["renamed"] += sum(bool(change.renamed_from) for change in review.changes)
        if any(change.waits for change in review.changes):
            figures.decisions += 1
            assert len({(change.at, change.version) for change in changes}) == 1
        if decides:
            await pins.decide(SPEC, review.changes, accept=True)
    return figures


@pytest.mark.scenario("changes: One decision is enough for a release")
async def test_holding_a_year_of_releases_is_bearable(sqlite_storage: Storage) -> None:
    """Most changes go on being served as they were approved, and a release needs one decision at most."""
    figures = await replay(sqlite_storage, "hold", decides=True)
    releases = len(load_history()) - 1
    assert releases == 61
    assert sum(figures.changed) <= 157
    assert figures.decisions <= releases
    assert figures.counts["changed as said"] == figures.counts["new as said"] == 0
    assert _figures_of("hold") == [
        *(sum(figures.changed), figures.counts["changed as approved"], figures.counts["changed withheld"]),
        *(figures.counts["new withheld"], figures.decisions),
    ]


async def test_telling_serves_all_as_it_comes(sqlite_storage: Storage) -> None:
    """The same changes are listed, and nothing is withheld."""
    figures = await replay(sqlite_storage, "tell", decides=True)
    assert not any("withheld" in what or "approved" in what for what in figures.counts)
    assert _figures_of("tell") == [sum(figures.changed), 0, 0, 0, figures.decisions]


async def test_following_has_nothing_to_decide(sqlite_storage: Storage) -> None:
    """Every release is the approved one."""
    assert await replay(sqlite_storage, "follow", decides=False) == Figures(
        changed=[0] * len(load_history()), counts=Counter({"renamed": 0})
    )


async def test_a_lock_holds_a_year_long(sqlite_storage: Storage, tmp_path: Path) -> None:
    """With the first release in the lock file, nothing of a later one is ever served that differs from it."""
    first, *_, last = load_history()
    config = tmp_path / "pegboard.json"
    tools = {"tool": {tool["name"]: tool for tool in first.tools}}
    write_lock(config, lock_document({"github": tools}), is_partial=False)
    pins = Pins(sqlite_storage.pins, lambda _: "locked")
    await pins.apply(lock_path(config))
    for release in load_history():
        review = await pins.review(SPEC, "tool", list(release.tools), version=release.version)
        locked = {tool["name"]: tool for tool in first.tools}
        for tool in review.served:
            approved = dict(locked[tool["name"]])
            said = next(each for each in release.tools if each["name"] == tool["name"])
            assert tool in (approved, said)
            differs = any(change.name == tool["name"] for change in review.changes)
            assert not differs or {**approved, "outputSchema": None} == {**tool, "outputSchema": None}
    review = await pins.review(SPEC, "tool", list(last.tools), version=last.version)
    assert _figures_of("locked") == [
        sum(change.what == "changed" for change in review.changes),
        sum(change.what == "changed" and change.name not in review.withheld for change in review.changes),
        sum(change.what == "changed" and change.name in review.withheld for change in review.changes),
        sum(change.what == "new" and change.name in review.withheld for change in review.changes),
        0,
    ]


@pytest.mark.scenario("changes: No real tool is taken for one that hides")
def test_no_real_tool_hides_anything() -> None:
    """Not one false alarm among all that are known."""
    tools: dict[str, Any] = {str(tool): tool for tool in load_tools()}
    tools |= {str(tool): tool for release in load_history() for tool in release.tools}
    assert len(tools) >= 600
    assert [problem for tool in tools.values() if (problem := hiding_problem(tool))] == []


def _figures_of(policy: str) -> list[int]:
    """The numbers in the row of a policy in the docs."""
    row = next(line for line in DOCS.splitlines() if line.startswith(f"| `{policy}` |") and re.search(r"\| \d", line))
    return [int(cell) for cell in row.split("|")[2:] if cell.strip()]
