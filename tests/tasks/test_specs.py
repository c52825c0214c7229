"""Specs and changes: listed, read bit by bit, and checked by OpenSpec's own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.toolsets.tasks import cycles, validation
from pegboard.toolsets.tasks.registry import Registry
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.tasks.tools import task_tools
from tasks.project import DELTA, PROPOSAL, SPEC, tasks_md, whole, write, write_tasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> str:
    """One database will do: nothing here is about what is kept."""
    return f"sqlite:{tmp_path / 'state' / 'pegboard.db'}"


async def ask(registry: Registry, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers."""
    (found,) = (each for each in task_tools(registry) if each.name == tool)
    answer = await found.invoke(arguments)
    assert answer.data is not None
    assert not answer.is_error, answer.data
    return dict(answer.data["data"])


async def refusal(registry: Registry, tool: str, **arguments: Any) -> dict[str, Any]:
    """Why a tool refuses."""
    (found,) = (each for each in task_tools(registry) if each.name == tool)
    answer = await found.invoke(arguments)
    assert answer.data is not None
    assert answer.is_error
    return answer.data["error"]


async def findings(registry: Registry, **arguments: Any) -> list[tuple[str, str, int, str]]:
    """What is wrong."""
    found = await ask(registry, "spec_validate", **arguments)
    assert all(finding["advice"] for finding in found["findings"])
    return [(row["severity"], row["file"], row["line"], row["message"]) for row in found["findings"]]


async def test_specs_and_changes_are_listed(registry: Registry, root: Path) -> None:
    """With their titles and how far they are; the archive is not."""
    whole(root)
    write(root, {"changes/no-tasks/proposal.md": "# Proposal: Later\n"})
    found = await ask(registry, "spec_list")
    assert found == {
        "specs": [{"name": "auth", "title": "Sign-in", "requirements": 1}],
        "changes": [
            {
                "id": "add-login",
                "title": "Add a login",
                "status": "in_progress",
                "tasks": 2,
                "completed": 1,
                "specs": ["auth"],
            },
            {"id": "no-tasks", "title": "Later", "specs": []},
        ],
        "total": 3,
        "hasMore": False,
    }
    assert [row["id"] for row in (await ask(registry, "spec_list", kind="change"))["changes"]] == [
        "add-login",
        "no-tasks",
    ]
    page = await ask(registry, "spec_list", limit=1, offset=1)
    assert (page["specs"], [row["id"] for row in page["changes"]], page["hasMore"]) == ([], ["add-login"], True)


async def test_files_are_read(registry: Registry, root: Path) -> None:
    """A spec's spec.md, a change's proposal.md, and any other by its name."""
    whole(root)
    assert (await ask(registry, "spec_show", name="auth"))["text"] == SPEC
    shown = await ask(registry, "spec_show", name="add-login")
    assert (shown["kind"], shown["file"], shown["text"]) == ("change", "proposal.md", PROPOSAL)
    names = ["design.md", "proposal.md", "specs/auth/spec.md", "tasks.md"]
    assert [row["file"] for row in shown["files"]] == names
    assert (await ask(registry, "spec_show", name="add-login", file="specs/auth/spec.md"))["text"] == DELTA
    assert (await ask(registry, "spec_show", name="add-login", file="./design.md"))["file"] == "design.md"


async def test_a_long_file_is_read_bit_by_bit(registry: Registry, root: Path) -> None:
    """Each answer is small and says where to go on; together they are the file."""
    text = 'Tab\t"quoted" 日本 \\ \n' * 6000
    write(root, {"specs/long/spec.md": text})
    read, offset, turns = "", 0, 0
    while offset is not None:
        part = await ask(registry, "spec_show", name="long", offset=offset)
        assert part["characters"] == len(text)
        read += part["text"]
        offset = part.get("next_offset")
        turns += 1
    assert read == text
    assert turns > 3
    (tool,) = (each for each in task_tools(registry) if each.name == "spec_show")
    answer = await tool.invoke({"name": "long"})
    assert len(answer.content[0].value) <= 25_000


@pytest.mark.parametrize(
    "file", ["../../secret.md", "/etc/passwd", "..", "tasks.md/../../x", "link.md", "dir/secret.md", "", "none.md"]
)
async def test_no_file_leads_out_of_a_change(registry: Registry, root: Path, tmp_path: Path, file: str) -> None:
    """Only what is listed can be read; links that lead out are not."""
    whole(root)
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    change = tasks_md(root, "add-login").parent
    (change / "link.md").symlink_to(secret)
    (change / "dir").symlink_to(tmp_path)
    error = await refusal(registry, "spec_show", name="add-login", file=file)
    assert error["code"] in {"TOOL_NOT_FOUND", "TOOL_INVALID_INPUT"}
    assert "secret" not in str(error).replace(file, "")


