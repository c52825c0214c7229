"""The kept breaks: for each entry of the ledger at least one change that its tests have to notice."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutants.tree import ROOT

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Break:
    """`old`, which stands in the file exactly once, becomes `new`."""

    entry: str
    file: str
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.entry} [{self.file}: {' '.join(self.new.split())[:60]}]"

    def apply(self, root: Path = ROOT) -> str:
        """The file of that tree with this break in it."""
        text = (root / self.file).read_text("utf-8")
        if (times := text.count(self.old)) != 1:
            raise ValueError(f"{self.entry}: its text stands {times} times in {self.file}: {self.old!r}")
        broken = text.replace(self.old, self.new)
        if self.file.endswith(".py"):
            compile(broken, self.file, "exec", dont_inherit=True)
        return broken


@cache
def breaks() -> list[Break]:
    data = tomllib.loads((HERE / "breaks.toml").read_text("utf-8"))
    return [Break(**each) for each in data["break"]]


@cache
def ledger() -> dict[str, list[str]]:
    """Entry → its tests."""
    data = tomllib.loads((ROOT / "tests" / "ledger.toml").read_text("utf-8"))
    return {f"{document}: {title}": tests for document, titles in data.items() for title, tests in titles.items()}


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant that no test can notice, and why."""

    file: str
    context: str
    new: str
    reason: str


@cache
def equivalents() -> list[Equivalent]:
    data = tomllib.loads((HERE / "equivalent.toml").read_text("utf-8"))
    return [Equivalent(**each) for each in data.get("mutant", [])]
