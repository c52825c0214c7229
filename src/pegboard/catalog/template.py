"""URI templates, as far as routing needs them: whether a URI could have come from one."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
# What an expression may stand for, by its operator: characters it cannot contain, and what it begins with.
_OPERATORS = {"": "/?#", "+": "", "#": "", ".": "/?#", "/": "?#", ";": "?#", "?": "#", "&": "#"}
_LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the texts that must be there, and what may stand between them."""

    literals: tuple[str, ...]
    forbidden: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Read a template; what is no expression is taken as it stands."""
        literals: list[str] = []
        forbidden: list[str] = []
        end = 0
        for match in _EXPRESSION.finditer(text):
            operator = match[1][:1] if match[1][:1] in _OPERATORS else ""
            literals.append(text[end : match.start()])
            forbidden.append(_OPERATORS[operator])
            end = match.end()
        literals.append(text[end:])
        return cls(tuple(literals), tuple(forbidden))

    @property
    def weight(self) -> int:
        """How much of a URI is fixed: of two templates that match, the heavier one is meant."""
        return sum(map(len, self.literals))

    def matches(self, uri: str) -> bool:
        """Whether this URI could have come from the template, in one pass over it."""
        if len(uri) > _LONGEST or not uri.startswith(self.literals[0]):
            return False
        if not self.forbidden:
            return uri == self.literals[0]
        position = len(self.literals[0])
        for literal, forbidden in zip(self.literals[1:-1], self.forbidden[:-1], strict=True):
            found = uri.find(literal, position) if literal else position
            if found < 0 or not _clean(uri[position:found], forbidden):
                return False
            position = found + len(literal)
        last = len(uri) - len(self.literals[-1])
        return last >= position and uri.endswith(self.literals[-1]) and _clean(uri[position:last], self.forbidden[-1])


def _clean(text: str, forbidden: str) -> bool:
    return not any(character in text for character in forbidden)
