"""Who waits for whom, drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pegboard.result import ToolFailure
from pegboard.toolsets.tasks.graph import draw_graph
from pegboard.toolsets.tasks.registry import Registry
from tasks.project import write_tasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> str:
    """One database will do: nothing here is about what is kept."""
    return f"sqlite:{tmp_path / 'state' / 'pegboard.db'}"


async def test_a_tree_for_a_terminal(registry: Registry, root: Path) -> None:
    """Below each task those that wait for it; what is missing, in a circle, or shown already is said to be."""
    write_tasks(
        root,
        login=(
            "- [x] Plan\n- [ ] Build <!-- depends: 1 -->\n- [ ] Test <!-- depends: 1 -->\n"
            "- [ ] Ship <!-- depends: 2, 3, users/9 -->\n- [ ] Alone\n"
        ),
        users="- [ ] One <!-- depends: 2 -->\n- [ ] Two <!-- depends: 1 -->\n",
    )
    await registry.update("login/2", status="in_progress")
    picture = (await draw_graph(registry, "text"))["graph"]
    assert picture == (
        "☑ login/1  Plan\n"
        "├─ ▶ login/2  Build\n"
        "│  └─ ☐ login/4  Ship  (waits)\n"
        "└─ ☐ login/3  Test\n"
        "   └─ ☐ login/4  Ship  (waits)\n"
        "✗ users/9  (does not exist)\n"
        "└─ ☐ login/4  Ship  (waits)\n"
        "☐ users/1  One  (in a cycle)\n"
        "└─ ☐ users/2  Two  (in a cycle)\n"
        "   └─ ☐ users/1  One  (a cycle)\n"
    )
    rows = (await draw_graph(registry, "rows"))["rows"]
    assert rows[1] == ["├─ ", "in_progress", "login/2  Build", ""]


async def test_mermaid(registry: Registry, root: Path) -> None:
    """An arrow from what is needed; words that would mean something to Mermaid do not."""
    write_tasks(
        root, a='- [x] Plan "it"; end\n- [ ] <b>`x`</b> & ] --> y <!-- depends: 1, b/1 -->\n', b="- [ ] Other\n"
    )
    text = (await draw_graph(registry))["graph"]
    assert text.startswith("flowchart LR\n")
    assert "    t0 --> t1\n    t2 --> t1\n" in text
    assert ":::completed" in text
    labels = re.findall(r't\d\["(.*)"\]:::', text)
    assert len(labels) == 3
    write_tasks(root, b="nothing\n")
    assert 't2["1: does not exist"]:::missing' in (await draw_graph(registry))["graph"]
    assert not any(character in label for label in labels for character in '"<>`&[]')


async def test_no_label_is_markdown(registry: Registry, root: Path) -> None:
    """Mermaid reads labels as Markdown: with `1. ` a list would begin, which it does not draw, and `_x_` would lean."""
    write_tasks(root, a="- [ ] 1. _Plan_ *it*\n- [ ] - two\x1b[31m\u202e <!-- depends: 1 -->\n")
    labels = re.findall(r't\d\["(.*)"\]:::', (await draw_graph(registry))["graph"])
    assert labels == ["1: 1. #95;Plan#95; #42;it#42;", "2: - two#91;31m"]


async def test_mermaid_draws_what_it_is_given(registry: Registry, root: Path) -> None:
    """At most 500 arrows and 50,000 characters, which are its own limits; what is left out is said."""
    long = "[[[[[[" * 20
    web = "- [ ] first\n" + "".join(
        f"- [ ] n <!-- depends: {', '.join(map(str, range(1, n)))} -->\n" for n in range(2, 60)
    )
    write_tasks(root, web=web, long="- [ ] a\n" + f"- [ ] {long} <!-- depends: 1 -->\n" * 400)
    for change in ("web", "long", None):
        found = await draw_graph(registry, "mermaid", change)
        text = found["graph"]
        edges = text.count(" --> ")
        assert edges <= 500
        assert len(text) <= 50_000
        left_out = found["left_out"], found["dependencies_left_out"]
        assert any(left_out)
        for count, what in zip(left_out, ("tasks", "dependencies"), strict=True):
            assert (f"%% {count} more {what} are left out" in text) is bool(count)
    assert (await draw_graph(registry, "mermaid", "web"))["dependencies_left_out"] == 59 * 58 // 2 - 500
    assert (await draw_graph(registry, "text", "web"))["graph"].endswith("more dependencies are left out\n")


async def test_a_change_is_drawn_in_its_order(registry: Registry, root: Path) -> None:
    """By number, whoever waits for whom."""
    write_tasks(root, a="- [ ] one <!-- depends: 3 -->\n- [ ] two\n- [ ] three\n")
    text = (await draw_graph(registry, "mermaid", "a"))["graph"]
    assert re.findall(r't\d\["(\d)', text) == ["1", "2", "3"]


async def test_a_long_chain_stays_within_a_screen(registry: Registry, root: Path) -> None:
    """It goes on at the margin, below, and each task still stands there with all that waits for it."""
    chain = "- [ ] first\n" + "".join(f"- [ ] next <!-- depends: {n} -->\n" for n in range(1, 100))
    write_tasks(root, a=chain)
    lines = (await draw_graph(registry, "text"))["graph"].splitlines()
    assert max(map(len, lines)) < 80
    assert "a/16  next  (goes on below)" in lines[15]
    assert lines[16] == "☐ a/16  next  (waits)"
    assert {line.split("/")[1].split()[0] for line in lines} == {str(number) for number in range(1, 101)}


async def test_one_change(registry: Registry, root: Path) -> None:
    """All of its tasks, and what they need elsewhere, but no others."""
    write_tasks(
        root, a="- [ ] one <!-- depends: b/1 -->\n- [ ] alone\n", b="- [ ] two\n- [ ] three <!-- depends: 1 -->\n"
    )
    found = await draw_graph(registry, "text", "a")
    assert found["graph"] == "☐ a/2  alone\n☐ b/1  two\n└─ ☐ a/1  one  (waits)\n"
    with pytest.raises(ToolFailure, match="no change 'c'"):
        await draw_graph(registry, "text", "c")
    with pytest.raises(ToolFailure, match="format must be one of"):
        await draw_graph(registry, "svg")


async def test_a_long_chain_and_a_crowd_are_drawn(registry: Registry, root: Path) -> None:
    """No depth is too much, and of very many it says how many are left out."""
    write_tasks(root, a="- [ ] first\n" + "".join(f"- [ ] next <!-- depends: {n} -->\n" for n in range(1, 700)))
    found = await draw_graph(registry, "text")
    assert (found["tasks"], found["left_out"]) == (500, 200)
    assert found["graph"].count("goes on below") == 33
    assert found["graph"].count("\n") == 500 + 33 + 1


async def test_a_web_is_not_drawn_for_ever(registry: Registry, root: Path) -> None:
    """Where everything waits for everything before it, each branch is drawn once."""
    lines = (f"- [ ] n <!-- depends: {', '.join(map(str, range(1, n)))} -->\n" for n in range(2, 40))
    write_tasks(root, a="- [ ] first\n" + "".join(lines))
    assert (await draw_graph(registry, "text"))["graph"].count("\n") < 1000


async def test_a_long_text_is_cut_to_the_width_of_its_column(registry: Registry, root: Path) -> None:
    """What is cut is as long as the longest that is not, with the sign for it."""
    write_tasks(root, a=f"- [ ] {'x' * 60}\n- [ ] {'y' * 61} <!-- depends: 1 -->\n")
    tree = (await draw_graph(registry, "text"))["graph"]
    assert "x" * 60 in tree
    assert "y" * 59 + "…" in tree
    assert "y" * 60 not in tree
