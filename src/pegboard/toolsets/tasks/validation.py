"""What is wrong in an OpenSpec folder, by OpenSpec's own rules, and with its tasks: where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pegboard.toolsets.tasks import budget
from pegboard.toolsets.tasks.check import circle, not_found
from pegboard.toolsets.tasks.cycles import round_trip
from pegboard.toolsets.tasks.folder import PROPOSAL, SPEC, TASKS, Contents, Folder, Unreadable
from pegboard.toolsets.tasks.requirements import Requirement, Section, duplicates, sections
from pegboard.toolsets.tasks.state import State
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.validation import quote

Severity = Literal["error", "warning", "info"]
_SHORTEST, _LONGEST_WHY, _LONGEST_REQUIREMENT, _MOST_DELTAS = 50, 1000, 500, 10
# A message repeats names, which are as long as somebody wrote them.
_LONGEST_MESSAGE = 1_000
_DELTAS = ("ADDED", "MODIFIED", "REMOVED", "RENAMED")
_SCENARIO_ADVICE = "write one as `#### Scenario: NAME` with - **WHEN** … and - **THEN** … below it"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, where, and what to do about it."""

    severity: Severity
    file: str
    line: int
    message: str
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        return {
            "severity": self.severity,
            "file": self.file,
            "line": self.line,
            "message": budget.truncate(self.message, _LONGEST_MESSAGE),
            "advice": self.advice,
        }


