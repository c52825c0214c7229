"""URI templates, as far as routing needs them: whether a URI could have come from one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import quote

# How many templates of one server there are at most.
MAX_TEMPLATES = 500
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#]*)?")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
# What an expression cannot stand for, by its operator.
_OPERATORS = {"": "/?#", "+": "", "#": "", ".": "/?#", "/": "?#", ";": "?#", "?": "#", "&": "#"}
# What may stand in a URI as it is; anything else in a template's own text is written with percent signs there.
_SAFE = "!#$%&'()*+,/:;=?@[]~"
# What is compared at most: characters of a URI and of a template, its expressions, and its text behind the first one.
_MAX_URI, _MAX_TEMPLATE, _MAX_EXPRESSIONS, _MAX_INNER = 4096, 1024, 16, 256


class Uri:
    """A URI that templates are compared with. A set of places in it is a number: bit `n` stands for `text[n]`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_too_long = len(text) > _MAX_URI
        self._places: dict[str, int] = {}
        self._allowed: dict[str, int] = {}

    def places_of(self, character: str) -> int:
        """Where a character stands."""
        places = self._places.get(character)
        if places is None:
            digits = "1".join("0" * len(part) for part in self._backwards.split(character))
            places = self._places[character] = int(digits or "0", 2)
        return places

    def behind_literal(self, places: int, literal: str) -> int:
        """Where one can be behind a text, coming from these places."""
        for at, character in enumerate(literal):
            places &= self.places_of(character) >> at
            if not places:
                break
        return places << len(literal)

    def behind_expression(self, places: int, forbidden: str) -> int:
        """Where one can be behind an expression, coming from these places."""
        allowed = self._allowed.get(forbidden)
        if allowed is None:
            allowed = (1 << len(self.text)) - 1
            for character in forbidden:
                allowed &= ~self.places_of(character)
            self._allowed[forbidden] = allowed
        # In a run of allowed characters the carry goes from the first place to the one behind the run.
        return places | ((places & allowed) + allowed) ^ allowed

    @cached_property
    def case_folded(self) -> Uri:
        """The same with its scheme and host in lower case."""
        folded = fold_host(self.text)
        return self if folded == self.text else Uri(folded)

    @cached_property
    def _backwards(self) -> str:
        return self.text[::-1]


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the texts that must be there, and what must not stand between them."""

    literals: tuple[str, ...]
    forbidden: tuple[str, ...]
    # Each text as it can stand in a URI.
    forms: tuple[tuple[str, ...], ...] = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Template:
        """Read a template; what is no expression is taken as it stands."""
        literals: list[str] = []
        forbidden: list[str] = []
        end = 0
        if len(text) > _MAX_TEMPLATE or text.count("{") > _MAX_EXPRESSIONS:
            return cls._of_itself(text)
        for match in _EXPRESSION.finditer(text):
            operator = match[1][:1] if match[1][:1] in _OPERATORS else ""
            literals.append(text[end : match.start()])
            forbidden.append(_OPERATORS[operator])
            end = match.end()
        literals.append(text[end:])
        if sum(map(len, literals[1:])) > _MAX_INNER:
            return cls._of_itself(text)
        return cls(tuple(literals), tuple(forbidden), (_first_forms(literals[0]), *map(_forms, literals[1:])))

    @classmethod
    def _of_itself(cls, text: str) -> Template:
        """Of what nobody means as a template: it matches itself and nothing else."""
        return cls((text,), (), (_first_forms(text),))

    @property
    def weight(self) -> int:
        """How much of a URI is fixed: of two templates that match, the heavier one is meant."""
        return sum(map(len, self.literals))

    @property
    def beginning(self) -> str:
        """How all of its URIs begin, encoded, and with scheme and host in lower case."""
        return self.forms[0][-1]

    @property
    def scheme(self) -> str:
        """The scheme of all of its URIs, if that is fixed."""
        return scheme_of(self.literals[0])

    @property
    def origin(self) -> str:
        """Scheme and authority of all of its URIs; nothing where one of them is open."""
        literal = self.literals[0]
        origin = origin_of(literal)
        is_open = "//" in origin and len(origin) == len(literal) and bool(self.forbidden)
        return "" if is_open else origin

    def matches(self, uri: Uri) -> bool:
        """Whether this URI could have come from the template; every way to read it is followed at once. The case of its
        scheme and host makes no difference."""
        if uri.is_too_long:
            return False
        return self._matches(uri) or (uri.case_folded is not uri and self._matches(uri.case_folded))

    def _matches(self, uri: Uri) -> bool:
        text = uri.text
        if not self.forbidden:
            return text in self.forms[0]
        if not any(map(text.endswith, self.forms[-1])):
            return False
        places = sum(1 << len(form) for form in self.forms[0] if text.startswith(form))
        for forbidden, forms in zip(self.forbidden[:-1], self.forms[1:-1], strict=True):
            if not places:
                return False
            reached = uri.behind_expression(places, forbidden)
            places = 0
            for form in forms:
                places |= uri.behind_literal(reached, form)
        reached = uri.behind_expression(places, self.forbidden[-1])
        return any(
            text.endswith(form) and len(form) <= len(text) and reached >> (len(text) - len(form)) & 1
            for form in self.forms[-1]
        )


def origin_of(uri: str) -> str:
    """Scheme and authority of a URI in lower case, `scheme:` of one without an authority, nothing where there is no
    scheme."""
    match = _ORIGIN.match(uri)
    if match is None:
        return ""
    # In other scripts lower case may be longer, and nobody but DNS knows what is the same.
    return match[0].lower() if match[0].isascii() else match[0]


def fold_host(uri: str) -> str:
    """A URI with its scheme and host in lower case: what differs in nothing else is the same, as RFC 3986 has it."""
    origin = origin_of(uri)
    return uri if uri.startswith(origin) else f"{origin}{uri[len(origin) :]}"


def scheme_of(uri: str) -> str:
    """The scheme of a URI, nothing where there is none."""
    return origin_of(uri).partition(":")[0]


def _first_forms(literal: str) -> tuple[str, ...]:
    """Those of the text that a template begins with; the last one is encoded and folded."""
    return tuple(dict.fromkeys(each for form in _forms(literal) for each in (form, fold_host(form))))


def _forms(literal: str) -> tuple[str, ...]:
    encoded = quote(literal, safe=_SAFE, errors="replace")
    return (literal,) if encoded == literal else (literal, encoded)
