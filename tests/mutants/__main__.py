"""`make mutants`: put faults into copies of the source, and tell which of them the tests notice.

--record        run the tests once and keep which lines each of them runs (needed before --random)
--entries       the kept breaks of breaks.toml; the tests of its own ledger entry have to notice each
--random N      N random mutants, chosen by --seed; the tests that run the mutated line have to notice
--only TEXT     only those whose name holds this; given several times, one of them is enough
--trust         believe every test that fails; otherwise each is run once without a fault, and has to pass
Without any of the first three: the entries, then 200 random ones.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).parent.parent))

from mutants.breaks import Break, breaks, equivalents, ledger
from mutants.coverage_map import TIMES, CoverageMap, record
from mutants.operators import Mutant, all_mutants
from mutants.tree import Tree

ENTRIES_WANTED, RANDOM_WANTED = 1.0, 0.95
# First come a few fast tests, since most mutants are noticed by any; then all fast ones, and others up to a time limit.
FIRST_TESTS, FAST_TESTS, FAST, MOST_SECONDS = 40, 400, 0.1, 90.0
# Exit code of pytest for arguments that it cannot follow.
_WRONG_USE = 4
_MISSING = re.compile(r"^ERROR: not found: (.*)$", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


_passing: dict[str, bool] = {}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one fault."""

    name: str
    noticed: bool
    by: str
    seconds: float


def entry_verdict(tree: Tree, broken: Break, *, confirm: bool) -> Verdict:
    """Whether the tests of an entry notice its break."""
    return _judge(
        tree, broken.name, broken.file, broken.apply(tree.root), [(ledger()[broken.entry], 900.0)], confirm=confirm
    )


def random_verdict(tree: Tree, mutant: Mutant, known: CoverageMap, *, confirm: bool) -> Verdict:
    """Whether a test that runs the mutated line notices."""
    source = mutant.apply(tree.root)
    assert source is not None
    tests = (
        known.tests_of_name(mutant.constant, mutant.file)
        if mutant.constant
        else known.tests(mutant.file, [mutant.line])
    )
    if not tests:
        return Verdict(mutant.name, noticed=False, by="no test runs this line", seconds=0)
    fast = [test for test in tests if known.seconds[test] <= FAST][:FAST_TESTS]
    first = fast[:FIRST_TESTS]
    rest = dict.fromkeys([*fast[FIRST_TESTS:], *_up_to(tests, known, MOST_SECONDS)]).keys() - first
    others = [test for test in tests if test in rest]
    runs = [(some, 120 + 6 * sum(map(known.seconds.__getitem__, some))) for some in (first, others)]
    return _judge(tree, mutant.name, mutant.file, source, [run for run in runs if run[0]], confirm=confirm)


def _up_to(tests: Sequence[str], known: CoverageMap, seconds: float) -> Iterator[str]:
    for at, test in enumerate(tests):
        seconds -= known.seconds[test]
        if seconds < 0 and at:
            return
        yield test


def _judge(
    tree: Tree, name: str, file: str, source: str, runs: Sequence[tuple[Sequence[str], float]], *, confirm: bool
) -> Verdict:
    """Run tests on the changed file until one notices that does not fail in any case."""
    started, by = time.monotonic(), None
    for tests, limit in runs:
        by = _noticed_by(tree, file, source, tests, limit, confirm=confirm)
        if by is not None:
            break
    return Verdict(name, noticed=by is not None, by=by or "nothing", seconds=time.monotonic() - started)


def _noticed_by(tree: Tree, file: str, source: str, tests: Sequence[str], limit: float, *, confirm: bool) -> str | None:
    left = list(tests)
    while left:
        tree.write(file, source)
        try:
            by = _first_failure(tree, left, limit)
        finally:
            tree.restore()
        if by is None or not confirm or by not in left or _passes(tree, by):
            return by
        # It fails without the fault, too: the others are asked.
        left.remove(by)
    return None


def _passes(tree: Tree, test: str) -> bool:
    """Whether a test passes without a fault; asked once for each."""
    if test not in _passing:
        _passing[test] = _first_failure(tree, [test], 300) is None
    return _passing[test]


