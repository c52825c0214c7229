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


def test_nobody_asks_which_transport_it_is() -> None:
    """So that a new one is its own file, a line in the table, and the config."""
    others = [path for path in SOURCE.rglob("*.py") if not {"config", "transports"} & set(path.parts)]
    assert len(others) > 100
    nodes = ((file, node) for file in others for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    assert [f"{file}: {ast.unparse(node)}" for file, node in nodes if asks_which(node)] == []


@pytest.mark.parametrize("text", ['spec.transport == "stdio"', '"sse" != a.b.transport', "isinstance(x, SseTransport)"])
def test_a_question_for_the_transport_is_found(text: str) -> None:
    """Otherwise the test above would prove nothing."""
    assert any(map(asks_which, ast.walk(ast.parse(text))))
