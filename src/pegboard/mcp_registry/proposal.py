"""A proposal: the config entry that a recipe becomes, with the answers to its questions. Secrets are never in it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pegboard.config.address import url_problem
from pegboard.exactjson import as_list
from pegboard.mcp_registry.packages import package_recipe
from pegboard.mcp_registry.question import Question, WrongAnswer
from pegboard.mcp_registry.recipe import CannotRun, Ingredient, Recipe
from pegboard.mcp_registry.remotes import remote_recipe
from pegboard.mcp_registry.runtime_options import option_warnings, variable_warnings
from pegboard.mcp_registry.server_json import RegistryServer
from pegboard.mcp_registry.template import (
    Blank,
    Template,
    UnusableText,
    VariableReference,
    check_visible,
    is_reference,
    join,
)
from pegboard.names import nearest
from pegboard.terminal import visible_json

# So many characters an entry may have: a few in a record can become millions, if a long default stands in many places.
_MAX_LENGTH = 100_000

Answers = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would be written into the config, and which variables it takes from the environment."""

    entry: dict[str, object]
    variables: Mapping[str, Question]
    # What somebody should know before saying yes.
    warnings: tuple[str, ...] = ()


def recipes_of(server: RegistryServer) -> list[Recipe]:
    """Every way to run a server, packages first."""
    return [*map(package_recipe, server.packages), *map(remote_recipe, server.remotes)]


def problem_of(recipe: Recipe) -> str | None:
    """Why a recipe cannot be used, whatever is answered, or `None`."""
    if recipe.problem is not None:
        return recipe.problem
    try:
        propose(recipe, "server", {})
    except (CannotRun, UnusableText) as exc:
        return str(exc)
    return None


def propose(recipe: Recipe, server: str, answers: Answers) -> Proposal:
    """The entry of a server of this name. Raises `WrongAnswer`, `UnusableText`, `CannotRun`."""
    for key, given in answers.items():
        question = recipe.questions.get(key)
        if question is None:
            close = nearest(key, recipe.questions, limit=1)
            raise WrongAnswer(f"it asks for no {key!r}{f': did you mean {close[0]}?' if close else ''}")
        question.check(given)
    return _RecipeFilling(recipe, server, answers).proposal()


def may_come_of(recipe: Recipe, entry: Mapping[str, object]) -> bool:
    """Whether a recipe can have become this entry, whatever was answered: what is fixed in one is in the other."""
    if recipe.command is None:
        return all(part in str(entry.get("url")) for part in recipe.url if isinstance(part, str))
    fixed = [each for each in recipe.arguments if not each.keys and each.switch is None and each.variable is None]
    words = {join([part for part in word if isinstance(part, str)]) for each in fixed for word in each.words}
    return entry.get("command") == recipe.command and words <= set(map(str, as_list(entry.get("args")) or []))


def command_line(entry: Mapping[str, object]) -> str:
    """What an entry runs or reaches, exactly, as one line; what could be misread is escaped."""
    if "url" in entry:
        return visible_json(str(entry["url"]))
    words = [str(entry["command"]), *map(str, as_list(entry.get("args")) or [])]
    return visible_json(" ".join(map(_quote, words)))


def _quote(word: str) -> str:
    # What is filled in later reads better without quotes, and there is no shell that could misread it.
    return word if word.startswith("${") and word.endswith("}") and word.count("$") == 1 else shlex.quote(word)