@pytest.mark.parametrize("name", ["../x", "archive", "nothing", "add-logn", "/"])
async def test_a_name_that_is_none_is_told(registry: Registry, root: Path, name: str) -> None:
    """With what comes close; what is archived is no change."""
    whole(root)
    error = await refusal(registry, "spec_show", name=name)
    assert error["code"] == "TOOL_NOT_FOUND"
    assert ("did you mean add-login" in error["message"]) == (name == "add-logn")


async def test_one_name_for_two_has_to_be_told(registry: Registry, root: Path) -> None:
    """A spec and a change may share a name."""
    write(root, {"specs/a/spec.md": "spec", "changes/a/proposal.md": "change"})
    assert "say which with kind" in (await refusal(registry, "spec_show", name="a"))["message"]
    assert (await ask(registry, "spec_show", name="a", kind="spec"))["text"] == "spec"


async def test_nothing_is_found_where_everything_is_right(registry: Registry, root: Path) -> None:
    """A sound folder is valid, strictly, and so is an empty one."""
    assert await findings(registry) == []
    whole(root)
    found = await ask(registry, "spec_validate", strict=True)
    assert (found["valid"], found["findings"]) == (True, [])


SPEC_FAULTS: dict[str, tuple[str, tuple[str, int, str]]] = {
    "no purpose": (SPEC.replace("## Purpose", "## Aim"), ("error", 1, "there is no ## Purpose")),
    "short purpose": (SPEC.replace("Who may come in, and how they prove", "Who"), ("warning", 3, "shorter than 50")),
    "no requirements": ("## Purpose\n" + "x" * 60 + "\n", ("error", 1, "there is no ## Requirements")),
    "none": ("## Purpose\n" + "x" * 60 + "\n## Requirements\n", ("error", 3, "there is no requirement")),
    "no shall": (SPEC.replace("SHALL", "should"), ("error", 7, "neither SHALL nor MUST")),
    "shall in the heading only": (
        SPEC.replace("SHALL", "should").replace("Requirement: Pass", "Requirement: SHALL Pass"),
        ("error", 7, "neither SHALL nor MUST"),
    ),
    "no text": (SPEC.replace("The system SHALL check passwords.\n", ""), ("error", 7, "has no text")),
    "no scenario": (SPEC[: SPEC.index("####")], ("error", 7, "has no scenario")),
    "scenario as a list": (SPEC.replace("#### Scenario: A", "- **Scenario: a**"), ("error", 7, "has no scenario")),
    "scenario too high": (SPEC.replace("#### Scenario", "### Scenario"), ("error", 7, "has no scenario")),
    "scenario in code": (SPEC.replace("#### Scenario", "```\n#### Scenario"), ("error", 7, "has no scenario")),
    "another heading": (SPEC + "#### Note\n", ("info", 13, "a scenario that is not called one")),
    "text in the heading": (
        SPEC.replace("Passwords", "It SHALL check").replace("The system SHALL check passwords.\n", ""),
        ("warning", 7, "has no text"),
    ),
    "not a requirement": (SPEC + "### Passkeys\n", ("warning", 13, "not read as a requirement")),
    "twice": (SPEC + SPEC[SPEC.index("### Req") :], ("error", 13, "stands there twice")),
    "elsewhere": (SPEC + "## More\n" + SPEC[SPEC.index("### Req") :], ("error", 14, "not below ## Requirements")),
    "a delta": (SPEC + "## ADDED Requirements\n", ("error", 13, "belongs into a change")),
    "too long": (SPEC.replace("check passwords", "check " + "x" * 500), ("info", 7, "more than 500 characters")),
}


@pytest.mark.parametrize(("text", "wanted"), SPEC_FAULTS.values(), ids=SPEC_FAULTS.keys())
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
async def test_faults_of_a_spec(
    registry: Registry, root: Path, text: str, wanted: tuple[str, int, str], ends: str
) -> None:
    """Each is found, with its line, whatever the line ends."""
    severity, line, words = wanted
    write(root, {"specs/auth/spec.md": text.replace("\n", ends)})
    found = await findings(registry)
    assert [row for row in found if row[0] == severity and row[2] == line and words in row[3]], found
    assert (await ask(registry, "spec_validate"))["valid"] == (severity != "error")


async def test_a_scenario_counts_by_its_level(registry: Registry, root: Path) -> None:
    """As it does for OpenSpec: a requirement with `#### Happy path` is a sound one; a hint says how others call it."""
    write(root, {"specs/auth/spec.md": SPEC.replace("#### Scenario: A wrong one", "#### A wrong one")})
    found = await ask(registry, "spec_validate", strict=True)
    assert (found["valid"], found["infos"], len(found["findings"])) == (True, 1, 1)


