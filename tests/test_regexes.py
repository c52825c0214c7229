"""No regular expression in the source takes more than linear time, whatever text it is given (ReDoS).

`re` holds the GIL while it matches: a pattern that backtracks stops the whole gateway, from a thread too.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src"
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
# Patterns that no text of others comes to: why.
TRUSTED = {
    "pegboard.docstrings": "docstrings of the program's own functions",
    "pegboard.storage.placeholders": "our own SQL",
    "pegboard.config.jsonc._COMMENT.finditer": "what stands between the members of a parsed file: all are closed",
}
# From here on the time is worth comparing; a linear match of the longest text stays far below.
NOTICEABLE = 0.02
LONGEST = 24_000


class Use(NamedTuple):
    """A pattern, and how it is applied."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def __str__(self) -> str:
        return f"{self.place}.{self.method}"


@cache
def uses() -> dict[str, list[Use]]:
    """What others' texts come to, by the room that it stands in; looked for by whichever worker runs these tests."""
    found: dict[str, list[Use]] = {room: [] for room in ROOMS}
    for use in every_use():
        if not any(str(use).startswith(place) for place in TRUSTED):
            found[re.split(r"[.:]", use.place)[1]].append(use)
    return found


def every_use() -> Iterator[Use]:
    """Every pattern of the source, once for each way in which it is applied."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    methods = {path: applied(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        yield from inline(module, tree)
        for name in compiled(tree):
            pattern = getattr(importlib.import_module(module), name)
            readers = [path] if name.startswith("_") else trees
            # One that is only handed on is matched at a place.
            named = chain.from_iterable(methods[each].get(name, ()) for each in readers)
            for method in sorted(set(named)) or ["match"]:
                yield Use(f"{module}.{name}", pattern, method)


def compiled(tree: ast.Module) -> Iterator[str]:
    """Names of the patterns of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called(node.value) == "compile":
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def inline(module: str, tree: ast.Module) -> Iterator[Use]:
    """Patterns that are written where they are applied."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in METHODS and isinstance(node.args[0], ast.Constant):
            yield Use(f"{module}:{node.lineno}", re.compile(str(node.args[0].value)), called(node) or "")


def called(node: ast.Call) -> str | None:
    """The function of `re` that is called."""
    function = node.func
    of_re = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
    return function.attr if of_re and isinstance(function, ast.Attribute) else None


def applied(tree: ast.Module) -> dict[str, set[str]]:
    """The methods of patterns that are named, by what they are methods of."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


PACKAGE = SOURCE / "pegboard"
ROOMS = sorted(path.stem for path in PACKAGE.iterdir() if path.suffix in {"", ".py"} and path.name[0] != "_")


@pytest.mark.parametrize("room", ROOMS)
def test_cost_is_linear(room: str) -> None:
    """Twice the text takes about twice the time: tried with texts that repeat each part of a pattern."""
    for use in uses()[room]:
        check_linear(use)


def test_patterns_are_found() -> None:
    """Those that are compiled by name and those that are written where they are applied, in most rooms."""
    found = [str(use) for room in uses().values() for use in room]
    assert "pegboard.secret_forms._SECRET.sub" in found
    assert any(re.fullmatch(r"pegboard\.[\w.]+:\d+\.\w+", use) for use in found)
    assert sum(bool(room) for room in uses().values()) > 20


def test_the_check_notices() -> None:
    """Patterns with two and three repetitions that can share a text, and an exponential one."""
    for bad in (r"(#+)[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$", r"<a>\s*(.*?)\s*</a>", r"(?:a|a)*b", r"<b>.*?</b>"):
        with pytest.raises(AssertionError, match="more than linear"):
            check_linear(Use("bad", re.compile(bad), "search"))


def check_linear(use: Use) -> None:
    for make in attacks(use.pattern):
        check_one(use, make)


