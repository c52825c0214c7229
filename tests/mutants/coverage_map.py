"""Which tests run a line: recorded once with coverage, kept in `.mutants`, and read by line."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import coverage
from coverage.exceptions import CoverageException
from coverage.numbits import num_in_numbits

from mutants.tree import CACHE, Tree

DATA = CACHE / "coverage"
TIMES = CACHE / "times.jsonl"
SOURCE = CACHE / "src"
RECORDING_LIMIT = 7200.0
# How far from a line that is new since the recording others are looked at.
_NEAR = 20
# How many tests of one file come at a time: of one with the name of the module, and of one for its folder.
_OF_MODULE, _OF_FOLDER = 20, 8
# What these notice others do as well, sooner; the last two need a plugin that runs here do without.
LEFT_OUT = ("bench", "conformance", "real_servers", "gateway/test_any_request.py", "gateway/test_weak_token.py")

_CONFIG = """\
[tool.coverage.run]
source = ["{source}"]
data_file = "{data}"
parallel = true
context = "${{PEGBOARD_COVERED_BY-}}"
patch = ["_exit"]
sigterm = true
disable_warnings = ["no-data-collected"]
"""


def record(tree: Tree, workers: int, selection: Iterable[str] = ()) -> None:
    """Run the tests once, and keep what each of them ran."""
    shutil.rmtree(CACHE, ignore_errors=True)
    pieces = CACHE / "pieces"
    pieces.mkdir(parents=True)
    config = _CONFIG.format(source=tree.root / "src", data=pieces / "piece")
    (tree.root / "coverage.toml").write_text(config, "utf-8")
    # A plugin is imported before pytest has read where the tests' own modules are.
    env = {"PYTHONPATH": str(tree.root / "tests"), "PEGBOARD_COVERED_BY": "", "PEGBOARD_TEST_TIMES": str(TIMES)}
    left_out = [f"--ignore=tests/{path}" for path in LEFT_OUT]
    options = ["-p", "mutants.recorder", "-n", str(workers), "--timeout", "600", *left_out]
    code, output = tree.pytest(*options, *selection, limit=RECORDING_LIMIT, env=env)
    print(output[-3000:])
    if code not in {0, 1}:
        raise SystemExit("the tests could not be run")
    data = coverage.CoverageData(str(DATA))
    for piece in sorted(pieces.iterdir()):
        one = coverage.CoverageData(str(piece))
        try:
            one.read()
        except CoverageException:
            continue  # a process that was killed while it wrote
        data.update(one)
    data.write()
    shutil.rmtree(pieces)
    shutil.copytree(tree.root / "src", SOURCE, ignore=shutil.ignore_patterns("__pycache__"))
    (CACHE / "root").write_text(str(tree.root), "utf-8")


class CoverageMap:
    """What was recorded, by line."""

    def __init__(self, root: Path) -> None:
        self._root_now = root
        if not TIMES.exists():
            raise SystemExit("nothing is recorded yet: run it with --record first")
        lines = [json.loads(line) for line in TIMES.read_text("utf-8").splitlines()]
        passed = [line for line in lines if line["passed"]]
        self._names: dict[str, str] = {line["context"]: line["test"] for line in passed}
        self.seconds: dict[str, float] = {line["test"]: line["seconds"] for line in passed}
        self._root_then = (CACHE / "root").read_text("utf-8")
        self._contexts: dict[str, list[tuple[str, bytes]]] = {}
        self._moved: dict[str, dict[int, int]] = {}

    def tests(self, file: str, lines: Iterable[int]) -> list[str]:
        """The tests that run one of these lines of a file as it is now, the most telling first."""
        then = {old for line in lines for old in self._lines_then(file, line)}
        found = {
            self._names[context]
            for context, bits in self._recorded(file)
            if context in self._names and any(num_in_numbits(line, bits) for line in then)
        }
        return self._spread(found, file)

    def tests_of_name(self, name: str, file: str) -> list[str]:
        """The tests that run a line inside of a function where this name stands, in any file."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        found: set[str] = set()
        for path in sorted((self._root_now / "src").rglob("*.py")):
            lines = [n for n, text in enumerate(path.read_text("utf-8").splitlines(), 1) if word.search(text)]
            if lines:
                found.update(self.tests(str(path.relative_to(self._root_now)), lines))
        return self._spread(found, file)

    def _spread(self, tests: Iterable[str], file: str) -> list[str]:
        """Some of each file of tests in turn, its fastest first; more of those that are about this file or folder."""
        module, folder = Path(file).stem, Path(file).parent.name
        turns: dict[str, int] = {}
        order: list[tuple[int, float, str]] = []
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            where = Path(test.partition("::")[0])
            turns[str(where)] = turn = turns.get(str(where), -1) + 1
            at_once = _OF_MODULE if module in where.stem else _OF_FOLDER if folder in where.parts else 1
            order.append((turn // at_once, self.seconds[test], test))
        return [test for *_, test in sorted(order)]

    def _recorded(self, file: str) -> list[tuple[str, bytes]]:
        if file not in self._contexts:
            query = (
                "select context.context, line_bits.numbits from line_bits"
                " join file on file.id = file_id join context on context.id = context_id where file.path = ?"
            )
            with closing(sqlite3.connect(DATA)) as connection:
                rows = connection.execute(query, (str(Path(self._root_then) / file),)).fetchall()
            self._contexts[file] = [(context, bits) for context, bits in rows if context]
        return self._contexts[file]

    def _lines_then(self, file: str, line: int) -> set[int]:
        """Where a line of today stood when the tests were recorded; for a new one, the nearest that stood there."""
        moved = self._moves(file)
        for distance in range(_NEAR):
            if found := {moved[near] for near in (line - distance, line + distance) if near in moved}:
                return found
        return set()

    def _moves(self, file: str) -> dict[int, int]:
        if file not in self._moved:
            then = SOURCE / Path(file).relative_to("src")
            old = then.read_text("utf-8").splitlines() if then.exists() else []
            new = (self._root_now / file).read_text("utf-8").splitlines()
            blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
            self._moved[file] = {
                block.b + offset + 1: block.a + offset + 1
                for block in blocks
                for offset in range(block.size)
                if new[block.b + offset].strip()
            }
        return self._moved[file]