class Validation:
    """Looks through a folder, or one spec or change of it."""

    def __init__(self, folder: Folder, contents: Contents, state: State) -> None:
        self._folder = folder
        self._contents = contents
        self._state = state
        self._first_in_circle: dict[int, TaskId] = {}

    def findings(self, name: str | None = None) -> list[Finding]:
        """Everything that is wrong, the worst first within a file."""
        order: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}
        return sorted(self._all(name), key=lambda each: (each.file, order[each.severity], each.line))

    def _all(self, name: str | None) -> Iterator[Finding]:
        specs, changes = self._folder.names("specs"), list(self._contents.changes)
        if name is not None and name not in {*specs, *changes, *self._contents.unread}:
            raise not_found(f"there is no spec or change {quote(name)}; spec_list shows those there are")
        for path, reason in self._contents.problems:
            if name is None or path == f"changes/{name}":
                yield Finding("error", path, 0, reason, "so nothing of this change is read: put it right")
        for spec in specs:
            if name in {None, spec}:
                yield from self._spec(spec)
        for change in changes:
            if name in {None, change}:
                yield from self._change(change)

    def _spec(self, name: str) -> Iterator[Finding]:
        file = f"specs/{name}/{SPEC}"
        text, unread = self._text(file)
        yield from unread
        if text is None:
            if not unread:
                yield Finding("error", file, 0, "there is no spec.md in this folder", "write one, or remove the folder")
            return
        found = sections(text)
        by_title = {section.title.lower(): section for section in reversed(found)}
        purpose, required = by_title.get("purpose"), by_title.get("requirements")
        if purpose is None:
            yield Finding("error", file, 1, "there is no ## Purpose", "say below ## Purpose what the spec is for")
        elif len(purpose.text) < _SHORTEST:
            what = f"the purpose is shorter than {_SHORTEST} characters"
            yield Finding("warning", file, purpose.line, what, "say a little more")
        if required is None:
            yield Finding("error", file, 1, "there is no ## Requirements", "put the requirements below ## Requirements")
        elif not required.requirements:
            what = "there is no requirement"
            yield Finding("error", file, required.line, what, "write one as `### Requirement: NAME`")
        for section in found:
            yield from self._spec_section(file, section)

    def _spec_section(self, file: str, section: Section) -> Iterator[Finding]:
        kind = section.title.upper().partition(" ")[0]
        if kind in _DELTAS and section.title.upper().endswith("REQUIREMENTS"):
            what = f"## {section.title} belongs into a change, not into a spec"
            yield Finding("error", file, section.line, what, "write ## Requirements")
        elif section.requirements and section.title.lower() != "requirements":
            line = section.requirements[0].line
            what = "a requirement that is not below ## Requirements is not read"
            yield Finding("error", file, line, what, "move it there")
        for requirement in section.requirements:
            yield from _about(file, requirement)
        yield from _twice(file, section.names())
        yield from _unread_headings(file, section)

    def _change(self, name: str) -> Iterator[Finding]:
        yield from self._proposal(name)
        yield from self._deltas(name)
        yield from self._tasks(name)

    def _proposal(self, name: str) -> Iterator[Finding]:
        file = f"changes/{name}/{PROPOSAL}"
        text, unread = self._text(file)
        yield from unread
        if text is None:
            if not unread:
                yield Finding("error", file, 0, "there is no proposal.md", "write one with ## Why and ## What Changes")
            return
        by_title = {section.title.lower(): section for section in reversed(sections(text))}
        why, what = by_title.get("why"), by_title.get("what changes")
        if why is None:
            yield Finding("error", file, 1, "there is no ## Why", "say why this change is needed")
        elif len(why.text) < _SHORTEST:
            yield Finding("error", file, why.line, f"## Why has fewer than {_SHORTEST} characters", "say more")
        elif len(why.text) > _LONGEST_WHY:
            yield Finding("warning", file, why.line, f"## Why has more than {_LONGEST_WHY} characters", "say less")
        if what is None or not what.text:
            line = what.line if what is not None else 1
            yield Finding("error", file, line, "## What Changes is missing or empty", "list what changes")

    def _deltas(self, name: str) -> Iterator[Finding]:
        base = f"changes/{name}/specs"
        total = 0
        for spec in self._folder.names(base):
            file = f"{base}/{spec}/{SPEC}"
            text, unread = self._text(file)
            yield from unread
            if text is None:
                continue
            deltas = _Deltas(file, sections(text), self._requirements_of(spec))
            total += deltas.count
            yield from deltas.findings()
        place = f"changes/{name}"
        if not total:
            what = "the change has no delta"
            advice = "say in specs/NAME/spec.md what it changes, below ## ADDED Requirements or the like"
            yield Finding("error", place, 0, what, advice)
        elif total > _MOST_DELTAS:
            yield Finding("info", place, 0, f"the change has {total} deltas", "consider parting it")

    def _requirements_of(self, spec: str) -> set[str] | None:
        """The requirements that a spec has now; `None` where there is no such spec yet."""
        text, _ = self._text(f"specs/{spec}/{SPEC}")
        if text is None:
            return None
        return {requirement.key for section in sections(text) for requirement in section.requirements}

    def _tasks(self, name: str) -> Iterator[Finding]:
        file = f"changes/{name}/{TASKS}"
        change = self._state.changes.get(name)
        if change is None:
            yield Finding("warning", file, 0, "there is no tasks.md", "write down what is to be done, each as - [ ] …")
            return
        if not change.tasks:
            yield Finding("warning", file, 0, "there is no task in it", "write tasks as - [ ] …")
        for problem in change.file.problems:
            yield Finding("error", file, problem.line, problem.message, problem.advice)
        for task in change.tasks:
            for needed in self._state.needs.get(task.id, ()):
                if self._state.task(needed) is None:
                    what = f"{task.id} depends on {needed}, which does not exist"
                    yield Finding("error", file, task.line, what, "so it is never offered: put the number right")
            if task.id in self._state.cyclic:
                what = f"{task.id} depends on itself: {self._circle(task.id)}"
                yield Finding("error", file, task.line, what, "so none of them is ever offered: remove one dependency")

    def _circle(self, task: TaskId) -> str:
        """The way back to a task. It is looked for from one task of a circle; the others are told to be in that one."""
        needs, cyclic = self._state.needs, self._state.cyclic
        first = self._first_in_circle.setdefault(cyclic[task], task)
        return circle(round_trip(needs, task)) if first == task else f"it is in the cycle of {first}"

    def _text(self, file: str) -> tuple[str | None, list[Finding]]:
        path = self._folder.root / file
        try:
            return self._folder.text(path), []
        except Unreadable as exc:
            return None, [Finding("error", file, 0, str(exc), "put it right")]


