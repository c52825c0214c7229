"""The house rules that a machine can check: imports point one way, and the SDK's inner parts have one home."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "pegboard"

# From the ground up: a room may use rooms of the rows before its own, and its own.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        *("version", "result", "names", "exactjson", "docstrings", "log", "metrics", "pace"),
        *("telemetry", "terminal", "normalization", "faircache", "task_set", "lru_dict", "text"),
    ),
    ("config", "tool", "function_tool", "protocol"),
    ("storage", "formats"),
    ("search",),
    ("catalog", "servers"),
    ("listing",),
    ("relay",),
    ("toolsets", "gate"),
    ("board",),
    ("library",),
    ("gateway",),
    ("cli",),
)
ROW = {room: row for row, rooms in enumerate(LAYERS) for room in rooms}


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(file: Path) -> set[str]:
    """Every module that a file imports, lazily or not; names that are only types do not count."""
    found: set[str] = set()
    tree = ast.parse(file.read_text("utf-8"))
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


FILES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem not in {"__init__", "__main__"}
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_one_way(file: Path) -> None:
    """A room never imports from a room above its own."""
    room = room_of(file)
    assert room in ROW, f"{room} has no place in the house: add it to LAYERS and to docs/architecture.md"
    for module in imported(file):
        parts = module.split(".")
        if parts[0] == "pegboard" and len(parts) > 1 and parts[1] in ROW:
            assert ROW[parts[1]] <= ROW[room], f"{room} must not import {module}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_the_sdk_is_known_to_the_protocol_package_and_the_gateway_alone(file: Path) -> None:
    """`mcp` is imported by `protocol/`, and by `gateway/` for its public parts."""
    if room_of(file) in {"protocol", "gateway"}:
        return
    assert not {module for module in imported(file) if module == "mcp" or module.startswith("mcp.")}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_unicode_is_normalized_in_one_place(file: Path) -> None:
    """Python's own function takes quadratic time for what others may write."""
    if room_of(file) == "normalization":
        return
    own = {"normalize", "is_normalized"}
    assert not {f"unicodedata.{name}" for name in own} & imported(file)
    used = (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Attribute))
    assert not {ast.unparse(node) for node in used if node.attr in own}


def test_every_module_says_in_its_first_line_what_it_is_for() -> None:
    """A docstring on each module, function of the public face and class."""
    missing = [str(path) for path in SOURCE.rglob("*.py") if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert missing == []


# Modules that are still longer than one is read at a sitting: each leaves the list when it is parted.
LONG = {
    *("servers/server.py", "board.py", "servers/jsonrpc.py", "catalog/discovery.py", "toolsets/memory/tools.py"),
}


def lines(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())


def test_no_module_is_longer_than_can_be_read_at_a_sitting() -> None:
    """At 500 lines there is a second noun in it."""
    long = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if lines(file) > 500}
    assert long <= LONG


def test_no_module_of_tests_is_long_without_a_reason() -> None:
    """Beyond 800 lines its docstring says why: it is "long because"."""
    tests = (file for file in Path(__file__).parent.rglob("*.py") if "node_modules" not in file.parts)
    long = {file: ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "" for file in tests if lines(file) > 800}
    assert [str(file) for file, reason in long.items() if "long because" not in reason] == []
