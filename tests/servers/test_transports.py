"""A transport says itself what differs about it; nobody else knows which ones there are."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from pegboard.config.settings import Transport as TransportName
from pegboard.servers.transports.by_name import TRANSPORTS

SOURCE = Path(__file__).parents[2] / "src" / "pegboard"
NAMES = set(get_args(TransportName))
CLASSES = {made.__name__ for made in TRANSPORTS.values()}
OTHERS = sorted(path for path in SOURCE.rglob("*.py") if not {"config", "transports"} & set(path.parts))


def asks_which(node: ast.AST) -> bool:
    """Whether this compares a transport's name, or looks at its class."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        named = any(isinstance(each, ast.Attribute) and each.attr == "transport" for each in sides)
        return named and any(isinstance(each, ast.Constant) and each.value in NAMES for each in sides)
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and bool(CLASSES & {each.id for each in ast.walk(node) if isinstance(each, ast.Name)})
    )


def test_each_name_in_the_config_has_its_transport() -> None:
    """And no transport is without a name."""
    assert set(TRANSPORTS) == NAMES


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: str(file.relative_to(SOURCE)))
def test_nobody_asks_which_transport_it_is(file: Path) -> None:
    """So that a new one is its own file, a line in the table, and the config."""
    assert not [ast.unparse(node) for node in ast.walk(ast.parse(file.read_text("utf-8"))) if asks_which(node)]


@pytest.mark.parametrize("text", ['spec.transport == "stdio"', '"sse" != a.b.transport', "isinstance(x, SseTransport)"])
def test_a_question_for_the_transport_is_found(text: str) -> None:
    """Otherwise the test above would prove nothing."""
    assert any(map(asks_which, ast.walk(ast.parse(text))))
