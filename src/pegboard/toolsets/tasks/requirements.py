"""Requirements as OpenSpec writes them: sections, requirements and their scenarios, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pegboard.toolsets.tasks.markdown import Heading, Line, headings, one_ending, plain_lines

REQUIREMENT = re.compile(r"Requirement:\s*+(.*)", re.IGNORECASE)
_SCENARIO = re.compile(r"Scenario:?\s*+(.*)", re.IGNORECASE)
_NORMATIVE = re.compile(r"\b(?:SHALL|MUST)\b")
_METADATA = re.compile(r"\*\*[^*]++\*\*:")
_NAMED = re.compile(r"`?###\s*+Requirement:\s*+(.+)", re.IGNORECASE)
_BULLET = re.compile(r"\s*+[-*]\s++")
_RENAMED = re.compile(r"\s*+(?:[-*]\s*+)?(FROM|TO):\s*+(.*)", re.IGNORECASE)


@dataclass(slots=True)
class Requirement:
    """A requirement: its name, its first words, and its scenarios."""

    name: str
    line: int
    text: list[str] = field(default_factory=list[str])
    # Lines like `**Priority**: high`; where there are no other words, these are the text.
    metadata: list[str] = field(default_factory=list[str])
    scenarios: list[str] = field(default_factory=list[str])
    # Headings that are scenarios by their level, but are not called so.
    odd: list[Heading] = field(default_factory=list[Heading])

    @property
    def is_normative(self) -> bool:
        """Whether it says what must be; one without a text says it in its name."""
        return _NORMATIVE.search(self.words or self.name) is not None

    @property
    def words(self) -> str:
        """What stands below its heading."""
        return " ".join(self.text or self.metadata)

    @property
    def key(self) -> str:
        """What tells it from others."""
        return self.name.strip()


@dataclass(slots=True)
class Section:
    """What stands under a heading of the second level."""

    title: str
    line: int
    lines: list[Line] = field(default_factory=list[Line])
    requirements: list[Requirement] = field(default_factory=list[Requirement])
    # Headings of the third level that are no requirements.
    other: list[Heading] = field(default_factory=list[Heading])

    @property
    def text(self) -> str:
        """Its words."""
        return "\n".join(line.text for line in self.lines).strip()

    def names(self) -> Iterator[tuple[str, int]]:
        """Requirements that it names, as headings or as a list."""
        yield from ((requirement.key, requirement.line) for requirement in self.requirements)
        for line in self.lines:
            bullet = _BULLET.match(line.text)
            name = _parse_name(line.text[bullet.end() :]) if bullet else None
            if name is not None:
                yield name, line.number

    def renames(self) -> Iterator[tuple[str, str, int]]:
        """Pairs of FROM and TO, with the line of the second; one without the other has an empty name."""
        waiting: tuple[str, int] | None = None
        for line in self.lines:
            match = _RENAMED.match(line.text)
            if match is None:
                continue
            name = _parse_name(match[2]) or ""
            if match[1].upper() == "FROM":
                if waiting is not None:
                    yield waiting[0], "", waiting[1]
                waiting = (name, line.number)
            else:
                yield waiting[0] if waiting else "", name, line.number
                waiting = None
        if waiting is not None:
            yield waiting[0], "", waiting[1]


def sections(text: str) -> list[Section]:
    """The sections of a spec; what stands before the first is in one without a title."""
    lines = plain_lines(one_ending(text)).plain
    by_line = {heading.line: heading for heading in headings(lines)}
    found = [Section("", 0)]
    for line in lines:
        heading = by_line.get(line.number)
        if heading is None or heading.level > 4:
            _add_text(found[-1], line)
        elif heading.level <= 2:
            found.append(Section(heading.title if heading.level == 2 else "", heading.line))
        else:
            _add_heading(found[-1], heading)
    return found


def duplicates(names: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Names that stand there a second time."""
    seen: set[str] = set()
    for name, line in names:
        if name in seen:
            yield name, line
        seen.add(name)


def _parse_name(text: str) -> str | None:
    """The requirement that a text names; it may stand between backquotes."""
    named = _NAMED.match(text.strip())
    return None if named is None else named[1].removesuffix("`").strip() or named[1]


def _add_heading(section: Section, heading: Heading) -> None:
    requirement = REQUIREMENT.match(heading.title)
    if heading.level == 3 and requirement is not None:
        section.requirements.append(Requirement(requirement[1].strip(), heading.line))
    elif heading.level == 3:
        section.other.append(heading)
    elif section.requirements:
        scenario = _SCENARIO.match(heading.title)
        if scenario is not None:
            section.requirements[-1].scenarios.append(scenario[1])
        else:
            section.requirements[-1].odd.append(heading)


def _add_text(section: Section, line: Line) -> None:
    section.lines.append(line)
    last = section.requirements[-1] if section.requirements else None
    words = line.text.strip()
    if last is None or last.scenarios or last.odd or not words:
        return
    (last.metadata if _METADATA.match(words) else last.text).append(words)
