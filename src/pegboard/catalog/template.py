"""URI templates, as far as routing needs them: whether a URI could have come from one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
# What an expression cannot stand for, by its operator.
_OPERATORS = {"": "/?#", "+": "", "#": "", ".": "/?#", "/": "?#", ";": "?#", "?": "#", "&": "#"}
# What may stand in a URI as it is; anything else in a template's own text is written with percent signs there.
_SAFE = "!#$%&'()*+,/:;=?@[]~"
_LONGEST = 4096
_MAX_EXPRESSIONS = 64


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the texts that must be there, and what must not stand between them."""

    literals: tuple[str, ...]
    forbidden: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Read a template; what is no expression is taken as it stands."""
        literals: list[str] = []
        forbidden: list[str] = []
        end = 0
        if len(text) > _LONGEST or text.count("{") > _MAX_EXPRESSIONS:
            # Nobody means that; it matches itself and nothing else.
            return cls((text,), ())
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
        """Whether this URI could have come from the template; every way to read it is followed at once."""
        if len(uri) > _LONGEST:
            return False
        places = _after(uri, {0}, self.literals[0])
        for literal, forbidden in zip(self.literals[1:], self.forbidden, strict=True):
            if not places:
                return False
            places = _after(uri, _reached(uri, places, forbidden), literal)
        return len(uri) in places


def _after(uri: str, places: set[int], literal: str) -> set[int]:
    """Where one can be behind a text, coming from these places."""
    if not literal:
        return places
    forms = {literal, quote(literal, safe=_SAFE, errors="replace")}
    return {place + len(form) for place in places for form in forms if uri.startswith(form, place)}


def _reached(uri: str, places: set[int], forbidden: str) -> set[int]:
    """Where one can be behind an expression, coming from these places."""
    reached: set[int] = set()
    going = False
    for place in range(min(places), len(uri) + 1):
        going = going or place in places
        if going:
            reached.add(place)
            # The character here can be part of what the expression stands for, or ends it.
            going = place < len(uri) and uri[place] not in forbidden
    return reached