class _Deltas:
    """The deltas of one spec in a change."""

    def __init__(self, file: str, found: list[Section], existing: set[str] | None) -> None:
        self._file = file
        self._existing = existing
        self._sections: dict[str, list[Section]] = {kind: [] for kind in _DELTAS}
        self._others: list[Section] = []
        for section in found:
            kind = section.title.upper().removesuffix(" REQUIREMENTS").strip()
            known = kind in self._sections and section.title.upper().endswith("REQUIREMENTS")
            (self._sections[kind] if known else self._others).append(section)
        self._names = {
            kind: [name for section in self._sections[kind] for name in section.names()]
            for kind in ("ADDED", "MODIFIED", "REMOVED")
        }
        self._renames = [pair for section in self._sections["RENAMED"] for pair in section.renames()]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self._names.values())) + len(self._renames)

    def findings(self) -> Iterator[Finding]:
        """What is wrong with them."""
        yield from self._structure()
        for kind in ("ADDED", "MODIFIED"):
            for section in self._sections[kind]:
                for requirement in section.requirements:
                    yield from _about(self._file, requirement)
                yield from _unread_headings(self._file, section)
        for names in self._names.values():
            yield from _twice(self._file, names)
        yield from self._conflicts()
        yield from self._pairs()
        yield from self._against_the_spec()

    def _structure(self) -> Iterator[Finding]:
        present = [section for kind in _DELTAS for section in self._sections[kind]]
        if not present:
            what = "there is no section of deltas"
            yield Finding("error", self._file, 1, what, "write ## ADDED Requirements, or MODIFIED, REMOVED, RENAMED")
        for section in present:
            if not [*section.names()] and not [*section.renames()]:
                what = f"## {section.title} holds no requirement that can be read"
                yield Finding("error", self._file, section.line, what, "write one as `### Requirement: NAME`")
        for section in self._others:
            for requirement in section.requirements:
                what = f'requirement "{requirement.name}" stands in no section of deltas, so it changes nothing'
                yield Finding("error", self._file, requirement.line, what, "move it below ## ADDED Requirements")

    def _conflicts(self) -> Iterator[Finding]:
        for one, other in (("MODIFIED", "REMOVED"), ("MODIFIED", "ADDED"), ("ADDED", "REMOVED")):
            there = {name for name, _ in self._names[one]}
            for name, line in self._names[other]:
                if name in there:
                    what = f'requirement "{name}" is in both {one} and {other}'
                    yield Finding("error", self._file, line, what, "keep one of the two")

    def _pairs(self) -> Iterator[Finding]:
        modified = dict(self._names["MODIFIED"])
        added = {name for name, _ in self._names["ADDED"]}
        removed = dict(self._names["REMOVED"])
        for old, new, line in self._renames:
            if not old or not new:
                what = "a FROM and a TO belong together, each with `### Requirement: NAME`"
                yield Finding("error", self._file, line, what, "write both")
            if old and old in modified:
                what = f'"{old}" is renamed, so MODIFIED has to call it "{new}"'
                yield Finding("error", self._file, modified[old], what, "use the new name there")
            if old and old in removed:
                yield Finding("error", self._file, removed[old], f'"{old}" is renamed as well', "keep one of the two")
            if new and new in added:
                yield Finding("error", self._file, line, f'"{new}" is in ADDED as well', "keep one of the two")
        yield from _twice(self._file, [(old, line) for old, _, line in self._renames if old])
        yield from _twice(self._file, [(new, line) for _, new, line in self._renames if new])

    def _against_the_spec(self) -> Iterator[Finding]:
        existing = self._existing or set[str]()
        renamed = {new for _, new, _ in self._renames}
        for kind in ("MODIFIED", "REMOVED"):
            for name, line in self._names[kind]:
                if name not in existing | renamed:
                    what = f'{kind} names "{name}", which the spec does not have'
                    yield Finding("error", self._file, line, what, "use the spec's own name for it")
        for old, _, line in self._renames:
            if old and old not in existing:
                what = f'RENAMED names "{old}", which the spec does not have'
                yield Finding("error", self._file, line, what, "use the spec's own name for it")
        for name, line in self._names["ADDED"]:
            if name in existing:
                what = f'ADDED names "{name}", which the spec has already'
                yield Finding("error", self._file, line, what, "put it below ## MODIFIED Requirements")


def _about(file: str, requirement: Requirement) -> Iterator[Finding]:
    name, line = requirement.name, requirement.line
    if not requirement.words:
        severity: Severity = "warning" if requirement.is_normative else "error"
        yield Finding(severity, file, line, f'requirement "{name}" has no text', "say below its heading what SHALL be")
    elif not requirement.is_normative:
        yield Finding("error", file, line, f'requirement "{name}" says neither SHALL nor MUST', "say what SHALL be")
    elif len(requirement.words) > _LONGEST_REQUIREMENT:
        what = f'requirement "{name}" has more than {_LONGEST_REQUIREMENT} characters'
        yield Finding("info", file, line, what, "consider parting it")
    if not requirement.scenarios and not requirement.odd:
        yield Finding("error", file, line, f'requirement "{name}" has no scenario', _SCENARIO_ADVICE)
    for heading in requirement.odd:
        # By its level it is one: so it counts for OpenSpec, too.
        what = f"#### {heading.title} is a scenario that is not called one"
        yield Finding("info", file, heading.line, what, _SCENARIO_ADVICE)


def _twice(file: str, names: Iterable[tuple[str, int]]) -> Iterator[Finding]:
    for name, line in duplicates(list(names)):
        yield Finding("error", file, line, f'requirement "{name}" stands there twice', "keep one of the two")


def _unread_headings(file: str, section: Section) -> Iterator[Finding]:
    for heading in section.other:
        if section.requirements or "requirements" in section.title.lower():
            what = f"### {heading.title} is not read as a requirement"
            yield Finding("warning", file, heading.line, what, "write ### Requirement: NAME")