class _RecipeFilling:
    """Puts answers into the blanks of one recipe."""

    def __init__(self, recipe: Recipe, server: str, answers: Answers) -> None:
        self._recipe = recipe
        self._server = server
        self._answers = answers
        self._variables: dict[str, Question] = {}
        self._length = 0

    def proposal(self) -> Proposal:
        recipe = self._recipe
        if recipe.command is None:
            entry: dict[str, object] = {"type": recipe.transport, "url": self._url()}
            headers = self._values(recipe.headers, "a header")
            return Proposal(entry | ({"headers": headers} if headers else {}), self._variables, recipe.warnings)
        values = self._values(recipe.environment, "a variable")
        args = [word for each in recipe.arguments for word in self._words(each, values)]
        # Of the words that will run, whoever chose them.
        options = [word for each in recipe.runtime for word in self._words(each, values)]
        of_container = {each.variable for each in recipe.arguments} & set(values)
        env = {name: values[name] for name in values if name not in of_container or not self._stays_inside(name)}
        told = (*option_warnings(recipe.command, options), *variable_warnings(recipe.command, env))
        entry = {"command": recipe.command, "args": args}
        return Proposal(entry | ({"env": env} if env else {}), self._variables, (*recipe.warnings, *told))

    def _url(self) -> str:
        url = self._text(self._recipe.url, 0, "the address")
        if not is_reference(url) and (problem := url_problem(url)):
            raise WrongAnswer(f"with these values the address {problem}")
        return url

    def _values(self, ingredients: Mapping[str, Ingredient], what: str) -> dict[str, str]:
        filled = {name: each for name, each in ingredients.items() if self._has_all(each)}
        return {name: self._text(each.words[0], 0, what) for name, each in filled.items()}

    def _stays_inside(self, name: str) -> bool:
        """Whether only the container gets the value of a variable. What the publisher chose must not steer docker
        itself; what is secret or wholly the user's must not stand on a command line."""
        ingredient = self._recipe.environment[name]
        values = [part for key in ingredient.keys for part in self._parts(key)]
        is_secret = any(self._recipe.questions[key].is_secret for key in ingredient.keys)
        if is_secret or any(isinstance(value, VariableReference) for value in values):
            return False
        (word,) = ingredient.words
        return not word or any(isinstance(part, str) or part.key not in self._answers for part in word)

    def _words(self, ingredient: Ingredient, values: Mapping[str, str]) -> Iterator[str]:
        words = ingredient.words
        if (name := ingredient.variable) is not None:
            if name in values:
                yield from ("-e", f"{name}={values[name]}" if self._stays_inside(name) else name)
            return
        if (switch := ingredient.switch) is not None:
            words = words[: self._switch_length(switch, len(words))]
        if not words or not self._has_all(ingredient):
            return
        times = max((len(self._parts(key)) for key in ingredient.keys), default=1) if ingredient.is_repeated else 1
        for at in range(times):
            yield from (self._text(word, at, "an argument") for word in words)

    def _switch_length(self, switch: str, length: int) -> int:
        """How many of its words a switch has."""
        answer = (self._answers.get(switch) or [self._recipe.questions[switch].default])[0]
        return {None: 0, "false": 0, "true": 1}.get(answer, length)

    def _has_all(self, ingredient: Ingredient) -> bool:
        return all(self._parts(key) for key in ingredient.keys)

    def _text(self, template: Template, at: int, where: str) -> str:
        parts: list[str | VariableReference] = []
        for part in template:
            if isinstance(part, Blank):
                values = self._parts(part.key)
                parts.append(values[min(at, len(values) - 1)])
            else:
                check_visible(part, where)
                parts.append(part)
            self._count(parts[-1])
        return join(parts)

    def _count(self, part: str | VariableReference) -> None:
        self._length += len(part if isinstance(part, str) else part.text)
        if self._length > _MAX_LENGTH:
            raise UnusableText(f"its entry would have more than {_MAX_LENGTH:,} characters")

    def _parts(self, key: str) -> list[str | VariableReference]:
        """The values for a question: those given, else the default, else what the environment will hold."""
        question = self._recipe.questions[key]
        given = self._answers.get(key)
        if given and not question.is_secret:
            return [self._user_value(key, value) for value in given]
        if given and all(map(is_reference, given)):
            return [VariableReference(value) for value in given]
        if question.default is not None and not question.is_secret:
            return [question.default]
        if not question.is_required and not given:
            return []
        variable = question.variable_for(self._server)
        self._variables[variable] = question
        return [VariableReference(f"${{{variable}}}")]

    @staticmethod
    def _user_value(key: str, value: str) -> str | VariableReference:
        check_visible(value, key)
        return VariableReference(value) if is_reference(value) else value
