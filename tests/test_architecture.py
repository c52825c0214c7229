"""The house rules that a machine can check: imports point one way, and the SDK's inner parts have one home."""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "pegboard"

# From the ground up: a room may use rooms of the rows before its own, and its own.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        *("version", "result", "names", "exactjson", "docstrings", "log", "metrics", "pace"),
        *("telemetry", "terminal", "normalization", "faircache", "task_set", "lru_dict", "text", "host_names"),
        *("system_keyring", "edit_distance", "folder_names", "hidden_text", "secret_forms"),
    ),
    ("access",),
    ("config", "tool", "function_tool", "protocol"),
    ("storage", "sealing", "formats", "client_configs", "service"),
    ("search",),
    ("catalog", "pins", "servers"),
    ("mcp_registry",),
    ("listing",),
    ("clients",),
    ("auth", "audit", "oauth"),
    ("relay", "sdk", "results"),
    ("toolsets", "gate"),
    ("configured_servers",),
    ("resolver", "decisions"),
    ("calls",),
    ("board",),
    ("library",),
    ("gateway",),
    ("cli",),
)
ROW = {room: row for row, rooms in enumerate(LAYERS) for room in rooms}
# A part of a toolset that another room loads by the name of its file belongs to that room, as does `more_commands.py`.
PARTS = {"settings": "config", "migrations": "storage", "routes": "gateway", "commands": "cli"}


def room_of(file: str) -> str:
    return room_of_module(Path(file).with_suffix("").parts)


def room_of_module(parts: tuple[str, ...]) -> str:
    """The room of `pegboard.` and these parts; the list of toolsets is on the ground, where everybody can read it."""
    match parts:
        case ("toolsets", "installed", *_):
            return "version"
        case ("toolsets", _, part, *_) if (kind := part.rpartition("_")[2]) in PARTS:
            return PARTS[kind]
        case _:
            return parts[0]


def imported(tree: ast.Module) -> set[str]:
    """Every module that a file imports, lazily or not; names that are only types do not count."""
    found: set[str] = set()
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the source, by its path; read by whichever worker runs these tests."""
    # So many nodes are not to be looked through by each collection of garbage.
    gc.disable()
    found = {str(path.relative_to(SOURCE)): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    gc.freeze()
    gc.enable()
    return found


@cache
def imports() -> dict[str, set[str]]:
    """What each file of a room imports: all but the two at the front door."""
    return {file: imported(tree) for file, tree in trees().items() if file not in {"__init__.py", "__main__.py"}}


def test_every_room_has_a_place() -> None:
    """Where imports may point to is known for each file."""
    without = {room_of(file) for file in imports()} - set(ROW)
    assert without == set(), "no place in the house: add it to LAYERS and to docs/architecture.md"


def test_imports_point_one_way() -> None:
    """A room never imports from a room above its own."""
    upwards: list[str] = []
    for file, modules in imports().items():
        for module in modules:
            match module.split("."):
                case ["pegboard", *parts] if parts and parts[0] in ROW:
                    if ROW[room_of_module(tuple(parts))] > ROW[room_of(file)]:
                        upwards.append(f"{file} must not import {module}")
                case _:
                    pass
    assert upwards == []


def test_the_mcp_sdk_is_known_to_few_rooms() -> None:
    """`mcp` is imported by `sdk/`, and by `protocol/` for its public parts."""
    found = {
        f"{file}: {module}"
        for file, modules in imports().items()
        for module in modules
        if module.split(".")[0] == "mcp" and room_of(file) not in {"sdk", "protocol"}
    }
    assert found == set()


def test_unicode_is_normalized_in_one_place() -> None:
    """Python's own function takes quadratic time for what others may write."""
    own = {"normalize", "is_normalized"}
    found: set[str] = set()
    for file, modules in imports().items():
        if room_of(file) == "normalization":
            continue
        used = (node for node in ast.walk(trees()[file]) if isinstance(node, ast.Attribute) and node.attr in own)
        names = ({f"unicodedata.{name}" for name in own} & modules) | {ast.unparse(node) for node in used}
        found |= {f"{file}: {name}" for name in names}
    assert found == set()


def test_every_module_says_in_its_first_line_what_it_is_for() -> None:
    """A docstring on each module, function of the public face and class."""
    assert [file for file, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_a_class_name_stands_once() -> None:
    """Whoever searches for a class finds one."""
    names = Counter(node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


# A name like `answered` makes a reader guess who did what: functions are verbs, or nouns for what they give.
PARTICIPLE = re.compile(
    r"_*(?!(?:need|feed|seed|embed|speed|exceed|proceed|heed|shed)(?:_|$))"
    r"(?:[a-z]+ed|asked|begun|bound|broken|brought|built|caught|chosen|dealt|done|drawn|driven|fallen|felt|found|given|gone"
    r"|got|grown|had|heard|held|hidden|hung|kept|known|laid|led|left|lost|made|meant|met|paid|said|seen|sent|shown|sold"
    r"|sought|spelt|spent|spoken|struck|stuck|taken|taught|thought|thrown|told|torn|understood|won|worn|written)(?:_|$)"
)
PARTICIPLES_ALLOWED = {
    # Public names: `ToolResult.failed`, `pegboard tasks done`, `pegboard memory linked`, a hook of uvicorn.
    *("failed", "done", "linked", "_unsupported_upgrade_warning"),
    # A noun with an adjective before it.
    "cancelled_id",
}


def test_functions_are_no_participles() -> None:
    """Module-level functions and methods are called by a verb, or by a noun for what they give."""
    found = {
        f"{file}: {node.name}"
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and PARTICIPLE.match(node.name)
        and node.name not in PARTICIPLES_ALLOWED
    }
    assert found == set()


def lines(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())


def test_no_module_is_longer_than_can_be_read_at_a_sitting() -> None:
    """At 500 lines there is a second noun in it."""
    long = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if lines(file) > 500}
    assert long == set()


def test_no_module_of_tests_is_long_without_a_reason() -> None:
    """Beyond 800 lines its docstring says why: it is "long because"."""
    tests = (file for file in Path(__file__).parent.rglob("*.py") if "node_modules" not in file.parts)
    long = {file: ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "" for file in tests if lines(file) > 800}
    assert [str(file) for file, reason in long.items() if "long because" not in reason] == []