def check_one(use: Use, make: Callable[[int], Any]) -> None:
    length, step = 12, 2
    before = float("inf")
    while length <= LONGEST:
        took = cost(use, make(length))
        if took > NOTICEABLE:
            # A busy machine makes one of them slower, not each of three.
            took = min(took, cost(use, make(length)), cost(use, make(length)))
            assert took < NOTICEABLE or took < step**1.6 * before, f"more than linear: {use} on {make(12)!r}"
        before = max(took, 1e-4)
        # Small steps first: what is exponential has to be noticed before it never ends.
        step = 2 if length < 100 else 4
        length *= step


def cost(use: Use, text: Any) -> float:
    """Seconds of CPU."""
    before = time.thread_time()
    apply(use, text)
    return time.thread_time() - before


def apply(use: Use, text: Any) -> None:
    """As the source does it."""
    method = getattr(use.pattern, use.method)
    if use.method == "sub":
        method(text[:0], text)
    elif use.method == "finditer":
        for _ in method(text):
            pass
    else:
        method(text)


def attacks(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Makers of texts of some length: a part of the pattern repeated, after what leads to it, before what ends it."""
    parsed = re._parser.parse(pattern.pattern, pattern.flags)  # type: ignore[attr-defined]
    leads = dict.fromkeys(lead for lead, _ in repeats(parsed, ""))
    pumps = dict.fromkeys(chain((pump for _, pump in repeats(parsed, "")), " \t\nx1", "".join(leads)))
    found = dict.fromkeys(
        [(lead, pump, tail) for lead, pump in repeats(parsed, "") for tail in ("\0", "!", "", "b", lead, " ")]
        + [("", pump, tail) for pump in pumps for tail in ("\0", "b")]
        + [("", lead, tail) for lead in leads for tail in ("\0", "b")]
        + [("", first + second, "\0") for first, second in product(list(pumps)[:8], repeat=2)]
        + [(lead + "a", pump, "b") for lead in leads for pump in list(pumps)[:8]]
    )
    for lead, pump, tail in found:
        if pump:
            yield lambda length, lead=lead, pump=pump, tail=tail: encoded(
                pattern, lead + pump * max(1, length // len(pump)) + tail
            )


def encoded(pattern: re.Pattern[Any], text: str) -> Any:
    return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def repeats(parsed: Any, lead: str) -> Iterator[tuple[str, str]]:
    """What leads to each repetition in a pattern, and what it repeats."""
    for operation, argument in parsed:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            yield from repeats(argument[2], lead)
            yield from ((lead, body) for body in samples(argument[2]))
        elif name == "SUBPATTERN":
            yield from repeats(argument[3], lead)
        elif name == "ATOMIC_GROUP":
            yield from repeats(argument, lead)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from repeats(branch, lead)
        lead += next(iter(samples([(operation, argument)])))
    yield lead, ""


def samples(parsed: Any) -> list[str]:
    """A few texts that a part of a pattern matches."""
    found = [""]
    for operation, argument in parsed:
        name = str(operation)
        if name == "LITERAL":
            each = [chr(argument)]
        elif name == "NOT_LITERAL":
            each = [next(char for char in "x 1" if ord(char) != argument)]
        elif name == "ANY":
            each = ["x"]
        elif name == "IN":
            each = members(argument)
        elif name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            each = [sample * max(argument[0], 1) for sample in samples(argument[2])]
        elif name == "SUBPATTERN":
            each = samples(argument[3])
        elif name == "ATOMIC_GROUP":
            each = samples(argument)
        elif name == "BRANCH":
            each = [sample for branch in argument[1] for sample in samples(branch)]
        else:
            each = [""]
        found = [before + after for before, after in product(found, each[:4])][:8]
    return found


def members(argument: Any) -> list[str]:
    """A few characters of a class."""
    negated = str(argument[0][0]) == "NEGATE"
    listed: list[str] = []
    for operation, value in argument:
        name = str(operation)
        if name == "LITERAL":
            listed.append(chr(value))
        elif name == "RANGE":
            listed.append(chr(value[0]))
        elif name == "CATEGORY":
            listed.append({"SPACE": " ", "DIGIT": "1", "WORD": "a"}.get(str(value).removeprefix("CATEGORY_"), "-"))
    if not negated:
        return listed
    return [char for char in "x 1-\n#" if char not in listed][:4] or ["\u20ac"]