def requirement(name: str) -> str:
    """A requirement in which everything is right."""
    return f"### Requirement: {name}\nIt SHALL be.\n\n#### Scenario: So\n- **THEN** it is\n"


DELTA_FAULTS: dict[str, tuple[str, tuple[str, int, str]]] = {
    "no section": (requirement("New"), ("error", 1, "no section of deltas")),
    "outside": (DELTA + "## Notes\n" + requirement("New"), ("error", 9, "stands in no section of deltas")),
    "misspelt": ("## Add Requirements\n" + requirement("New"), ("error", 2, "stands in no section of deltas")),
    "empty": ("## ADDED Requirements\n\nSoon.\n", ("error", 1, "holds no requirement")),
    "no scenario": (DELTA[: DELTA.index("####")], ("error", 2, "has no scenario")),
    "no must": (DELTA.replace("MUST", "must"), ("error", 2, "neither SHALL nor MUST")),
    "twice": (DELTA + requirement("A form"), ("error", 8, "stands there twice")),
    "both": (
        DELTA + "## MODIFIED Requirements\n" + requirement("A form"),
        ("error", 2, "is in both MODIFIED and ADDED"),
    ),
    "modified and removed": (
        (
            f"## MODIFIED Requirements\n{requirement('Passwords')}"
            "## REMOVED Requirements\n- `### Requirement: Passwords`\n"
        ),
        ("error", 8, "is in both MODIFIED and REMOVED"),
    ),
    "modified is missing": (
        "## MODIFIED Requirements\n" + requirement("Keys"),
        ("error", 2, "which the spec does not"),
    ),
    "removed is missing": ("## REMOVED Requirements\n### Requirement: Keys\n", ("error", 2, "which the spec does not")),
    "added is there": (
        "## ADDED Requirements\n" + requirement("Passwords"),
        ("error", 2, "which the spec has already"),
    ),
    "half a pair": (
        "## RENAMED Requirements\n- FROM: `### Requirement: Passwords`\n",
        ("error", 2, "a FROM and a TO belong together"),
    ),
    "renamed is missing": (
        "## RENAMED Requirements\n- FROM: `### Requirement: Keys`\n- TO: `### Requirement: Locks`\n",
        ("error", 3, "which the spec does not have"),
    ),
    "old name": (
        "## RENAMED Requirements\n- FROM: `### Requirement: Passwords`\n- TO: `### Requirement: Locks`\n"
        "## MODIFIED Requirements\n" + requirement("Passwords"),
        ("error", 5, "MODIFIED has to call it"),
    ),
    "renamed and removed": (
        (
            "## RENAMED Requirements\n- FROM: `### Requirement: Passwords`\n- TO: `### Requirement: Locks`\n"
            "## REMOVED Requirements\n- `### Requirement: Passwords`\n"
        ),
        ("error", 5, "is renamed as well"),
    ),
    "new name": (
        DELTA + "## RENAMED Requirements\n- FROM: `### Requirement: Passwords`\n- TO: `### Requirement: A form`\n",
        ("error", 10, "is in ADDED as well"),
    ),
}


@pytest.mark.parametrize(("text", "wanted"), DELTA_FAULTS.values(), ids=DELTA_FAULTS.keys())
async def test_faults_of_a_delta(registry: Registry, root: Path, text: str, wanted: tuple[str, int, str]) -> None:
    """Each is found in its file, with its line."""
    severity, line, words = wanted
    whole(root)
    write(root, {"changes/add-login/specs/auth/spec.md": text})
    found = await findings(registry, name="add-login")
    file = "changes/add-login/specs/auth/spec.md"
    assert [row for row in found if row[:3] == (severity, file, line) and words in row[3]], found


@pytest.mark.parametrize(
    "text",
    [
        f"## MODIFIED Requirements\n{requirement('Passwords')}",
        "## REMOVED Requirements\n### Requirement: Passwords\n**Reason**: gone\n",
        "## REMOVED Requirements\n- `### Requirement: Passwords`\n",
        (
            "## RENAMED Requirements\n- FROM: `### Requirement: Passwords`\n- TO: `### Requirement: Locks`\n"
            f"## MODIFIED Requirements\n{requirement('Locks')}"
        ),
        f"## added requirements\n{requirement('New')}",
        "## ADDED Requirements\n### Requirement: New\n**Rule**: it MUST be.\n#### Scenario: So\n- **THEN** it is\n",
        "## ADDED Requirements\n### Requirement: New\n**ID**: 7\nIt\nMUST be.\n#### Scenario: So\n- **THEN** it is\n",
    ],
)
async def test_deltas_that_are_right(registry: Registry, root: Path, text: str) -> None:
    """Every form that OpenSpec takes."""
    whole(root)
    write(root, {"changes/add-login/specs/auth/spec.md": text})
    assert await findings(registry) == []