def _first_failure(tree: Tree, tests: Sequence[str], limit: float) -> str | None:
    """The first test that fails, or what else went wrong; none if all pass."""
    selection = tree.root / "selection"
    selection.write_text("\n".join(tests), "utf-8")
    code, output = tree.pytest("-x", "--timeout", "60", f"@{selection}", limit=limit)
    if code is None:
        return "it hangs"
    missing = {name.partition("[")[0] for name in _MISSING.findall(output)}
    if code == _WRONG_USE and missing and "ERROR collecting" not in output:
        # The tests of the recording are not all there any more.
        rest = [test for test in tests if str(tree.root / test.partition("[")[0]) not in missing]
        if len(rest) == len(tests):
            raise SystemExit(output[-2000:])
        return _first_failure(tree, rest, limit) if rest else None
    if code == 0:
        return None
    failed = _FAILED.search(output)
    return failed[1] if failed else output[-200:]


def _run(what: str, work: Sequence[Callable[[Tree], Verdict]], trees: Sequence[Tree], wanted: float) -> bool:
    """Everything, each in a free copy; the share that was noticed, and whether that is enough."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(judge: Callable[[Tree], Verdict]) -> Verdict:
        tree = free.get()
        try:
            return judge(tree)
        finally:
            free.put(tree)

    verdicts: list[Verdict] = []
    pool = ThreadPoolExecutor(len(trees))
    try:
        for done in as_completed([pool.submit(one, judge) for judge in work]):
            verdicts.append(verdict := done.result())
            state = "noticed " if verdict.noticed else "SURVIVED"
            print(f"{state} {verdict.name}  ({verdict.by}, {verdict.seconds:.0f} s)", flush=True)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for tree in trees:
            tree.stop()
        raise
    pool.shutdown()
    noticed = sum(verdict.noticed for verdict in verdicts)
    share = noticed / len(verdicts) if verdicts else 1.0
    print(f"{what}: {noticed} of {len(verdicts)} noticed, {share:.1%} (wanted: {wanted:.0%})", flush=True)
    return share >= wanted


def _is_chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(text in name for text in only)


def _random_mutants(root: Path, count: int, seed: int, only: Sequence[str]) -> list[Mutant]:
    """A choice that stays the same while what it was made from does, wherever lines move; without equivalent ones."""
    known = {(each.file, each.context, each.new) for each in equivalents()}
    chosen: list[Mutant] = []
    for mutant in _by_chance(all_mutants(root), seed):
        if len(chosen) == count:
            break
        if not _is_chosen(mutant.name, only):
            continue
        if (mutant.file, mutant.context, mutant.new) not in known and mutant.apply(root) is not None:
            chosen.append(mutant)
    return chosen


def _by_chance(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """In an order by chance, in which the place of each does not depend on any other."""
    seen: Counter[str] = Counter()
    ranked: list[tuple[bytes, Mutant]] = []
    for mutant in mutants:
        what = f"{seed} {mutant.file} {mutant.context} {mutant.operator} {mutant.old} {mutant.new}"
        seen[what] += 1
        ranked.append((hashlib.sha256(f"{what} {seen[what]}".encode()).digest(), mutant))
    return [mutant for _, mutant in sorted(ranked, key=lambda pair: pair[0])]


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--random", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="TEXT", action="append", default=[])
    parser.add_argument("--trust", action="store_true")
    parser.add_argument("--workers", type=int, default=int(os.environ.get("WORKERS", "2")))
    options = parser.parse_args()
    # A background job has SIGINT ignored; either ends a run and all that it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    everything = not (options.record or options.entries or options.random)
    folder = Path(tempfile.mkdtemp(prefix="pegboard-mutants-"))
    enough = True
    try:
        trees = [Tree(folder / str(number)) for number in range(options.workers)]
        if options.record or ((everything or options.random) and not TIMES.exists()):
            record(Tree(folder / "recorded"), options.workers)
        sure: bool = not options.trust
        if options.entries or everything:
            chosen = [each for each in breaks() if _is_chosen(each.name, options.only)]
            work = [lambda tree, each=each: entry_verdict(tree, each, confirm=sure) for each in chosen]
            enough &= _run("entries", work, trees, ENTRIES_WANTED)
        if options.random or everything:
            known = CoverageMap(trees[0].root)
            picked = _random_mutants(trees[0].root, options.random or 200, options.seed, options.only)
            work = [lambda tree, each=each: random_verdict(tree, each, known, confirm=sure) for each in picked]
            enough &= _run("random", work, trees, RANDOM_WANTED)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
