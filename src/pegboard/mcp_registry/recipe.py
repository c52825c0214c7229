"""A recipe: one way to run a server, with blanks for what its user has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pegboard.mcp_registry.question import Question, question_of
from pegboard.mcp_registry.server_json import RegistryInput
from pegboard.mcp_registry.template import Blank, Template, UnusableText, blanks_of, check_visible, parse_template


class CannotRun(ValueError):  # noqa: N818  it names the outcome
    """A way that cannot be taken; the message says why, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Ingredient:
    """Words of a command line, or the one of a variable or a header. All of it is left out if a blank stays empty."""

    words: tuple[Template, ...]
    is_repeated: bool = False
    # A switch: if the answer to this question is true, its first word stands alone; if it is false, nothing does.
    switch: str | None = None
    # The variable of a container that it sets, if that has a value.
    variable: str | None = None

    @property
    def keys(self) -> list[str]:
        """The questions that it needs."""
        return [key for word in self.words for key in blanks_of(word)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One way to run a server."""

    # npm, pypi, oci, nuget, mcpb, …, or remote.
    kind: str
    # What is run or reached, in a word: the package and its version, or the host.
    about: str
    command: str | None = None
    arguments: tuple[Ingredient, ...] = ()
    # Those among them that are options of the command itself, and not of the server.
    runtime: tuple[Ingredient, ...] = ()
    # What the command gets in its environment, or what a container gets.
    environment: Mapping[str, Ingredient] = field(default_factory=dict[str, Ingredient])
    transport: str = "http"
    url: Template = ()
    headers: Mapping[str, Ingredient] = field(default_factory=dict[str, Ingredient])
    questions: Mapping[str, Question] = field(default_factory=dict[str, Question])
    # What somebody should know before saying yes.
    warnings: tuple[str, ...] = ()
    # Why it cannot be run, and what to do instead.
    problem: str | None = None


class RecipeBuilder:
    """Collects the questions and the warnings of a recipe while its parts are read."""

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self.warnings: list[str] = []
        # How many more values than one were asked for by the same name.
        self._more: Counter[str] = Counter()

    def warn(self, text: str) -> None:
        """Something to know before a yes; once is enough."""
        if text not in self.warnings:
            self.warnings.append(text)

    def value(self, name: str, about: RegistryInput, *, variable: str | None = None) -> Ingredient:
        """The value of a variable or a header of this name."""
        if about.value is not None:
            return Ingredient((self._constant(about),))
        self._ask(question_of(name, about, variable=variable))
        return Ingredient(((Blank(name),),))

    def argument(self, about: RegistryInput, place: int) -> Ingredient:
        """What an argument adds to a command line."""
        if about.is_positional:
            key = about.hint or f"argument_{place}"
            word = self._constant(about) if about.value is not None else self._blank(key, about)
            return Ingredient((word,), about.is_repeated)
        name, key = (about.name,), about.name.lstrip("-") or about.name
        if about.value is not None:
            value = self._constant(about)
            return Ingredient((name, value) if value else (name,), about.is_repeated)
        if _is_constant(about):
            return Ingredient((name,))
        if about.format == "boolean" or (_says_no_value(about) and not about.is_required):
            return self._switch(key, about)
        return Ingredient((name, self._blank(key, about)), about.is_repeated)

    def address(self, text: str, variables: Mapping[str, RegistryInput]) -> Template:
        """An address; whatever is open in it has to be known."""
        template = parse_template(text)
        for key in blanks_of(template):
            self._ask(question_of(key, variables.get(key, RegistryInput()), is_required=True))
        return template

    def _switch(self, key: str, about: RegistryInput) -> Ingredient:
        word = self._blank(key, about)
        return Ingredient(((about.name,), word), about.is_repeated, switch=key)

    def _blank(self, key: str, about: RegistryInput) -> Template:
        # Two arguments are two values, whatever they are called.
        name = key
        while name in self.questions:
            self._more[key] += 1
            name = f"{key}_{self._more[key] + 1}"
        self._ask(question_of(name, about))
        return (Blank(name),)

    def _constant(self, about: RegistryInput) -> Template:
        template = parse_template(about.value or "", about.variables)
        for key in blanks_of(template):
            inner = about.variables[key]
            self._ask(question_of(key, inner, is_required=about.is_required))
        return template

    def _ask(self, question: Question) -> None:
        try:
            check_visible(question.key, "the name of a value")
            check_visible(question.default or "", f"the default of {question.key}")
        except UnusableText as exc:
            raise CannotRun(str(exc)) from None
        known = self.questions.get(question.key)
        self.questions[question.key] = question if known is None else known.join(question)


def _is_constant(about: RegistryInput) -> bool:
    """Whether there is nothing but a name: nobody is asked for anything."""
    return _says_no_value(about) and not about.description


def _says_no_value(about: RegistryInput) -> bool:
    """Whether nothing hints at a value behind a name, so that it may be a switch."""
    hints = (
        about.is_repeated,
        about.default,
        about.placeholder,
        about.hint,
        about.choices,
        about.format,
        about.variables,
    )
    return not about.is_secret and not any(hints)