async def test_faults_of_a_change(registry: Registry, root: Path) -> None:
    """The proposal, missing deltas, missing tasks, and files that cannot be read."""
    write(
        root, {"changes/bare/notes.md": "x", "changes/short/proposal.md": "## Why\nso\n", "changes/short/tasks.md": "x"}
    )
    tasks_md(root, "broken").mkdir(parents=True)
    assert await findings(registry) == [
        ("error", "changes/bare", 0, "the change has no delta"),
        ("error", "changes/bare/proposal.md", 0, "there is no proposal.md"),
        ("warning", "changes/bare/tasks.md", 0, "there is no tasks.md"),
        ("error", "changes/broken", 0, "tasks.md is not a file"),
        ("error", "changes/short", 0, "the change has no delta"),
        ("error", "changes/short/proposal.md", 1, "## Why has fewer than 50 characters"),
        ("error", "changes/short/proposal.md", 1, "## What Changes is missing or empty"),
        ("warning", "changes/short/tasks.md", 0, "there is no task in it"),
    ]
    assert {row[1].split("/")[1] for row in await findings(registry, name="short")} == {"short"}
    assert (await findings(registry, name="broken"))[0][3] == "tasks.md is not a file"
    assert (await refusal(registry, "spec_validate", name="nope"))["code"] == "TOOL_NOT_FOUND"


async def test_faults_of_tasks(registry: Registry, root: Path) -> None:
    """Dependencies that do not exist, cannot be read or go in a circle, with the circle named."""
    whole(root)
    write(
        root,
        {
            "changes/add-login/tasks.md": (
                "- [ ] one <!-- depends: 9 -->\n- [ ] two <!-- depends: 3 -->\n- [ ] three <!-- depends: 4 -->\n"
                "- [ ] four <!-- depends: 2, soon -->\n- [ ]\n```\n"
            )
        },
    )
    assert [(line, message) for _, _, line, message in await findings(registry)] == [
        (1, "add-login/1 depends on add-login/9, which does not exist"),
        (2, "add-login/2 depends on itself: add-login/2 → add-login/3 → add-login/4 → add-login/2"),
        (3, "add-login/3 depends on itself: it is in the cycle of add-login/2"),
        (4, 'the dependency "soon" cannot be read'),
        (4, "add-login/4 depends on itself: it is in the cycle of add-login/2"),
        (5, "a box without words is not a task"),
        (6, "a code fence or comment begins here and is never closed, so nothing behind it is read"),
    ]


async def test_a_long_circle_is_told_once_and_in_short(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way around is looked for once, however many tasks are on it: they are in the circle of the first."""
    searches = 0
    search = cycles.round_trip

    def counted(needs: cycles.Needs[TaskId], node: TaskId) -> list[TaskId]:
        nonlocal searches
        searches += 1
        return search(needs, node)

    monkeypatch.setattr(validation, "round_trip", counted)
    write_tasks(root, a="".join(f"- [ ] n <!-- depends: {n % 300 + 1} -->\n" for n in range(1, 301)))
    found = [message for _, _, _, message in await findings(registry) if "depends on itself" in message]
    assert found[0].startswith("a/1 depends on itself: a/1 → a/2 → a/3")
    assert found[0].endswith("a/19 → 281 more → a/1")
    assert found[1] == "a/2 depends on itself: it is in the cycle of a/1"
    assert searches == 1


async def test_strict_counts_warnings(registry: Registry, root: Path) -> None:
    """As `openspec validate --strict` does."""
    write(root, {"specs/auth/spec.md": SPEC + "### Passkeys\n"})
    assert (await ask(registry, "spec_validate"))["valid"] is True
    assert (await ask(registry, "spec_validate", strict=True))["valid"] is False


async def test_many_findings_are_told_bit_by_bit(registry: Registry, root: Path) -> None:
    """An answer stays small, and says where to go on."""
    write(root, {f"changes/change-{number:03}/tasks.md": "- [ ]\n" * 5 for number in range(60)})
    seen, offset = 0, 0
    while True:
        part = await ask(registry, "spec_validate", offset=offset)
        seen += len(part["findings"])
        if not part["hasMore"]:
            break
        offset += len(part["findings"])
    assert seen == part["errors"] + part["warnings"] == 60 * (2 + 1 + 5)
